//! Jobs of real processes for tests: a folder of its own for each, and ways to wait for what
//! happens, each with a deadline.
//!
//! It knows the command and the kernel's view of processes, and nothing of the engine. Read next:
//! `live` (a job that runs), `disk` (small file systems), `stream` (what it writes), `gate`
//! (holding tasks still), `marks` (finding what it left behind), `trees` (jobs of any shape),
//! `programs` (the examples).

#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

mod disk;
mod gate;
mod live;
mod marks;
pub mod programs;
pub mod random;
mod signals;
mod stream;
mod terminal;
mod trees;
mod words;

pub use disk::{DISK_KIB, SmallDisk};
pub use gate::Gate;
pub use live::{Ended, Live, expect_well};
pub use marks::{command_of, kill, marked, parent_of, peak_kib, waits};
pub use trees::Tree;
pub use words::{appended, done, held, shell, shell_printing, task};

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The command under test, as built for these tests.
pub const CIEL: &str = env!("CARGO_BIN_EXE_ciel");

/// How long anything may take before the test gives up.
pub const DEADLINE: Duration = Duration::from_secs(600);

/// Between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(5);

/// The variable by which all processes of a test are found.
const MARK_VARIABLE: &str = "CIEL_TEST_MARK";

/// Waits until `condition` gives something.
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::park_timeout(PAUSE);
    }
}

/// Waits until `condition` holds.
pub fn until_true(what: &str, mut condition: impl FnMut() -> bool) {
    until(what, || condition().then_some(()))
}

/// Says why a test was not done.
pub fn skipped(test: &str, why: &str) {
    eprintln!("skipped: {test}: {why}");
}

/// The release build of the command if there is one, which makes long jobs short.
pub fn release() -> Option<PathBuf> {
    let path = repository().join("target/release/ciel");
    path.is_file().then_some(path)
}

/// The root of the source tree.
pub fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::canonicalize(root).unwrap()
}

/// A folder in which jobs run, with a state folder and a runtime folder of its own.
pub struct Place {
    folder: TempDir,
    binary: PathBuf,
    mark: String,
    variables: Vec<(String, String)>,
}

impl Place {
    /// A new, empty one.
    pub fn new() -> Place {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("runtime")).unwrap();
        Place {
            folder,
            binary: PathBuf::from(CIEL),
            mark: format!("{}-{number}", std::process::id()),
            variables: Vec::new(),
        }
    }

    /// The same, with a variable in the environment of all programs.
    pub fn with_variable(mut self, name: &str, value: &str) -> Place {
        self.variables.push((name.to_string(), value.to_string()));
        self
    }

    /// The same with another build of the command.
    pub fn with_binary(mut self, binary: PathBuf) -> Place {
        self.binary = binary;
        self
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file in it.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// What a file in it holds; nothing if there is none.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Whether there is such a file.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Waits for a file that a task makes.
    pub fn await_file(&self, name: &str) {
        until_true(&format!("file {name}"), || self.has(name));
    }

    /// A gate at which tasks can be held.
    pub fn gate(&self, name: &str) -> Gate {
        Gate::new(&self.path(name))
    }

    /// The command, here, with nothing that the tester's own environment would change.
    pub fn command(&self) -> Command {
        self.program(&self.binary)
    }

    /// Another program, likewise.
    pub fn program(&self, file: &Path) -> Command {
        signals::pass_on_defaults();
        let mut command = Command::new(file);
        command
            .current_dir(self.folder.path())
            .env("XDG_RUNTIME_DIR", self.path("runtime"))
            .env(MARK_VARIABLE, &self.mark)
            .env_remove("CIEL_COOKIE")
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    /// A copy of the command in the folder of the test, for users who may not enter that of the
    /// build.
    ///
    /// The tests wrote it themselves once: a process that another test started meanwhile had the
    /// file open for writing until it was executed itself, so the copy could not be executed ("Text
    /// file busy").
    pub fn copy_of_command(&self) -> PathBuf {
        let copy = self.path("ciel");
        let copied = Command::new("cp").args([CIEL.as_ref(), &*copy]).status();
        assert!(copied.expect("cp starts").success());
        copy
    }

    /// Starts the command with these words.
    pub fn start(&self, words: &[&str]) -> Live {
        let mut command = self.command();
        command.args(words);
        Live::start(command)
    }

    /// Runs the command with these words to its end; nothing of it is left then.
    pub fn run(&self, words: &[&str]) -> Ended {
        let ended = self.start(words).end();
        self.expect_nobody(&ended.stderr);
        ended
    }

    /// Starts a script with these options.
    pub fn start_script(&self, options: &[&str], script: &str) -> Live {
        self.file("job.sw", script);
        self.start(&job_words(options))
    }

    /// Runs a script with these options to its end; nothing of it is left then.
    pub fn script(&self, options: &[&str], script: &str) -> Ended {
        self.file("job.sw", script);
        self.run(&job_words(options))
    }

    /// Numbers of the processes of this test's jobs: the command, its spawner and all tasks.
    pub fn processes(&self) -> Vec<u32> {
        marked(MARK_VARIABLE, &self.mark)
    }

    /// No process of this test's jobs exists.
    pub fn expect_nobody(&self, about: &str) {
        let left = self.processes();
        let named: Vec<String> = left.iter().map(|pid| marks::command_of(*pid)).collect();
        assert!(left.is_empty(), "left behind: {named:?}\n{about}");
    }

    /// The spawner of a job: the one child of the command.
    pub fn spawner_of(&self, live: &Live) -> u32 {
        let is_child = |pid: &u32| parent_of(*pid) == Some(live.pid());
        until("a spawner", || self.processes().into_iter().find(is_child))
    }

    /// Waits until no process of this test's jobs exists.
    pub fn await_nobody(&self) {
        until_true("all processes are gone", || self.processes().is_empty());
    }

    /// The folder can be used as if nothing had happened: there is no lock to clear.
    pub fn expect_usable(&self) {
        self.file("next.sw", format!("return *{};", shell("echo 41")));
        let next = self.run(&["run", "next.sw"]);
        assert_eq!(
            (next.code, next.stdout.as_str()),
            (Some(0), "41\n"),
            "{}",
            next.stderr
        );
        let runs = self.run(&["ps"]);
        assert_eq!(runs.code, Some(0), "{}", runs.stderr);
    }
}

impl Drop for Place {
    /// A test that fails leaves nothing running either.
    fn drop(&mut self) {
        for pid in self.processes() {
            kill(pid, "KILL");
        }
    }
}

fn job_words<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["run"];
    words.extend(options);
    words.push("job.sw");
    words
}
