//! The settings of a run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ciel_graph::Policy;
use ciel_model::{Options, limits};
use ciel_skywriting::hir::Program;
use ciel_view::{Durable, GivenOptions};

/// How a job is run. Only what comes before `cores`, and the folder, say *what* is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file that was given as the job, and the words after it.
    pub command: (PathBuf, Vec<String>),
    /// The script.
    pub script: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables that scripts see beside those of this process, and before them.
    pub variables: BTreeMap<String, String>,
    /// Objects given by name: `package(name)` in scripts.
    pub packages: BTreeMap<String, Package>,
    /// Cores to use.
    pub cores: u32,
    /// What the machine has beside cores and memory, in thousandths, by name.
    pub resources: BTreeMap<String, u32>,
    /// One task at a time, in serial order.
    pub serial: bool,
    /// All spawned work finishes, whatever fails.
    pub keep_going: bool,
    /// The first failed task in time ends the job.
    pub fail_fast: bool,
    /// Retries of tasks that do not say themselves.
    pub retries: u32,
    /// Microseconds a task may run that does not say itself.
    pub timeout_us: Option<u64>,
    /// Microseconds the whole job may take.
    pub job_timeout_us: Option<u64>,
    /// Standard error in serial order instead of live and tagged.
    pub ordered_errors: bool,
    /// Commands that do not say it themselves are run by `bash -euo pipefail`.
    pub strict_shell: bool,
    /// The state folder.
    pub state: PathBuf,
    /// Bytes of a script's heap.
    pub heap_bytes_max: usize,
    /// How this program starts a spawner: itself with these arguments.
    pub spawner: (PathBuf, Vec<OsString>),
    /// What names the root's position: the script's path and arguments.
    pub key: Vec<u8>,
    /// How tasks in Python are run; none if there is no interpreter.
    pub python: Option<Python>,
    /// How scripts are read that tasks call.
    pub scripts: Scripts,
    /// Whether the job resumes an earlier run of it that was interrupted.
    pub resume: Resume,
    /// What the run is to survive.
    pub durable: Durable,
    /// Bytes of disk that former runs may take before the oldest ended ones are removed.
    pub keep_bytes: u64,
    /// Tasks take kept results of earlier runs, however the last run ended.
    pub kept: bool,
    /// A folder of kept results that several users share.
    pub kept_folder: Option<PathBuf>,
    /// Users, by their numbers, whose shared results are taken whatever their form.
    pub trusted_users: Vec<u32>,
    /// Files that commands name count by length and last change instead of their content.
    pub trusts_times: bool,
    /// Each pure task runs twice, and its results are compared.
    pub check: bool,
    /// Stragglers that are assumed to be pure get duplicates, too, beside those declared so.
    pub duplicates: bool,
    /// Bytes of output that may wait behind the serial frontier before tasks are held.
    pub held_bytes: Option<u64>,
    /// Children that a strand may have before it pauses until half of them have ended, at least 1.
    pub children_max: u32,
    /// Bytes of objects that may be in memory; none for as many as such a run has by itself.
    pub memory_bytes: Option<u64>,
    /// Bytes of disk that the run may take for its objects and output, if they are bounded.
    pub store_bytes: Option<u64>,
    /// The file for a trace of the run, open and empty.
    pub trace: Option<Arc<File>>,
    /// The options as a person gave them, for the next process of this run.
    pub given: GivenOptions,
}

/// What a job is given by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Package {
    /// A file.
    File(PathBuf),
    /// A list of files: the list of the references to them.
    Index(Vec<PathBuf>),
}

impl Package {
    /// The files, in order.
    pub fn files(&self) -> &[PathBuf] {
        match self {
            Package::File(path) => std::slice::from_ref(path),
            Package::Index(paths) => paths,
        }
    }
}

/// Whether a job resumes an earlier run of it that was interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// With the newest run of the same key that can be resumed, if there is one.
    Auto,
    /// It does not.
    New,
    /// With this run, by its whole id.
    Run(String),
}

impl Settings {
    /// The job as it was given, in words that can be shown.
    pub(crate) fn command_words(&self) -> Vec<String> {
        let (file, words) = &self.command;
        std::iter::once(file.display().to_string())
            .chain(words.iter().cloned())
            .collect()
    }

    /// Tasks take kept results however the last run ended: that was asked for, or a shared folder
    /// was named.
    pub(crate) fn takes_kept(&self) -> bool {
        self.kept || self.kept_folder.is_some()
    }

    /// What a failed task does to the rest of the job.
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            keep_going: self.keep_going,
            fail_fast: self.fail_fast,
            check: self.check,
            straggler_us: (!self.serial && !self.check).then_some(limits::STRAGGLER_US_MIN),
            duplicates_assumed: self.duplicates,
        }
    }

    /// The default options of a task.
    pub(crate) fn task_options(&self) -> Options {
        Options {
            retries: self.retries,
            timeout_us: self.timeout_us,
            ..Options::default()
        }
    }

    /// Cores of this machine that a task may use, at least one; a serial run has as many, for one
    /// task at a time.
    pub(crate) fn usable_cores(&self) -> u32 {
        self.cores.max(1)
    }

    /// The bound of output that waits, in force; a serial run has no such output.
    pub(crate) fn output_bound(&self) -> Option<u64> {
        self.held_bytes.filter(|_| !self.serial)
    }

    /// The bound of unfinished children, in force; a serial run has only one at a time.
    pub(crate) fn children_bound(&self) -> Option<u32> {
        (!self.serial).then_some(self.children_max)
    }

    /// The id of the run, `run`, if files of other contents are to be replaced.
    pub(crate) fn overwrite<'a>(&self, run: &'a str) -> Option<&'a str> {
        self.given.overwrite.then_some(run)
    }

    /// Bytes of objects that may be in memory, in force. A run that can be resumed could not be
    /// after a crash of the system, so there it has to be asked for; one that is to be resumed
    /// even then has none.
    pub(crate) fn store_memory(&self, is_recorded: bool) -> u64 {
        match (self.durable, self.memory_bytes) {
            (Durable::Power, _) => 0,
            (Durable::Process | Durable::Never, Some(bytes)) => bytes,
            (Durable::Process | Durable::Never, None) if is_recorded => 0,
            (Durable::Process | Durable::Never, None) => ciel_store::default_memory(),
        }
    }

    /// Bytes of memory that streams may share where objects have none, in force. Nothing of them
    /// has to outlive the system.
    pub(crate) fn stream_memory(&self) -> u64 {
        self.memory_bytes.unwrap_or_else(ciel_store::default_memory)
    }

    /// Threads that run scripts: one in a serial run, else one for each usable core.
    pub(crate) fn script_threads(&self) -> u32 {
        match self.serial {
            true => 1,
            false => self.usable_cores(),
        }
    }
}

/// How tasks in Python are run.
#[derive(Clone, Debug)]
pub struct Python {
    /// The interpreter, which can import the module `ciel`.
    pub interpreter: PathBuf,
    /// Where its modules are looked for, as JSON; the interpreter's own way if there is none.
    pub module_path: Option<String>,
}

/// What reads a script that a task calls, with all that it includes, and checks it.
type ReadScript = dyn Fn(&Path) -> Result<Program, ScriptError> + Send + Sync;

/// How scripts are read that tasks call by the names of their files.
#[derive(Clone)]
pub struct Scripts(Arc<ReadScript>);

impl Scripts {
    /// Reads them by that function; threads of the engine call it, several at a time.
    pub fn new(
        read: impl Fn(&Path) -> Result<Program, ScriptError> + Send + Sync + 'static,
    ) -> Scripts {
        Scripts(Arc::new(read))
    }

    /// The checked program in a file.
    ///
    /// # Errors
    /// The file cannot be read, or the program has mistakes.
    pub fn read(&self, path: &Path) -> Result<Program, ScriptError> {
        (self.0)(path)
    }
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripts")
    }
}

/// Why a called script cannot run, as the failure of the task that called it shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptError {
    /// What is wrong, without a full stop.
    pub message: String,
    /// Where it begins, `file:line:column`; empty if no line is to blame.
    pub place: String,
    /// The lines with their carets; empty if no line is to blame.
    pub excerpt: String,
    /// What to do about it.
    pub hint: Option<String>,
}
