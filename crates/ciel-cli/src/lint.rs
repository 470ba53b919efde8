//! `ciel lint`: finds code of tasks that may differ in a replay.
//!
//! The module `ciel.lint` finds it, with the interpreter that jobs use. Nothing of the engine is
//! needed for it. Read next: `sdk/python/ciel/lint.py`.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use crate::cli_error::CliError;
use crate::options::LintOptions;
use crate::python;

/// What the interpreter runs: the module, or an exit of our own if there is none.
const PROGRAM: &str = "import sys
try:
    from ciel.lint import main
except ModuleNotFoundError as error:
    sys.exit(95 if error.name == 'ciel' else str(error))
sys.exit(main())";

/// The exit status of the program if the module is missing.
const NO_MODULE: i32 = 95;

/// Lets the interpreter look at the files.
pub fn start(options: &LintOptions) -> Result<ExitCode, CliError> {
    let found = python::find(options.python.as_deref())?.ok_or_else(python::missing)?;
    let mut command = Command::new(&found.interpreter);
    command.args(["-P", "-c", PROGRAM]);
    command.args(options.json.then_some("--json"));
    let ended = command.arg("--").args(&options.files).status();
    let status = ended.map_err(|error| {
        let message = format!("cannot start {}: {error}", found.interpreter.display());
        CliError::usage("lint.start", message)
    })?;
    match status.code() {
        Some(NO_MODULE) => Err(no_module(&found.interpreter)),
        _ => Ok(code_of(status)),
    }
}

fn no_module(interpreter: &Path) -> CliError {
    let message = format!("{} has no module ciel", interpreter.display());
    CliError::usage("lint.module", message)
        .with_hint("install ciel with that interpreter's pip, or name another one: --python FILE")
}

/// As a shell would have it: a signal counts from 128.
fn code_of(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(u8::try_from(code.unwrap_or(1)).unwrap_or(1))
}
