//! The history of a run on disk: what the ring has gathered, spelled as records and written.
//!
//! Nothing here holds the lock of the machines for longer than it takes to move what has gathered.
//! Read next: `history`, and `ciel_view::history`.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ciel_view::history::{Bounds, Writer};
use ciel_view::records::{LogRecord, RunRecord, TaskRecord};

use crate::history::{Gathered, Log};

/// The history, and whether a part of it is missing.
pub(crate) struct HistoryFile(Mutex<State>);

struct State {
    writer: Option<Writer>,
    is_incomplete: bool,
}

impl HistoryFile {
    /// That of a run, which may have one already.
    pub(crate) fn begin(folder: &Path, run: &RunRecord) -> HistoryFile {
        HistoryFile(Mutex::new(State {
            writer: Writer::begin(folder, Bounds::default(), run).ok(),
            is_incomplete: false,
        }))
    }

    /// Writes. False at the first failure: the history is incomplete then, and later records are
    /// still written where that is possible.
    pub(crate) fn write(&self, act: impl FnOnce(&mut Writer) -> io::Result<()>) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_written = state
            .writer
            .as_mut()
            .is_some_and(|writer| act(writer).is_ok());
        is_written || std::mem::replace(&mut state.is_incomplete, true)
    }
}

/// Writes what has gathered.
///
/// # Errors
/// Those of the disk.
pub(crate) fn append(writer: &mut Writer, gathered: &Gathered) -> io::Result<()> {
    for log in &gathered.logs {
        writer.log(log_record(log))?;
    }
    for task in gathered.tasks.iter().chain(&gathered.failed) {
        writer.task(TaskRecord {
            memory_bytes: task.memory_bytes,
            streams: task.streams.clone(),
            ..TaskRecord::from(&*task.summary)
        })?;
    }
    writer.flush()
}

fn log_record(log: &Log) -> LogRecord {
    LogRecord {
        task: log.task.to_string(),
        stream: log.stream.to_string(),
        text: String::from_utf8_lossy(&log.bytes).into_owned(),
    }
}
