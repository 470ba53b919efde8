//! `ciel ordered`: a command whose processes print in serial order.
//!
//! It translates options and errors; the rest is `ciel-unmodified`.

use std::process::ExitCode;

use ciel_unmodified::{Ordered, Route, UnmodifiedError};

use crate::cli_error::CliError;
use crate::closed_streams;
use crate::options::{OrderedOptions, OrderedRoute};

/// Exit code if the supervision failed, as `env` and `timeout` have it for their own failures.
const OWN_FAILURE: u8 = 125;

/// Exit codes of a command that was not found, and of one that cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// Runs the command; exits with its status.
pub fn run(options: OrderedOptions) -> Result<ExitCode, CliError> {
    closed_streams::keep_closed().map_err(|error| {
        let message = format!("cannot pass on closed standard streams: {error}");
        CliError::usage("ordered.system", message).with_exit(OWN_FAILURE)
    })?;
    let ordered = Ordered {
        command: options.command,
        files: options.file,
        route: match options.route {
            OrderedRoute::Auto => Route::Auto,
            OrderedRoute::Seccomp => Route::Seccomp,
            OrderedRoute::Pipes => Route::Pipes,
        },
    };
    let code = ciel_unmodified::run(&ordered, |notice| eprintln!("notice: {notice}"));
    code.map(ExitCode::from).map_err(complaint)
}

fn complaint(error: UnmodifiedError) -> CliError {
    let exit = match &error {
        UnmodifiedError::Start { error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
            NOT_FOUND
        }
        UnmodifiedError::Start { .. } => NOT_EXECUTABLE,
        _ => OWN_FAILURE,
    };
    let complaint = CliError::usage(error.code(), error.to_string()).with_exit(exit);
    match error.hint() {
        Some(hint) => complaint.with_hint(hint),
        None => complaint,
    }
}
