//! A run for tests: a spawner of its own, and ways to wait for its reports, each with a deadline.
//! It knows the public interface only.

#![allow(dead_code, reason = "each test file uses its part")]

use std::ffi::{CString, OsStr};
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ciel_spawner::{Cookie, Exit, Left, Output, Refusal, Report, Request, Spawner, Start, Status};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};

pub const BINARY: &str = env!("CARGO_BIN_EXE_ciel-spawner");
const DEADLINE: Duration = Duration::from_secs(600);

/// The end of a task, as reported.
pub struct End {
    pub exit: Exit,
    pub left: Vec<Left>,
}

/// A spawner, a folder, and the reports not read yet.
pub struct Run {
    pub spawner: Spawner,
    pub cookie: Cookie,
    pub folder: tempfile::TempDir,
    reports: Vec<Report>,
    next_id: u64,
}

impl Run {
    pub fn new() -> Run {
        Run::by(Path::new(BINARY), &[])
    }

    /// One whose spawner is started by that program, which is given its socket.
    pub fn by(program: &Path, arguments: &[&OsStr]) -> Run {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let cookie = Cookie::new(&format!("test-{}-{number}", std::process::id())).unwrap();
        let environment = ciel_spawner::current_environment();
        let spawner = Spawner::start(program, arguments, &cookie, &environment).unwrap();
        let folder = tempfile::tempdir().unwrap();
        Run {
            spawner,
            cookie,
            folder,
            reports: Vec::new(),
            next_id: 1,
        }
    }

    /// A start of a program with the next number.
    pub fn task(&mut self, program: &[&str]) -> Start {
        let id = self.next_id;
        self.next_id += 1;
        let program = program.iter().map(|argument| c_string(argument)).collect();
        Start::new(id, &format!("task@{id}"), program)
    }

    pub fn send(&self, start: Start, descriptors: &[BorrowedFd<'_>]) -> u64 {
        let id = start.id;
        self.spawner
            .send(&Request::Start(Box::new(start)), descriptors)
            .unwrap();
        id
    }

    /// Starts a program with null streams.
    pub fn start(&mut self, program: &[&str]) -> u64 {
        let start = self.task(program);
        self.send(start, &[])
    }

    /// Starts a script whose standard output can be read line by line.
    pub fn script(&mut self, script: &str) -> (u64, Lines) {
        let mut start = self.task(&["sh", "-c", script]);
        let (lines, writer) = Lines::new();
        start.stdout = Output::Fd(0);
        (self.send(start, &[writer.as_fd()]), lines)
    }

    /// Runs a task to its end and returns its standard output.
    pub fn output(&mut self, mut start: Start, descriptors: &[BorrowedFd<'_>]) -> String {
        let path = self.folder.path().join(format!("out{}", start.id));
        start.stdout = Output::Path(c_string(path.to_str().unwrap()));
        let id = self.send(start, descriptors);
        assert_eq!(self.exited(id).exit.status, Status::Code(0));
        std::fs::read_to_string(path).unwrap()
    }

    pub fn exited(&mut self, wanted: u64) -> End {
        let ended = |report: &Report| matches!(report, Report::Exited { id, .. } if *id == wanted);
        match self.wait_for(ended) {
            Report::Exited { exit, left, .. } => End { exit, left },
            _ => unreachable!(),
        }
    }

    pub fn status(&mut self, id: u64) -> Status {
        self.exited(id).exit.status
    }

    pub fn started(&mut self, wanted: u64) -> u32 {
        match self.wait_for(|r| matches!(r, Report::Started { id, .. } if *id == wanted)) {
            Report::Started { pid, .. } => pid,
            _ => unreachable!(),
        }
    }

    pub fn refused(&mut self, wanted: u64) -> Refusal {
        match self.wait_for(|r| matches!(r, Report::Refused { id, .. } if *id == wanted)) {
            Report::Refused { refusal, .. } => refusal,
            _ => unreachable!(),
        }
    }

    pub fn wait_for(&mut self, wanted: impl Fn(&Report) -> bool) -> Report {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(at) = self.reports.iter().position(&wanted) {
                return self.reports.remove(at);
            }
            match self.spawner.receive().unwrap() {
                Some(report) => self.reports.push(report),
                None => self.wait(end),
            }
        }
    }

    /// The reports that have come and were not waited for.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    fn wait(&self, end: Instant) {
        self.spawner.flush().unwrap();
        let mut events = PollFlags::IN;
        events.set(PollFlags::OUT, self.spawner.want_write());
        assert!(
            ready(&self.spawner, events, end),
            "no report came; there are {:?}",
            self.reports
        );
    }

    /// The children of the spawner, ended ones included.
    pub fn children(&self) -> String {
        let pid = self.spawner.pid();
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap()
    }

    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.spawner.pid()))
            .unwrap()
            .count()
    }
}

/// Lines from a pipe.
pub struct Lines(BufReader<PipeReader>);

impl Lines {
    pub fn new() -> (Lines, PipeWriter) {
        let (reader, writer) = io::pipe().unwrap();
        (Lines(BufReader::new(reader)), writer)
    }

    pub fn of(reader: PipeReader) -> Lines {
        Lines(BufReader::new(reader))
    }

    pub fn line(&mut self) -> String {
        if self.0.buffer().is_empty() {
            let end = Instant::now() + DEADLINE;
            assert!(ready(self.0.get_ref(), PollFlags::IN, end), "no line came");
        }
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// A line that is the number of a process.
    pub fn pid(&mut self) -> u32 {
        let line = self.line();
        line.parse()
            .unwrap_or_else(|_| panic!("{line:?} is not a process"))
    }
}

fn ready(descriptor: impl AsFd, events: PollFlags, end: Instant) -> bool {
    let left = end
        .saturating_duration_since(Instant::now())
        .try_into()
        .unwrap();
    rustix::event::poll(&mut [PollFd::new(&descriptor, events)], Some(&left)).unwrap() > 0
}

/// Waits until a process has ended and was reaped.
pub fn wait_until_gone(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    if let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        let end = Instant::now() + DEADLINE;
        assert!(
            ready(&handle, PollFlags::IN, end),
            "process {pid:?} is still there"
        );
    }
}

/// Whether a process runs; one that has ended and was not collected does not.
pub fn is_running(pid: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

pub fn kill_hard(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

pub fn c_string(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// A shell function that waits until a process, its argument, runs `sleep` and prints its number.
pub const SHOW: &str =
    "show() { until read n < /proc/$1/comm && [ $n = sleep ]; do :; done; echo $1; };";

/// Leaves a child behind in the same process group.
pub const PLAIN: &str = "sleep 1000 >&- & show $!;";

/// Leaves a child behind in a session of its own.
pub const SESSION: &str = "setsid sleep 1000 >&- & show $!;";

/// Leaves a grandchild behind whose parent has ended, in a session of its own.
pub const DOUBLE: &str = "show $(setsid sh -c 'sleep 1000 >&- & echo $!');";
