//! Templates: processes that fork others like themselves, which is faster than to start those.
//!
//! A process that is started with [`Start::template`] may leave a template behind, which waits on
//! a socket. Further starts that differ in nothing but their task and their descriptors are forked
//! from it. The new process is adopted by the spawner, and waits until it is entered in the ledger;
//! one that is not, for whatever reason, ends. A start that no template serves is made as ever.
//! This module does not know what a template has prepared. Next: `server`, its only user.
//!
//! [`Start::template`]: crate::Start::template

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};

use crate::Start;
use crate::limits::{DESCRIPTORS_MAX, FORK_MS_MAX};

const CONTROL_BYTES: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX + 4));

/// What a forked process receives when it may go on.
const GO: &[u8] = b"g";

/// The templates of one spawner.
#[derive(Default)]
pub(crate) struct Templates {
    all: Vec<Template>,
    /// Those that are not used any more. They end when they find their sockets closed.
    left: Vec<u32>,
}

struct Template {
    /// What is the same for all that it forks.
    like: Start,
    socket: OwnedFd,
    /// Its process, once it is ready.
    pid: Option<u32>,
}

/// A forked process, which waits; it ends when this is dropped without [`Forked::release`].
pub(crate) struct Forked {
    pub pid: u32,
    reply: OwnedFd,
}

impl Forked {
    /// Lets the process go on.
    pub(crate) fn release(self) {
        // One that has ended meanwhile is seen as an ended child.
        let _ = rustix::net::send(&self.reply, GO, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }
}

/// What two starts have in common if one template serves both.
fn like(start: &Start) -> Start {
    Start {
        id: 0,
        task: String::new(),
        ..start.clone()
    }
}

impl Templates {
    /// The socket that a process which is to be started may leave to a template; none if it shall
    /// leave none, because there is one, or there will be, or there is no descriptor left.
    pub(crate) fn offer(&mut self, start: &Start) -> Option<OwnedFd> {
        start.template?;
        let like = like(start);
        if self.all.iter().any(|template| template.like == like) {
            return None;
        }
        let (socket, far) = pair().ok()?;
        let pid = None;
        self.all.push(Template { like, socket, pid });
        Some(far)
    }

    /// Forks a process for a start; `mark` is the entry of its cookie, `descriptors` are its own in
    /// the order of its numbers. None if no template does it now.
    pub(crate) fn fork(
        &mut self,
        start: &Start,
        mark: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Option<Forked> {
        start.template?;
        let like = like(start);
        let at = self.all.iter().position(|one| one.like == like)?;
        match self.all[at].fork(mark, descriptors) {
            Ok(forked) => forked,
            Err(Unusable) => {
                self.left.extend(self.all.swap_remove(at).pid);
                None
            }
        }
    }

    /// Whether a child is a template.
    pub(crate) fn contains(&mut self, pid: u32) -> bool {
        for template in &mut self.all {
            // One that is gone is removed when it is wanted next.
            let _ = template.hear();
        }
        let mut known = self.all.iter().filter_map(|template| template.pid);
        known.any(|known| known == pid) || self.left.contains(&pid)
    }

    /// A child has ended, and its number means nothing any more.
    pub(crate) fn on_reaped(&mut self, pid: u32) {
        self.all.retain(|template| template.pid != Some(pid));
        self.left.retain(|left| *left != pid);
    }

    /// What is started from now on must not be like what was started before.
    pub(crate) fn drop_all(&mut self) {
        let pids = self.all.drain(..).filter_map(|template| template.pid);
        self.left.extend(pids);
    }
}

/// A template that does not do what it should, or is gone.
struct Unusable;

impl From<Errno> for Unusable {
    fn from(_: Errno) -> Unusable {
        Unusable
    }
}

impl Template {
    /// Hears whether it is ready.
    fn hear(&mut self) -> Result<(), Unusable> {
        if self.pid.is_none() {
            self.pid = number(&self.socket)?;
        }
        Ok(())
    }

    fn fork(
        &mut self,
        mark: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Option<Forked>, Unusable> {
        self.hear()?;
        if self.pid.is_none() {
            return Ok(None);
        }
        let (reply, far) = pair()?;
        let all: Vec<_> = std::iter::once(far.as_fd())
            .chain(descriptors.iter().copied())
            .collect();
        send(&self.socket, mark, &all)?;
        drop(far);
        wait_for(&reply)?;
        let pid = number(&reply)?.ok_or(Unusable)?;
        Ok(Some(Forked { pid, reply }))
    }
}

fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let kind = SocketType::SEQPACKET;
    rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
}

fn send(socket: &OwnedFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Unusable> {
    let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Unusable);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)?;
    Ok(())
}

/// Waits until something has come, or the other end is closed by all who have it.
fn wait_for(reply: &OwnedFd) -> Result<(), Unusable> {
    let deadline = Instant::now() + Duration::from_millis(FORK_MS_MAX);
    let mut ready = [PollFd::new(reply, PollFlags::IN)];
    let count = retry_on_intr(|| {
        let limit = deadline.saturating_duration_since(Instant::now());
        let limit = limit.try_into().expect("the limit fits the kernel's type");
        rustix::event::poll(&mut ready, Some(&limit))
    })?;
    if count == 0 { Err(Unusable) } else { Ok(()) }
}

/// The number of a process that has come, four bytes; none if nothing has come yet.
fn number(socket: &OwnedFd) -> Result<Option<u32>, Unusable> {
    let mut bytes = [0; 8];
    let mut control = RecvAncillaryBuffer::default();
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let received = rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::DONTWAIT);
    let length = match received {
        Ok(received) => received.bytes,
        Err(Errno::AGAIN) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let number = <[u8; 4]>::try_from(&bytes[..length]).map_err(|_| Unusable)?;
    Some(i32::from_le_bytes(number))
        .filter(|number| *number > 1)
        .map(|number| Some(number.unsigned_abs()))
        .ok_or(Unusable)
}
