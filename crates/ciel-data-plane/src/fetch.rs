//! The client of the TCP data plane: reads one object of another store.
//!
//! A connection that breaks, falls silent or brings a damaged frame is replaced, from the first
//! byte that is missing, so the reader sees each byte once and in order. It ends only by the
//! server's word for the end. It keeps one frame in memory; who does not read holds the server.
//! Read next: `server`, the other side.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::event::PollFlags;

use crate::fault::StreamFault;
use crate::frame::{Kind, receive};
use crate::handshake::{self, Answer, Request};
use crate::limits::{CONNECTS_MAX, NAME_BYTES_MAX, RECONNECT_MS, SILENCE_MS_MAX};
use crate::stop::Stop;
use crate::token::Token;

/// A reader of an object on another store.
#[derive(Debug)]
pub struct Fetch {
    address: SocketAddr,
    token: Token,
    request: Request,
    state: Conversation,
    /// The last frame's payload, of which the first `taken` bytes have been read.
    payload: Vec<u8>,
    taken: usize,
    /// Connections in a row without a new byte.
    attempts: u32,
    /// All connections that were made.
    connections: u64,
    stop: Option<Stop>,
}

#[derive(Debug)]
enum Conversation {
    Closed,
    Open { stream: TcpStream, is_stored: bool },
    Ended,
}

impl Fetch {
    /// A reader of an object from its first byte. It connects when it is first read.
    ///
    /// # Panics
    /// If the name is longer than 255 bytes.
    pub fn new(address: SocketAddr, token: Token, name: &str) -> Fetch {
        assert!(name.len() <= NAME_BYTES_MAX, "no object has such a name");
        Fetch {
            address,
            token,
            request: Request {
                name: name.to_owned(),
                from: 0,
            },
            state: Conversation::Closed,
            payload: Vec::new(),
            taken: 0,
            attempts: 0,
            connections: 0,
            stop: None,
        }
    }

    /// The same from another byte.
    #[must_use]
    pub fn from(mut self, offset: u64) -> Fetch {
        self.request.from = offset;
        self
    }

    /// The same; once that signal is given, it fails with [`StreamFault::GivenUp`] in place of
    /// waiting for the server.
    #[must_use]
    pub fn until(mut self, stop: Stop) -> Fetch {
        self.stop = Some(stop);
        self
    }

    /// Connections that it has made so far: one, and another for each that broke.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Bytes before the next one to be read.
    pub fn position_bytes(&self) -> u64 {
        self.request.from - (self.payload.len() - self.taken) as u64
    }

    /// Waits until there is a byte to read, or the end.
    fn fill(&mut self) -> io::Result<()> {
        while self.taken == self.payload.len() {
            match &self.state {
                Conversation::Ended => return Ok(()),
                Conversation::Closed => self.connect()?,
                Conversation::Open { stream, is_stored } => {
                    let is_stored = *is_stored;
                    if is_given_up(self.stop.as_ref(), stream, is_stored)? {
                        let read = self.position_bytes();
                        return Err(StreamFault::GivenUp { read }.into());
                    }
                    self.taken = 0;
                    match receive(stream, &mut self.payload) {
                        Ok(frame) => self.on_frame(frame, is_stored)?,
                        Err(_) => self.on_broken(is_stored)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn on_frame(&mut self, (kind, offset): (Kind, u64), is_stored: bool) -> io::Result<()> {
        let at = self.request.from;
        match kind {
            Kind::Data if offset == at && !self.payload.is_empty() => {
                self.request.from += self.payload.len() as u64;
                self.attempts = 0;
                return Ok(());
            }
            Kind::End if offset == at => self.state = Conversation::Ended,
            Kind::Lost => {
                self.payload.clear();
                return Err(StreamFault::ProducerLost { read: at }.into());
            }
            Kind::Beat => {}
            Kind::Data | Kind::End => return self.on_broken(is_stored),
        }
        self.payload.clear();
        Ok(())
    }

    fn on_broken(&mut self, is_stored: bool) -> io::Result<()> {
        self.payload.clear();
        self.taken = 0;
        self.state = Conversation::Closed;
        if is_stored {
            return Ok(());
        }
        let read = self.request.from;
        Err(StreamFault::NotStored { read }.into())
    }

    fn connect(&mut self) -> io::Result<()> {
        if self.attempts == CONNECTS_MAX {
            return Err(self.unreachable().into());
        }
        if self.attempts > 0 {
            let wait = RECONNECT_MS << (self.attempts - 1);
            std::thread::sleep(Duration::from_millis(wait));
        }
        self.attempts += 1;
        let Ok((stream, answer)) = self.greet() else {
            return Ok(());
        };
        let is_stored = match answer {
            Answer::Stored => true,
            Answer::Direct => {
                // A direct producer may be silent for as long as it likes.
                stream.set_read_timeout(None)?;
                false
            }
            Answer::Busy => return Ok(()),
            Answer::TokenRefused | Answer::NoSuchObject | Answer::NotStored => {
                return Err(self.refused(answer).into());
            }
        };
        self.state = Conversation::Open { stream, is_stored };
        Ok(())
    }

    fn greet(&mut self) -> io::Result<(TcpStream, Answer)> {
        let silence = Duration::from_millis(SILENCE_MS_MAX);
        let stream = TcpStream::connect_timeout(&self.address, silence)?;
        self.connections += 1;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(silence))?;
        let answer = handshake::request(&stream, &self.token, &self.request)?;
        Ok((stream, answer))
    }

    fn refused(&self, answer: Answer) -> StreamFault {
        let address = self.address.to_string();
        match answer {
            Answer::TokenRefused => StreamFault::TokenRefused { address },
            Answer::NoSuchObject => StreamFault::NoSuchObject {
                address,
                name: self.request.name.clone(),
            },
            Answer::Stored | Answer::Direct | Answer::NotStored | Answer::Busy => {
                StreamFault::NotStored {
                    read: self.request.from,
                }
            }
        }
    }

    fn unreachable(&self) -> StreamFault {
        StreamFault::Unreachable {
            address: self.address.to_string(),
            attempts: self.attempts,
            read: self.request.from,
        }
    }
}

/// Waits until the server has sent something, or is silent for too long; true if the reader is to
/// stop.
fn is_given_up(stop: Option<&Stop>, stream: &TcpStream, is_stored: bool) -> io::Result<bool> {
    let Some(stop) = stop else {
        return Ok(false);
    };
    let limit = is_stored.then_some(Duration::from_millis(SILENCE_MS_MAX));
    stop.wait_at_most(stream, PollFlags::IN, limit)
}

impl Read for Fetch {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.fill()?;
        let there = &self.payload[self.taken..];
        let count = there.len().min(buffer.len());
        buffer[..count].copy_from_slice(&there[..count]);
        self.taken += count;
        Ok(count)
    }
}
