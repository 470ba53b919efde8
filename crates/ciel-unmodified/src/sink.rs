//! An output of the command: standard output, standard error, or an ordered file.
//!
//! Writing never waits for a slow reader, since the supervisor has calls to answer meanwhile; and
//! it changes no flag of the descriptor, which other processes share. It does not know what order
//! the bytes are in. Read next: `supervisor`.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::FileType;
use rustix::io::{Errno, ReadWriteFlags};

use crate::limits::POLLED_BYTES_MAX;

/// How an output is asked for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It has room.
    File,
    /// A write says how much it took without waiting.
    Nowait,
    /// It can be asked before a short write.
    Polled,
}

/// An output and what it has not taken yet.
#[derive(Debug)]
pub(crate) struct Sink {
    name: String,
    fd: Option<OwnedFd>,
    kind: Kind,
    backlog: Vec<u8>,
    /// Bytes of the backlog that are written.
    taken: usize,
    written: u64,
}

impl Sink {
    /// An output that is open, under a name for messages.
    pub(crate) fn open(name: &str, fd: OwnedFd) -> io::Result<Sink> {
        let mut sink = Sink::closed(name);
        sink.reopen(fd)?;
        Ok(sink)
    }

    /// An output that is yet to be opened.
    pub(crate) fn closed(name: &str) -> Sink {
        Sink {
            name: name.to_owned(),
            fd: None,
            kind: Kind::File,
            backlog: Vec::new(),
            taken: 0,
            written: 0,
        }
    }

    /// Continues in another file.
    pub(crate) fn reopen(&mut self, fd: OwnedFd) -> io::Result<()> {
        let mode = rustix::fs::fstat(&fd)?.st_mode;
        self.kind = match FileType::from_raw_mode(mode) {
            FileType::RegularFile => Kind::File,
            _ => Kind::Nowait,
        };
        self.fd = Some(fd);
        self.written = 0;
        Ok(())
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes that it has taken.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// The descriptor to wait at for room.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Whether something is not written yet; no more should be given then.
    pub(crate) fn is_behind(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Takes bytes and writes what it has room for.
    pub(crate) fn give(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_behind() {
            self.backlog.extend_from_slice(bytes);
            return Ok(());
        }
        let taken = self.write(bytes)?;
        self.backlog.extend_from_slice(&bytes[taken..]);
        Ok(())
    }

    /// Writes of the backlog what there is room for.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let backlog = std::mem::take(&mut self.backlog);
        let result = self.write(&backlog[self.taken..]);
        self.backlog = backlog;
        self.taken += result?;
        if self.taken == self.backlog.len() {
            self.backlog.clear();
            self.taken = 0;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.write_once(&bytes[taken..]) {
                Ok(count) => {
                    taken += count;
                    self.written += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(taken)
    }

    fn write_once(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let fd = self.fd.as_ref().ok_or(Errno::BADF)?;
        match self.kind {
            Kind::File => rustix::io::write(fd, bytes),
            Kind::Nowait => {
                let at_its_position = u64::MAX;
                let parts = [IoSlice::new(bytes)];
                let flags = ReadWriteFlags::NOWAIT;
                match rustix::io::pwritev2(fd, &parts, at_its_position, flags) {
                    Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::SPIPE | Errno::NOSYS) => {
                        self.kind = Kind::Polled;
                        self.write_once(bytes)
                    }
                    result => result,
                }
            }
            Kind::Polled => {
                let mut asked = [PollFd::new(fd, PollFlags::OUT)];
                if rustix::event::poll(&mut asked, Some(&Timespec::default()))? == 0 {
                    return Err(Errno::AGAIN);
                }
                rustix::io::write(fd, &bytes[..bytes.len().min(POLLED_BYTES_MAX)])
            }
        }
    }
}
