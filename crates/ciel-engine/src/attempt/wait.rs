//! An attempt that waits: what it keeps meanwhile, and what comes of it.
//!
//! Read next: `ciel_graph::Event::TaskBlocked`, for what becomes of the table.

use ciel_graph::{self as graph, Checkpoint, Continuation, Wait};
use ciel_model::{Handle, WaitEnd};
use ciel_node::AttemptKey;

use super::Attempt;
use crate::event::{Event, Reply};
use crate::message::Answers;

/// From what a strand that waits continues, and what it still names then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A live copy, with its whole table.
    All,
    /// A live copy. Of its table it keeps these, in ascending order, which become 0, 1, ….
    Only(Vec<Handle>),
    /// Its facts: it is replayed.
    Facts,
    /// A state. The references in it become delivered ones, in this order; so does what it waits
    /// for beside them.
    State(Vec<u8>, Vec<Handle>),
}

/// An attempt that is about to wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocked {
    key: AttemptKey,
    on: Vec<Handle>,
    wait: Wait,
    kept: Option<Vec<Handle>>,
    continuation: Continuation,
}

/// What comes of a wait.
#[derive(Clone, Debug, PartialEq)]
pub enum Waited {
    /// It is over at once.
    Over {
        /// What became of what the task waits for.
        answers: Answers,
        /// How the wait ended, if that depends on time.
        ended: Option<WaitEnd>,
    },
    /// The attempt is suspended.
    Suspended,
    /// The graph has ended the attempt: nothing of it is kept.
    Stopped,
}

impl Attempt {
    /// The task waits for `on`. From now on its handles are those of what it keeps.
    pub fn block(&mut self, on: Vec<Handle>, wait: Wait, keep: Kept) -> Blocked {
        let (on, kept, continuation) = match keep {
            Kept::All => (on, None, Continuation::Live),
            Kept::Only(kept) => {
                self.next_handle = Handle(kept.len() as u32);
                (renumbered(&on, &kept), Some(kept), Continuation::Live)
            }
            Kept::Facts => (on, None, Continuation::Replay),
            Kept::State(state, mut kept) => {
                let on = delivered(&on, &mut kept);
                (on, Some(kept), Continuation::Saved(self.seal(state)))
            }
        };
        Blocked {
            key: self.key,
            on,
            wait,
            kept,
            continuation,
        }
    }

    /// The result of a wait that was submitted to the engine.
    pub fn waited(&mut self, reply: Reply) -> Waited {
        match reply {
            Reply::Continue { answers, ended } => {
                self.receive_all(&answers);
                Waited::Over { answers, ended }
            }
            Reply::Suspended | Reply::Begin(_) => Waited::Suspended,
            Reply::Nothing | Reply::Stopped | Reply::FollowerStopped | Reply::Recalled(_) => {
                Waited::Stopped
            }
        }
    }
}

impl Blocked {
    /// Whether the end of the wait depends on time; then it is recorded, and is no checkpoint.
    pub fn is_timely(&self) -> bool {
        self.wait.is_timely()
    }

    /// The event for the engine; with the state of the strand at this point, if that is saved.
    pub fn event(self, checkpoint: Option<Checkpoint>) -> Event {
        Event::Graph(graph::Event::TaskBlocked {
            task: self.key.task,
            attempt: self.key.number,
            kept: self.kept,
            on: self.on,
            wait: self.wait,
            continuation: self.continuation,
            checkpoint: checkpoint.map(Box::new),
        })
    }
}

/// Handles in the numbering of what is kept.
fn renumbered(on: &[Handle], kept: &[Handle]) -> Vec<Handle> {
    let find = |wanted: &Handle| {
        let index = kept.binary_search(wanted);
        Handle(index.expect("what a task waits for is kept") as u32)
    };
    on.iter().map(find).collect()
}

/// Handles as delivered ones; what is not kept yet is kept beside the rest.
fn delivered(on: &[Handle], kept: &mut Vec<Handle>) -> Vec<Handle> {
    let find = |wanted: &Handle| {
        let index = kept.iter().position(|handle| handle == wanted);
        let index = index.unwrap_or_else(|| {
            kept.push(*wanted);
            kept.len() - 1
        });
        Handle(Handle::DELIVERED_MIN + index as u32)
    };
    on.iter().map(find).collect()
}
