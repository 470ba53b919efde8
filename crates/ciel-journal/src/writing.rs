//! The log being written: puts batches into files, one after the other.
//!
//! The holder of its lock writes; it does not know who waits. Read next: `shared`.

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::error::JournalError;
use crate::folder::{Name, path_of};
use crate::frame::{Content, FileKind, Header, Sequence, frame_at};
use crate::gathering::{Batch, Switch};

/// The log that is appended to.
pub(crate) struct Writing {
    log: OpenLog,
    /// Logs before it that were not synced since they were written, the oldest first.
    retired: Vec<OpenLog>,
    /// Whether files were made since the names were synced.
    has_new_names: bool,
    /// The last record written.
    written: Sequence,
    pub(crate) spare: Batch,
}

#[derive(Clone)]
pub(crate) struct OpenLog {
    file: Arc<dyn DiskFile>,
    generation: u64,
    bytes: u64,
}

/// What a sync must do, and what is safe after it.
pub(crate) struct Unsynced {
    logs: Vec<OpenLog>,
    has_new_names: bool,
    pub(crate) last: Sequence,
    pub(crate) generation: u64,
    pub(crate) bytes: u64,
}

/// Appends all bytes; after a failure, returns how many were appended.
pub(crate) fn append_all(file: &dyn DiskFile, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut done = 0;
    while done < bytes.len() {
        match file.append(&bytes[done..]) {
            Ok(more) => done += more,
            Err(error) => return Err((done, error)),
        }
    }
    Ok(())
}

impl OpenLog {
    /// Makes a log with nothing but its header.
    pub(crate) fn make(
        disk: &dyn Disk,
        generation: u64,
        base: Sequence,
    ) -> Result<OpenLog, JournalError> {
        let name = Name::Log(generation);
        let made = disk.create(&name.text());
        let made = made.map_err(|error| failed(disk, generation, "make", error))?;
        OpenLog::begin(disk, made, generation, base)
    }

    /// Creates a log, or empties an existing one without valid records.
    pub(crate) fn renew(
        disk: &dyn Disk,
        generation: u64,
        base: Sequence,
    ) -> Result<OpenLog, JournalError> {
        match disk.open(&Name::Log(generation).text()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                OpenLog::make(disk, generation, base)
            }
            Err(error) => Err(failed(disk, generation, "open", error)),
            Ok(file) => {
                let cut = file.cut(0);
                cut.map_err(|error| failed(disk, generation, "cut", error))?;
                OpenLog::begin(disk, file, generation, base)
            }
        }
    }

    fn begin(
        disk: &dyn Disk,
        file: Arc<dyn DiskFile>,
        generation: u64,
        base: Sequence,
    ) -> Result<OpenLog, JournalError> {
        let header = Header {
            kind: FileKind::Log,
            generation,
            base,
        };
        let mut bytes = Vec::new();
        header.put(&mut bytes);
        if let Err((_, error)) = append_all(&*file, &bytes) {
            // A header that is not whole is cut at the next opening; here it cannot be helped.
            let _ = file.cut(0);
            return Err(failed(disk, generation, "write", error));
        }
        Ok(OpenLog {
            file,
            generation,
            bytes: bytes.len() as u64,
        })
    }

    /// Opens a log of which so many bytes count, and cuts the rest.
    pub(crate) fn open(
        disk: &dyn Disk,
        generation: u64,
        bytes: u64,
        is_cut: bool,
    ) -> Result<OpenLog, JournalError> {
        let file = disk.open(&Name::Log(generation).text());
        let file = file.map_err(|error| failed(disk, generation, "open", error))?;
        if is_cut {
            let cut = file.cut(bytes);
            cut.map_err(|error| failed(disk, generation, "cut", error))?;
        }
        Ok(OpenLog {
            file,
            generation,
            bytes,
        })
    }

    pub(crate) fn sync(&self, disk: &dyn Disk) -> Result<(), JournalError> {
        let synced = self.file.sync();
        synced.map_err(|error| failed(disk, self.generation, "sync", error))
    }

    /// Appends frames. After a failure the complete ones stay, and the last of their records is
    /// returned.
    fn append(
        &mut self,
        disk: &dyn Disk,
        frames: &[u8],
    ) -> Result<(), (Option<Sequence>, JournalError)> {
        let Err((done, error)) = append_all(&*self.file, frames) else {
            self.bytes += frames.len() as u64;
            return Ok(());
        };
        let (whole, last) = whole_frames(&frames[..done]);
        self.bytes += whole as u64;
        // If it cannot be cut now, the next opening does.
        let _ = self.file.cut(self.bytes);
        Err((last, failed(disk, self.generation, "write", error)))
    }
}

fn failed(disk: &dyn Disk, log: u64, act: &'static str, error: io::Error) -> JournalError {
    JournalError::system(act, &path_of(disk, Name::Log(log)), error)
}

/// Bytes of the whole frames at the beginning, and the last record among them.
fn whole_frames(bytes: &[u8]) -> (usize, Option<Sequence>) {
    let (mut at, mut last) = (0, None);
    while let Some(frame) = frame_at(bytes, at) {
        at = frame.end;
        if let Content::Record(_) = frame.content {
            last = Some(frame.sequence);
        }
    }
    (at, last)
}

impl Writing {
    pub(crate) fn new(log: OpenLog, written: Sequence, has_new_names: bool) -> Writing {
        Writing {
            log,
            retired: Vec::new(),
            has_new_names,
            written,
            spare: Batch::default(),
        }
    }

    pub(crate) fn written(&self) -> Sequence {
        self.written
    }

    /// Writes a batch. After a failure, [`Self::written`] is the end of what was written.
    pub(crate) fn put(&mut self, disk: &dyn Disk, batch: &Batch) -> Result<(), JournalError> {
        let mut at = 0;
        for switch in &batch.switches {
            self.append(disk, &batch.bytes[at..switch.at])?;
            at = switch.at;
            self.begin_log(disk, switch)?;
        }
        self.append(disk, &batch.bytes[at..])?;
        self.written = batch.last;
        Ok(())
    }

    fn append(&mut self, disk: &dyn Disk, frames: &[u8]) -> Result<(), JournalError> {
        self.log.append(disk, frames).map_err(|(last, error)| {
            self.written = last.unwrap_or(self.written);
            error
        })
    }

    fn begin_log(&mut self, disk: &dyn Disk, switch: &Switch) -> Result<(), JournalError> {
        self.written = switch.base;
        let log = OpenLog::make(disk, switch.generation, switch.base)?;
        self.retired.push(std::mem::replace(&mut self.log, log));
        self.has_new_names = true;
        Ok(())
    }

    /// Takes what a sync must do now.
    pub(crate) fn take_unsynced(&mut self) -> Unsynced {
        let mut logs = std::mem::take(&mut self.retired);
        logs.push(self.log.clone());
        Unsynced {
            logs,
            has_new_names: std::mem::take(&mut self.has_new_names),
            last: self.written,
            generation: self.log.generation,
            bytes: self.log.bytes,
        }
    }

    /// Forgets logs whose place a snapshot has taken.
    pub(crate) fn forget_before(&mut self, generation: u64) {
        self.retired.retain(|log| log.generation >= generation);
    }
}

impl Unsynced {
    /// Syncs the logs in order, then their names.
    pub(crate) fn sync(&self, disk: &dyn Disk) -> Result<(), JournalError> {
        for log in &self.logs {
            log.sync(disk)?;
        }
        if self.has_new_names {
            sync_names(disk)?;
        }
        Ok(())
    }
}

pub(crate) fn sync_names(disk: &dyn Disk) -> Result<(), JournalError> {
    let synced = disk.sync_names();
    synced.map_err(|error| JournalError::system("sync", disk.path(), error))
}
