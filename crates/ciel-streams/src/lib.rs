//! Streams between tasks: an output that is read while it is written.
//!
//! A pure machine. A [`Stream`] is one output of one attempt of a task: its producer, its consumers
//! and the prefix of it that can be read. [`Stream::handle`] takes an [`Event`] and appends the
//! [`Action`]s that follow. [`Mode`] is the way that the bytes take, chosen from what producer and
//! consumer declare (ciel-programming-models §6.1). Every mode gives a consumer the same bytes,
//! each once and in order, and no mode shows it an end that is none.
//!
//! [`regions`] is the machine of the memory that both ends of a direct stream share, [`layout`]
//! says what lies where in it.
//!
//! It does not know tasks, retries, files, pipes, sockets or clocks: a consumer is a
//! [`ConsumerId`], the passing of a limit is an event. What moves the bytes is the crate
//! `ciel-data-plane`. Read next: `ciel_model::stream`, for the modes, then `event`,
//! then `stream`.

mod check;
mod consumer;
mod event;
pub mod layout;
pub mod limits;
pub mod regions;
mod stream;

pub use ciel_model::{ConsumerFlags, Mode, ProducerFlags, UnknownMode, Wish};
pub use event::{AbortReason, Action, ConsumerId, Event, FallBackReason, Refusal};
pub use regions::{HeldRegions, NoRegion, Region, Regions};
pub use stream::{Stream, Writer};
