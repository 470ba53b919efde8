//! What a run is told before it begins.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// How a job is run. Only `script`, `arguments` and the folder say *what* is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The script.
    pub script: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Objects given by name: `package(name)` in scripts.
    pub packages: BTreeMap<String, PathBuf>,
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
}

/// How tasks in Python are run.
#[derive(Clone, Debug)]
pub struct Python {
    /// The interpreter, which can import the module `ciel`.
    pub interpreter: PathBuf,
    /// Where its modules are looked for, as JSON; the interpreter's own way if there is none.
    pub module_path: Option<String>,
}
