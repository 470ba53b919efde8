//! `ciel lint`: what in the code of tasks may differ when it is run again.
//!
//! The module `ciel.lint` finds it, with the interpreter that jobs use. Nothing of the engine is
//! needed for it. Read next: `sdk/python/ciel/lint.py`.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crate::complaint::Complaint;
use crate::options::LintOptions;
use crate::python;

/// Becomes the interpreter that looks at the files.
pub fn start(options: &LintOptions) -> Result<ExitCode, Complaint> {
    let found = python::find(options.python.as_deref())?.ok_or_else(python::missing)?;
    let mut command = Command::new(&found.interpreter);
    command.args(["-P", "-m", "ciel.lint"]);
    command.args(options.json.then_some("--json"));
    let error = command.arg("--").args(&options.files).exec();
    let message = format!("cannot start {}: {error}", found.interpreter.display());
    Err(Complaint::usage("lint.start", message))
}
