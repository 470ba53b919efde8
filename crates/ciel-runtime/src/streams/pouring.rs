//! What moves bytes from pipe to pipe without looking at them.
//!
//! It does not know whose pipes these are. Read next: `inlet`, `joined`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use ciel_model::limits;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::spawning::watched;

/// An end of a pipe that does not block, and is watched.
pub(super) fn watched_end(end: &OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    rustix::io::ioctl_fionbio(end, true)?;
    watched(end.as_fd(), interest)
}

/// Moves all that comes out of one pipe into another, until the end of the first one.
///
/// # Errors
/// As the system says, such as that nobody reads the other one any more.
pub(super) async fn pour(from: &AsyncFd<OwnedFd>, to: &AsyncFd<OwnedFd>) -> io::Result<()> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    let most = limits::STREAM_COPY_BYTES_MAX;
    loop {
        let (mut readable, mut writable) = (from.readable().await?, to.writable().await?);
        match splice(from.get_ref(), None, to.get_ref(), None, most, flags) {
            Ok(0) => return Ok(()),
            Ok(_) => tokio::task::yield_now().await,
            Err(Errno::AGAIN | Errno::INTR) => {
                let ready = ready_ends(from.get_ref(), to.get_ref());
                if !ready[0] {
                    readable.clear_ready();
                }
                if !ready[1] {
                    writable.clear_ready();
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether the one end has something to read, and the other one room.
fn ready_ends(from: &OwnedFd, to: &OwnedFd) -> [bool; 2] {
    let mut looked = [
        PollFd::new(from, PollFlags::IN),
        PollFd::new(to, PollFlags::OUT),
    ];
    // Without a look both pass for ready, and are retried.
    match poll(&mut looked, Some(&Timespec::default())) {
        Ok(_) => looked.map(|end| !end.revents().is_empty()),
        Err(_) => [true, true],
    }
}
