//! The language of the node: what happens to it, and what it wants done.
//!
//! Plain values; nothing is decided here. Read next: `node`.

use ciel_model::{
    AttemptNumber, Class, Micros, Name, Near, OrderLabel, Pairing, Pool, Resources, TaskKey,
};
use serde::{Deserialize, Serialize};

/// One attempt of one task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct AttemptKey {
    /// The task.
    pub task: TaskKey,
    /// Which try of it.
    pub number: AttemptNumber,
}

/// The node's key of a pooled worker process; never reused within a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct WorkerKey(pub u64);

/// What stays in a worker of a task that has left its slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kept {
    /// The task has ended, or its state is kept elsewhere.
    Nothing,
    /// Its live copy, until all that it waits for is resolved.
    Copy,
    /// Its live copy, until something happens that it wants to know at once: the first of several
    /// references is resolved, or its time is over.
    TimelyCopy,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A task may run as soon as there is a slot.
    TaskOffered {
        /// The attempt.
        attempt: AttemptKey,
        /// Its place in the serial order.
        label: OrderLabel,
        /// How it is run.
        class: Class,
        /// What it needs; nothing is taken for coordination.
        resources: Resources,
        /// It ran before, so a live copy of it may be parked in a worker: microseconds that its
        /// replay would run; more than all if it is not to be replayed while that copy lives.
        resumed: Option<Micros>,
        /// It is the root of the job.
        is_root: bool,
        /// It has a limit for which its worker may be killed.
        is_limited: bool,
        /// Objects that it names: a worker that keeps something made of them suits it best.
        near: Box<[Near]>,
        /// Which direct streams it reads or writes.
        pairing: Pairing,
    },
    /// The reader of what an offered or placed task will write directly waits for that only.
    ReaderWaits {
        /// The producer.
        producer: AttemptKey,
    },
    /// The place of an offered task in the serial order has another label now.
    TaskRelabeled {
        /// The attempt.
        attempt: AttemptKey,
        /// Its label; an older one than the known one changes nothing.
        label: OrderLabel,
    },
    /// An offered task is not to run any more.
    TaskWithdrawn {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// A placed task is to stop. A worker may be killed for it, so nothing more begins or resumes
    /// there before it has left.
    TaskStopping {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// A placed task is over, or suspended; its slot is free.
    TaskLeft {
        /// The attempt.
        attempt: AttemptKey,
        /// What stays of it in its worker.
        kept: Kept,
    },
    /// A task that was offered has begun inside a placed one: it is reserved for the worker of
    /// that, if it needs the same pool and resources.
    TaskReserved {
        /// The attempt that was offered.
        attempt: AttemptKey,
        /// The placed attempt that spawned it.
        inside: AttemptKey,
    },
    /// A task that has begun inside a placed one does not take over its slot: it is ready as
    /// before, if it was reserved.
    TaskUnreserved {
        /// The attempt that was offered.
        attempt: AttemptKey,
        /// The placed attempt that spawned it.
        inside: AttemptKey,
    },
    /// A placed task is over or suspended, and its worker has begun by itself one that is ready
    /// now: that one has its slot.
    TaskFollowed {
        /// The attempt that is over or suspended.
        attempt: AttemptKey,
        /// The attempt that has begun; it was reserved for that worker, or is in no queue. After a
        /// suspended one it has the slot only if it is reserved.
        next: AttemptKey,
        /// What stays of the first one in the worker.
        kept: Kept,
    },
    /// What was reserved for a worker has not begun there, and is ready as before.
    TaskReturned {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// A script has used up its turn and wants another.
    TaskPreempted {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// A parked strand is not wanted any more.
    TaskForgotten {
        /// The task.
        task: TaskKey,
    },
    /// A worker has sent `hello`.
    WorkerReady {
        /// The worker.
        worker: WorkerKey,
        /// How many tasks it runs at once; at least 1.
        slots: u32,
    },
    /// A worker has said of which objects it keeps what it has made of them.
    WorkerCaches {
        /// The worker.
        worker: WorkerKey,
        /// Objects of which it keeps something from now on, with their lengths in bytes.
        held: Vec<(Name, u64)>,
        /// Objects of which it keeps nothing any more.
        dropped: Vec<Name>,
    },
    /// A worker gets no new task, resumes what is parked in it, and ends after the last of that.
    WorkerRetired {
        /// The worker.
        worker: WorkerKey,
    },
    /// A worker process is gone, with what was parked in it.
    WorkerGone {
        /// The worker.
        worker: WorkerKey,
    },
    /// The store takes at most so many bytes of memory from now on: the answer to
    /// [`Action::ShrinkStore`], when it can give back no more at present.
    StoreShrank {
        /// All that it may take.
        bytes: u64,
    },
    /// What the store could not give back it perhaps can by now.
    StoreFreed,
    /// Time passed; see [`next_deadline`](crate::Node::next_deadline).
    Ticked,
}

/// What has to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// The task has a slot.
    Place {
        /// The attempt.
        attempt: AttemptKey,
        /// Its slot.
        slot: Slot,
    },
    /// A preempted script has its next turn.
    NextTurn {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// No machine of this size can ever run it.
    Refuse {
        /// The attempt.
        attempt: AttemptKey,
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
        /// The worker.
        worker: WorkerKey,
    },
    /// The live copy of a task is not wanted any more.
    DropParked {
        /// The worker that keeps it.
        worker: WorkerKey,
        /// The task.
        task: TaskKey,
        /// Whether the task continues elsewhere; if not, it was cancelled.
        moves: bool,
    },
    /// The live copy of a suspended task went with its worker.
    ContinuationLost {
        /// The task.
        task: TaskKey,
    },
    /// A task waits for memory that the store has: it is to take no more than so many bytes, and to
    /// say when it does, or when it can give back no more.
    ShrinkStore {
        /// All that it is to take.
        bytes: u64,
    },
    /// The store may take so many bytes of memory from now on.
    GrowStore {
        /// All that it may take.
        bytes: u64,
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
