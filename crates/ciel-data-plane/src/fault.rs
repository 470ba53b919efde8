//! Why the reader of a stream does not get to its end.
//!
//! The readers give it as the inner error of a [`std::io::Error`], since they are
//! [`std::io::Read`]; [`StreamFault::of`] finds it there. It does not know who is told.

use std::io;

/// What keeps a stream from its end. The bytes that were read are a prefix of the stream.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamFault {
    /// The producer died, failed, or gave the stream up.
    #[error("the producer of the stream is lost after {read} bytes: this is not its end")]
    ProducerLost {
        /// Bytes that this reader got before.
        read: u64,
    },
    /// The shared memory or the object does not have what its header says.
    #[error("the memory of the stream is damaged after {read} bytes")]
    Damaged {
        /// Bytes that this reader got before.
        read: u64,
    },
    /// No connection brought a new byte.
    #[error(
        "{address} cannot be reached or breaks every connection: {attempts} attempts without a \
         new byte after {read}"
    )]
    Unreachable {
        /// The server.
        address: String,
        /// Connections that were tried in a row.
        attempts: u32,
        /// Bytes that this reader got before.
        read: u64,
    },
    /// The token is not the server's, or the server does not know ours.
    #[error("{address} refuses the token of this run")]
    TokenRefused {
        /// The server.
        address: String,
    },
    /// There is no such object.
    #[error("{address} has no object {name:?}")]
    NoSuchObject {
        /// The server.
        address: String,
        /// The object's name.
        name: String,
    },
    /// The reader was told to stop.
    #[error("the reader has given the stream up after {read} bytes")]
    GivenUp {
        /// Bytes that this reader got before.
        read: u64,
    },
    /// The stream was direct, and its connection broke: there is no copy to resume from.
    #[error("the connection of a stream that is not stored broke after {read} bytes")]
    NotStored {
        /// Bytes that this reader got before.
        read: u64,
    },
}

impl StreamFault {
    /// The fault in an error of a reader.
    pub fn of(error: &io::Error) -> Option<&StreamFault> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<StreamFault> for io::Error {
    fn from(fault: StreamFault) -> io::Error {
        io::Error::other(fault)
    }
}

/// Whether the bytes that a producer wrote are, or were, taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// The consumer takes them.
    Taken,
    /// The consumer has left; they are discarded.
    Discarded,
}
