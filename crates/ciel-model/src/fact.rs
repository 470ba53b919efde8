//! Facts: what a strand did, which it meets when it is run again.
//!
//! They live as long as the task they belong to, or until its next checkpoint. The journal does not
//! hold them: it holds the events that they come from, and a fold makes the same facts again. A
//! fact says what happened, never what to do about it.

use std::sync::Arc;

use bytes::Bytes;

use crate::call::CallKey;
use crate::code::Site;
use crate::reference::ObjectKey;
use crate::task::TaskKey;

/// One fact of a strand, in the order in which the strand's program made it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Fact {
    /// The strand spawned a child.
    Spawned {
        /// The child.
        child: TaskKey,
        /// What was asked for, to tell a replay that asks for something else.
        call: CallKey,
        /// What it is called, for messages.
        what: Arc<str>,
        /// The child's outputs.
        outputs: Vec<ObjectKey>,
        /// Where, for messages.
        site: Site,
    },
    /// The strand brought data into the store.
    Constructed {
        /// The object.
        object: ObjectKey,
    },
    /// The strand asked the outside and was answered.
    Input {
        /// What it asked for: `clock`, `random`, … .
        kind: Arc<str>,
        /// The answer, as the executor spells it.
        value: Bytes,
    },
}
