//! The executor protocol: generated wire types and codec.
//!
//! The engine and a worker process talk over one socket. This crate holds the messages they may say
//! and turns them into bytes and back. It knows no sockets, processes or tasks, and not what a
//! message means. `protocol/PROTOCOL.md` describes the course of a connection; read [`wire`] for
//! the messages, [`Decoder`] and [`encode`] for the bytes, [`limits`] for every number.

mod codec;
mod error;
pub mod form;
pub mod limits;
mod message;

/// The messages, generated from `protocol/executor.proto`, with their canonical JSON mapping.
pub mod wire {
    #![allow(missing_docs, clippy::all, rustdoc::all)]
    include!("generated/ciel.executor.rs");
    include!("generated/ciel.executor.serde.rs");
}

pub use codec::{Decoder, Framing, encode, encode_to};
pub use error::{DecodeError, EncodeError};
pub use message::WireMessage;
