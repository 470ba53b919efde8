//! A named pipe that this process holds at both ends.
//!
//! So nobody blocks in opening it, a producer's death is no end, and a consumer that leaves does
//! not kill the producer by a signal. No byte passes through this process. The caller ends the
//! stream by [`Fifo::end`], after the producer has ended well; if it has failed, the caller ends
//! the consumer first and drops the pipe then.
//!
//! It does not know processes. Read next: `pump`, for a consumer that does not come or leaves.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::event::PollFlags;
use rustix::fs::{CWD, Mode, OFlags, inotify, mkfifoat};
use rustix::io::Errno;

use crate::limits::PIPE_BYTES;
use crate::stop::Stop;

/// The pipe. Dropping it closes both ends; its path stays until the folder is removed.
#[derive(Debug)]
pub struct Fifo {
    path: PathBuf,
    /// What `store` and `discard` read from; keeps a producer from a broken pipe.
    read_end: File,
    /// What `push` writes into; keeps a consumer from an end that is none.
    write_end: File,
}

impl Fifo {
    /// A new pipe at a path, with room for [`PIPE_BYTES`] where the system allows it.
    ///
    /// # Errors
    /// If the path is there already or the file system has no pipes.
    pub fn create(path: &Path) -> io::Result<Fifo> {
        mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?;
        // Opened in both directions it never blocks; the two ends are opened beside it.
        let both = OpenOptions::new().read(true).write(true).open(path)?;
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let read_end = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        let write_end = OpenOptions::new()
            .write(true)
            .custom_flags(flags)
            .open(path)?;
        match rustix::pipe::fcntl_setpipe_size(&both, PIPE_BYTES) {
            // A user over the share of pipe memory keeps the default: slower, and right.
            Ok(_) | Err(Errno::PERM | Errno::BUSY) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(Fifo {
            path: path.to_owned(),
            read_end,
            write_end,
        })
    }

    /// Where producer and consumer open it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The end to store or to discard from, when no consumer reads.
    pub fn read_end(&self) -> BorrowedFd<'_> {
        self.read_end.as_fd()
    }

    /// The end to push into.
    pub fn write_end(&self) -> BorrowedFd<'_> {
        self.write_end.as_fd()
    }

    /// The producer has ended well and all its bytes are in the pipe: the consumer is to see the
    /// end behind them. Waits until a consumer has opened the path, for a pipe without a reader
    /// loses its bytes; `stop` says that none will come.
    ///
    /// Returns whether a consumer has the end.
    ///
    /// # Errors
    /// If the path cannot be watched.
    pub fn end(self, stop: &Stop) -> io::Result<bool> {
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        inotify::add_watch(&watch, &self.path, inotify::WatchFlags::OPEN)?;
        // The write end keeps the bytes; without our read end a reader is somebody else's.
        drop(self.read_end);
        let mut events = [MaybeUninit::<u8>::uninit(); 4096];
        loop {
            if has_reader(&self.path)? {
                return Ok(true);
            }
            if stop.wait_for(&watch, PollFlags::IN)? {
                return has_reader(&self.path);
            }
            match rustix::io::read(&watch, &mut events) {
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Whether somebody reads the pipe: only then it opens for writing without blocking.
fn has_reader(path: &Path) -> io::Result<bool> {
    let flags = OFlags::NONBLOCK | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(_) => Ok(true),
        Err(Errno::NXIO) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
