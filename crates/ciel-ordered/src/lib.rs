//! Ordered streams: the output of all strands in serial order, live as far as it is final.
//!
//! A pure machine. Strands write concurrently; [`OrderedStream`] hands the bytes out in the order
//! of the serial program: a child's whole output belongs at the point of its spawn. The point up to
//! which everything is final is the *serial frontier*.
//!
//! Each piece belongs to a *sink*, one of several files. There is one order of all pieces, and what
//! is handed out for one sink is at any moment a prefix of what the serial program writes there.
//!
//! It does not know tasks, channels, files, threads or clocks: a strand is a [`StrandKey`], bytes
//! that lie on disk are an [`Extent`] whose meaning is the caller's. Read next: [`stream`] (the
//! acts of strands), then `frontier` (how bytes are released), `history` (how a replay is
//! compared), `cut` (what stays of a cancelled strand), `rollback`.

mod check;
mod cut;
mod error;
mod fingerprint;
mod frontier;
mod history;
pub mod limits;
mod piece;
mod rollback;
mod spill;
mod strand;
pub mod stream;

pub use error::OrderedError;
pub use piece::{Chunk, Extent, Piece, Sink, StrandKey};
pub use spill::{Spill, Ticket};
pub use stream::{After, Gauges, OrderedStream};
