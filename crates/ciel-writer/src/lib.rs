//! The one writer of a file, and a wait for its end that disturbs nobody.
//!
//! A writer takes two locks, both of which the kernel removes when its last descriptor is closed,
//! also by a kill. The *lock of the whole file* (`flock`) keeps other writers away; nobody else
//! touches it, so a refusal always means another writer. The *mark* is one byte far beyond the end
//! of the file, locked by an open file description: who follows the file looks for it without a
//! lock, and waits for its end by a shared lock of that byte alone. A follower has this lock for an
//! instant, or, if it is stopped there, for as long as that lasts; therefore the next writer marks
//! the first byte that nobody has. So neither side has to retry.
//!
//! It does not know what is written. Read next: [`Writer`].

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The first byte that can be a mark.
const MARKS_FROM: i64 = 1 << 62;

/// Bytes that can be a mark; all but one are in the hands of followers that are stopped.
const MARKS: i64 = 1 << 20;

/// Makes the owner of this descriptor the file's writer, until the last duplicate of it is closed;
/// whether there was no other. The descriptor must be open for writing.
///
/// # Errors
/// The file system has no locks; then there is no writer.
pub fn claim(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    for byte in MARKS_FROM..MARKS_FROM + MARKS {
        let mark = lock_of(libc::F_WRLCK, byte, 1);
        match call(file, libc::F_OFD_SETLK, mark) {
            Ok(_) => return Ok(true),
            Err(error) if is_taken(&error) => {}
            Err(error) => {
                file.unlock()?;
                return Err(error);
            }
        }
    }
    file.unlock()?;
    Err(io::Error::other("too many stopped processes follow it"))
}

/// Whether an open file was removed, so that what is written to it now is lost. `path` is where it
/// was opened. A file that was only renamed is not: its bytes are where it is now.
///
/// # Errors
/// The file cannot be looked at.
pub fn is_removed(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    if own.nlink() > 0 {
        return Ok(false);
    }
    // Some file systems count no links: there it is removed if its path leads elsewhere.
    let found = std::fs::metadata(path);
    Ok(!found.is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino())))
}

/// The writer that a file had at a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer {
    mark: i64,
}

impl Writer {
    /// The writer of a file, if it has one now; what it wrote before is to be read after a look
    /// that found none. The descriptor must be open for reading.
    ///
    /// # Errors
    /// The file system has no locks.
    pub fn of(file: &File) -> io::Result<Option<Writer>> {
        let sought = lock_of(libc::F_RDLCK, MARKS_FROM, MARKS);
        let found = call(file, libc::F_OFD_GETLK, sought)?;
        let is_marked = found.l_type != libc::F_UNLCK as libc::c_short;
        Ok(is_marked.then_some(Writer {
            mark: found.l_start,
        }))
    }

    /// Returns when this writer has ended. Another one may have begun by then.
    ///
    /// The descriptor must be open for reading, and used for no other wait at the same time.
    ///
    /// # Errors
    /// Those of the system.
    pub fn wait_until_gone(&self, file: &File) -> io::Result<()> {
        let awaited = || lock_of(libc::F_RDLCK, self.mark, 1);
        while let Err(error) = call(file, libc::F_OFD_SETLKW, awaited()) {
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        let given_back = lock_of(libc::F_UNLCK, self.mark, 1);
        call(file, libc::F_OFD_SETLK, given_back).map(drop)
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES))
}

/// A lock of bytes. Locks of open file descriptions have no process.
fn lock_of(kind: libc::c_int, start: i64, length: i64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: length,
        l_pid: 0,
    }
}

fn call(file: &File, command: libc::c_int, mut lock: libc::flock) -> io::Result<libc::flock> {
    let file: BorrowedFd<'_> = std::os::fd::AsFd::as_fd(file);
    // SAFETY: the descriptor is open while it is borrowed, and the lock is a valid one that the
    // kernel only changes during the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(lock),
    }
}
