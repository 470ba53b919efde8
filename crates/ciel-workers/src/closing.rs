//! The end of a conversation: what becomes of the tasks that the worker ran and kept.
//!
//! Read next: `conversation`, which comes to this end.

use std::sync::Arc;

use ciel_engine::{Attempt, Event};
use ciel_graph::{self as graph, Assignment};
use ciel_model::{Failure, FailureKind, Label};
use ciel_protocol::wire::Shutdown;

use crate::conversation::Conversation;
use crate::failures;
use crate::host::Host;
use crate::io::{Effect, Show, WorkerExitReason};
use crate::task::WorkerTask;

/// Strands that a warning names besides the first.
const NAMED_MAX: usize = 4;

/// How a worker's process went, as far as is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gone {
    /// What it did, in words that follow its name.
    pub how: String,
    /// The last lines that it printed.
    pub last_lines: String,
}

/// A task was given to a worker that is gone.
pub fn lose(assignment: &Assignment, host: &mut dyn Host) {
    let message = "the worker that was to run it is gone";
    let failure = Failure::new(FailureKind::WorkerLost, assignment.label.clone(), message);
    let attempt = Attempt::new(assignment);
    host.tell(vec![attempt.left_with(attempt.lost(failure))]);
}

/// The message that ends a worker, with the failures that a session's client has not received.
pub fn shutdown(failures: &[Arc<Failure>]) -> Shutdown {
    let failures = failures.iter().map(|failure| failures::to_wire(failure));
    Shutdown {
        failures: failures.collect(),
    }
}

impl Conversation {
    /// The worker is the client of a session.
    pub fn is_client(&self) -> bool {
        self.is_client
    }

    /// The bytes of memory that the running tasks have declared.
    fn declared_bytes(&self) -> u64 {
        let running = self.running.values();
        let options = running.map(|task| task.assignment.descriptor.options.clone());
        options
            .filter_map(|options| options.resources.memory_bytes)
            .fold(0, u64::saturating_add)
    }

    /// The worker goes, with what it ran and what it kept: tells the engine.
    pub fn close(
        &mut self,
        reason: &WorkerExitReason,
        gone: &Gone,
        host: &mut dyn Host,
        effects: &mut Vec<Effect>,
    ) {
        let declared = self.declared_bytes();
        let mut parked: Vec<_> = std::mem::take(&mut self.parked).into_values().collect();
        parked.sort_unstable_by_key(|task| task.tag);
        if *reason != WorkerExitReason::Dismissed {
            let all = parked.iter().map(Box::as_ref);
            let stays = |task: &&WorkerTask| !host.is_stopping(task.attempt.key());
            let waited: Vec<&Label> = all.filter(stays).map(WorkerTask::label).collect();
            effects.extend(replayed(&waited, gone));
        }
        parked
            .into_iter()
            .for_each(|task| task.close(host, effects));
        let mut events = Vec::new();
        let running = std::mem::take(&mut self.running);
        for task in running.values() {
            if !host.is_stopping(task.attempt.key()) {
                let end = outcome(task, reason, gone, declared);
                events.extend(end.map(Event::Graph));
                effects.extend(last_words(task, gone));
            }
            if self.is_client {
                let failure = Box::new(abandoned(task));
                events.push(graph::Event::JobCancelled { failure }.into());
            }
        }
        events.push(Event::WorkerGone {
            worker: self.worker,
        });
        events.extend(running.values().map(|task| Event::TurnEnded {
            attempt: task.slot_owner(),
            end: None,
        }));
        host.tell(events);
        for task in running.into_values() {
            task.close(host, effects);
        }
    }
}

/// The end of a task whose worker is gone; none if the graph knows it.
fn outcome(
    task: &WorkerTask,
    reason: &WorkerExitReason,
    gone: &Gone,
    declared: u64,
) -> Option<graph::Event> {
    if task.is_over {
        return None;
    }
    let failure = |kind, message: String| {
        let mut failure = Failure::new(kind, task.label().clone(), message);
        failure.excerpt = gone.last_lines.clone();
        failure
    };
    let (kind, message) = match reason {
        WorkerExitReason::Overdrawn(overdrawn) if task.is(overdrawn) => {
            let failure = failure(FailureKind::DiskFull, overdrawn.message.clone());
            return Some(
                task.attempt
                    .failed(failure.with_hint(overdrawn.hint.as_str())),
            );
        }
        WorkerExitReason::Died
        | WorkerExitReason::Dismissed
        | WorkerExitReason::Overdue
        | WorkerExitReason::Overdrawn(_) => {
            let message = format!("its worker {}", gone.how);
            let failure = failure(FailureKind::WorkerLost, message);
            return Some(task.attempt.lost(failure));
        }
        WorkerExitReason::Breach(what) => {
            let message = format!("its worker broke the executor protocol: {what}");
            (FailureKind::TaskError, message)
        }
        WorkerExitReason::TooLarge(bytes) => {
            let (used, most) = (bytes >> 20, declared >> 20);
            let message = format!("it used {used} MiB of memory, but declared {most} MiB");
            (FailureKind::OutOfMemory, message)
        }
    };
    Some(task.attempt.failed(failure(kind, message)))
}

/// Names the strands that waited in a worker which is gone: their code runs a second time.
fn replayed(waited: &[&Label], gone: &Gone) -> Option<Effect> {
    let (first, others) = waited.split_first()?;
    let named = others.iter().take(NAMED_MAX).map(ToString::to_string);
    let mut also = named.collect::<Vec<_>>().join(", ");
    match others.len() {
        0 => {}
        1 => also = format!(", and so is {also}"),
        count if count <= NAMED_MAX => also = format!(", and so are {also}"),
        count => also = format!(", and so are {also} and {} more", count - NAMED_MAX),
    }
    let message = format!(
        "its worker {} while it waited there; it is replayed from its start{also}",
        gone.how
    );
    Some(Effect::Show((*first).clone(), Show::Warning(message)))
}

/// What the worker printed last, such as the stack of a crash, for the log of what ran there.
fn last_words(task: &WorkerTask, gone: &Gone) -> Option<Effect> {
    let lines = format!("{}\n", gone.last_lines);
    let log = || {
        Effect::Show(
            task.label().clone(),
            Show::Log("stderr", lines.into_bytes()),
        )
    };
    (!gone.last_lines.is_empty()).then(log)
}

/// A session ends with its client.
fn abandoned(task: &WorkerTask) -> Failure {
    let message = "the program that began the session is gone";
    Failure::new(FailureKind::Cancelled, task.label().clone(), message)
}
