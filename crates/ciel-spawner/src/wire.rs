//! Messages as datagrams: one byte of form, then the message, and descriptors beside it.
//!
//! Form 0 carries the message in the datagram; form 1 in a memory file, which is the first
//! descriptor. This module does not know what messages mean, and never waits.
//! Next: `client` and `server`, its two users.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::{DATAGRAM_BYTES_MAX, DESCRIPTORS_MAX, REQUEST_BYTES_MAX};

const INLINE: u8 = 0;
const IN_MEMORY_FILE: u8 = 1;
const CONTROL_BYTES: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX + 1));

/// A message ready to be sent.
pub(crate) struct Frame {
    bytes: Vec<u8>,
    memory: Option<OwnedFd>,
}

impl Frame {
    /// Encodes a message. Fails when it is larger than a request may be, or when there is no
    /// memory or descriptor for a memory file.
    pub(crate) fn encode<T: Serialize + ?Sized>(message: &T) -> io::Result<Frame> {
        let bytes = postcard::to_extend(message, vec![INLINE]).map_err(io::Error::other)?;
        if bytes.len() <= DATAGRAM_BYTES_MAX {
            return Ok(Frame {
                bytes,
                memory: None,
            });
        }
        if bytes.len() > REQUEST_BYTES_MAX {
            let text = format!("a request of {} bytes is too long", bytes.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let memory = memory_file(&bytes[1..])?;
        Ok(Frame {
            bytes: vec![IN_MEMORY_FILE],
            memory: Some(memory),
        })
    }

    /// Sends the frame; false when the socket is full. `BrokenPipe` when no process holds the other
    /// end.
    pub(crate) fn send(
        &self,
        socket: BorrowedFd<'_>,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<bool> {
        let all: Vec<_> = self
            .memory
            .iter()
            .map(AsFd::as_fd)
            .chain(descriptors.iter().copied())
            .collect();
        let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !all.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&all)) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "too many descriptors",
            ));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::net::sendmsg(socket, &[IoSlice::new(&self.bytes)], &mut control, flags) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::TOOMANYREFS | Errno::NOBUFS) => Ok(false),
            Err(Errno::CONNRESET | Errno::NOTCONN) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn memory_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create("ciel-request", flags)?);
    file.write_all_at(bytes, 0)?;
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// The receiving end's buffer.
pub(crate) struct Receiver {
    buffer: Vec<u8>,
}

impl Receiver {
    /// An empty buffer for the largest datagram.
    pub(crate) fn new() -> Receiver {
        Receiver {
            buffer: vec![0; DATAGRAM_BYTES_MAX],
        }
    }

    /// Takes one message and its descriptors; `None` when there is none now. The end of the
    /// socket is `UnexpectedEof`, a message that cannot be read `InvalidData`.
    pub(crate) fn receive<T: DeserializeOwned>(
        &mut self,
        socket: BorrowedFd<'_>,
    ) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let Some((length, mut descriptors)) = self.datagram(socket)? else {
            return Ok(None);
        };
        let (form, body) = self.buffer[..length]
            .split_first()
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        let message = match *form {
            INLINE => decode(body)?,
            IN_MEMORY_FILE if !descriptors.is_empty() => {
                decode(&read_memory_file(descriptors.remove(0))?)?
            }
            _ => return Err(invalid("unknown form of datagram")),
        };
        Ok(Some((message, descriptors)))
    }

    fn datagram(&mut self, socket: BorrowedFd<'_>) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
        let mut space = [MaybeUninit::uninit(); CONTROL_BYTES];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let mut parts = [IoSliceMut::new(&mut self.buffer)];
        let received = match rustix::net::recvmsg(socket, &mut parts, &mut control, flags) {
            Ok(received) => received,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::CONNRESET) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(errno) => return Err(errno.into()),
        };
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        Ok(Some((received.bytes, descriptors)))
    }
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    postcard::from_bytes(bytes).map_err(|error| invalid(&error.to_string()))
}

fn read_memory_file(memory: OwnedFd) -> io::Result<Vec<u8>> {
    let file = File::from(memory);
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if length > REQUEST_BYTES_MAX {
        return Err(invalid("memory file too long"));
    }
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_owned())
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    }

    #[test]
    fn message_larger_than_a_datagram_arrives_with_its_descriptors() {
        let (near, far) = pair();
        let (read, _write) = rustix::pipe::pipe().unwrap();
        let text = "x".repeat(3 * DATAGRAM_BYTES_MAX);
        assert!(
            Frame::encode(&text)
                .unwrap()
                .send(near.as_fd(), &[read.as_fd()])
                .unwrap()
        );
        let (message, descriptors) = Receiver::new()
            .receive::<String>(far.as_fd())
            .unwrap()
            .unwrap();
        assert_eq!((message == text, descriptors.len()), (true, 1));
    }

    #[test]
    fn closed_socket_is_an_end_of_file_and_empty_one_is_nothing() {
        let (near, far) = pair();
        let mut receiver = Receiver::new();
        assert!(receiver.receive::<String>(far.as_fd()).unwrap().is_none());
        drop(near);
        let error = receiver.receive::<String>(far.as_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn garbage_is_invalid_data() {
        let (near, far) = pair();
        rustix::net::send(&near, &[7, 7, 7], SendFlags::empty()).unwrap();
        let error = Receiver::new().receive::<String>(far.as_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
