//! Failures that attempts of every kind may end with.
//!
//! It does not know how an attempt runs. Read next: `refused`, for calls that never run.

use ciel_graph::Assignment;
use ciel_model::{Failure, FailureKind, Frame};

/// A task that wrote something else when it was replayed.
pub(crate) fn differs(assignment: &Assignment, told: String) -> Failure {
    Failure::new(
        FailureKind::NonDeterministic,
        assignment.label.clone(),
        told,
    )
    .with_hint("a task must do the same every time it is run")
}

/// The failure of a task whose input failed: the same one, seen from here.
pub(crate) fn inherited(assignment: &Assignment, failure: &Failure) -> Failure {
    let site = &assignment.descriptor.site;
    failure.clone().through(Frame {
        task: assignment.label.clone(),
        place: format!("{}:{}", site.file, site.line),
        note: "needs it as input".to_string(),
    })
}
