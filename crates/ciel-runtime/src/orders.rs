//! What the core has others do: the orders to the input/output thread.
//!
//! Plain values. Read next: `core`, which gives them, and `io_thread`, which performs them.

use std::sync::Arc;

use ciel_engine::{Begun, Notice};
use ciel_graph::{Assignment, Comparison};
use ciel_model::{Failure, Label, Pool, TaskKey};
use ciel_node::{AttemptKey, WorkerKey};

/// What the input/output thread has to do.
pub(crate) enum Order {
    /// Run a task in a process of its own.
    StartProcess(Box<Assignment>),
    /// Have the process of a task begin when another one ends.
    SendProcess(Box<Assignment>),
    /// Such a process is not to begin.
    WithdrawProcess(AttemptKey),
    /// Such a process has begun, and is to run on.
    ProcessFollowed(Box<Assignment>),
    /// End that process and everything it started.
    StopProcess(AttemptKey),
    /// Read on what that process writes.
    ReadOn(AttemptKey),
    /// Start a worker.
    StartWorker { worker: WorkerKey, pool: Pool },
    /// End a worker that has nothing to do.
    StopWorker(WorkerKey),
    /// Run a task in that worker.
    StartInWorker {
        worker: WorkerKey,
        begun: Box<Begun>,
    },
    /// End a task that runs in that worker.
    StopInWorker {
        worker: WorkerKey,
        attempt: AttemptKey,
    },
    /// Tell a task that runs in that worker what it has asked to be told.
    NotifyWatcher {
        worker: WorkerKey,
        attempt: AttemptKey,
        notice: Notice,
    },
    /// Forget a parked strand, which continues elsewhere or was cancelled.
    DropParked {
        worker: WorkerKey,
        task: TaskKey,
        moves: bool,
    },
    /// Nothing more can be recorded.
    JournalFailed,
    /// Compare two runs of a task.
    Compare(Box<Comparison>),
    /// A file of the store can go.
    DropObject(ciel_model::Name),
    /// Have objects take at most so many bytes of memory.
    ShrinkStore(u64),
    /// Objects may take so many bytes of memory.
    GrowStore(u64),
    /// Enough has happened to be written into history and trace.
    WriteHistory,
    /// A deadline may have changed, or all slots are free.
    Rearm,
    /// Report to the user.
    AttemptFailed {
        task: Label,
        failure: Arc<Failure>,
        left: u32,
    },
    /// Report to the user.
    TaskFailed { task: Label, failure: Arc<Failure> },
    /// The graph is done.
    JobEnded,
}
