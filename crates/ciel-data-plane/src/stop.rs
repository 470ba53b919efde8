//! A signal to a thread that blocks: end at the next moment at which nothing is left to do.
//!
//! It does not know the thread. Read next: `pump`, which waits for a pipe or for this.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

/// The signal. Clones are the same signal; once given it stays.
#[derive(Clone, Debug)]
pub struct Stop {
    event: Arc<OwnedFd>,
}

impl Stop {
    /// A signal that has not been given.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn new() -> io::Result<Stop> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Stop {
            event: Arc::new(event),
        })
    }

    /// Gives the signal.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn give(&self) -> io::Result<()> {
        rustix::io::write(&*self.event, &1u64.to_ne_bytes())?;
        Ok(())
    }

    /// Waits until the descriptor is ready or the signal is given, and says whether it is given.
    ///
    /// # Errors
    /// If the system refuses to wait.
    pub(crate) fn wait_for(&self, other: impl AsFd, ready: PollFlags) -> io::Result<bool> {
        self.wait_at_most(other, ready, None)
    }

    /// As [`wait_for`](Self::wait_for); after the limit it returns in any case.
    ///
    /// # Errors
    /// If the system refuses to wait.
    pub(crate) fn wait_at_most(
        &self,
        other: impl AsFd,
        ready: PollFlags,
        limit: Option<Duration>,
    ) -> io::Result<bool> {
        let mut both = [
            PollFd::from_borrowed_fd(other.as_fd(), ready),
            PollFd::from_borrowed_fd(self.event.as_fd(), PollFlags::IN),
        ];
        let limit = limit.map(|limit| Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        loop {
            match poll(&mut both, limit.as_ref()) {
                Ok(_) => return Ok(!both[1].revents().is_empty()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
