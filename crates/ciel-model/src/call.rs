//! The identity of a call: which code is run, on what, and with which references.
//!
//! Two calls with equal keys give the same result if they are pure, and a strand that is replayed
//! must spawn calls with the keys that it spawned before. Where keys differ, [`CallKey::diff`]
//! names the part. It does not know what a payload means. Read next: `code`, `payload`.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::code::{CodeIdentity, FunctionCode};
use crate::descriptor::Descriptor;
use crate::digest::{Digest, Hasher};
use crate::members::Members;
use crate::payload::Payload;
use crate::reference::ObjectKey;

/// What is asked of an executor, references not included.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Invocation {
    /// Who runs it.
    pub executor: Arc<str>,
    /// Of the payload.
    pub arguments: Digest,
    /// The arguments in it, to name the one that differs.
    #[serde(skip)]
    pub members: Members,
    /// Number of outputs.
    pub outputs: u32,
    /// It runs only on demand: an option of which order of output depends.
    pub lazy: bool,
    /// Its output may go out while it runs, likewise.
    pub live: bool,
}

/// What makes two calls equal. Resources, retries and limits of time are no part of it: they say
/// what a call may cost, and a run may be resumed with others.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct CallKey {
    /// The code that it runs.
    pub code: CodeIdentity,
    /// What it is asked to do.
    pub call: Invocation,
    /// The objects that it is given.
    pub inputs: Box<[ObjectKey]>,
}

/// The part in which one call differs from another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It is for another executor: this one.
    Executor(Arc<str>),
    /// The code of a function is another.
    Code(FunctionCode),
    /// Its arguments are others; it is not known which.
    Arguments,
    /// The argument at this place is another, or is new; by its name, if that is known.
    Argument(u32, Option<Arc<str>>),
    /// The input of this number is another object.
    Input(u32),
    /// It has so many inputs.
    InputCount(usize),
    /// It has so many outputs.
    OutputCount(u32),
    /// It is lazy where it was not, or live, or the other way round.
    Options,
}

impl CallKey {
    /// The key of a call of which the inputs are these objects.
    pub fn of(descriptor: &Descriptor, inputs: impl IntoIterator<Item = ObjectKey>) -> CallKey {
        CallKey::with(descriptor, descriptor.payload.members(), inputs)
    }

    fn with(
        descriptor: &Descriptor,
        members: Members,
        inputs: impl IntoIterator<Item = ObjectKey>,
    ) -> CallKey {
        CallKey {
            code: descriptor.code.clone(),
            call: Invocation {
                executor: descriptor.executor.clone(),
                arguments: descriptor.payload.digest(),
                members,
                outputs: descriptor.outputs,
                lazy: descriptor.options.lazy,
                live: descriptor.options.live,
            },
            inputs: inputs.into_iter().collect(),
        }
    }

    /// The digest of the key of a call: calls with the same one are equal. It means something
    /// within one version of this program only.
    pub fn digest_of(
        descriptor: &Descriptor,
        inputs: impl IntoIterator<Item = ObjectKey>,
    ) -> Digest {
        let key = CallKey::with(descriptor, Members::default(), inputs);
        let mut hasher = Hasher::default();
        key.hash(&mut hasher);
        hasher.finish()
    }

    /// The first part in which `now` differs from this key; none if they are equal. `payload` is
    /// that of the later call, which names its arguments.
    pub fn diff(&self, now: &CallKey, payload: &Payload) -> Option<Reason> {
        if self.call.executor != now.call.executor {
            return Some(Reason::Executor(now.call.executor.clone()));
        }
        if let Some(function) = self.code.diff(&now.code) {
            return Some(Reason::Code(function.clone()));
        }
        if self.call.arguments != now.call.arguments {
            let place = self.call.members.first_other(&now.call.members);
            let argument = |place| Reason::Argument(place, payload.name_of(place));
            return Some(place.map_or(Reason::Arguments, argument));
        }
        if self.inputs.len() != now.inputs.len() {
            return Some(Reason::InputCount(now.inputs.len()));
        }
        let mut pairs = self.inputs.iter().zip(&now.inputs);
        if let Some(index) = pairs.position(|(before, now)| before != now) {
            return Some(Reason::Input(index as u32));
        }
        if self.call.outputs != now.call.outputs {
            return Some(Reason::OutputCount(now.call.outputs));
        }
        (self.call != now.call).then_some(Reason::Options)
    }
}

/// Words that follow "it spawned f, but".
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Executor(now) => write!(f, "for the executor {now} this time"),
            Reason::Code(function) => {
                write!(f, "with changed code of {}", function.name)?;
                match function.place.file.is_empty() {
                    true => Ok(()),
                    false => write!(f, " ({})", function.place),
                }
            }
            Reason::Arguments => f.write_str("not with the same arguments as before"),
            Reason::Argument(_, Some(name)) => {
                write!(f, "with another {name:?} than before among its arguments")
            }
            Reason::Argument(place, None) => {
                write!(f, "with another argument {} than before", place + 1)
            }
            Reason::Input(index) => {
                write!(f, "with another object than before as its input {index}")
            }
            Reason::InputCount(now) => write!(f, "not with as many inputs as before: {now}"),
            Reason::OutputCount(now) => write!(f, "not with as many outputs as before: {now}"),
            Reason::Options => f.write_str("not with the same options as before"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Site;
    use crate::task::{Class, Options};

    fn function(name: &str, digest: u128) -> FunctionCode {
        FunctionCode {
            name: name.into(),
            place: Site {
                file: "jobs.py".into(),
                line: 7,
            },
            digest: Digest(digest),
        }
    }

    fn descriptor() -> Descriptor {
        let mut descriptor = Descriptor::plain("python", Class::Coordination, "f", b"x".to_vec());
        descriptor.code = CodeIdentity::of(vec![function("f", 1), function("g", 2)]);
        descriptor
    }

    /// How the key of `changed` differs from that of [`descriptor`] on the objects 3 and 4.
    fn diff(changed: &Descriptor, inputs: &[u64]) -> Option<Reason> {
        let key = |descriptor: &Descriptor, inputs: &[u64]| {
            CallKey::of(descriptor, inputs.iter().copied().map(ObjectKey))
        };
        let digest = |descriptor: &Descriptor, inputs: &[u64]| {
            CallKey::digest_of(descriptor, inputs.iter().copied().map(ObjectKey))
        };
        let reason = key(&descriptor(), &[3, 4]).diff(&key(changed, inputs), &changed.payload);
        let same = digest(&descriptor(), &[3, 4]) == digest(changed, inputs);
        assert_eq!(same, reason.is_none());
        reason
    }

    /// A change of a descriptor, and the part that is to be named.
    type Change = (fn(&mut Descriptor), Option<Reason>);

    #[test]
    fn each_part_that_differs_is_named() {
        let changes: [Change; 9] = [
            (|_| (), None),
            (
                |it| it.executor = "node".into(),
                Some(Reason::Executor("node".into())),
            ),
            (
                |it| it.code = CodeIdentity::of(vec![function("f", 1), function("g", 9)]),
                Some(Reason::Code(function("g", 9))),
            ),
            (
                |it| it.code = CodeIdentity::of(vec![function("f", 1)]),
                Some(Reason::Code(function("g", 2))),
            ),
            (
                |it| it.code = CodeIdentity::default(),
                Some(Reason::Code(function("f", 1))),
            ),
            (
                |it| it.payload = Payload::new(b"y".to_vec()),
                Some(Reason::Arguments),
            ),
            (|it| it.outputs = 2, Some(Reason::OutputCount(2))),
            (
                |it| it.options = Options::shared_live(),
                Some(Reason::Options),
            ),
            (|it| it.what = "another name".into(), None),
        ];
        for (change, reason) in changes {
            let mut changed = descriptor();
            change(&mut changed);
            assert_eq!(diff(&changed, &[3, 4]), reason);
        }
        assert_eq!(diff(&descriptor(), &[3, 5]), Some(Reason::Input(1)));
        assert_eq!(diff(&descriptor(), &[3]), Some(Reason::InputCount(1)));
    }

    #[test]
    fn what_a_call_may_cost_is_no_part_of_its_key() {
        let mut cheaper = descriptor();
        cheaper.options = Arc::new(Options {
            retries: 3,
            timeout_us: Some(1),
            ..Options::default()
        });
        assert_eq!(diff(&cheaper, &[3, 4]), None);
    }

    #[test]
    fn argument_that_differs_is_named_if_the_payload_names_its_arguments() {
        let call = |payload: &str| {
            let class = Class::Process;
            Descriptor::plain("shell", class, "f", payload.as_bytes().to_vec())
        };
        let before = CallKey::of(&call(r#"{"command": "a", "n": 1}"#), []);
        for (now, words) in [
            (
                r#"{"command": "b", "n": 1}"#,
                "with another \"command\" than before among its arguments",
            ),
            (
                r#"{"command": "a", "n": 2}"#,
                "with another \"n\" than before among its arguments",
            ),
            (
                r#"{"command": "a"}"#,
                "not with the same arguments as before",
            ),
            ("other", "not with the same arguments as before"),
        ] {
            let now = call(now);
            let reason = before.diff(&CallKey::of(&now, []), &now.payload).unwrap();
            assert_eq!(reason.to_string(), words);
        }
        let unnamed = Reason::Argument(1, None).to_string();
        assert_eq!(unnamed, "with another argument 2 than before");
    }

    #[test]
    fn reason_names_function_and_place() {
        let reason = Reason::Code(function("g", 2));
        assert_eq!(reason.to_string(), "with changed code of g (jobs.py:7)");
    }
}
