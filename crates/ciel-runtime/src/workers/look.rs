//! What is known of a reference of a task that runs, and does not wait for it.
//!
//! Read next: `requests`, where tasks ask.

use ciel_engine::{Caller, Kept, Reply};
use ciel_graph::Wait;
use ciel_model::{Handle, Resolution};
use ciel_node::AttemptKey;

use super::held::Held;
use crate::core::Core;

/// What is known of a handle now: to ask for what is there is to block for no time.
pub(super) fn look(core: &mut Core, now: u64, held: &mut Held, handle: Handle) -> Resolution {
    let AttemptKey {
        task,
        number: attempt,
    } = held.attempt.key();
    if core.graph().is_settled(task, attempt, handle) != Some(true) {
        return Resolution::Future;
    }
    let blocked = held.attempt.block(vec![handle], Wait::ALL, Kept::All);
    let reply = core.ask(now, blocked.event(None), Caller::Nobody);
    let Reply::Continue { mut answers, .. } = reply else {
        return Resolution::Future;
    };
    let answer = answers.pop();
    answer.map_or(Resolution::Future, |(_, known)| known)
}

/// As [`look`], but a failure is still a future: to be given it is to have asked for it.
pub(super) fn look_ready(core: &mut Core, now: u64, held: &mut Held, handle: Handle) -> Resolution {
    let AttemptKey {
        task,
        number: attempt,
    } = held.attempt.key();
    match core.graph().is_ready(task, attempt, handle) {
        true => look(core, now, held, handle),
        false => Resolution::Future,
    }
}
