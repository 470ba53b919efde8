//! Unmodified programs in serial order: a command whose processes run in parallel prints, and
//! writes to the files that are named, what it would if each process were waited for at once.
//!
//! The pure machine is [`order`]. Around it is a supervisor for Linux that stops the calls which
//! start processes, by the kernel's filter of calls with notification of a supervisor (seccomp),
//! and gives each process pipes of its own. Everything else that the processes do keeps its speed.
//! It knows no task and no engine. Read next: `run` for the course of a command, `supervisor`,
//! `traps`, and `docs/reference/ordered-command.md` for what is and is not ordered.

mod births;
mod error;
mod files;
mod filter;
mod guard;
mod kernel;
mod launch;
pub mod limits;
mod listener;
mod named;
pub mod order;
mod outputs;
mod poller;
mod run;
mod segments;
mod signals;
mod sink;
mod spill;
mod supervisor;
mod traps;

pub use error::UnmodifiedError;
pub use run::{Ordered, Route, run};
