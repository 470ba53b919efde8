//! The file itself, and the spill file that keeps what is written before its turn has come.
//!
//! Only the strand whose turn it is appends to the file, so its bytes are always a prefix of what
//! the serial program writes. The spill file lies in the same folder without a name, so it goes
//! with the process, and the kernel can copy from one to the other. It does not know strands.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::FileError;
use crate::gauges;

/// A piece of the spill file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// A file that is open for serial append.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    /// The tree of strands that may write: that of the thread that opened it.
    pub(crate) root: u64,
    end: Mutex<End>,
    spill: OnceLock<File>,
    spill_end: AtomicU64,
    failed: OnceLock<FileError>,
    /// Nobody has a handle of it any more.
    is_dropped: AtomicBool,
}

#[derive(Debug)]
struct End {
    file: File,
    /// Bytes of the file that are final.
    at: u64,
    is_closed: bool,
}

impl Target {
    /// A file in which everything so far is final. It is locked against another serial append.
    pub(crate) fn new(
        path: &Path,
        mut file: File,
        root: u64,
        truncates: bool,
    ) -> io::Result<Target> {
        let path = path.to_path_buf();
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FileError::Busy { path }.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if truncates && file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        let at = match io::Seek::seek(&mut file, io::SeekFrom::End(0)) {
            Err(error) if error.kind() == io::ErrorKind::NotSeekable => 0,
            found => found?,
        };
        Ok(Target {
            path,
            root,
            end: Mutex::new(End {
                file,
                at,
                is_closed: false,
            }),
            spill: OnceLock::new(),
            spill_end: AtomicU64::new(0),
            failed: OnceLock::new(),
            is_dropped: AtomicBool::new(false),
        })
    }

    /// Nobody can write to it any more, but what was written may wait for its turn.
    pub(crate) fn drop_handles(&self) {
        self.is_dropped.store(true, Ordering::Release);
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Acquire)
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if a write has failed before, or the file is closed: what would follow has no place.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.failed.get() {
            None => Ok(()),
            Some(error) => Err(error.clone().into()),
        }
    }

    /// Appends to the file what is final.
    pub(crate) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.check()?;
        let mut end = self.end();
        let written = write_some(&mut end.file, bytes);
        end.at += written.0;
        written.1.map_err(|error| self.fail(end.at, &error))
    }

    /// Appends a piece of the spill file.
    pub(crate) fn append_spilled(&self, extent: Extent) -> io::Result<()> {
        self.check()?;
        let spill = self.spill.get().expect("an extent lies in a spill file");
        let mut end = self.end();
        let (mut from, last) = (extent.offset, extent.offset + extent.length);
        while from < last {
            let most = (last - from) as usize;
            match copy_some(spill, from, &mut end.file, most) {
                Ok(copied) => {
                    from += copied;
                    end.at += copied;
                }
                Err(error) => return Err(self.fail(end.at, &error)),
            }
        }
        Ok(())
    }

    /// Keeps bytes until their turn has come.
    pub(crate) fn spill(&self, bytes: &[u8]) -> io::Result<Extent> {
        self.check()?;
        let spill = match self.spill.get() {
            Some(spill) => spill,
            None => self.open_spill()?,
        };
        let length = bytes.len() as u64;
        let offset = self.spill_end.fetch_add(length, Ordering::Relaxed);
        let written = spill.write_all_at(bytes, offset);
        written.map_err(|error| self.fail(self.end().at, &error))?;
        gauges::spilled(length);
        Ok(Extent { offset, length })
    }

    fn open_spill(&self) -> io::Result<&File> {
        let folder = self.path.parent().filter(|folder| *folder != Path::new(""));
        let made = tempfile::tempfile_in(folder.unwrap_or(Path::new(".")));
        // Where the folder takes no other file, as that of a device, any folder will do.
        let made = made.or_else(|_| tempfile::tempfile());
        let made = made.map_err(|error| self.fail(self.end().at, &error))?;
        Ok(self.spill.get_or_init(|| made))
    }

    /// Notes the first failure, which all later writes repeat.
    fn fail(&self, valid: u64, cause: &io::Error) -> io::Error {
        let error = FileError::Write {
            path: self.path.clone(),
            valid,
            cause: cause.to_string(),
            kind: cause.kind(),
        };
        self.failed.get_or_init(|| error).clone().into()
    }

    /// The last bytes are in the file. Nothing can be written from now on.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.check()?;
        let mut end = self.end();
        if std::mem::replace(&mut end.is_closed, true) {
            return Err(self.closed());
        }
        let found = end.file.metadata()?;
        self.failed.get_or_init(|| FileError::Closed {
            path: self.path.clone(),
        });
        end.file.unlock()?;
        let expected = end.at;
        match found.is_file() && found.len() != expected {
            true => Err(FileError::Changed {
                path: self.path.clone(),
                found: found.len(),
                expected,
            }
            .into()),
            false => Ok(()),
        }
    }

    fn closed(&self) -> io::Error {
        let path = self.path.clone();
        FileError::Closed { path }.into()
    }
}

/// How many bytes were written, and the error that ended it.
fn write_some(file: &mut File, bytes: &[u8]) -> (u64, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written as u64, Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written as u64, Err(error)),
        }
    }
    (written as u64, Ok(()))
}

/// Bytes that are copied at once where the kernel cannot copy between the two files.
const COPIED_BYTES_MAX: usize = 256 << 10;

/// Copies at least one byte and at most so many.
fn copy_some(from: &File, offset: u64, to: &mut File, most: usize) -> io::Result<u64> {
    let mut at = offset;
    match rustix::fs::copy_file_range(from, Some(&mut at), &*to, None, most) {
        Ok(copied) if copied > 0 => return Ok(copied as u64),
        Err(rustix::io::Errno::NOSPC) => return Err(io::ErrorKind::StorageFull.into()),
        // Another file system, a pipe, or a kernel that does not know the call.
        Ok(_) | Err(_) => {}
    }
    let mut bytes = vec![0; most.min(COPIED_BYTES_MAX)];
    from.read_exact_at(&mut bytes, offset)?;
    match write_some(to, &bytes) {
        (0, written) => written.map(|()| 0),
        (count, _) => Ok(count),
    }
}
