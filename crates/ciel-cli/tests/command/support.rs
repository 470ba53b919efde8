//! One folder with files, and `ciel` run in it: the only place where tests start processes.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

#[path = "../support/signals.rs"]
mod signals;

/// The longest that anything may take on a loaded machine.
pub const DEADLINE: Duration = Duration::from_secs(600);

/// Between two looks at a condition.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A folder of its own, gone with the test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    /// A folder that holds `job.sw`.
    pub fn with_job(script: &str) -> Folder {
        let folder = Folder::new();
        folder.write("job.sw", script);
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn pipe(&self, name: &str) {
        let made = Command::new("mkfifo")
            .arg(self.path(name))
            .status()
            .unwrap();
        assert!(made.success());
    }

    /// `ciel` with these words, in this folder, in an environment of its own.
    pub fn command(&self, words: &[&str]) -> Command {
        signals::pass_on_defaults();
        let mut command = Command::new(env!("CARGO_BIN_EXE_ciel"));
        command
            .args(words)
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
            .env("XDG_RUNTIME_DIR", self.0.path())
            .env_remove("NO_COLOR")
            .env_remove("COLUMNS");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `ciel` to its end.
    pub fn ciel(&self, words: &[&str]) -> Ended {
        self.ended(self.command(words).spawn().unwrap())
    }

    /// Waits for the end of a process; both streams are read meanwhile.
    pub fn ended(&self, child: Child) -> Ended {
        let process = child.id();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
        let output = receiver.recv_timeout(DEADLINE);
        let output = output.unwrap_or_else(|_| {
            let process = rustix::process::Pid::from_raw(process as i32).unwrap();
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            panic!("process {process:?} did not end")
        });
        Ended::new(&output, self.0.path())
    }

    /// Waits until a file of the folder has a whole line.
    pub fn wait_for_line(&self, name: &str) -> String {
        let read = || std::fs::read_to_string(self.path(name)).unwrap_or_default();
        wait_until(name, || read().ends_with('\n'));
        read().trim().to_string()
    }
}

/// Waits for a condition.
pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < end, "it did not happen: {what}");
        std::thread::park_timeout(LOOK_AGAIN);
    }
}

/// How a command ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    fn new(output: &Output, folder: &Path) -> Ended {
        let real = folder.canonicalize().unwrap();
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.replace(real.to_str().unwrap(), "DIR")
                .replace(folder.to_str().unwrap(), "DIR")
        };
        Ended {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// The lines of JSON on standard error.
    pub fn events(&self) -> Vec<serde_json::Value> {
        self.stderr
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// All there is to see.
    pub fn shown(&self) -> String {
        let mut text = format!("exit {}\n", self.code.unwrap_or(-1));
        for (stream, bytes) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !bytes.is_empty() {
                text.push_str(&format!("--- {stream}\n{bytes}"));
            }
        }
        text
    }
}

/// Names, run ids, times and processes are the same in every snapshot.
pub fn filtered(check: impl FnOnce()) {
    settings().bind(check);
}

/// The same, and columns are two blanks apart whatever stands in them.
pub fn filtered_table(check: impl FnOnce()) {
    let mut settings = settings();
    settings.add_filter("(\\S)  +", "$1  ");
    settings.bind(check);
}

fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    settings.add_filter("@[0-9a-f]{8}", "@00000000");
    settings.add_filter("[0-9a-f]{11}-[0-9a-f]{5,}", "RUN");
    settings.add_filter(r"in process \d+", "in process PID");
    settings.add_filter(r"\(\d+\)", "(PID)");
    settings.add_filter(r"\b\d+(\.\d+)? (ms|s)\b", "TIME");
    settings.add_filter(r" +TIME  ", "  TIME  ");
    settings.add_filter(r", \d+\.\d cores used", "");
    settings.add_filter(r" +\n", "\n");
    settings
}

/// Checks a table, in which columns are as wide as what differs.
macro_rules! shows_table {
    ($name:literal, $ended:expr) => {
        $crate::support::filtered_table(|| insta::assert_snapshot!($name, $ended.shown()))
    };
}
pub(crate) use shows_table;

/// Checks what a command showed against the snapshot of this name.
macro_rules! shows {
    ($name:literal, $ended:expr) => {
        $crate::support::filtered(|| insta::assert_snapshot!($name, $ended.shown()))
    };
}
pub(crate) use shows;

/// A running command, ended with the test.
pub struct Running(Option<Child>);

impl Running {
    pub fn start(mut command: Command) -> Running {
        Running(Some(command.spawn().unwrap()))
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let child = self.0.as_ref().expect("it has not been taken");
        let process = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(process, signal).unwrap();
    }

    pub fn take(mut self) -> Child {
        self.0.take().expect("it is taken once")
    }

    /// Reads one line of its standard output.
    pub fn line(&mut self) -> String {
        let child = self.0.as_mut().expect("it has not been taken");
        let mut bytes = Vec::new();
        let mut byte = [0];
        while bytes.last() != Some(&b'\n')
            && child.stdout.as_mut().unwrap().read(&mut byte).unwrap() > 0
        {
            bytes.push(byte[0]);
        }
        String::from_utf8(bytes).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
