//! Failures that attempts of every kind may end with.
//!
//! It does not know how an attempt runs. Read next: `executors::request`, for how a call becomes a
//! task.

use ciel_graph::Assignment;
use ciel_model::{Failure, FailureKind, Frame, Handle, Resolution, Value};

/// A task that wrote something else when it was replayed.
pub(crate) fn differs(assignment: &Assignment, told: String) -> Failure {
    Failure::new(
        FailureKind::NonDeterministic,
        assignment.label.clone(),
        told,
    )
    .with_hint("a task must be deterministic: each replay must do the same")
}

/// The values of a task's inputs, all of which it takes by value.
///
/// # Errors
/// The failure that it inherits from an input.
pub(crate) fn values_of(
    assignment: &Assignment,
    inputs: &[(Handle, Resolution)],
) -> Result<Vec<Value<Handle>>, Box<Failure>> {
    let value = |(_, resolution): &(Handle, Resolution)| match resolution {
        Resolution::Ready { value, .. } => Ok(value.clone()),
        Resolution::Failed(failure) => Err(Box::new(inherited(assignment, failure))),
        Resolution::Future => unreachable!("it starts when all its inputs are ready"),
    };
    inputs.iter().map(value).collect()
}

/// The failure of a task whose input failed: the same one, seen from here.
fn inherited(assignment: &Assignment, failure: &Failure) -> Failure {
    let site = &assignment.descriptor.site;
    failure.clone().through(Frame {
        task: assignment.label.clone(),
        place: format!("{}:{}", site.file, site.line),
        note: "needs it as input".to_string(),
    })
}
