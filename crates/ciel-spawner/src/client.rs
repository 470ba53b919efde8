//! The engine's end of the socket.
//!
//! It starts the spawner, queues what the socket does not take and never waits, but for the
//! end of the spawner when it is dropped. It does not know any poller: the engine watches
//! [`Spawner::as_fd`] and calls `receive` and `flush`. Next: `message`.

use std::collections::VecDeque;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags};

use crate::limits::{DESCRIPTORS_MAX, END_MS_MAX};
use crate::message::Greeting;
use crate::wire::{Frame, Receiver};
use crate::{Cookie, Report, Request};

/// A running spawner. Dropping it kills every process of the run and waits until they are gone.
pub struct Spawner {
    socket: OwnedFd,
    child: Child,
    outgoing: Mutex<VecDeque<(Frame, Vec<OwnedFd>)>>,
    incoming: Mutex<Incoming>,
}

struct Incoming {
    receiver: Receiver,
    reports: VecDeque<Report>,
}

impl Spawner {
    /// Starts `binary` with `arguments`, which must lead to [`crate::serve_inherited`]. The base
    /// environment is what tasks with additions only are given.
    ///
    /// The spawner inherits the socket as its standard input, and standard error; it takes the
    /// working folder of the caller. Errors are those of making a socket and a process; a
    /// spawner that ends at once is seen by `receive`.
    pub fn start(
        binary: &Path,
        arguments: &[&OsStr],
        cookie: &Cookie,
        environment: &[CString],
    ) -> io::Result<Spawner> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::SEQPACKET;
        let (near, far) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
        let child = Command::new(binary)
            .args(arguments)
            .stdin(Stdio::from(far))
            .stdout(Stdio::null())
            .spawn()?;
        let spawner = Spawner {
            socket: near,
            child,
            outgoing: Mutex::default(),
            incoming: Mutex::new(Incoming {
                receiver: Receiver::new(),
                reports: VecDeque::new(),
            }),
        };
        let greeting = Greeting {
            cookie: cookie.clone(),
            environment: environment.to_vec(),
        };
        spawner.greet(&greeting)?;
        Ok(spawner)
    }

    /// Says for which run it works, and takes a spawner that is dead already for one that dies
    /// later.
    fn greet(&self, greeting: &Greeting) -> io::Result<()> {
        match self.submit(Frame::encode(greeting)?, &[]) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent,
        }
    }

    /// The spawner's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request with the descriptors that it names by index, at most
    /// [`crate::limits::DESCRIPTORS_MAX`]; the caller keeps its own copies. What the socket does
    /// not take now is queued.
    ///
    /// Errors: `BrokenPipe` when the spawner is dead, `InvalidInput` when the request is larger
    /// than a request may be, otherwise lack of descriptors or memory. A request that failed was
    /// not sent.
    pub fn send(&self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        if descriptors.len() > DESCRIPTORS_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "too many descriptors",
            ));
        }
        self.submit(Frame::encode(request)?, descriptors)
    }

    fn submit(&self, frame: Frame, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut outgoing = locked(&self.outgoing);
        self.push_out(&mut outgoing)?;
        if outgoing.is_empty() && frame.send(self.socket.as_fd(), descriptors)? {
            return Ok(());
        }
        let copies = descriptors
            .iter()
            .map(|descriptor| descriptor.try_clone_to_owned());
        outgoing.push_back((frame, copies.collect::<io::Result<_>>()?));
        Ok(())
    }

    /// Whether requests are queued: then `flush` is due when the socket can be written.
    pub fn want_write(&self) -> bool {
        !locked(&self.outgoing).is_empty()
    }

    /// Sends what is queued as far as the socket takes it. `BrokenPipe` when the spawner is dead.
    pub fn flush(&self) -> io::Result<()> {
        self.push_out(&mut locked(&self.outgoing))
    }

    fn push_out(&self, outgoing: &mut VecDeque<(Frame, Vec<OwnedFd>)>) -> io::Result<()> {
        while let Some((frame, descriptors)) = outgoing.front() {
            let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
            if !frame.send(self.socket.as_fd(), &borrowed)? {
                break;
            }
            outgoing.pop_front();
        }
        Ok(())
    }

    /// The next report; `None` when there is none now. `UnexpectedEof` means that the spawner is
    /// dead: call [`crate::sweep`]. Call it until `None` before waiting on the descriptor again.
    pub fn receive(&self) -> io::Result<Option<Report>> {
        let mut incoming = locked(&self.incoming);
        let Incoming { receiver, reports } = &mut *incoming;
        if reports.is_empty()
            && let Some((batch, _)) = receiver.receive::<Vec<Report>>(self.socket.as_fd())?
        {
            reports.extend(batch);
        }
        Ok(reports.pop_front())
    }

    fn wait_for_end(&mut self) -> io::Result<()> {
        let pid = Pid::from_child(&self.child);
        let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        let limit = Duration::from_millis(2 * END_MS_MAX);
        let mut ready = [PollFd::new(&handle, PollFlags::IN)];
        let limit = limit.try_into().expect("the limit fits the kernel's type");
        if retry_on_intr(|| rustix::event::poll(&mut ready, Some(&limit)))? == 0 {
            self.child.kill()?;
        }
        self.child.wait().map(drop)
    }
}

impl AsFd for Spawner {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // Closing is enough, but a forked child of the engine may hold the socket open.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        let _ = self.wait_for_end();
    }
}

/// The environment of this process as entries `NAME=value`.
pub fn current_environment() -> Vec<CString> {
    let entry = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        let mut bytes = name.into_vec();
        bytes.push(b'=');
        bytes.extend(value.into_vec());
        CString::new(bytes).expect("the kernel's strings hold no zero byte")
    };
    std::env::vars_os().map(entry).collect()
}

/// The lock guards a queue that is whole after every step, so a panic elsewhere spoils nothing.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spawner was killed before it had its greeting, the first thing that is sent to it. That
    /// was an error of `start`, and the task for which it was started failed with "cannot reach the
    /// spawner: Broken pipe", where a spawner that is killed later costs time only.
    #[test]
    fn spawner_killed_before_its_greeting_is_started_and_then_seen_to_be_dead() {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::SEQPACKET;
        let (socket, far) =
            rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        drop(far);
        let spawner = Spawner {
            socket,
            child: Command::new("true").spawn().unwrap(),
            outgoing: Mutex::default(),
            incoming: Mutex::new(Incoming {
                receiver: Receiver::new(),
                reports: VecDeque::new(),
            }),
        };
        let greeting = Greeting {
            cookie: Cookie::new("killed").unwrap(),
            environment: Vec::new(),
        };
        spawner.greet(&greeting).unwrap();
        let sent = spawner.send(&Request::KillTree { id: 1 }, &[]);
        assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        let received = spawner.receive();
        assert_eq!(received.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
