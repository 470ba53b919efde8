//! The inputs of a command by the names that it gives them.
//!
//! It does not know how they come to the command. Read next: `start`.

use std::io::ErrorKind;

use ciel_graph::Assignment;
use ciel_model::{Failure, FailureKind};
use ciel_store::StoreError;

use super::{Failed, TaskWorkspace, arguments_of};
use crate::executors::words;
use crate::references::reference;

/// The inputs of a command by name, each in a few words.
pub(super) fn inputs_of(
    assignment: &Assignment,
    desk: &TaskWorkspace<'_>,
) -> Vec<(String, String)> {
    let arguments = arguments_of(assignment);
    let inputs = words::named_inputs(&arguments).into_iter();
    inputs
        .map(|(name, value)| (name, desk.described(value)))
        .collect()
}

/// The name of an input; none if it has no name.
pub(super) fn name_of(assignment: &Assignment, index: usize) -> Option<String> {
    let arguments = arguments_of(assignment);
    let mut named = words::named_inputs(&arguments).into_iter();
    let found = named.find(|(_, value)| reference(value) == Some(index));
    found.map(|(name, _)| name)
}

/// Unpacks the inputs that the command reads as folders.
///
/// # Errors
/// Of an input that is no archive, by its name.
pub(super) async fn unpack(assignment: &Assignment, desk: &TaskWorkspace<'_>) -> Failed<()> {
    let Err((index, error)) = desk.unpack().await else {
        return Ok(());
    };
    let named = name_of(assignment, index);
    let name = named.unwrap_or_else(|| format!("inputs[{index}]"));
    let source = match error {
        StoreError::System { ref source, .. } if source.kind() == ErrorKind::InvalidData => source,
        error => return Err(desk.failed(error.into())),
    };
    let message = format!(
        "{{{name}/}} is a folder with what is in a tar archive, and the input {name:?} is none: \
         {source}"
    );
    let hint = format!(
        "pass what a command has written to {{out/}}, or another tar archive; {{{name}}} is the \
         path of a file"
    );
    let failure = Failure::new(FailureKind::TaskError, assignment.label.clone(), message);
    Err(Box::new(failure.with_hint(hint)))
}

/// What a command reads must stay as it is: others read it, too.
pub(super) fn check_inputs(assignment: &Assignment, desk: &TaskWorkspace<'_>) -> Failed<()> {
    let Some(index) = desk.changed_input() else {
        return Ok(());
    };
    let input = match name_of(assignment, index) {
        Some(name) => format!("its input {name:?}"),
        None => format!("its input {}", index + 1),
    };
    let message = format!(
        "{input} was overwritten or removed while it ran, by it or by another task that reads it"
    );
    let hint = "the file of a result must stay as it is: write to an output, or to a copy";
    let failure = Failure::new(FailureKind::TaskError, assignment.label.clone(), message);
    Err(Box::new(failure.with_hint(hint)))
}
