//! Recorded calls: what a strand has spawned, as its facts keep it.
//!
//! A strand may have as many facts as memory has room for. Most of its spawns differ from the one
//! before in nothing but their arguments, so they share the rest. Read next: `call`, `fact`.

use std::sync::Arc;

use crate::call::{CallKey, Invocation};
use crate::code::{CodeIdentity, Site};
use crate::descriptor::Descriptor;
use crate::digest::Digest;
use crate::members::Members;
use crate::reference::ObjectKey;

/// The key of a call that was spawned, and what messages say of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedCall {
    shared: Arc<Shared>,
    arguments: Digest,
    members: Members,
    inputs: Box<[ObjectKey]>,
    // There is room for these, and a fact needs no word to say which act it is.
    lazy: bool,
    live: bool,
}

/// What spawns that follow one another mostly have in common.
#[derive(PartialEq, Eq, Debug)]
struct Shared {
    code: CodeIdentity,
    executor: Arc<str>,
    outputs: u32,
    what: Arc<str>,
    site: Site,
}

impl Shared {
    fn of(descriptor: &Descriptor) -> Shared {
        Shared {
            code: descriptor.code.clone(),
            executor: descriptor.executor.clone(),
            outputs: descriptor.outputs,
            what: descriptor.what.clone(),
            site: descriptor.site.clone(),
        }
    }

    fn is_of(&self, descriptor: &Descriptor) -> bool {
        self.site == descriptor.site
            && self.what == descriptor.what
            && self.executor == descriptor.executor
            && self.code == descriptor.code
            && self.outputs == descriptor.outputs
    }
}

impl RecordedCall {
    /// That of a call of which the inputs are these objects; what it has in common with the one
    /// `before` is shared.
    pub fn of(
        descriptor: &Descriptor,
        inputs: &[ObjectKey],
        before: Option<&RecordedCall>,
    ) -> RecordedCall {
        let shared = before.map(|before| &before.shared);
        let shared = shared.filter(|shared| shared.is_of(descriptor)).cloned();
        RecordedCall {
            shared: shared.unwrap_or_else(|| Arc::new(Shared::of(descriptor))),
            arguments: descriptor.payload.digest(),
            members: descriptor.payload.members(),
            inputs: inputs.into(),
            lazy: descriptor.options.lazy,
            live: descriptor.options.live,
        }
    }

    /// That of a key, with what the call is called and where it stands in the program.
    pub(crate) fn with(key: CallKey, what: Arc<str>, site: Site) -> RecordedCall {
        let call = key.call;
        RecordedCall {
            shared: Arc::new(Shared {
                code: key.code,
                executor: call.executor,
                outputs: call.outputs,
                what,
                site,
            }),
            arguments: call.arguments,
            members: call.members,
            inputs: key.inputs,
            lazy: call.lazy,
            live: call.live,
        }
    }

    /// Its key, with which that of a replay is compared.
    pub fn key(&self) -> CallKey {
        CallKey {
            code: self.shared.code.clone(),
            call: Invocation {
                executor: self.shared.executor.clone(),
                arguments: self.arguments,
                members: self.members.clone(),
                outputs: self.shared.outputs,
                lazy: self.lazy,
                live: self.live,
            },
            inputs: self.inputs.clone(),
        }
    }

    /// What it is called.
    pub fn what(&self) -> &Arc<str> {
        &self.shared.what
    }

    /// Where it stands in the program.
    pub fn site(&self) -> &Site {
        &self.shared.site
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::{ActionKey, Fact, FactAct};
    use crate::order::SerialOrder;
    use crate::payload::Payload;
    use crate::reference::Handle;
    use crate::task::{Class, TaskKey};

    fn descriptor() -> Descriptor {
        let class = Class::Coordination;
        Descriptor::plain("python", class, "f", br#"{"n": 1}"#.to_vec())
    }

    #[test]
    fn calls_that_differ_in_arguments_share_the_rest() {
        let first = RecordedCall::of(&descriptor(), &[], None);
        let mut other = descriptor();
        other.payload = Payload::new(br#"{"n": 2}"#.to_vec());
        let second = RecordedCall::of(&other, &[ObjectKey(3)], Some(&first));
        assert!(Arc::ptr_eq(&first.shared, &second.shared));
        assert_eq!(second.key(), CallKey::of(&other, [ObjectKey(3)]));
    }

    /// A change of a descriptor.
    type Change = fn(&mut Descriptor);

    #[test]
    fn call_of_which_anything_else_differs_is_recorded_with_that() {
        let changes: [Change; 5] = [
            |it| it.site.line += 1,
            |it| it.what = "g".into(),
            |it| it.executor = "node".into(),
            |it| it.outputs = 2,
            |it| it.options = crate::Options::shared_live(),
        ];
        let first = RecordedCall::of(&descriptor(), &[], None);
        for change in changes {
            let mut other = descriptor();
            change(&mut other);
            let second = RecordedCall::of(&other, &[], Some(&first));
            assert_eq!(second.key(), CallKey::of(&other, []));
            assert_eq!((second.what(), second.site()), (&other.what, &other.site));
            assert_ne!(first, second);
        }
    }

    #[test]
    fn fact_of_a_spawn_is_small_and_comes_back_as_it_was_written() {
        let fact = Fact {
            at: ActionKey::action(7),
            act: FactAct::Spawned {
                child: TaskKey(1),
                before: SerialOrder::default().push_last(),
                call: RecordedCall::of(&descriptor(), &[ObjectKey(2)], None),
                first: Handle(3),
                outputs: [ObjectKey(4)].into(),
            },
        };
        let bytes = postcard::to_stdvec(&fact).expect("a fact in memory can be written");
        assert_eq!(postcard::from_bytes(&bytes), Ok(fact));
        assert!(size_of::<Fact>() <= 112, "{}", size_of::<Fact>());
    }
}
