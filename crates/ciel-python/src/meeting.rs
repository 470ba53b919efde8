//! How both ends of a pipe come to the same memory: the producer listens under a name that is made
//! of the pipe, the reader connects, and is sent the file of the memory before it is told of a
//! value there.
//!
//! Nobody waits long: the reader connects when it begins to read, or has got a large value through
//! the pipe, the producer looks when it has one at hand. Without memory the values go through the
//! pipe; so does all where the system has no such names, or hides them from one of the two. A name
//! is free again when its process is gone. Read next: `shared_memory`.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
};
use rustix::time::Timespec;

/// What goes with a file.
const SENT: [u8; 1] = [1];

/// The name of a pipe, which is that of no other one while it lives.
pub struct Name(SocketAddrUnix);

impl Name {
    /// That of one of Python's pipes.
    ///
    /// # Errors
    /// If there is no such descriptor.
    pub fn of(pipe: RawFd) -> io::Result<Name> {
        if pipe < 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: it is borrowed for this call only, and whoever passes it has it open.
        let it = rustix::fs::fstat(unsafe { BorrowedFd::borrow_raw(pipe) })?;
        let name = format!("ciel-values-{:x}-{:x}", it.st_dev, it.st_ino);
        Ok(Name(SocketAddrUnix::new_abstract_name(name.as_bytes())?))
    }
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    Ok(rustix::net::socket_with(family, kind, flags, None)?)
}

/// # Errors
/// If the other side belongs to another user.
fn expect_own(socket: &OwnedFd) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(socket)?;
    match peer.uid == rustix::process::geteuid() {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

fn await_readable(socket: &OwnedFd, time: Duration) -> io::Result<()> {
    if !time.is_zero() {
        let time = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        let awaited = &mut [PollFd::new(socket, PollFlags::IN)];
        rustix::event::poll(awaited, Some(&time))?;
    }
    Ok(())
}

/// The producer's end, before the reader has come. Dropping it ends it, also for processes that
/// were forked meanwhile.
pub struct Listener(OwnedFd);

impl Listener {
    /// Listens at the name of a pipe.
    ///
    /// # Errors
    /// If somebody else does, and as the system says.
    pub fn at(pipe: &Name) -> io::Result<Listener> {
        let socket = socket()?;
        rustix::net::bind(&socket, &pipe.0)?;
        rustix::net::listen(&socket, 1)?;
        Ok(Listener(socket))
    }

    /// The reader, if it has come, or comes in that time.
    ///
    /// # Errors
    /// As the system says; `WouldBlock` if it has not.
    pub fn accept(&self, time: Duration) -> io::Result<Guest> {
        await_readable(&self.0, time)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let guest = rustix::net::accept_with(&self.0, flags)?;
        expect_own(&guest)?;
        Ok(Guest(guest))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It is closed in any case.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
    }
}

/// The reader, as the producer has it.
pub struct Guest(OwnedFd);

impl Guest {
    /// Sends a file to it.
    ///
    /// # Errors
    /// As the system says.
    pub fn send(self, file: BorrowedFd<'_>) -> io::Result<()> {
        let files = [file];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::sendmsg(&self.0, &[IoSlice::new(&SENT)], &mut control, flags)?;
        Ok(())
    }
}

/// The producer, as the reader has it.
pub struct Host(OwnedFd);

impl Host {
    /// The producer of a pipe, if that listens.
    ///
    /// # Errors
    /// `ConnectionRefused` if nobody listens, and as the system says.
    pub fn of(pipe: &Name) -> io::Result<Host> {
        let socket = socket()?;
        rustix::net::connect(&socket, &pipe.0)?;
        expect_own(&socket)?;
        Ok(Host(socket))
    }

    /// The file that it has sent.
    ///
    /// # Errors
    /// As the system says; `WouldBlock` if it has not sent any.
    pub fn file(&self) -> io::Result<OwnedFd> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let parts = &mut [IoSliceMut::new(&mut byte)];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        rustix::net::recvmsg(&self.0, parts, &mut control, flags)?;
        let file = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        file.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}
