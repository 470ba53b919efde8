//! The engine's side of the executor protocol: the conversation with one worker.
//!
//! A [`Conversation`] is a state machine. [`Conversation::handle`] takes an [`Input`], which is a
//! message of the worker, a command of the engine, or the passing of time; what has to be done
//! about it is appended to a list of [`Effect`]s. What the engine or the store answers at once is
//! asked of a [`Host`]. A task in a worker is a `WorkerTask`: it outlives its turn while it is
//! parked. Whatever a worker sends, at worst its own tasks fail.
//!
//! The parts: `handshake` (what a first message must be), `conversation` (the door), `turn`,
//! `requests` and `turn_end` (what a task does), `look` (what is known of a reference), `fitting`
//! (how much of it fits into a message), `prefetch`, `start` (the message that starts a task),
//! `closing` (the worker is gone), and conversions without a state: `definitions`, `descriptor`,
//! `failures`, `features`, `recording`, `lines`.
//!
//! It does not know how a worker is started, what its connection is, nor why a task runs in it. The
//! page that workers are written from is `protocol/PROTOCOL.md`. Read next: `io`, then
//! `conversation`.

mod begun;
mod callee;
mod closing;
mod conversation;
mod definitions;
mod descriptor;
mod failures;
mod features;
mod files;
mod fitting;
mod handshake;
mod host;
mod io;
pub mod limits;
mod lines;
mod look;
mod objects;
mod open_requests;
mod prefetch;
mod recording;
mod requests;
mod start;
mod step;
mod task;
mod turn;
mod turn_end;
mod values;

pub use callee::{Callee, SpawnCall};
pub use closing::{Gone, lose, shutdown};
pub use conversation::Conversation;
pub use handshake::{Unfit, accept};
pub use host::{Failed, Found, Host, Json, Scratch};
pub use io::{Effect, Input, Overdrawn, Rules, Show, WorkerExitReason};
pub use lines::Lines;
