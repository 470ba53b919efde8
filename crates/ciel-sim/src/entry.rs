//! How a simulated task is entered and how it ends, whichever world it is in.
//!
//! It does not know slots. Read next: `script`.

use ciel_graph::{self as graph, Assignment, Continuation, Entry, Until, Wait};
use ciel_node::{AttemptKey, Slot};

use crate::script::{Move, Script};

/// Marks the index of a saved script as that of a checkpoint.
pub(crate) const CHECKPOINT: u64 = 1 << 63;

/// How a script has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// From its start, for the first time in this attempt.
    Start,
    /// From its start; it may request the resolutions of all that it had requested.
    Replay,
    /// From a state that was saved, be it as a checkpoint.
    Restore {
        /// It was one.
        checkpoint: bool,
    },
    /// With its live copy.
    Resume,
}

impl Beginning {
    /// Whether a strand that has run before does again what it did.
    pub(crate) fn is_replay(self) -> bool {
        match self {
            Beginning::Start | Beginning::Resume | Beginning::Restore { checkpoint: false } => {
                false
            }
            Beginning::Replay | Beginning::Restore { checkpoint: true } => true,
        }
    }
}

/// The script of an assignment; `live` is the live copy of its strand, if there is one.
pub(crate) fn enter(
    assignment: Assignment,
    live: Option<Script>,
    saved: &[Script],
) -> (Script, Beginning) {
    let Assignment {
        label,
        descriptor,
        entry,
        ended,
        next_action,
        ..
    } = assignment;
    let payload = descriptor.payload[..].try_into().expect("an index");
    let definition = u32::from_be_bytes(payload) as usize;
    let inputs = descriptor.inputs.len() as u32;
    let start = |told| {
        let outputs = descriptor.outputs;
        Script::start(definition, label, next_action, inputs, outputs, told)
    };
    match entry {
        Entry::Start(told) => (start(told), Beginning::Start),
        Entry::Replay {
            inputs: told,
            facts,
            until,
        } => {
            let mut script = start(told);
            script.replay(&facts);
            script.repeat_calls(until);
            (script, Beginning::Replay)
        }
        Entry::Restore {
            bytes,
            answers,
            facts,
        } => {
            let index = u64::from_be_bytes(bytes[..].try_into().expect("an index"));
            let checkpoint = index & CHECKPOINT != 0;
            let mut script = saved[(index & !CHECKPOINT) as usize].clone();
            script.answer(answers, ended);
            script.replay(&facts);
            (script, Beginning::Restore { checkpoint })
        }
        Entry::Resume(answers) => {
            let mut script = live.expect("a live copy is parked");
            script.answer(answers, ended);
            (script, Beginning::Resume)
        }
    }
}

/// The event for the last move of a script.
pub(crate) fn end_of(attempt: AttemptKey, last: Move, printed: bool) -> graph::Event {
    let AttemptKey { task, number } = attempt;
    match last {
        Move::Finish(outputs) => graph::Event::TaskFinished {
            task,
            attempt: number,
            outputs,
            printed,
            audit: None,
        },
        Move::Tail(descriptor, after) => graph::Event::TaskTailSpawned {
            task,
            attempt: number,
            descriptor,
            after,
            audit: None,
        },
        Move::Fail(failure) => graph::Event::TaskFailed {
            task,
            attempt: number,
            failure: Box::new(failure),
        },
        _ => unreachable!("not an end"),
    }
}

/// Whether a strand may make its table smaller when it waits: the rest of a list goes by the old
/// one, and so do the resolutions that a replay in a worker receives, unless it is saved.
pub(crate) fn may_compact(continuation: &Continuation, wait: Wait, slot: Slot) -> bool {
    let renumbers = match continuation {
        Continuation::Replay => false,
        Continuation::Live => !matches!(slot, Slot::Worker(_)),
        Continuation::Saved(_) => true,
    };
    renumbers && wait.until != Until::Rest
}
