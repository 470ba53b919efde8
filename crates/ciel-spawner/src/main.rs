//! The spawner by itself. Without arguments it serves the socket on its standard input;
//! `run PROGRAM ARGUMENT...` runs one program below a spawner of its own, so that nothing of it
//! outlives this process, and ends with the program's exit code. It does not know any engine.
//! Next: the library's `client`.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::ExitCode;

use ciel_spawner::{Cookie, Input, Output, Report, Request, Spawner, Start, Status};
use rustix::event::{PollFd, PollFlags};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        None => ciel_spawner::serve_inherited(),
        Some(word) if word == "run" && arguments.len() > 0 => run(arguments.collect())
            .unwrap_or_else(|error| {
                eprintln!("ciel-spawner: {error}");
                ExitCode::FAILURE
            }),
        Some(_) => {
            eprintln!("usage: ciel-spawner run PROGRAM ARGUMENT...");
            ExitCode::from(2)
        }
    }
}

fn run(program: Vec<OsString>) -> io::Result<ExitCode> {
    let name = format!("alone-{}", std::process::id());
    let cookie = Cookie::new(&name).expect("a word and a number are a cookie");
    let environment = ciel_spawner::current_environment();
    let own = Path::new("/proc/self/exe");
    let spawner = Spawner::start(own, &[] as &[&OsStr], &cookie, &environment)?;
    let program = program
        .into_iter()
        .map(|argument| CString::new(argument.into_vec()));
    let mut start = Start::new(0, "program", program.collect::<Result<_, _>>()?);
    (start.stdin, start.stdout, start.stderr) = (Input::Fd(0), Output::Fd(1), Output::Fd(2));
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    spawner.send(&Request::Start(Box::new(start)), &streams)?;
    loop {
        match spawner.receive()? {
            Some(Report::Exited { exit, left, .. }) => {
                left.iter()
                    .for_each(|left| eprintln!("killed {} {}", left.pid, left.command));
                return Ok(code(exit.status));
            }
            Some(Report::Refused { refusal, .. }) => {
                return Err(io::Error::other(refusal.to_string()));
            }
            Some(Report::Started { .. } | Report::Withdrawn { .. } | Report::Passed { .. }) => {}
            None => wait(&spawner)?,
        }
    }
}

fn wait(spawner: &Spawner) -> io::Result<()> {
    spawner.flush()?;
    let mut events = PollFlags::IN;
    events.set(PollFlags::OUT, spawner.want_write());
    rustix::event::poll(&mut [PollFd::new(spawner, events)], None)?;
    Ok(())
}

/// The exit code that a shell would show.
fn code(status: Status) -> ExitCode {
    let (Status::Code(code) | Status::Signal(code, _)) = status;
    let base = if matches!(status, Status::Signal(..)) {
        128
    } else {
        0
    };
    ExitCode::from(u8::try_from(base + code).unwrap_or(u8::MAX))
}
