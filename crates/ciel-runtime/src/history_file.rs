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

/// The history, until it cannot be written any more.
pub(crate) struct HistoryFile(Mutex<io::Result<Writer>>);

impl HistoryFile {
    /// That of a run, which may have one already.
    pub(crate) fn begin(folder: &Path, run: &RunRecord) -> HistoryFile {
        HistoryFile(Mutex::new(Writer::begin(folder, Bounds::default(), run)))
    }

    /// Writes; after a failure all that comes is dropped. False if it failed now.
    pub(crate) fn write(&self, act: impl FnOnce(&mut Writer) -> io::Result<()>) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(writer) = &mut *open else {
            return true;
        };
        let written = act(writer);
        let is_written = written.is_ok();
        if let Err(error) = written {
            *open = Err(error);
        }
        is_written
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
    for summary in gathered.tasks.iter().chain(&gathered.failed) {
        writer.task(TaskRecord::from(&**summary))?;
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
