//! The course of an ordered command, from its start to its exit status.
//!
//! It does not know what happens in between. Read next: `guard`, `launch`, `supervisor`.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::Mode;
use rustix::process::{Pid, Resource};

use crate::error::{Naming, UnmodifiedError};
use crate::files::OrderedFiles;
use crate::guard::{self, Role};
use crate::launch::{self, Launched, Start};
use crate::order::ROOT;
use crate::outputs::Outputs;
use crate::segments::Segments;
use crate::signals::{self, Signals};
use crate::sink::Sink;
use crate::supervisor::{Parts, Supervisor};

/// How the output of processes is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// By intercepted calls where the system allows it, else by pipes.
    Auto,
    /// By intercepted calls.
    Seccomp,
    /// Not at all: all processes share the pipes of the command.
    Pipes,
}

/// A command that is to run in serial order.
#[derive(Debug, Clone)]
pub struct Ordered {
    /// The program, found as shells find it, and its arguments; at least one word.
    pub command: Vec<OsString>,
    /// Patterns of the paths of files that are ordered, too.
    pub files: Vec<String>,
    /// How processes are told apart.
    pub route: Route,
}

/// Runs the command until all of its processes have ended and all output is written. Returns its
/// exit status as shells have it: 128 and the signal's number if a signal ended it.
///
/// `notice` is told what is not ordered on this system, and at the end which patterns of ordered
/// files no process has named a file of.
///
/// This process must have one thread: it is divided in two, and this function returns in both. In
/// one of them the command has run, and errors are reported; the other returns the same status.
///
/// # Errors
/// The command could not be started, or supervised to its end; its processes are ended then.
pub fn run(ordered: &Ordered, mut notice: impl FnMut(&str)) -> Result<u8, UnmodifiedError> {
    let folder = std::env::current_dir().naming("find the working folder")?;
    let files = OrderedFiles::new(&ordered.files, &folder)?;
    if ordered.route == Route::Pipes && !files.is_empty() {
        return Err(UnmodifiedError::FilesByPipes);
    }
    match guard::divide()? {
        Role::Guard(code) => Ok(code),
        Role::Supervisor(guard, signals) => {
            let result = supervise(ordered, files, guard, signals, &mut notice);
            if result.is_err() {
                guard::end_all();
            }
            result
        }
    }
}

fn supervise(
    ordered: &Ordered,
    files: OrderedFiles,
    guard: Pid,
    signals: Signals,
    notice: &mut impl FnMut(&str),
) -> Result<u8, UnmodifiedError> {
    let mut outputs = Outputs::new(std::env::temp_dir());
    let mut segments = Segments::default();
    let mut launched = launch(ordered, &files, &signals, &mut outputs, &mut segments)?;
    // Ordered files get exactly the modes that their processes asked for.
    rustix::process::umask(Mode::empty());
    allow_many_descriptors();
    let listener = match std::mem::replace(&mut launched.listener, Err(io::Error::other("taken"))) {
        Ok(listener) => Some(listener),
        Err(error) => {
            judge_refusal(ordered, error, notice)?;
            None
        }
    };
    let parts = Parts {
        outputs,
        segments,
        files,
        listener,
        signals,
        guard,
        root: launched.pid,
    };
    let mut supervisor = Supervisor::new(parts)?;
    let result = supervisor.run();
    let unused: Vec<String> = supervisor.files.unused().map(str::to_owned).collect();
    // Calls that still wait fail from now on, so no process is started any more.
    drop(supervisor);
    let status = result?;
    for pattern in unused {
        notice(&format!(
            "no process has named the ordered file {pattern}: nothing was ordered in it; is the \
             path the one that the command writes?"
        ));
    }
    match launched.failure() {
        None => Ok(signals::exit_code(status)),
        Some(error) => Err(UnmodifiedError::Start {
            program: ordered.command[0].to_string_lossy().into_owned(),
            error,
        }),
    }
}

/// As many descriptors as the system allows; the command has started with the usual limit.
fn allow_many_descriptors() {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer, fewer processes can live at once.
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

/// Starts the command, with a pipe for each standard output of its own.
fn launch(
    ordered: &Ordered,
    files: &OrderedFiles,
    signals: &Signals,
    outputs: &mut Outputs,
    segments: &mut Segments,
) -> Result<Launched, UnmodifiedError> {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let stdout_copy = rustix::io::fcntl_dupfd_cloexec(&stdout, 3).naming("copy standard output")?;
    let sink = Sink::open("standard output", stdout_copy).naming("look at standard output")?;
    let stream = outputs.add(sink);
    let (_, out_writer) = segments.create(ROOT, stream).naming("make a pipe")?;
    let mut error_writer = None;
    if !launch::are_same(stdout.as_fd(), stderr.as_fd()) {
        let copy = rustix::io::fcntl_dupfd_cloexec(&stderr, 3).naming("copy standard error")?;
        let sink = Sink::open("standard error", copy).naming("look at standard error")?;
        let stream = outputs.add(sink);
        error_writer = Some(segments.create(ROOT, stream).naming("make a pipe")?.1);
    }
    let start = Start {
        command: &ordered.command,
        stdout: out_writer.as_fd(),
        stderr: error_writer.as_ref().unwrap_or(&out_writer).as_fd(),
        signals,
        filter: (ordered.route != Route::Pipes).then_some(!files.is_empty()),
        may_do_without: ordered.route == Route::Auto && files.is_empty(),
    };
    start.launch()
}

/// Whether the command may run without a filter; then its user hears what that means.
fn judge_refusal(
    ordered: &Ordered,
    error: io::Error,
    notice: &mut impl FnMut(&str),
) -> Result<(), UnmodifiedError> {
    match (ordered.route, ordered.files.is_empty()) {
        (_, false) => return Err(UnmodifiedError::FilesRefused(error)),
        (Route::Seccomp, true) => return Err(UnmodifiedError::Refused(error)),
        (Route::Pipes, true) => notice(
            "the processes of the command are not told apart: what they print is passed on as it \
             comes",
        ),
        (Route::Auto, true) => notice(&format!(
            "calls of processes cannot be intercepted here (seccomp: {error}); what they print is \
             passed on as it comes"
        )),
    }
    Ok(())
}
