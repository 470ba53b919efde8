//! Failures that attempts of every kind may end with.
//!
//! It does not know how an attempt runs. Read next: `executors::request`, for how a call becomes a
//! task.

use ciel_graph::Assignment;
use ciel_model::{Failure, FailureKind, Frame, Handle, Label, Resolution, Site, Value};

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
    failure.clone().through(needing(&assignment.label, site))
}

/// The place of a task that needs a failed input.
fn needing(task: &Label, site: &Site) -> Frame {
    Frame {
        task: task.clone(),
        place: site.to_string(),
        note: "needs it as input".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use ciel_model::Name;

    use super::*;

    /// Commands of Python have no line of a script: their place was shown as `:0`.
    #[test]
    fn task_whose_line_is_not_known_has_no_place() {
        let task = Label {
            what: "wc".into(),
            name: Name(1),
        };
        let place = |site| needing(&task, &site).place;
        assert_eq!(place(Site::default()), "");
        let site = Site {
            file: "job.sw".into(),
            line: 3,
        };
        assert_eq!(place(site), "job.sw:3");
    }
}
