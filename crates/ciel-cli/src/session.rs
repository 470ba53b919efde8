//! `ciel __session`: the engine of a program that submits tasks as it goes.
//!
//! The program has started this process and holds the other end of the socket whose number is in
//! `CIEL_FD`; it plays the root task by the executor protocol. Failures are sent to it and not
//! printed here.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

use ciel_runtime::{Job, Resume};

use crate::cli_error::{CliError, JOB_FAILED};
use crate::job_files::JobFiles;
use crate::observer::CommandObserver;
use crate::options::{RunOptions, Shared};
use crate::{paint, run};

/// The variable with the number of the socket.
const SOCKET: &str = "CIEL_FD";

/// Serves until the session is closed or its program has ended.
pub fn serve(shared: &Shared, options: RunOptions) -> Result<ExitCode, CliError> {
    let client = client()?;
    let given = JobFiles::of(&options)?;
    let paint = paint::paint_errors(shared.colour);
    let observer = Arc::new(CommandObserver::new(&options, paint, &[])?.losing_output());
    run::tell_of_place(shared, &*observer);
    let settings = run::settings(shared, &options, given, Resume::New)?;
    let ended = ciel_runtime::run(settings, Job::Session(client), observer.clone());
    observer.clear();
    Ok(match ended?.counts.differing {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(JOB_FAILED),
    })
}

fn client() -> Result<UnixStream, CliError> {
    let number = std::env::var(SOCKET).ok();
    let number = number.and_then(|text| text.parse::<RawFd>().ok());
    let Some(number) = number.filter(|number| *number > 2) else {
        let message = format!("{SOCKET} names no socket");
        return Err(CliError::usage("session.socket", message)
            .with_hint("start sessions from Python: with ciel.Session() as session: …"));
    };
    // SAFETY: the program that started this process left the descriptor for it, and nothing else
    // here knows of it.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    let flags = rustix::io::FdFlags::CLOEXEC;
    rustix::io::fcntl_setfd(&socket, flags).map_err(|error| {
        let message = format!("{SOCKET} names no socket: {error}");
        CliError::usage("session.socket", message)
    })?;
    Ok(UnixStream::from(socket))
}
