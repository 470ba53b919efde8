//! Messages to bytes and back, in both framings.
//!
//! A pure machine: it is handed bytes and gives messages, and knows neither where the bytes come
//! from nor what the messages mean. The framings are described in `protocol/PROTOCOL.md`; read
//! `error.rs` for what can go wrong.

use std::marker::PhantomData;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::limits::{MESSAGE_BYTES_MAX, SHOWN_BYTES_MAX};
use crate::{DecodeError, EncodeError, WireMessage};

const LENGTH_BYTES: usize = 4;

/// How messages are cut out of a stream of bytes, the same in both directions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// One message in the canonical JSON mapping on each line; the connection begins with `{`.
    JsonLines,
    /// The length in four bytes, highest first, then the message in Protocol Buffers.
    LengthPrefixed,
}

/// The bytes of one message, ready to be sent.
///
/// # Errors
/// [`EncodeError::TooLong`] above [`MESSAGE_BYTES_MAX`]; [`EncodeError::NotInJson`] for a number of
/// an enumeration that this build does not know, if the framing is JSON.
pub fn encode<M: WireMessage>(message: &M, framing: Framing) -> Result<Bytes, EncodeError> {
    let mut bytes = BytesMut::new();
    encode_to(&mut bytes, message, framing)?;
    Ok(bytes.freeze())
}

/// Appends the bytes of one message to others that are to be sent.
///
/// # Errors
/// Those of [`encode`]; nothing has been appended then.
pub fn encode_to<M: WireMessage>(
    bytes: &mut BytesMut,
    message: &M,
    framing: Framing,
) -> Result<(), EncodeError> {
    match framing {
        Framing::LengthPrefixed => {
            let length = message.encoded_len();
            check_length(length)?;
            bytes.reserve(LENGTH_BYTES + length);
            bytes.put_u32(u32::try_from(length).expect("the limit fits in four bytes"));
            message.encode_raw(bytes);
        }
        Framing::JsonLines => {
            let line = serde_json::to_vec(message).map_err(EncodeError::without_json)?;
            check_length(line.len())?;
            bytes.reserve(line.len() + 1);
            bytes.put_slice(&line);
            bytes.put_u8(b'\n');
        }
    }
    Ok(())
}

fn check_length(bytes: usize) -> Result<(), EncodeError> {
    if bytes > MESSAGE_BYTES_MAX {
        return Err(EncodeError::TooLong {
            bytes,
            bytes_max: MESSAGE_BYTES_MAX,
        });
    }
    Ok(())
}

/// Cuts a stream of bytes into messages of one direction.
///
/// The framing is given, or decided by the first byte. Every message it gives has a kind. After an
/// error it gives the same error for ever, because the next message cannot be found.
#[derive(Debug)]
pub struct Decoder<M> {
    buffer: BytesMut,
    framing: Option<Framing>,
    /// How many bytes of the buffer are known to hold no line end.
    scanned: usize,
    /// Whether the first message has been cut out.
    greeted: bool,
    failed: Option<DecodeError>,
    message: PhantomData<fn() -> M>,
}

impl<M: WireMessage> Default for Decoder<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: WireMessage> Decoder<M> {
    /// A decoder that decides the framing by the first byte.
    pub fn new() -> Self {
        Self {
            buffer: BytesMut::new(),
            framing: None,
            scanned: 0,
            greeted: false,
            failed: None,
            message: PhantomData,
        }
    }

    /// A decoder for the side that spoke first and so has chosen the framing.
    pub fn with_framing(framing: Framing) -> Self {
        Self {
            framing: Some(framing),
            ..Self::new()
        }
    }

    /// The framing; none before the first byte.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// Takes bytes as they came, cut anywhere.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Where bytes can be appended as they come, instead of being pushed: messages keep what they
    /// need of it without a copy. It is for nothing but appending.
    pub fn incoming(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next complete message; none if more bytes are needed.
    ///
    /// # Errors
    /// Any [`DecodeError`] but `Truncated`.
    pub fn take(&mut self) -> Result<Option<M>, DecodeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let taken = self.cut().and_then(|frame| frame.map(read).transpose());
        if let Err(error) = &taken {
            self.failed = Some(error.clone());
            self.buffer = BytesMut::new();
        }
        taken
    }

    /// Whether [`Decoder::take`] would give a message, or an error, with the bytes that have come.
    pub fn has_message(&self) -> bool {
        let Some(first) = self.buffer.first() else {
            return self.failed.is_some();
        };
        match (self.framing, first) {
            (Some(Framing::JsonLines), _) | (None, b'{') => {
                let end = self.buffer.iter().rposition(|byte| *byte == b'\n');
                let lines = &self.buffer[..end.unwrap_or(0)];
                self.buffer.len() > MESSAGE_BYTES_MAX || !lines.trim_ascii().is_empty()
            }
            (Some(Framing::LengthPrefixed) | None, _) => {
                let prefix = self.buffer.first_chunk::<LENGTH_BYTES>();
                let length = prefix.map(|prefix| u32::from_be_bytes(*prefix) as usize);
                length.is_some_and(|length| {
                    length > MESSAGE_BYTES_MAX || self.buffer.len() >= LENGTH_BYTES + length
                })
            }
        }
    }

    /// To be asked when the connection has ended and [`Decoder::take`] gives no more.
    ///
    /// # Errors
    /// `Truncated` if the end came inside a message; an earlier error again.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None if self.buffer.is_empty() => Ok(()),
            None => Err(DecodeError::Truncated {
                bytes: self.buffer.len(),
            }),
        }
    }

    fn cut(&mut self) -> Result<Option<(Framing, Bytes)>, DecodeError> {
        let Some(first) = self.buffer.first() else {
            return Ok(None);
        };
        let by_first_byte = if *first == b'{' {
            Framing::JsonLines
        } else {
            Framing::LengthPrefixed
        };
        let framing = *self.framing.get_or_insert(by_first_byte);
        let frame = match framing {
            Framing::JsonLines => self.cut_line()?,
            Framing::LengthPrefixed => self.cut_frame()?,
        };
        self.greeted |= frame.is_some();
        Ok(frame.map(|bytes| (framing, bytes)))
    }

    fn cut_line(&mut self) -> Result<Option<Bytes>, DecodeError> {
        loop {
            let rest = &self.buffer[self.scanned..];
            let end = rest
                .iter()
                .position(|byte| *byte == b'\n')
                .map(|end| self.scanned + end);
            let length = end.unwrap_or(self.buffer.len());
            if length > MESSAGE_BYTES_MAX {
                return Err(too_long(length));
            }
            let Some(end) = end else {
                self.scanned = length;
                return Ok(None);
            };
            let line = self.buffer.split_to(end).freeze();
            self.buffer.advance(1);
            self.scanned = 0;
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    fn cut_frame(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let Some(prefix) = self.buffer.first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*prefix) as usize;
        match length {
            ..=MESSAGE_BYTES_MAX => {}
            _ if self.greeted => return Err(too_long(length)),
            _ => {
                return Err(DecodeError::Garbage {
                    first: shown(&self.buffer),
                });
            }
        }
        if self.buffer.len() < LENGTH_BYTES + length {
            return Ok(None);
        }
        self.buffer.advance(LENGTH_BYTES);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}

fn read<M: WireMessage>((framing, frame): (Framing, Bytes)) -> Result<M, DecodeError> {
    let malformed = |reason| DecodeError::Malformed {
        framing,
        reason,
        first: shown(&frame),
    };
    let message = match framing {
        Framing::LengthPrefixed => {
            M::decode(frame.clone()).map_err(|error| malformed(error.to_string()))?
        }
        Framing::JsonLines => {
            let line = std::str::from_utf8(&frame).map_err(|error| DecodeError::NotUtf8 {
                valid: error.valid_up_to(),
            })?;
            serde_json::from_str(line).map_err(|error| malformed(error.to_string()))?
        }
    };
    match message.kind_name() {
        Some(_) => Ok(message),
        None => Err(DecodeError::UnknownMessage {
            first: shown(&frame),
        }),
    }
}

fn too_long(bytes: usize) -> DecodeError {
    DecodeError::TooLong {
        bytes,
        bytes_max: MESSAGE_BYTES_MAX,
    }
}

fn shown(bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len().min(SHOWN_BYTES_MAX)].to_vec()
}
