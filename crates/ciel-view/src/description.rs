//! The descriptions of a run at its start and at its end, in files of its folder.
//!
//! By the first a later process recognises the job and starts it with the same options; by the
//! second it knows that the run cannot be resumed. It does not know where the files are stored.
//! Read next: `listing`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ciel_coordinator::RECORD_FORMAT;
use ciel_store::RunEntry;
use serde::{Deserialize, Serialize};

/// The version whose runs this one can resume: its own.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The description of a run at its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunDescription {
    /// The version of ciel that began it.
    pub version: String,
    /// The number of the format of its records.
    #[serde(default)]
    pub record_format: u32,
    /// The identity of the job and of its code.
    pub key: String,
    /// The identity of the job, whatever its code.
    #[serde(default)]
    pub job: String,
    /// Script and arguments, as they were given.
    pub command: Vec<String>,
    /// The folder it was started in.
    pub folder: PathBuf,
    /// How it was to be run.
    pub options: GivenOptions,
    /// Seconds since 1970 at its first start.
    pub started_s: u64,
}

/// The options of a run as a person gave them. How the run is shown is not among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GivenOptions {
    /// The name of the Python module that is the job, if it was given as one.
    pub module: Option<String>,
    /// Cores to use; all if not given.
    pub jobs: Option<u32>,
    /// What the machine has beside cores and memory, in thousandths, by name.
    pub resources: BTreeMap<String, u32>,
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
    /// Standard error in serial order.
    pub ordered_errors: bool,
    /// Commands are run by the strict shell.
    #[serde(default)]
    pub strict_shell: bool,
    /// The file that takes the output.
    pub output: Option<PathBuf>,
    /// Whatever that file held is replaced.
    pub overwrite: bool,
    /// Objects given by name.
    pub packages: BTreeMap<String, PathBuf>,
    /// Bytes of a script's heap.
    pub heap_bytes_max: usize,
    /// The interpreter of Python tasks, if one was named.
    pub python: Option<PathBuf>,
    /// What the run is to survive.
    pub durable: Durable,
    /// Bytes of disk for runs that have ended.
    pub keep_bytes: u64,
    /// Tasks take kept results of earlier runs, however the last run ended.
    #[serde(default)]
    pub kept: bool,
    /// A folder of kept results that several users share.
    #[serde(default)]
    pub kept_folder: Option<PathBuf>,
    /// Users whose shared results are taken whatever their form.
    #[serde(default)]
    pub trusted_owners: Vec<String>,
    /// Files that commands name count by length and last change instead of their content.
    #[serde(default)]
    pub trusts_times: bool,
    /// Each pure task runs twice, and its results are compared.
    #[serde(default)]
    pub check: bool,
    /// Stragglers that are assumed to be pure get duplicates, too.
    #[serde(default)]
    pub duplicates: bool,
    /// Bytes of output that may wait before tasks are held.
    #[serde(default)]
    pub held_bytes: Option<u64>,
    /// Bytes of objects that may be in memory; none for as many as such a run has by itself.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Bytes of disk for objects and output of the run.
    #[serde(default)]
    pub store_bytes: Option<u64>,
}

/// What a run is to survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durable {
    /// The death of all its processes, not of the machine.
    #[default]
    Process,
    /// Nothing: no record is kept, and a run that is broken off cannot be resumed.
    Never,
    /// A power failure too: output leaves only when its causes are on the disk.
    Power,
}

/// The description of a run at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEndRecord {
    /// Why the job failed; absent when it ended well.
    pub failure: Option<String>,
    /// How many tasks it had.
    pub tasks: u64,
    /// Microseconds from its last start to its end.
    pub elapsed_us: u64,
    /// Bytes on disk of what stays of it.
    pub bytes: u64,
}

impl RunDescription {
    /// The description in a run's folder; none if it cannot be read or understood.
    pub fn read(run: &RunEntry) -> Option<RunDescription> {
        serde_json::from_slice(&run.description().ok()??).ok()
    }

    /// Whether this version can take the run up.
    pub fn is_of_this_version(&self) -> bool {
        self.version == VERSION && self.record_format == RECORD_FORMAT
    }

    /// What began it, in words.
    pub fn version_in_words(&self) -> String {
        in_words(&self.version, self.record_format)
    }

    /// The script.
    pub fn script(&self) -> &Path {
        Path::new(self.command.first().map_or("", String::as_str))
    }
}

/// This version, in words.
pub fn this_version() -> String {
    in_words(VERSION, RECORD_FORMAT)
}

fn in_words(version: &str, record_format: u32) -> String {
    format!("{version} (journal format {record_format})")
}
