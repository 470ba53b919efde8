//! What can go wrong between bytes and messages.
//!
//! The errors do not know which worker or task was concerned; who owns the connection adds that.
//! Read `codec.rs` for where they arise.

use crate::Framing;

/// A message that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The message is longer than the protocol allows.
    #[error("a message of {bytes} bytes is over the limit of {bytes_max}")]
    TooLong {
        /// Length of the message in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// A field has a value that has no name in JSON.
    #[error("the message cannot be written as JSON: {reason}")]
    NotInJson {
        /// The message of the serializer.
        reason: String,
    },
}

impl EncodeError {
    pub(crate) fn without_json(error: serde_json::Error) -> EncodeError {
        let reason = error.to_string();
        EncodeError::NotInJson { reason }
    }

    /// A stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "message-too-long",
            Self::NotInJson { .. } => "not-in-json",
        }
    }

    /// Whether the same act can succeed later: never, the message stays as long as it is.
    pub fn is_retryable(&self) -> bool {
        false
    }
}

/// Bytes that are no message. The connection cannot be used further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The first bytes of the connection belong to neither framing.
    #[error("the connection begins with neither framing but with \"{}\"", first.escape_ascii())]
    Garbage {
        /// The first bytes, at most `SHOWN_BYTES_MAX`.
        first: Vec<u8>,
    },
    /// A message is longer than the protocol allows.
    #[error("a message of {bytes} bytes or more is over the limit of {bytes_max}")]
    TooLong {
        /// Its announced length, or what has come of it, in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// A line is not UTF-8.
    #[error("a line is not UTF-8 from its byte {valid} on")]
    NotUtf8 {
        /// How many bytes of the line are valid.
        valid: usize,
    },
    /// A frame or line is not a message of the schema.
    #[error("not a message in {framing:?}: {reason}; it begins with \"{}\"", first.escape_ascii())]
    Malformed {
        /// How the message was framed.
        framing: Framing,
        /// The message of the parser.
        reason: String,
        /// The first bytes of the message, at most `SHOWN_BYTES_MAX`.
        first: Vec<u8>,
    },
    /// A message is of a kind that this build does not know, or of none.
    #[error("a message without a known kind; it begins with \"{}\"", first.escape_ascii())]
    UnknownMessage {
        /// The first bytes of the message, at most `SHOWN_BYTES_MAX`.
        first: Vec<u8>,
    },
    /// The connection ended inside a message.
    #[error("the connection ended {bytes} bytes into a message")]
    Truncated {
        /// How many bytes of the message had come.
        bytes: usize,
    },
}

impl DecodeError {
    /// A stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Garbage { .. } => "garbage",
            Self::TooLong { .. } => "message-too-long",
            Self::NotUtf8 { .. } => "not-utf8",
            Self::Malformed { .. } => "malformed-message",
            Self::UnknownMessage { .. } => "unknown-message",
            Self::Truncated { .. } => "truncated-message",
        }
    }

    /// Whether the same act can succeed later: never, a stream of bytes cannot be read again.
    pub fn is_retryable(&self) -> bool {
        false
    }
}
