//! The process that starts, watches and ends every other process of a run.
//!
//! One small, single-threaded spawner per run is the parent, and as child subreaper the adoptive
//! parent, of every process that a task brings into the world. The engine talks to it over one
//! Unix socket: [`Spawner`] is the engine's end, [`serve`] the loop of the process itself.
//!
//! What it does not know: tasks as the graph knows them, objects, retries, time limits, and any
//! asynchronous runtime. A grace period between two signals is the engine's timer.
//!
//! Promises:
//! - a task runs in its own process group, with default signals and only the descriptors given;
//! - a process that may leave a template behind is started once; others like it are forked from
//!   that template, and what they are given and promised is the same;
//! - when a task's first process has ended, whatever it left behind is killed, named and gone
//!   before the end is reported;
//! - a protected folder cannot be written to by what starts later, where the system lets us mount;
//! - when the engine dies, however it dies, every process of the run is killed;
//! - when the spawner dies, the tasks' first processes die with it, and [`sweep`] kills the rest.
//!
//! Where to read next: [`Request`] and [`Report`] are the language of the socket, `ledger` holds
//! every decision about leftovers as a pure machine, `server` drives it, `launch` is the start of
//! one process, `processes` reads what the kernel reports about them.

mod client;
mod cookie;
mod launch;
mod ledger;
pub mod limits;
mod message;
mod opened;
mod plan;
mod processes;
mod protect;
mod refusal;
mod server;
mod signals;
mod sweep;
mod templates;
mod waiting;
mod wire;

pub use client::{Spawner, current_environment};
pub use cookie::{BadCookie, COOKIE_VARIABLE, Cookie, TEMPLATE_VARIABLE};
pub use message::{Environment, Exit, Input, Left, Limits, Output, Report, Request, Start, Status};
pub use opened::{Reading, reading};
pub use processes::resident_anonymous;
pub use refusal::{Refusal, Step};
pub use server::{serve, serve_inherited};
pub use signals::own_processor_us;
pub use sweep::sweep;
