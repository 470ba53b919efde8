//! A pipe whose bytes go to a file: what a command writes that becomes output when it has ended.
//!
//! Without a bound of output that waits a command writes to the file itself. It does not know when
//! it is to be read. Read next: `pipes`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::task::Poll;

use ciel_model::limits;
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::spawning::watched;

/// The reading end, and the file.
pub(super) struct StoredPipe {
    /// None once the pipe is closed.
    pipe: Option<AsyncFd<OwnedFd>>,
    file: File,
    bytes: u64,
}

/// Waits until one of them has bytes, and gives its index; for ever if all are closed.
pub(super) async fn first_ready(pipes: &[StoredPipe]) -> usize {
    std::future::poll_fn(|context| {
        let is_ready = |pipe: &StoredPipe| match &pipe.pipe {
            Some(pipe) => pipe.poll_read_ready(context).is_ready(),
            None => false,
        };
        pipes
            .iter()
            .position(is_ready)
            .map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

impl StoredPipe {
    /// Moves bytes from a pipe, which does not block, to a file.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn new(pipe: &OwnedFd, file: File) -> io::Result<StoredPipe> {
        Ok(StoredPipe {
            pipe: Some(watched(pipe.as_fd(), Interest::READABLE)?),
            file,
            bytes: 0,
        })
    }

    /// Bytes that are in the file.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Moves what is in the pipe, a bounded part of it, if there is anything.
    ///
    /// # Errors
    /// As the system says, such as that the disk is full.
    pub(super) fn take(&mut self) -> io::Result<()> {
        let Some(pipe) = &self.pipe else {
            return Ok(());
        };
        let moved = pipe.try_io(Interest::READABLE, |pipe| Ok(move_some(pipe, &self.file)?));
        match moved {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) => self.pipe = None,
            moved => self.bytes += moved? as u64,
        }
        Ok(())
    }

    /// Moves all that is in the pipe, when its writers have ended.
    ///
    /// # Errors
    /// As those of [`take`](Self::take).
    pub(super) fn drain(&mut self) -> io::Result<()> {
        while let Some(pipe) = &self.pipe {
            match move_some(pipe.get_ref(), &self.file) {
                Ok(0) | Err(Errno::AGAIN) => self.pipe = None,
                moved => self.bytes += moved? as u64,
            }
        }
        Ok(())
    }
}

/// The pipe itself is asked: what the reactor knows of it may be older than the news that its
/// writers have ended.
fn move_some(pipe: &OwnedFd, file: &File) -> rustix::io::Result<usize> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    loop {
        match splice(pipe, None, file, None, limits::STREAM_COPY_BYTES_MAX, flags) {
            Err(Errno::INTR) => {}
            moved => return moved,
        }
    }
}
