//! The pure machine of one machine: slots, queues of ready tasks, worker pools.
//!
//! One door: [`Node::handle`]. It places ready tasks in serial order as far as resources reach, and
//! keeps pools of workers. It does not know the graph (why a task is ready, what becomes of it),
//! nor how a process is started. Read next: [`node`](crate::Node), then `queue`.

mod attempts;
mod caches;
mod check;
mod computation;
mod event;
mod lending;
mod loan;
mod memory;
mod need;
mod node;
mod pairs;
mod pool;
mod queue;
mod resuming;

pub use event::{Action, AttemptKey, Event, Kept, Slot, WorkerKey};
pub use node::{Capacity, Node};
