//! The language of the node: what happens to it, and what it wants done.
//!
//! Plain values; nothing is decided here. Read next: `node`.

use ciel_model::{AttemptNumber, Class, Micros, OrderLabel, Pool, Resources, TaskKey};
use serde::{Deserialize, Serialize};

/// One attempt of one task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct AttemptKey {
    /// The task.
    pub task: TaskKey,
    /// The attempt.
    pub attempt: AttemptNumber,
}

/// The node's key of a pooled worker process; never reused within a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct WorkerKey(pub u64);

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A task may run as soon as there is a place.
    TaskOffered {
        /// Which.
        run: AttemptKey,
        /// Its place in the serial order.
        label: OrderLabel,
        /// How it is run.
        class: Class,
        /// What it needs; nothing is taken for coordination.
        resources: Resources,
        /// It ran before, so a live copy of it may be parked in a worker: microseconds that it
        /// would run to come there again, more than all if it cannot.
        resumed: Option<Micros>,
    },
    /// The place of an offered task in the serial order has another label now.
    TaskRelabeled {
        /// Which.
        run: AttemptKey,
        /// Its label; an older one than the known one changes nothing.
        label: OrderLabel,
    },
    /// It is not to be run any more.
    TaskWithdrawn {
        /// Which.
        run: AttemptKey,
    },
    /// A placed task is over, or suspended; its place is free.
    TaskLeft {
        /// Which.
        run: AttemptKey,
        /// Its live copy stays in its worker.
        parked: bool,
    },
    /// A placed task is over, and its worker has gone on by itself with one that is ready now: that
    /// one has its place.
    TaskFollowed {
        /// Which is over.
        run: AttemptKey,
        /// Which has begun; it was lent to that worker, or is in no queue.
        next: AttemptKey,
    },
    /// What was lent to a worker has not begun there, and is ready as before.
    TaskReturned {
        /// Which.
        run: AttemptKey,
    },
    /// A script has used up its turn and wants another.
    TaskPreempted {
        /// Which.
        run: AttemptKey,
    },
    /// A parked strand is not wanted any more.
    TaskForgotten {
        /// Which task.
        task: TaskKey,
    },
    /// A worker said hello, or is free after its task left.
    WorkerReady {
        /// Which.
        worker: WorkerKey,
    },
    /// A worker is used up: it gets no new task, goes on with what is parked in it, and ends after
    /// the last of that.
    WorkerRetired {
        /// Which.
        worker: WorkerKey,
    },
    /// A worker process is gone, with what was parked in it.
    WorkerGone {
        /// Which.
        worker: WorkerKey,
    },
    /// Time passed; see [`next_deadline`](crate::Node::next_deadline).
    Ticked,
}

/// What the shell has to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// The task has its place.
    Slot {
        /// Which.
        run: AttemptKey,
        /// Where.
        place: Slot,
    },
    /// A preempted script has its next turn.
    NextTurn {
        /// Which.
        run: AttemptKey,
    },
    /// No machine of this size can ever run it.
    Refuse {
        /// Which.
        run: AttemptKey,
        /// What is lacking, in words.
        lacking: String,
    },
    /// A worker process is wanted.
    StartWorker {
        /// Its key.
        worker: WorkerKey,
        /// Its pool.
        pool: Pool,
    },
    /// A worker process is not wanted any more.
    StopWorker {
        /// Which.
        worker: WorkerKey,
    },
    /// The live copy of a task that is not wanted any more can go.
    DropParked {
        /// Where it is.
        worker: WorkerKey,
        /// Which task.
        task: TaskKey,
    },
    /// The live copy of a suspended task went with its worker.
    ContinuationLost {
        /// Which task.
        task: TaskKey,
    },
}

/// Where a task runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Slot {
    /// A thread of the engine.
    Thread,
    /// A process of its own.
    Process,
    /// That worker.
    Worker(WorkerKey),
}
