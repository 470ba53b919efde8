//! The runs of a state folder, each in one line: its state, its job, its size.
//!
//! Unlike `inspect` it does not look at tasks, so it costs little for each run. Read next:
//! `description`.

use std::path::Path;

use ciel_store::{RunEntry, RunState, StateFolder};

use crate::description::{RunDescription, RunEndRecord};
use crate::error::ViewError;
use crate::history::Reader;
use crate::inspect::HISTORY;

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Its id.
    pub id: String,
    /// Its state.
    pub standing: Standing,
    /// Script and arguments; empty if it did not get as far as to say.
    pub command: Vec<String>,
    /// The folder it was started in.
    pub folder: String,
    /// Seconds since 1970 at its first start.
    pub started_s: u64,
    /// Microseconds that it took, since its last start; none while it lives or if it was killed.
    pub elapsed_us: Option<u64>,
    /// How many tasks it had; none while it lives or if it was killed.
    pub tasks: Option<u64>,
    /// Bytes on disk.
    pub bytes: u64,
    /// Bytes in memory, which its large values take until it has ended or is removed.
    pub memory_bytes: u64,
}

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It lives.
    Running {
        /// Its process; none in the instant before it is written.
        process: Option<u32>,
    },
    /// It ended well.
    EndedWell,
    /// The job failed.
    Failed {
        /// The failure of the job, in one line.
        failure: String,
    },
    /// It did not come to its end, and can be resumed.
    Resumable,
    /// It has not ended, and cannot be resumed.
    BrokenOff,
}

/// All runs of a state folder, oldest first; none if there is no such folder.
///
/// # Errors
/// Those of a state folder that cannot be read.
pub fn runs(state: &Path) -> Result<Vec<RunSummary>, ViewError> {
    let Some(folder) = StateFolder::open_existing(state)? else {
        return Ok(Vec::new());
    };
    Ok(folder.runs()?.iter().map(summary).collect())
}

/// The description of a run at its start.
///
/// # Errors
/// `Undescribed` if it has no description that this version understands; those of a state folder
/// that cannot be read.
pub fn description(state: &Path, id: &str) -> Result<RunDescription, ViewError> {
    let runs = match StateFolder::open_existing(state)? {
        Some(folder) => folder.runs()?,
        None => Vec::new(),
    };
    let run = runs.iter().find(|run| run.id == id);
    run.and_then(RunDescription::read)
        .ok_or_else(|| ViewError::Undescribed {
            run: id.to_string(),
        })
}

fn summary(entry: &RunEntry) -> RunSummary {
    let ending = entry.ending().ok().flatten().unwrap_or_default();
    let ending = serde_json::from_slice::<RunEndRecord>(&ending).ok();
    let history = Reader::new(&entry.path.join(HISTORY));
    let (command, folder, started_s) = beginning(entry, &history);
    let counted = match (&ending, entry.state) {
        (Some(ending), _) => Some((ending.elapsed_us, ending.tasks)),
        (None, RunState::Alive { .. }) => None,
        (None, _) => history
            .end()
            .map(|end| (end.elapsed_us, end.counts.spawned)),
    };
    RunSummary {
        id: entry.id.clone(),
        bytes: match entry.state {
            RunState::Ended => bytes_of_ended(entry),
            RunState::Alive { .. } | RunState::Unended => entry.bytes_on_disk(),
        },
        memory_bytes: entry.bytes_in_memory(),
        standing: standing(entry.state, ending),
        command,
        folder,
        started_s,
        elapsed_us: counted.map(|(elapsed_us, _)| elapsed_us),
        tasks: counted.map(|(_, tasks)| tasks),
    }
}

/// Bytes on disk of an ended run: from its description, or else measured.
pub fn bytes_of_ended(run: &RunEntry) -> u64 {
    let ending = run.ending().ok().flatten().unwrap_or_default();
    let ending = serde_json::from_slice::<RunEndRecord>(&ending);
    ending.map_or_else(|_| run.bytes_on_disk(), |ending| ending.bytes)
}

fn standing(state: RunState, ending: Option<RunEndRecord>) -> Standing {
    match (state, ending) {
        (RunState::Alive { process }, _) => Standing::Running { process },
        (RunState::Unended, _) => Standing::Resumable,
        (RunState::Ended, None) => Standing::BrokenOff,
        (RunState::Ended, Some(ending)) => match ending.failure {
            None => Standing::EndedWell,
            Some(failure) => Standing::Failed { failure },
        },
    }
}

/// Command, folder and start, by the description or else by the history.
fn beginning(entry: &RunEntry, history: &Reader) -> (Vec<String>, String, u64) {
    if let Some(description) = RunDescription::read(entry) {
        let folder = description.folder.display().to_string();
        return (description.command, folder, description.started_s);
    }
    history.run().map_or((Vec::new(), String::new(), 0), |run| {
        (run.command, run.folder, run.started_s)
    })
}
