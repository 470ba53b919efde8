//! The engine's end of a worker's socket.
//!
//! The engine is woken by what has come. It is woken for room to send only while there is too
//! little: the poller would otherwise wake it each time the worker reads. It does not know what the
//! bytes mean. Read next: `connection`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use bytes::{Buf, BytesMut};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::spawning::watched;

/// Bytes for which there is room at a read, at least.
const READ_BYTES: usize = 64 << 10;

/// A connected socket.
pub(super) struct Socket {
    own: AsyncFd<OwnedFd>,
    /// The same socket, watched while the worker does not take all that is sent to it.
    full: Option<AsyncFd<OwnedFd>>,
}

impl Socket {
    /// Errors of the system: no descriptor is left, or the poller takes no more.
    pub(super) fn new(socket: &UnixStream) -> io::Result<Socket> {
        socket.set_nonblocking(true)?;
        Ok(Socket {
            own: watched(socket.as_fd(), Interest::READABLE)?,
            full: None,
        })
    }

    /// Appends what has come, and waits until something has; false at the end. A call that is
    /// dropped while it waits has taken nothing.
    pub(super) async fn receive(&self, incoming: &mut BytesMut) -> bool {
        loop {
            let Ok(mut ready) = self.own.readable().await else {
                return false;
            };
            match receive_now(self.own.get_ref(), incoming) {
                Ok((0, _)) => return false,
                Ok((_, is_all)) => {
                    if is_all {
                        ready.clear_ready();
                    }
                    return true;
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Appends what has come, without a wait. The end and errors are left to who waits.
    pub(super) fn receive_at_hand(&self, incoming: &mut BytesMut) {
        let _ = receive_now(self.own.get_ref(), incoming);
    }

    /// Sends as much as the worker takes now, and removes that. A worker that is gone takes
    /// everything, and its end is noticed elsewhere.
    ///
    /// Errors of the system: [`Socket::room`] cannot wait for the rest.
    pub(super) fn send(&mut self, outgoing: &mut BytesMut) -> io::Result<()> {
        while !outgoing.is_empty() {
            match send(self.own.get_ref(), outgoing, SendFlags::NOSIGNAL) {
                Ok(count) => outgoing.advance(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.watch_for_room(),
                Err(_) => outgoing.clear(),
            }
        }
        self.full = None;
        Ok(())
    }

    fn watch_for_room(&mut self) -> io::Result<()> {
        if self.full.is_none() {
            self.full = Some(watched(self.own.as_fd(), Interest::WRITABLE)?);
        }
        Ok(())
    }

    /// Waits until the worker takes more of what could not be sent.
    pub(super) async fn room(&self) {
        match &self.full {
            Some(full) => {
                // Who sends next notices any fault.
                if let Ok(mut ready) = full.writable().await {
                    ready.clear_ready();
                }
            }
            None => std::future::pending().await,
        }
    }
}

/// One read: how many bytes, and whether these are all that had come.
fn receive_now(socket: &OwnedFd, incoming: &mut BytesMut) -> rustix::io::Result<(usize, bool)> {
    incoming.reserve(READ_BYTES);
    let length = incoming.len();
    let spare = incoming.spare_capacity_mut();
    let room = spare.len();
    let (_, count) = recv(socket, spare, RecvFlags::empty())?;
    // SAFETY: the system has written that many bytes behind the others.
    unsafe { incoming.set_len(length + count) };
    Ok((count, count < room))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::thread;

    use super::*;

    /// More than a socket takes at once.
    const LONG: usize = 8 << 20;

    fn on_a_runtime<T>(course: impl Future<Output = T>) -> T {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_io().build().expect("a runtime");
        runtime.block_on(course)
    }

    #[test]
    fn what_a_worker_does_not_take_at_once_follows_when_it_reads() {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        let reading = thread::spawn(move || {
            let mut received = Vec::new();
            far.read_to_end(&mut received).expect("bytes");
            received
        });
        on_a_runtime(async {
            let mut socket = Socket::new(&near).expect("a socket");
            let mut outgoing = BytesMut::zeroed(LONG);
            while !outgoing.is_empty() {
                socket.send(&mut outgoing).expect("room or a watch");
                if !outgoing.is_empty() {
                    socket.room().await;
                }
            }
            assert!(
                socket.full.is_none(),
                "nothing is watched for room any more"
            );
        });
        drop(near);
        assert_eq!(reading.join().expect("it read").len(), LONG);
    }

    #[test]
    fn all_that_comes_is_received_until_the_end() {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        let writing = thread::spawn(move || far.write_all(&vec![1; LONG]).expect("bytes"));
        let received = on_a_runtime(async {
            let socket = Socket::new(&near).expect("a socket");
            let mut incoming = BytesMut::new();
            while socket.receive(&mut incoming).await {}
            incoming
        });
        writing.join().expect("it wrote");
        assert_eq!(received, vec![1; LONG]);
    }

    #[test]
    fn a_worker_that_is_gone_takes_everything() {
        let (near, far) = UnixStream::pair().expect("a pair");
        drop(far);
        on_a_runtime(async {
            let mut socket = Socket::new(&near).expect("a socket");
            let mut outgoing = BytesMut::zeroed(LONG);
            socket.send(&mut outgoing).expect("nothing to wait for");
            assert!(outgoing.is_empty());
        });
    }
}
