//! A job that runs: its output as it comes, its memory, its end.
//!
//! It does not know what the job is. Read next: `stream`.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use super::stream::Stream;
use super::terminal::terminal;
use super::{kill, peak_kib, until};

/// A command that runs.
pub struct Live {
    child: Option<Child>,
    stdout: Stream,
    stderr: Stream,
    peak_kib: u64,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code, if it was not killed.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Standard output that was not read line by line before, up to a bound.
    pub stdout: String,
    /// The end of standard output, if it was longer than that.
    pub stdout_end: String,
    /// Bytes of all its standard output.
    pub stdout_bytes: u64,
    /// Standard error; if it is very long, its beginning and its end.
    pub stderr: String,
    /// Most memory of the command itself, in KiB.
    pub peak_kib: u64,
}

impl Live {
    /// Starts a command and reads what it writes.
    pub fn start(command: Command) -> Live {
        Live::start_into(command, Stdio::piped())
    }

    /// Starts a command with a terminal as its standard output, which is read.
    pub fn start_on_terminal(command: Command) -> Live {
        let (ours, theirs) = terminal();
        Live::start_reading(command, Stdio::from(theirs), ours)
    }

    /// Starts a command with that standard output, which is read if it is a pipe made here.
    pub fn start_into(command: Command, stdout: Stdio) -> Live {
        Live::start_reading(command, stdout, std::io::empty())
    }

    /// Reads `otherwise` if that standard output is no pipe made here.
    fn start_reading(
        mut command: Command,
        stdout: Stdio,
        otherwise: impl Read + Send + 'static,
    ) -> Live {
        command.stdout(stdout).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = match child.stdout.take() {
            Some(stdout) => Stream::read(stdout),
            None => Stream::read(otherwise),
        };
        let stderr = Stream::read(child.stderr.take().unwrap());
        let child = Some(child);
        let peak_kib = 0;
        Live {
            child,
            stdout,
            stderr,
            peak_kib,
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Waits for the next line of standard output.
    pub fn line(&self) -> String {
        self.stdout.line()
    }

    /// What has come of standard output and was not read as a line.
    pub fn unread(&self) -> String {
        self.stdout.text()
    }

    /// What has come of standard error.
    pub fn errors(&self) -> String {
        self.stderr.text()
    }

    /// Waits until standard error holds `text`.
    pub fn await_error(&self, text: &str) {
        until(text, || self.errors().contains(text).then_some(()));
    }

    /// Sends a signal, by its name without SIG.
    pub fn signal(&self, name: &str) {
        kill(self.pid(), name);
    }

    /// Waits for the end and for all output.
    pub fn end(self) -> Ended {
        self.end_of("the command ends")
    }

    /// The same; a command that does not end fails the test with `what`.
    pub fn end_of(mut self, what: &str) -> Ended {
        let mut child = self.child.take().expect("it ends once");
        let status = until(what, || {
            self.peak_kib = self.peak_kib.max(peak_kib(child.id()));
            child.try_wait().unwrap()
        });
        self.stdout.await_end();
        self.stderr.await_end();
        Ended {
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout.text(),
            stdout_end: self.stdout.end(),
            stdout_bytes: self.stdout.count(),
            stderr: self.stderr.excerpt(),
            peak_kib: self.peak_kib,
        }
    }
}

impl Drop for Live {
    /// A test that fails must not leave its job running.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // One that has ended already is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A run ended well and printed this.
pub fn expect_well(ended: &Ended, stdout: &str) {
    let found = (ended.code, ended.stdout.as_str());
    assert_eq!(found, (Some(0), stdout), "{}", ended.stderr);
}
