//! `ciel replay`: a failed Python task once more, in the foreground.
//!
//! Workers keep what a failed task was given; the module `ciel.replay` runs it. Nothing of the
//! engine is needed for it. Read next: `sdk/python/ciel/replay.py`.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use ciel_view::inspect;

use super::find;
use crate::cli_error::CliError;
use crate::options::{ReplayOptions, Shared};
use crate::python;

/// Becomes the interpreter that runs the task.
pub fn start(shared: &Shared, options: &ReplayOptions) -> Result<ExitCode, CliError> {
    let (run, task) = find(shared, &options.task)?;
    let label = task.label();
    let Some(file) = inspect::failed_task(&shared.state, &run.run.run, &label) else {
        let message = format!(
            "{label} cannot be replayed: its state is {}",
            task.state.words()
        );
        return Err(CliError::usage("replay.none", message).with_hint(
            "only Python tasks that failed themselves can be replayed; see `ciel why`",
        ));
    };
    let found = python::find(options.python.as_deref())?.ok_or_else(python::missing)?;
    let error = Command::new(&found.interpreter)
        .args(["-P", "-m", "ciel.replay"])
        .arg(file)
        .exec();
    let message = format!("cannot start {}: {error}", found.interpreter.display());
    Err(CliError::usage("replay.start", message))
}
