//! The history of a run on disk: what the ring has gathered, spelled as records and appended.
//!
//! Nothing here holds the lock of the machines for longer than it takes to move what has gathered.
//! Read next: `history`, and `ciel_view::records`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ciel_view::records::{LogRecord, Record, TaskRecord};

use crate::history::{Gathered, Log};

/// The file, until it cannot be written any more.
pub(crate) struct HistoryFile(Mutex<Option<File>>);

impl HistoryFile {
    /// That of a run, which may have one already.
    pub(crate) fn open(path: &Path) -> HistoryFile {
        let file = OpenOptions::new().append(true).create(true).open(path);
        HistoryFile(Mutex::new(file.ok()))
    }

    /// Appends lines; after a failure all further ones are dropped.
    pub(crate) fn append(&self, lines: &[u8]) -> io::Result<()> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = &mut *file else {
            return Ok(());
        };
        open.write_all(lines).inspect_err(|_| *file = None)
    }
}

/// What has gathered, as lines of the file.
pub(crate) fn spelled(gathered: &Gathered) -> Vec<u8> {
    let mut lines = Vec::new();
    for log in &gathered.logs {
        Record::Log(log_record(log)).append_to(&mut lines);
    }
    for summary in &gathered.tasks {
        Record::Task(Box::new(TaskRecord::from(&**summary))).append_to(&mut lines);
    }
    lines
}

fn log_record(log: &Log) -> LogRecord {
    LogRecord {
        task: log.task.to_string(),
        stream: log.stream.to_string(),
        text: String::from_utf8_lossy(&log.bytes).into_owned(),
    }
}
