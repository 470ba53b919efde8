//! The pipes of processes: each process has one for each stream that it can write to.
//!
//! All that a process writes to a stream comes through its pipe, in its own order; a child has
//! another one. It does not know what the streams are. Read next: `supervisor`.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustc_hash::FxHashMap;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::order::{ProcessKey, StreamKey};

/// The reading end of the pipe of one process for one stream.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Whose output it is.
    pub(crate) process: ProcessKey,
    /// Which output it is.
    pub(crate) stream: StreamKey,
    /// Whether the supervisor waits for it.
    pub(crate) is_watched: bool,
    reader: OwnedFd,
}

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// So many bytes.
    Bytes(usize),
    /// Nothing yet.
    Empty,
    /// Nobody can write to it.
    End,
}

impl Segment {
    /// Reads what is there.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Read> {
        loop {
            return match rustix::io::read(&self.reader, &mut *buffer) {
                Ok(0) => Ok(Read::End),
                Ok(count) => Ok(Read::Bytes(count)),
                Err(Errno::AGAIN) => Ok(Read::Empty),
                Err(Errno::INTR) => continue,
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Bytes that can be read at once.
    pub(crate) fn readable_bytes(&self) -> io::Result<u64> {
        Ok(rustix::io::ioctl_fionread(&self.reader)?)
    }

    /// The reading end.
    pub(crate) fn reader(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

/// All pipes, by number and by process.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    by_pipe: FxHashMap<u64, Segment>,
    of_process: BTreeMap<ProcessKey, Vec<u64>>,
}

impl Segments {
    /// A pipe for this process and stream; returns its number and the end to write to.
    pub(crate) fn create(
        &mut self,
        process: ProcessKey,
        stream: StreamKey,
    ) -> io::Result<(u64, OwnedFd)> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // The writing end waits for room as the process expects; both have flags of their own.
        rustix::io::ioctl_fionbio(&reader, true)?;
        let pipe = rustix::fs::fstat(&reader)?.st_ino;
        let segment = Segment {
            process,
            stream,
            is_watched: false,
            reader,
        };
        self.by_pipe.insert(pipe, segment);
        self.of_process.entry(process).or_default().push(pipe);
        Ok((pipe, writer))
    }

    /// The pipe of this number, if it is one of these.
    pub(crate) fn get(&self, pipe: u64) -> Option<&Segment> {
        self.by_pipe.get(&pipe)
    }

    /// The same, to change it.
    pub(crate) fn get_mut(&mut self, pipe: u64) -> Option<&mut Segment> {
        self.by_pipe.get_mut(&pipe)
    }

    /// The pipes of a process.
    pub(crate) fn of(&self, process: ProcessKey) -> Vec<u64> {
        self.of_process.get(&process).cloned().unwrap_or_default()
    }

    /// The pipe of a process for a stream, if there is one.
    pub(crate) fn find(&self, process: ProcessKey, stream: StreamKey) -> Option<u64> {
        let pipes = self.of_process.get(&process)?;
        let is_it = |pipe: &&u64| self.by_pipe[*pipe].stream == stream;
        pipes.iter().find(is_it).copied()
    }

    /// The pipes of a stream.
    pub(crate) fn of_stream(&self, stream: StreamKey) -> Vec<u64> {
        let all = self.by_pipe.iter();
        let of_it = all.filter(|(_, segment)| segment.stream == stream);
        of_it.map(|(pipe, _)| *pipe).collect()
    }

    /// Closes a pipe.
    pub(crate) fn remove(&mut self, pipe: u64) -> Option<Segment> {
        let segment = self.by_pipe.remove(&pipe)?;
        let pipes = self.of_process.get_mut(&segment.process)?;
        pipes.retain(|other| *other != pipe);
        if pipes.is_empty() {
            self.of_process.remove(&segment.process);
        }
        Some(segment)
    }

    /// Whether no pipe is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_pipe.is_empty()
    }
}
