//! The records of a run as public values, one entry at a time.
//!
//! The records are read and folded like in a recovery, so that tasks can be called by their names;
//! nothing is changed and no lock is taken, so the run may live. It does not know how entries are
//! shown. Read next: `reading`, and `ciel_coordinator::Record`.

mod reading;

use std::path::{Path, PathBuf};

use ciel_journal::Journal;
use ciel_store::StateFolder;
use serde::Serialize;

use crate::error::ViewError;
use reading::Reading;

/// One record of a run, or the snapshot that replaces earlier ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The record's number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// Microseconds since the run began, if the record has a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_us: Option<u64>,
    /// Bytes that it takes, without its frame.
    pub bytes: u64,
    /// What happened.
    #[serde(flatten)]
    pub act: Act,
}

/// What happened. Tasks are called by their printed names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Act {
    /// A snapshot takes the place of all records up to one.
    Snapshot {
        /// That record.
        until: u64,
        /// Tasks that have not ended by then.
        live: u64,
        /// Tasks that there were by then.
        tasks: u64,
    },
    /// The run began.
    Began {
        /// All spawned work finishes, whatever fails.
        keep_going: bool,
        /// The first failed task in time ends the job.
        fail_fast: bool,
        /// Standard error is ordered like standard output.
        ordered_errors: bool,
    },
    /// The process of the run was lost, and another one resumed the run.
    TakenUp {
        /// Files of objects that were missing.
        lost: u64,
    },
    /// Files of objects were lost while the run lived.
    FilesLost {
        /// Their number.
        lost: u64,
    },
    /// The root was submitted.
    Submitted {
        /// The root.
        task: String,
        /// Who runs it.
        executor: String,
    },
    /// A task got a slot and started, or resumed after a wait.
    Placed {
        /// The task, as it is printed.
        task: String,
        /// Which attempt, from 0.
        attempt: u32,
    },
    /// A task spawned another.
    Spawned {
        /// The one that spawned.
        task: String,
        /// The new task; only its function if it exists already.
        child: String,
        /// Whether this is a replay of a recorded spawn.
        again: bool,
        /// Who runs it.
        executor: String,
        /// `file:line`; empty if it is not known.
        place: String,
        /// References that it is given.
        inputs: u64,
        /// References that it makes.
        outputs: u32,
    },
    /// A task made an object from data.
    Made {
        /// The task, as it is printed.
        task: String,
        /// Bytes of the object.
        length: u64,
    },
    /// A task published an output before its end.
    Published {
        /// The task, as it is printed.
        task: String,
        /// Which output, from 0.
        output: u32,
        /// Bytes of the object.
        length: u64,
    },
    /// A task observed its environment.
    Asked {
        /// The task, as it is printed.
        task: String,
        /// The name of the observation.
        question: String,
        /// Bytes of the answer.
        length: u64,
    },
    /// A task opened an output, which others may read while it writes.
    OpenedOutput {
        /// The task, as it is printed.
        task: String,
        /// Which output, from 0.
        output: u32,
        /// Whether its bytes go to the one reader and are not stored.
        direct: bool,
    },
    /// A task restarts that opened a stream again of which it had read.
    Reopened {
        /// The task, as it is printed.
        task: String,
    },
    /// A task uses references no more.
    ReleasedReferences {
        /// The task, as it is printed.
        task: String,
        /// How many references.
        references: u64,
    },
    /// A task waits until references are resolved.
    Waited {
        /// The task, as it is printed.
        task: String,
        /// How many references.
        references: u64,
        /// One of them is enough.
        first: bool,
        /// The time limit of the wait in microseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        limit_us: Option<u64>,
        /// How it resumes: `live`, `replay` or `saved`.
        continuation: &'static str,
        /// Bytes of the state from which it is replayed from now on.
        #[serde(skip_serializing_if = "Option::is_none")]
        checkpoint: Option<u64>,
    },
    /// A task cancels references.
    Cancels {
        /// The task, as it is printed.
        task: String,
        /// How many references.
        references: u64,
    },
    /// A task watches a reference.
    Watched {
        /// The task, as it is printed.
        task: String,
    },
    /// A task ended well; its outputs are committed.
    Finished {
        /// The task, as it is printed.
        task: String,
        /// Which attempt, from 0.
        attempt: u32,
        /// How many outputs.
        outputs: u64,
        /// Bytes of the objects among them that are new.
        length: u64,
    },
    /// A task handed its outputs to a successor.
    TailSpawned {
        /// The task, as it is printed.
        task: String,
        /// What the successor runs.
        successor: String,
    },
    /// An attempt failed.
    Failed {
        /// The task, as it is printed.
        task: String,
        /// Which attempt, from 0.
        attempt: u32,
        /// The failure, in one line.
        failure: String,
    },
    /// The process of an attempt was lost.
    Lost {
        /// The task, as it is printed.
        task: String,
        /// Which attempt, from 0.
        attempt: u32,
    },
    /// A replayed task requested the resolutions of all that it had waited for.
    Recalled {
        /// The task, as it is printed.
        task: String,
    },
    /// What a task did was undone from some action on.
    RolledBack {
        /// The task that was rolled back.
        task: String,
        /// The first action that was undone.
        to: u64,
    },
    /// An earlier run had kept the result of a task.
    ResultFound {
        /// The task, as it is printed.
        task: String,
        /// How many outputs it has.
        outputs: u64,
    },
    /// An earlier run had kept the digest of a task's result, but not all of the bytes.
    ResultKnown {
        /// The task, as it is printed.
        task: String,
        /// How many outputs it has.
        outputs: u64,
    },
    /// A task's result was looked up in vain.
    ResultMissing {
        /// The task, as it is printed.
        task: String,
        /// Why there is none.
        reason: String,
    },
    /// The live copy of a task that waits was lost.
    CopyLost {
        /// The task, as it is printed.
        task: String,
    },
    /// A request to cancel a task.
    CancelRequested {
        /// The task, as it is printed.
        task: String,
    },
    /// A request to cancel the job.
    JobCancelled {
        /// The job's failure.
        failure: String,
    },
    /// A time limit may have come.
    Ticked,
    /// A task requested more than the machine has.
    Refused {
        /// The task.
        task: String,
        /// The failure, which names the resource.
        failure: String,
    },
    /// An ordered file was named for the first time.
    Opened {
        /// Its path.
        path: String,
    },
    /// A task wrote to an ordered stream.
    Wrote {
        /// The task, as it is printed.
        task: String,
        /// `stdout`, `stderr`, or the path of an ordered file.
        stream: String,
        /// Length in bytes.
        length: u64,
        /// How it begins, if it is held in memory.
        beginning: String,
    },
    /// Bytes at the end that are no whole record; so it is in a live run, or after a death.
    Unfinished,
}

/// Hands out what a run has recorded and not yet replaced, in order. False if the run keeps no
/// journal: it ended, is run serially, or is a session.
///
/// # Errors
/// The state folder or the journal cannot be read, or does not hold a run; those of `each`.
pub fn entries<E: From<ViewError>>(
    state: &Path,
    run: &str,
    mut each: impl FnMut(Entry) -> Result<(), E>,
) -> Result<bool, E> {
    let Some(folder) = journal_of(state, run)? else {
        return Ok(false);
    };
    let recorded = Journal::read(&folder).map_err(ViewError::Journal)?;
    let mut reading = match &recorded.snapshot {
        Some(snapshot) => {
            let (reading, entry) = Reading::restored(snapshot, recorded.snapshot_until.0)?;
            each(entry)?;
            reading
        }
        None => Reading::new(),
    };
    for (number, bytes) in recorded.records.iter() {
        let (at_us, act) = reading.next(bytes)?;
        each(Entry {
            record: Some(number.0),
            at_us,
            bytes: bytes.len() as u64,
            act,
        })?;
    }
    if let Some(cut) = recorded.cut {
        each(Entry {
            record: None,
            at_us: None,
            bytes: cut.bytes,
            act: Act::Unfinished,
        })?;
    }
    Ok(true)
}

fn journal_of(state: &Path, run: &str) -> Result<Option<PathBuf>, ViewError> {
    let Some(folder) = StateFolder::open_existing(state)? else {
        return Ok(None);
    };
    let runs = folder.runs()?;
    let entry = runs.iter().find(|entry| entry.id == run);
    let path = entry.map(|entry| entry.path.join("journal"));
    Ok(path.filter(|path| path.is_dir()))
}
