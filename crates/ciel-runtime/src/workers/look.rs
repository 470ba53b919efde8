//! What is known of a reference of a task that runs, and does not wait for it.
//!
//! Read next: `requests`, where tasks ask.

use ciel_engine::{Caller, Reply};
use ciel_graph::{Continuation, Event, Wait};
use ciel_model::{Handle, Resolution};
use ciel_node::AttemptKey;

use super::attempt_of;
use super::held::Held;
use crate::core::Core;

/// What is known of a handle now: to ask for what is there is to block for no time.
pub(super) fn look(core: &mut Core, now: u64, held: &Held, handle: Handle) -> Resolution {
    let run = attempt_of(&held.assignment);
    let (task, attempt) = (run.task, run.attempt);
    if core.graph().is_settled(task, attempt, handle) != Some(true) {
        return Resolution::Future;
    }
    let blocked = Event::TaskBlocked {
        task,
        attempt,
        kept: None,
        on: vec![handle],
        wait: Wait::ALL,
        continuation: Continuation::Live,
        checkpoint: None,
    };
    let Reply::Continue { mut answers, .. } = core.ask(now, blocked, Caller::Nobody) else {
        return Resolution::Future;
    };
    let answer = answers.pop();
    answer.map_or(Resolution::Future, |(_, known)| known)
}

/// As [`look`], but a failure is still a future: to be given it is to have asked for it.
pub(super) fn look_ready(core: &mut Core, now: u64, held: &Held, handle: Handle) -> Resolution {
    let AttemptKey { task, attempt } = attempt_of(&held.assignment);
    match core.graph().is_ready(task, attempt, handle) {
        true => look(core, now, held, handle),
        false => Resolution::Future,
    }
}
