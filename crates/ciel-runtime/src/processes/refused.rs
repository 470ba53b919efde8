//! Failures of processes that could not be started, or were ended; and what others left.
//!
//! It does not know what they were. Read next: `command_failure`, for those that ended badly.

use ciel_graph::Assignment;
use ciel_model::{Failure, FailureKind, Label};
use ciel_spawner::Left;
use ciel_store::Written;

use crate::engine::Engine;
use crate::room::NoRoom;

pub(super) fn refused_start(label: &Label, refusal: &ciel_spawner::Refusal) -> Failure {
    let failure = Failure::new(FailureKind::TaskError, label.clone(), refusal.to_string());
    match refusal.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

/// What is said of this attempt, if it is about this one.
pub(super) fn own(
    (written, no_room): &(Written, NoRoom),
    assignment: &Assignment,
) -> Option<NoRoom> {
    let attempt = (assignment.label.name.0, assignment.attempt.0);
    ((written.task, written.attempt) == attempt).then(|| no_room.clone())
}

pub(super) fn too_large(assignment: &Assignment, bytes: u64) -> Box<Failure> {
    let declared = assignment
        .descriptor
        .options
        .resources
        .memory_bytes
        .unwrap_or(0);
    let message = format!(
        "it used {} MiB of memory, but declared {} MiB",
        bytes >> 20,
        declared >> 20
    );
    let failure = Failure::new(FailureKind::OutOfMemory, assignment.label.clone(), message);
    Box::new(failure.with_hint("declare more with the option memory"))
}

pub(super) fn warn_of_left(engine: &Engine, label: &Label, left: &[Left], count: u32) {
    if count == 0 {
        return;
    }
    let names: Vec<String> = left
        .iter()
        .map(|process| format!("{} ({})", process.command, process.pid))
        .collect();
    let message = format!(
        "it left {count} running when it ended, now killed: {}",
        names.join(", ")
    );
    engine.warn(Some(label), &message);
}
