//! What the supervisor waits for, in one place.
//!
//! Each thing has a token that says what it is. It does not know what is done then. Read next:
//! `supervisor`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::limits::EVENTS_MAX;
use crate::order::StreamKey;

/// Something that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A call of a process is stopped.
    Calls,
    /// A signal has come.
    Signals,
    /// The guard has ended.
    Guard,
    /// The process of this id has ended.
    Process(u32),
    /// The pipe of this number has bytes, or has ended.
    Pipe(u64),
    /// The sink of this stream has room.
    Room(StreamKey),
}

/// Bits of a token below the kind.
const VALUE_BITS: u32 = 60;

impl Source {
    fn token(self) -> u64 {
        let (kind, value) = match self {
            Source::Calls => (0, 0),
            Source::Signals => (1, 0),
            Source::Guard => (2, 0),
            Source::Process(pid) => (3, u64::from(pid)),
            Source::Pipe(pipe) => (4, pipe),
            Source::Room(stream) => (5, stream.0 as u64),
        };
        kind << VALUE_BITS | value
    }

    fn of_token(token: u64) -> Source {
        let value = token & ((1 << VALUE_BITS) - 1);
        match token >> VALUE_BITS {
            0 => Source::Calls,
            1 => Source::Signals,
            2 => Source::Guard,
            3 => Source::Process(value as u32),
            4 => Source::Pipe(value),
            5 => Source::Room(StreamKey(value as usize)),
            kind => unreachable!("no source has the kind {kind}"),
        }
    }
}

/// The kernel's list of what is waited for.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Poller").finish_non_exhaustive()
    }
}

impl Poller {
    /// An empty list.
    pub(crate) fn new() -> io::Result<Poller> {
        Ok(Poller {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(EVENTS_MAX),
        })
    }

    /// Waits for this source until it is removed or its descriptor closed.
    pub(crate) fn add(&self, source: Source, fd: impl AsFd) -> io::Result<()> {
        let data = EventData::new_u64(source.token());
        Ok(epoll::add(&self.epoll, fd, data, EventFlags::IN)?)
    }

    /// Waits once for room; asking twice is asking once.
    pub(crate) fn add_room(&self, stream: StreamKey, fd: impl AsFd) -> io::Result<()> {
        let data = EventData::new_u64(Source::Room(stream).token());
        let once = EventFlags::OUT | EventFlags::ONESHOT;
        match epoll::add(&self.epoll, &fd, data, once) {
            Err(Errno::EXIST) => Ok(epoll::modify(&self.epoll, &fd, data, once)?),
            result => Ok(result?),
        }
    }

    /// Waits no more.
    pub(crate) fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Waits until something has happened; what is not a call comes first.
    pub(crate) fn wait(&mut self) -> io::Result<Vec<Source>> {
        self.events.clear();
        loop {
            let spare = rustix::buffer::spare_capacity(&mut self.events);
            match epoll::wait(&self.epoll, spare, None) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let tokens = self.events.iter().map(|event| event.data.u64());
        let mut sources: Vec<Source> = tokens.map(Source::of_token).collect();
        sources.sort_by_key(|source| *source == Source::Calls);
        Ok(sources)
    }
}
