//! The receiving half of a connection: bytes to messages. Pings are answered and definitions kept
//! on the way.
//!
//! It knows neither Python nor what the other messages mean. Read `outgoing.rs` for the sending
//! half.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use ciel_protocol::wire::engine_message::Kind;
use ciel_protocol::wire::{EngineMessage, Output, Pong, Start, WorkerMessage};
use ciel_protocol::{DecodeError, Decoder, Framing};
use rustix::io::Errno;

use crate::definitions::Received as Definitions;
use crate::long_turns::Watch;
use crate::outgoing::Outgoing;
use crate::prefetch::Line;
use crate::socket::Socket;

/// Bytes that one read takes at most.
const READ_BYTES_MAX: usize = 1 << 18;

/// The result of a wait for a message. It lives for one call, so its size does not matter.
#[expect(clippy::large_enum_variant)]
pub enum Received {
    /// A message, never a ping.
    Message(EngineMessage),
    /// A signal interrupted the wait.
    Interrupted,
    /// The engine has gone, or the connection was closed here.
    End,
}

/// Why nothing can be received.
pub enum ReceiveError {
    /// What came is no message.
    NoMessage(DecodeError),
    /// An error of the system.
    System(Errno),
}

/// What has come and was not taken.
pub struct Incoming {
    decoder: Decoder<EngineMessage>,
    /// Where reads go, always of the same size.
    buffer: Vec<u8>,
    ready: VecDeque<EngineMessage>,
    /// The next of these was given back: it is no start that begins natively.
    is_returned: bool,
    line: Line,
    watch: Arc<Watch>,
    definitions: Arc<Mutex<Definitions>>,
    failed: Option<DecodeError>,
    is_ended: bool,
}

impl Incoming {
    /// Nothing has come yet.
    pub fn new(watch: Arc<Watch>, line: Line, definitions: Arc<Mutex<Definitions>>) -> Incoming {
        Incoming {
            decoder: Decoder::with_framing(Framing::LengthPrefixed),
            buffer: vec![0; READ_BYTES_MAX],
            ready: VecDeque::new(),
            is_returned: false,
            line,
            watch,
            definitions,
            failed: None,
            is_ended: false,
        }
    }

    /// A message that was completed by an earlier read.
    pub fn take_ready(&mut self) -> Option<EngineMessage> {
        self.is_returned = false;
        self.ready.pop_front()
    }

    /// Whether there is one.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether the next of these is the start of a task that was not begun before, and that was not
    /// given back.
    pub fn has_start(&self) -> bool {
        !self.is_returned && self.ready.front().is_some_and(is_first_start)
    }

    /// Takes that start.
    pub fn take_start(&mut self) -> Option<EngineMessage> {
        match self.has_start() {
            true => self.ready.pop_front(),
            false => None,
        }
    }

    /// Gives it back: it is the next message again, for `take_ready`.
    pub fn return_start(&mut self, start: EngineMessage) {
        self.is_returned = true;
        self.ready.push_front(start);
    }

    /// The next message. Waits for it, and flushes before it waits.
    ///
    /// # Errors
    /// Any [`ReceiveError`], for ever after.
    pub fn next(
        &mut self,
        socket: &Socket,
        outgoing: &Arc<Outgoing>,
    ) -> Result<Received, ReceiveError> {
        loop {
            if let Some(message) = self.take_ready() {
                return Ok(Received::Message(message));
            }
            if let Some(error) = &self.failed {
                return Err(ReceiveError::NoMessage(error.clone()));
            }
            if self.is_ended {
                return Ok(Received::End);
            }
            if !self.read_on(socket, outgoing)? {
                return Ok(Received::Interrupted);
            }
        }
    }

    /// Waits as `next` does, but takes nothing; false if a signal has interrupted the wait.
    ///
    /// # Errors
    /// Those of the system.
    pub fn wait(
        &mut self,
        socket: &Socket,
        outgoing: &Arc<Outgoing>,
    ) -> Result<bool, ReceiveError> {
        while self.ready.is_empty() && self.failed.is_none() && !self.is_ended {
            if !self.read_on(socket, outgoing)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Flushes, and waits for one read; false if a signal has interrupted it.
    fn read_on(&mut self, socket: &Socket, outgoing: &Arc<Outgoing>) -> Result<bool, ReceiveError> {
        outgoing.flush();
        match self.read(socket, true, outgoing) {
            Ok(()) => Ok(true),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(ReceiveError::System(error)),
        }
    }

    /// A task ends with these outputs, sent by value. If a prefetched start can follow it, that is
    /// the next message; returns its tag, and how many starts are still behind it.
    pub fn follow(
        &mut self,
        ended: u32,
        outputs: &[Output],
        socket: &Socket,
        outgoing: &Arc<Outgoing>,
    ) -> Option<(u32, usize)> {
        if !self.line.is_told(ended) {
            // The next `receive` reports the fault of the connection.
            let _ = self.read(socket, false, outgoing);
        }
        let next = self.line.follow(ended, outputs)?;
        let tag = next.tag;
        self.ready.push_back(next);
        Some((tag, self.line.len()))
    }

    /// Drops all prefetched starts received so far; returns their tags.
    pub fn give_back(&mut self, socket: &Socket, outgoing: &Arc<Outgoing>) -> Vec<u32> {
        // The next `receive` reports the fault of the connection.
        let _ = self.read(socket, false, outgoing);
        self.line.give_back()
    }

    /// The tag of the task at that position, if its start has come and was not taken.
    pub fn tag_of_start(
        &mut self,
        position: &[u8],
        socket: &Socket,
        outgoing: &Arc<Outgoing>,
    ) -> Option<u32> {
        // The next `receive` reports the fault of the connection.
        let _ = self.read(socket, false, outgoing);
        let is_its = |message: &&EngineMessage| match &message.kind {
            Some(Kind::Start(start)) => start.position == position,
            _ => false,
        };
        self.ready.iter().find(is_its).map(|message| message.tag)
    }

    /// Whether [`Incoming::next`] would return at once.
    pub fn is_ready(&mut self, socket: &Socket, outgoing: &Arc<Outgoing>) -> bool {
        // A read that fails now fails again for who receives.
        if self.ready.is_empty() {
            match self.read(socket, false, outgoing) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return true,
            }
        }
        !self.ready.is_empty() || self.failed.is_some() || self.is_ended
    }

    /// One read, and all the messages that it completes.
    fn read(
        &mut self,
        socket: &Socket,
        waits: bool,
        outgoing: &Arc<Outgoing>,
    ) -> Result<(), Errno> {
        match socket.receive(&mut self.buffer, waits) {
            Ok(0) | Err(Errno::CONNRESET) => self.is_ended = true,
            Ok(received) => self.decoder.push(&self.buffer[..received]),
            Err(error) => return Err(error),
        }
        loop {
            match self.decoder.take() {
                Ok(Some(message)) => self.sort(message, outgoing),
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.failed = Some(error);
                    return Ok(());
                }
            }
        }
    }

    fn sort(&mut self, message: EngineMessage, outgoing: &Arc<Outgoing>) {
        match message.kind {
            Some(Kind::Ping(ping)) => {
                let pong = Pong { nonce: ping.nonce };
                let said = outgoing.say(&WorkerMessage::connection(pong), false);
                debug_assert!(said.is_ok(), "a pong is short");
            }
            Some(Kind::Define(define)) => {
                let definitions = self.definitions.lock();
                definitions
                    .unwrap_or_else(PoisonError::into_inner)
                    .add(define);
            }
            Some(Kind::Start(Start { ahead: Some(_), .. })) => {
                self.watch.note_ahead();
                self.line.push(message);
            }
            Some(Kind::Start(_) | Kind::Resume(_)) => {
                self.line.hear();
                self.ready.push_back(message);
            }
            _ => self.ready.push_back(message),
        }
    }
}

fn is_first_start(message: &EngineMessage) -> bool {
    let start = match &message.kind {
        Some(Kind::Start(start)) => start,
        _ => return false,
    };
    message.tag != 0 && start.continuation.is_none()
}
