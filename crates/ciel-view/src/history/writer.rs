//! Writes a history: appends, and drops the oldest lines where a bound is met.
//!
//! Disk space for the first ended tasks is reserved at the begin: when a disk fills up, they are
//! what a person looks for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

use super::{Bounds, COUNTS, FAILED, LOGS, RUN, Reader, TASKS, old};
use crate::limits::FAILURE_BYTES_MAX;
use crate::records::{CountsRecord, EndRecord, LogRecord, Record, RunRecord, TaskRecord};

/// Bytes of disk space that a file of ended tasks reserves at the begin.
const RESERVED_BYTES: u64 = 16 << 10;

/// The one that writes a run's history. Lines reach the disk with [`Writer::flush`].
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    bounds: Bounds,
    failed: Part,
    tasks: Part,
    logs: Part,
    /// The line that is being made.
    line: Vec<u8>,
}

impl Writer {
    /// Starts a history, or continues that of a resumed run.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn begin(folder: &Path, bounds: Bounds, run: &RunRecord) -> io::Result<Writer> {
        fs::create_dir_all(folder)?;
        let before = Reader::new(folder).run();
        let run = RunRecord {
            resumed: before.is_some_and(|before| before.run == run.run),
            ..run.clone()
        };
        write_whole(folder, RUN, &Record::Run(run))?;
        let writer = Writer {
            failed: Part::open(folder, FAILED)?,
            tasks: Part::open(folder, TASKS)?,
            logs: Part::open(folder, LOGS)?,
            line: Vec::new(),
            folder: folder.to_path_buf(),
            bounds,
        };
        writer.failed.reserve();
        writer.tasks.reserve();
        Ok(writer)
    }

    /// A task ended.
    ///
    /// # Errors
    /// The disk is full, or the folder is missing; also for all later methods. Lines that could not
    /// be written are lost; later ones are not affected.
    pub fn task(&mut self, mut task: TaskRecord) -> io::Result<()> {
        if let Some(failure) = &mut task.failure {
            shorten(failure);
        }
        let is_origin = task.is_origin();
        self.line.clear();
        Record::Task(Box::new(task)).append_to(&mut self.line);
        let length = self.line.len() as u64;
        if is_origin && self.failed.bytes + length <= self.bounds.failed {
            self.failed.append(&self.line);
            return Ok(());
        }
        self.tasks
            .make_room(&self.folder, length, self.bounds.tasks / 2)?;
        self.tasks.append(&self.line);
        Ok(())
    }

    /// A task wrote something that is not part of the ordered output.
    ///
    /// # Errors
    /// As [`Writer::task`].
    pub fn log(&mut self, log: LogRecord) -> io::Result<()> {
        let line = line_of(&Record::Log(log));
        let length = line.len() as u64;
        self.logs
            .make_room(&self.folder, length, self.bounds.logs / 2)?;
        self.logs.append(&line);
        Ok(())
    }

    /// How many tasks there were by now, in the place of what was known before.
    ///
    /// # Errors
    /// As [`Writer::task`].
    pub fn counts(&mut self, counts: CountsRecord) -> io::Result<()> {
        write_whole(&self.folder, COUNTS, &Record::Counts(counts))
    }

    /// The run ended.
    ///
    /// # Errors
    /// As [`Writer::task`].
    pub fn end(&mut self, end: EndRecord) -> io::Result<()> {
        self.flush()?;
        self.failed.release()?;
        self.tasks.release()?;
        let path = self.folder.join(RUN);
        let mut file = OpenOptions::new().append(true).open(path)?;
        file.write_all(&line_of(&Record::End(Box::new(end))))
    }

    /// Hands all lines to the system.
    ///
    /// # Errors
    /// As [`Writer::task`].
    pub fn flush(&mut self) -> io::Result<()> {
        let written = [self.failed.flush(), self.tasks.flush(), self.logs.flush()];
        written.into_iter().collect()
    }
}

/// A file that lines are appended to.
#[derive(Debug)]
struct Part {
    name: &'static str,
    file: File,
    /// Bytes of it, those that are not written yet among them.
    bytes: u64,
    gathered: Vec<u8>,
    /// Whether the last line of the file may be incomplete.
    is_torn: bool,
}

impl Part {
    fn open(folder: &Path, name: &'static str) -> io::Result<Part> {
        let path = folder.join(name);
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Part {
            name,
            file,
            bytes,
            gathered: Vec::new(),
            // That of a process that was killed.
            is_torn: bytes > 0,
        })
    }

    /// Reserves disk space past the end of the file; a file system that cannot do it, or has no
    /// room, is left as it is.
    fn reserve(&self) {
        let missing = RESERVED_BYTES.saturating_sub(self.bytes);
        if missing > 0 {
            let _ = fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.bytes, missing);
        }
    }

    /// Releases reserved space that is unused.
    fn release(&self) -> io::Result<()> {
        self.file.set_len(self.file.metadata()?.len())
    }

    fn append(&mut self, line: &[u8]) {
        self.bytes += line.len() as u64;
        self.gathered.extend_from_slice(line);
    }

    fn flush(&mut self) -> io::Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        if gathered.is_empty() {
            return Ok(());
        }
        if self.is_torn {
            self.file.write_all(b"\n")?;
        }
        self.is_torn = true;
        self.file.write_all(&gathered)?;
        self.is_torn = false;
        Ok(())
    }

    /// Lets all lines but those of this file go if another one does not fit.
    fn make_room(&mut self, folder: &Path, length: u64, bytes_max: u64) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + length > bytes_max {
            self.flush()?;
            fs::rename(folder.join(self.name), folder.join(old(self.name)))?;
            *self = Part::open(folder, self.name)?;
        }
        Ok(())
    }
}

fn line_of(record: &Record) -> Vec<u8> {
    let mut line = Vec::new();
    record.append_to(&mut line);
    line
}

/// Replaces a file at once, so that no reader sees half of it.
fn write_whole(folder: &Path, name: &str, record: &Record) -> io::Result<()> {
    let draft = folder.join(format!("{name}.new"));
    fs::write(&draft, line_of(record))?;
    fs::rename(draft, folder.join(name))
}

/// Cuts a text that is longer than a record may keep.
fn shorten(text: &mut String) {
    if text.len() > FAILURE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(FAILURE_BYTES_MAX));
        text.push('…');
    }
}
