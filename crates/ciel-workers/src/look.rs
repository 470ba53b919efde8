//! What is known of a reference of a task that runs, and does not wait for it.
//!
//! Read next: `requests`, where tasks ask.

use ciel_engine::{Caller, Kept, Known, Reply};
use ciel_graph::{self as graph, Wait};
use ciel_model::{Handle, Resolution};
use ciel_node::AttemptKey;

use crate::host::Host;
use crate::task::WorkerTask;

/// What is known of a handle now: to ask for what is resolved is to block for no time.
pub(crate) fn look(host: &mut dyn Host, task: &mut WorkerTask, handle: Handle) -> Resolution {
    let key = task.attempt.key();
    if host.settled(key, &[handle]) != [Some(true)] {
        return Resolution::Future;
    }
    let blocked = task.attempt.block(vec![handle], Wait::ALL, Kept::All);
    let Reply::Continue { mut answers, .. } = host.ask(blocked.event(None), Caller::Nobody) else {
        return Resolution::Future;
    };
    let answer = answers.pop();
    answer.map_or(Resolution::Future, |(_, known)| known)
}

/// As [`look`], but a failure is still a future: a task that receives one has asked for it.
pub(crate) fn look_ready(host: &mut dyn Host, task: &mut WorkerTask, handle: Handle) -> Resolution {
    match host.is_ready(task.attempt.key(), handle) {
        true => look(host, task, handle),
        false => Resolution::Future,
    }
}

/// What is known of all that an attempt asked for in an earlier run, which it repeats.
pub(crate) fn recall(host: &mut dyn Host, attempt: AttemptKey) -> Known {
    let AttemptKey { task, number } = attempt;
    let attempt = number;
    let recalled = graph::Event::TaskRecalled { task, attempt };
    match host.ask(recalled.into(), Caller::Nobody) {
        Reply::Recalled(known) => known,
        _ => Known::new(),
    }
}
