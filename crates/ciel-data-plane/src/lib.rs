//! What moves the bytes of streams, on one machine and between two stores.
//!
//! - A growing object: [`GrowingWriter`], [`GrowingReader`] and the shared [`Progress`] by which
//!   readers, also of other processes, learn of new bytes; [`Follower`] publishes the growth of a
//!   file that a program of somebody else writes.
//! - Pipes: a [`Fifo`] held at both ends, and [`store`], [`discard`] and [`push`], which splice;
//!   [`pour`], which fills a pipe from a connection.
//! - A [`Ring`] in shared memory, and recycled [`Arenas`].
//! - The TCP data plane: a [`Server`] of growing objects, and [`Fetch`], which reads one of them
//!   over connections that may break.
//!
//! In each of them the end of the bytes is an end only if the producer has said so; otherwise
//! readers get a [`StreamFault`]. All calls block; waiting is for a notification, never a poll.
//!
//! It does not know tasks, modes or the decisions about a stream: those are the pure crate
//! `ciel-streams`. Read next: `progress`, `growing`, then `fifo` and `pump`, `ring`, `server`.

mod arena;
mod fault;
mod fetch;
mod fifo;
mod follower;
mod frame;
mod growing;
mod handshake;
pub mod limits;
mod progress;
mod pump;
mod ring;
mod server;
mod shared;
mod stop;
mod token;

pub use arena::{Arena, Arenas};
pub use fault::{Kept, StreamFault};
pub use fetch::Fetch;
pub use fifo::Fifo;
pub use follower::Follower;
pub use growing::{GrowingReader, GrowingWriter};
pub use progress::{Look, Progress, State};
pub use pump::{discard, pour, push, store};
pub use ring::{Ring, RingReader, RingWriter};
pub use server::{Catalogue, Found, Server};
pub use stop::Stop;
pub use token::Token;
