//! Notice of a pipe that is full: whoever writes to it waits.
//!
//! What tells of bytes to read tells nothing of a write that waits in a pipe which was not empty.
//! The kernel tells of both by a signal, if it is asked to (fcntl(2), `O_ASYNC`): nobody has to
//! look from time to time. It does not know what becomes of the bytes. Read next: `outlet`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::SigId;
use signal_hook::low_level::{pipe, unregister};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::spawning::watched;

/// The owner of a descriptor, as fcntl(2) has it, which the crate `libc` does not.
#[repr(C)]
struct Owner {
    kind: libc::c_int,
    id: libc::pid_t,
}

const F_SETOWN_EX: libc::c_int = 15;
const F_OWNER_TID: libc::c_int = 0;

/// Asks for notice of a pipe until it is dropped.
pub(super) struct FullPipe {
    /// The same as the one that is written to.
    pipe: OwnedFd,
    signals: AsyncFd<OwnedFd>,
    registered: SigId,
}

impl FullPipe {
    /// For a pipe of which these are both ends. This thread has the signals, also if the one who
    /// has started this process had blocked them.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn watch(pipe: &OwnedFd) -> io::Result<FullPipe> {
        let (signals, signaller) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let full = FullPipe {
            pipe: pipe.try_clone()?,
            signals: watched(signals.as_fd(), Interest::READABLE)?,
            registered: pipe::register(libc::SIGIO, signaller)?,
        };
        unblock(libc::SIGIO)?;
        let owner = Owner {
            kind: F_OWNER_TID,
            id: rustix::thread::gettid().as_raw_nonzero().get(),
        };
        // SAFETY: the descriptor is open, and the call reads one `Owner`, which has the layout of
        // `struct f_owner_ex`.
        let owned = unsafe { libc::fcntl(full.pipe.as_raw_fd(), F_SETOWN_EX, &raw const owner) };
        if owned < 0 {
            return Err(io::Error::last_os_error());
        }
        fcntl_setfl(&full.pipe, fcntl_getfl(&full.pipe)? | OFlags::ASYNC)?;
        Ok(full)
    }

    /// Returns when the pipe was full for so long.
    ///
    /// # Errors
    /// As the system says.
    pub(super) async fn stays_full(&self, time: Duration) -> io::Result<()> {
        loop {
            while self.has_room()? {
                self.signal().await?;
            }
            // The limit itself, once for each time that the pipe fills: it is no look from time to
            // time. Only a reader makes room, and with a reader nobody waits here any more.
            tokio::time::sleep(time).await;
            if !self.has_room()? {
                return Ok(());
            }
        }
    }

    /// Whether a write into the pipe would not wait.
    fn has_room(&self) -> io::Result<bool> {
        let mut looked = [PollFd::new(&self.pipe, PollFlags::OUT)];
        retry_on_intr(|| poll(&mut looked, Some(&Timespec::default())))?;
        Ok(looked[0].revents().contains(PollFlags::OUT))
    }

    /// Waits until something may have happened to a pipe since the last call.
    async fn signal(&self) -> io::Result<()> {
        loop {
            let mut ready = self.signals.readable().await?;
            let mut told = [0; 64];
            let taken = ready.try_io(|signals| {
                let taken = retry_on_intr(|| rustix::io::read(signals.get_ref(), &mut told));
                Ok(taken?)
            });
            if let Ok(taken) = taken {
                return taken.map(drop);
            }
        }
    }
}

impl Drop for FullPipe {
    fn drop(&mut self) {
        // A signal that comes nevertheless is taken by nobody.
        let flags = fcntl_getfl(&self.pipe).map(|flags| flags - OFlags::ASYNC);
        let _: Result<(), Errno> = flags.and_then(|flags| fcntl_setfl(&self.pipe, flags));
        unregister(self.registered);
    }
}

/// Lets a signal come to this thread.
fn unblock(signal: libc::c_int) -> io::Result<()> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call makes the set that the others change and read; nothing is written
    // where the former set would be.
    let failed = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut())
    };
    match failed {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::task::{Context, Waker};

    use tokio::runtime::Builder;

    use super::*;

    const TIME: Duration = Duration::from_millis(50);

    /// Both ends of a pipe with so many bytes, as the engine has them, and the writing end.
    fn pipe_of_bytes(count: usize) -> (OwnedFd, OwnedFd) {
        let (_, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        let both = File::options().read(true).write(true).open(path).unwrap();
        rustix::pipe::fcntl_setpipe_size(&both, 16 << 10).unwrap();
        rustix::io::write(&writer, &vec![0; count]).unwrap();
        (both.into(), writer)
    }

    /// A pipe that nobody read and nobody filled was looked at every 50 ms for as long as it was
    /// there.
    #[test]
    fn pipe_that_is_not_full_is_not_looked_at_again() {
        // Where there is no clock, it is an error to wait for a time.
        let without_clock = Builder::new_current_thread().enable_io().build().unwrap();
        without_clock.block_on(async {
            let (ends, _writer) = pipe_of_bytes(5000);
            let full = FullPipe::watch(&ends).unwrap();
            let mut waits = Box::pin(full.stays_full(TIME));
            for _ in 0..100 {
                let looked = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(looked.is_pending());
                tokio::task::yield_now().await;
            }
        });
    }

    /// The signal for bytes to read does not come for a write that waits behind others.
    #[tokio::test]
    async fn write_that_waits_in_a_pipe_with_bytes_is_noticed() {
        notice_a_write().await;
    }

    /// A process has the signals blocked that were blocked where it was started: the producer
    /// waited for ever.
    #[tokio::test]
    async fn write_that_waits_is_noticed_where_the_signal_was_blocked() {
        let mut all = MaybeUninit::uninit();
        // SAFETY: the first call makes the set that the second one reads.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
        }
        notice_a_write().await;
    }

    async fn notice_a_write() {
        let (ends, writer) = pipe_of_bytes(5000);
        let full = FullPipe::watch(&ends).unwrap();
        let mut waits = Box::pin(full.stays_full(TIME));
        let looked = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(looked.is_pending());

        let writing = std::thread::spawn(move || rustix::io::write(&writer, &[0; 20_000]).unwrap());
        let noticed = tokio::time::timeout(Duration::from_secs(600), waits);
        noticed.await.expect("a signal").unwrap();
        let mut taken = 0;
        while taken < 25_000 {
            taken += rustix::io::read(&ends, &mut [0; 8192]).unwrap();
        }
        assert_eq!(writing.join().unwrap(), 20_000);
    }
}
