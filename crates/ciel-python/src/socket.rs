//! The descriptor of a connection, which a forked child can lay down without a word.
//!
//! It knows no messages. Both halves of a connection share it; read `outgoing.rs` and
//! `incoming.rs` for them.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

/// A connected stream socket.
pub struct Socket {
    fd: ManuallyDrop<OwnedFd>,
    /// Whether this process is a forked child that has closed its copy.
    laid_down: AtomicBool,
}

impl Socket {
    /// Takes the descriptor over, makes it blocking and marks it close-on-exec.
    ///
    /// # Errors
    /// Errors of the system; then nothing is taken.
    pub fn take_over(fd: RawFd) -> rustix::io::Result<Socket> {
        if fd < 0 {
            return Err(Errno::BADF);
        }
        // SAFETY: the caller of the constructor gives the descriptor away; if it names nothing,
        // the next calls say so.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        rustix::net::sockopt::socket_type(borrowed)?;
        rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(borrowed, false)?;
        // SAFETY: it is an open socket, and ours from here on.
        let owned = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Socket {
            fd: ManuallyDrop::new(owned),
            laid_down: AtomicBool::new(false),
        })
    }

    /// Whether [`Socket::lay_down`] was called in this process.
    pub fn is_laid_down(&self) -> bool {
        self.laid_down.load(Ordering::Relaxed)
    }

    /// Closes this process's copy and leaves the connection to the others that have one. Takes no
    /// lock, since another thread may have held any of them at the fork.
    pub fn lay_down(&self) {
        if !self.laid_down.swap(true, Ordering::Relaxed) {
            // SAFETY: the flag was not set, so the descriptor is open; now that it is set, no other
            // code uses or closes the descriptor. A forked child has no other threads.
            drop(unsafe { OwnedFd::from_raw_fd(self.fd.as_raw_fd()) });
        }
    }

    /// Sends all of `bytes`; waits while the peer does not read.
    ///
    /// # Errors
    /// Errors of the system. How much was sent is not known then.
    pub fn send_all(&self, mut bytes: &[u8]) -> rustix::io::Result<()> {
        while !bytes.is_empty() {
            if self.is_laid_down() {
                return Err(Errno::PIPE);
            }
            match rustix::net::send(&*self.fd, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait_for(PollFlags::OUT)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Receives some bytes; 0 at the end. With `waits` false it gives [`Errno::AGAIN`] if there are
    /// none.
    ///
    /// It waits by `poll`: a thread that waits in `recv` is woken by Linux whenever the peer has
    /// read what was sent to it, too, which costs both sides a switch between processes.
    ///
    /// # Errors
    /// Errors of the system, [`Errno::INTR`] after a signal among them.
    pub fn receive(&self, buffer: &mut [u8], waits: bool) -> rustix::io::Result<usize> {
        if self.is_laid_down() {
            return Ok(0);
        }
        if waits {
            self.wait_for(PollFlags::IN)?;
        }
        loop {
            match rustix::net::recv(&*self.fd, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((received, _)) => return Ok(received),
                Err(Errno::AGAIN) if waits => self.wait_for(PollFlags::IN)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends the connection in both directions; a thread that waits for bytes then receives the end.
    pub fn end(&self) {
        if !self.is_laid_down() {
            // A socket whose peer is gone has ended already.
            let _ = rustix::net::shutdown(&*self.fd, Shutdown::Both);
        }
    }

    /// Waits until there is something to receive, or a signal, at most for `limit`.
    pub fn wait_for_bytes(&self, limit: Duration) {
        let limit = Timespec::try_from(limit).ok();
        // Whatever goes wrong here goes wrong again for who receives.
        let _ = poll(&mut [PollFd::new(&*self.fd, PollFlags::IN)], limit.as_ref());
    }

    /// Whether there is something to receive, or the end.
    pub fn is_readable(&self) -> bool {
        let now = Timespec::default();
        poll(&mut [PollFd::new(&*self.fd, PollFlags::IN)], Some(&now)).is_ok_and(|count| count > 0)
    }

    /// Waits until the descriptor is ready for that, or a signal comes.
    fn wait_for(&self, events: PollFlags) -> rustix::io::Result<()> {
        poll(&mut [PollFd::new(&*self.fd, events)], None).map(|_| ())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if !self.is_laid_down() {
            // SAFETY: the descriptor is open, and is not used after this.
            drop(unsafe { ManuallyDrop::take(&mut self.fd) });
        }
    }
}
