//! Facts: what a strand did, with which its replay is compared.
//!
//! They live as long as the task they belong to, or until its next checkpoint. The journal does not
//! hold them: it holds the events that they come from, and a fold produces the same facts. A fact
//! records what happened, never what to do about it.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;

use crate::call::CallKey;
use crate::code::Site;
use crate::name::Name;
use crate::order::Mark;
use crate::recorded_call::RecordedCall;
use crate::reference::{Handle, ObjectKey};
use crate::task::TaskKey;

/// Which action of a strand: spawns, constructs and observations share one index, counted from 0 in
/// program order, through all tasks of the strand. An index may be left out: the graph has no event
/// for a child that ran in place.
///
/// An action may need several things, such as the objects that hold the arguments of a spawn. They
/// are its parts, and come before the action itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub struct ActionKey {
    /// The index of the action.
    pub action: u64,
    /// Which part of it, from 0; none for the action itself.
    pub part: Option<u32>,
}

impl ActionKey {
    /// The action itself.
    pub fn action(action: u64) -> ActionKey {
        ActionKey { action, part: None }
    }

    /// A part of an action.
    pub fn part(action: u64, part: u32) -> ActionKey {
        let part = Some(part);
        ActionKey { action, part }
    }

    /// The name of an object made here by the strand named `strand`. A part is named from the
    /// child that a spawn at that index makes, so a late spawn shifts no other name.
    pub fn name_of_object(self, strand: Name) -> Name {
        match self.part {
            None => strand.construct(self.action),
            Some(part) => strand.spawn(self.action).argument(u64::from(part)),
        }
    }

    /// The index that the strand has reached when this is done.
    pub fn after(self) -> u64 {
        let whole = u64::from(self.part.is_none());
        self.action.saturating_add(whole)
    }
}

impl Ord for ActionKey {
    fn cmp(&self, other: &ActionKey) -> Ordering {
        let key = |key: &ActionKey| (key.action, key.part.map_or(u64::MAX, u64::from));
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for ActionKey {
    fn partial_cmp(&self, other: &ActionKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One fact of a strand.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Fact {
    /// Where in the strand's program.
    pub at: ActionKey,
    /// What happened there.
    pub act: FactAct,
}

/// What a strand did.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(from = "Written", into = "Written")]
pub enum FactAct {
    /// The strand spawned a child.
    Spawned {
        /// The child.
        child: TaskKey,
        /// All later spawns of the strand come after this.
        before: Mark,
        /// The call, with which that of a replay is compared.
        call: RecordedCall,
        /// The handle of the first output; the others follow it.
        first: Handle,
        /// The child's outputs.
        outputs: Box<[ObjectKey]>,
    },
    /// The strand brought data into the store.
    Constructed {
        /// By which the strand calls it.
        handle: Handle,
        /// The object.
        object: ObjectKey,
    },
    /// A wait of the strand ended whose end depends on time.
    Waited(WaitEnd),
    /// The strand asked its environment and was answered.
    Input {
        /// The kind of the observation: `clock`, `random`, … .
        kind: Arc<str>,
        /// The answer, as the executor spells it.
        value: Bytes,
    },
}

/// The same as it is written: each spawn is whole.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "FactAct")]
enum Written {
    Spawned {
        child: TaskKey,
        before: Mark,
        call: CallKey,
        what: Arc<str>,
        first: Handle,
        outputs: Box<[ObjectKey]>,
        site: Site,
    },
    Constructed {
        handle: Handle,
        object: ObjectKey,
    },
    Waited(WaitEnd),
    Input {
        kind: Arc<str>,
        value: Bytes,
    },
}

impl From<Written> for FactAct {
    fn from(written: Written) -> FactAct {
        match written {
            Written::Spawned {
                child,
                before,
                call,
                what,
                first,
                outputs,
                site,
            } => FactAct::Spawned {
                child,
                before,
                call: RecordedCall::with(call, what, site),
                first,
                outputs,
            },
            Written::Constructed { handle, object } => FactAct::Constructed { handle, object },
            Written::Waited(ended) => FactAct::Waited(ended),
            Written::Input { kind, value } => FactAct::Input { kind, value },
        }
    }
}

impl From<FactAct> for Written {
    fn from(act: FactAct) -> Written {
        match act {
            FactAct::Spawned {
                child,
                before,
                call,
                first,
                outputs,
            } => Written::Spawned {
                child,
                before,
                call: call.key(),
                what: call.what().clone(),
                first,
                outputs,
                site: call.site().clone(),
            },
            FactAct::Constructed { handle, object } => Written::Constructed { handle, object },
            FactAct::Waited(ended) => Written::Waited(ended),
            FactAct::Input { kind, value } => Written::Input { kind, value },
        }
    }
}

/// How a wait ended whose end depends on time.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct WaitEnd {
    /// Places, in the list of what was waited for, of what was resolved.
    pub places: Vec<u32>,
    /// The time was over.
    pub timed_out: bool,
    /// The list is that of an earlier wait for the first of several.
    pub rest: bool,
    /// It was a cancellation: the places are those of what is cancelled.
    pub cancels: bool,
}

impl FactAct {
    /// The call that the strand spawned, if it did.
    pub fn call(&self) -> Option<&RecordedCall> {
        match self {
            FactAct::Spawned { call, .. } => Some(call),
            FactAct::Constructed { .. } | FactAct::Waited(_) | FactAct::Input { .. } => None,
        }
    }

    /// Whether the fact is an input of the strand: a replayed strand receives it, and does not
    /// request it.
    pub fn is_taken(&self) -> bool {
        match self {
            FactAct::Waited(_) | FactAct::Input { .. } => true,
            FactAct::Spawned { .. } | FactAct::Constructed { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_before_their_action_and_after_the_one_before_it() {
        let keys = [
            ActionKey::action(0),
            ActionKey::part(1, 0),
            ActionKey::part(1, 1),
            ActionKey::action(1),
            ActionKey::part(2, 0),
        ];
        assert!(keys.is_sorted());
        assert_eq!(keys.map(ActionKey::after), [1, 1, 1, 2, 2]);
    }

    /// A worker may send any index; the last of all once stopped the engine.
    #[test]
    fn nothing_comes_after_the_last_index() {
        assert_eq!(ActionKey::action(u64::MAX).after(), u64::MAX);
    }

    #[test]
    fn part_is_named_from_the_child_of_its_action() {
        let strand = Name::of_root(b"job");
        let part = ActionKey::part(3, 1).name_of_object(strand);
        assert_eq!(part, strand.spawn(3).argument(1));
        assert_ne!(part, strand.spawn(3).construct(1));
        assert_eq!(
            ActionKey::action(3).name_of_object(strand),
            strand.construct(3)
        );
    }
}
