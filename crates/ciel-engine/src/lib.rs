//! What decides in a run, in two halves: the home, which keeps what is recorded, and sites, which
//! run tasks.
//!
//! The halves share messages that can be encoded, and nothing else. [`Engine`] joins a home and one
//! site behind one door: [`Engine::tell`] takes an event and its caller, appends [`Effect`]s to a
//! list, and returns the [`Reply`] to the caller. The parts: `event` (what happens where tasks
//! run), `message` (messages between home and site), `home`, `site`, `engine` (both joined). Beside
//! the door stands [`Attempt`], by which those who run tasks make events and take replies in.
//!
//! Pure: no thread, file, socket, process, clock or language. It does not keep the state of a
//! suspended script; the caller does. Read next: `event`, then `message`.

mod attempt;
mod engine;
mod event;
pub mod home;
pub mod link;
pub mod message;
pub mod site;
mod stall;

pub use attempt::{
    Act, Action, At, Attempt, Blocked, IndexError, Kept, OutputError, ReceivedFailures, Waited,
    saved_state,
};
pub use engine::Engine;
pub use event::{Begun, Caller, Effect, Event, Reply, ResultQuery};
pub use home::{Pausing, Pressure, SerialUse};
pub use message::{Answers, Known, Notice};
pub use site::passes_on;
pub use stall::{Alive, Stall};
