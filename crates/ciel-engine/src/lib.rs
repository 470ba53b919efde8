//! What decides in a run: the coordinator, the node, and what passes between them, behind one door.
//!
//! [`Engine::tell`] takes an event and who tells it, appends [`Effect`]s to a list, and returns the
//! [`Reply`] to the caller. The parts: `event` (its language), `engine` (the door), `perform` (what
//! the machines ask for), `succession` (the end of a turn, and which task follows it), `prefetch`
//! (which starts a worker receives before their time). Beside the door stands [`Attempt`], by which
//! those who run tasks make events and take replies in.
//!
//! Pure: no thread, file, socket, process, clock or language. It does not keep the state of a
//! suspended script; whoever runs scripts does. Read next: `event`, then `engine`.

mod attempt;
mod check;
mod engine;
mod event;
mod line;
mod perform;
mod prefetch;
mod succession;

pub use attempt::{Act, Action, At, Attempt, Blocked, Keep, ReceivedFailures, Waited, saved_state};
pub use engine::Engine;
pub use event::{Answers, Begun, Caller, Effect, Event, Known, Reply};
