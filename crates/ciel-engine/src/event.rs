//! The language of the engine: events, callers, replies and effects.
//!
//! Plain values; nothing is decided here. Read next: `engine`.

use std::sync::Arc;

use ciel_graph::{
    self as graph, Ahead, Assignment, Comparison, Happening, JobOutcome, TaskSummary,
};
use ciel_model::{
    Content, Descriptor, Failure, Form, Label, Name, Pool, StrandKey, TaskKey, WaitEnd,
};
use ciel_node::{AttemptKey, Slot, WorkerKey};

use crate::message::{Answers, Known, Notice};

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Something that leaves all slots as they are, unless an attempt thereby begins to wait.
    Graph(graph::Event),
    /// An attempt in a worker spawns a task that has begun inside it, and is to take over its slot
    /// when it parks. It needs the same pool and resources.
    SpawnedBegun(graph::Event),
    /// An attempt has left its slot.
    TurnEnded {
        /// The attempt.
        attempt: AttemptKey,
        /// How it ended; nothing if the graph ended it, or knows.
        end: Option<graph::Event>,
    },
    /// A thread starts a task that [`Effect::TurnOffered`] has offered.
    TurnTaken {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// A script has used up its fuel and waits for another turn.
    TaskPreempted {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// A worker can run tasks.
    WorkerReady {
        /// The worker.
        worker: WorkerKey,
        /// It can begin prefetched starts by itself; then it has one slot.
        prefetches: bool,
        /// How many tasks it runs at once; at least 1.
        slots: u32,
    },
    /// A worker keeps something of objects beside its tasks; which tasks suit it therefore is said
    /// with their offers.
    WorkerCaches {
        /// The worker.
        worker: WorkerKey,
        /// Objects of which it keeps something from now on, with their lengths in bytes.
        held: Vec<(Name, u64)>,
        /// Objects of which it keeps nothing any more.
        dropped: Vec<Name>,
    },
    /// A worker gets no new task; it resumes what is parked in it.
    WorkerRetired {
        /// The worker.
        worker: WorkerKey,
    },
    /// A worker's process is gone, with what was parked in it. What ran in it is ended apart.
    WorkerGone {
        /// The worker.
        worker: WorkerKey,
    },
    /// Prefetched starts will not begin where they were sent; nor will those behind them.
    PrefetchReturned {
        /// The worker.
        worker: WorkerKey,
        /// The attempts.
        attempts: Vec<AttemptKey>,
    },
    /// A process that was sent to follow another one has not begun, and will not.
    ProcessReturned {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// Output was taken, and the frontier may have moved.
    FrontierMoved {
        /// It stands before what is not final.
        rests: bool,
    },
    /// A process has written so many bytes by now that become output when it has ended well.
    ProcessWrote {
        /// The attempt.
        attempt: AttemptKey,
        /// All of them.
        bytes: u64,
    },
    /// What a process writes is not read any more; see
    /// [`Engine::must_pause`](crate::Engine::must_pause).
    ProcessPaused {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// The root, which keeps its slot, spawns no more before it is told that few of its children
    /// have not ended.
    ChildrenAwaited {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// The store takes at most so many bytes of memory from now on: the answer to
    /// [`Effect::ShrinkStore`], when it can give back no more at present.
    StoreShrank {
        /// All that it may take.
        bytes: u64,
    },
    /// Something was freed of the memory that the store has without an object in it.
    StoreFreed,
    /// Time passed; see [`Engine::next_deadline`](crate::Engine::next_deadline).
    Ticked,
}

impl From<graph::Event> for Event {
    fn from(event: graph::Event) -> Event {
        Event::Graph(event)
    }
}

/// Who submits an event, and so receives the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A caller that runs no task: effects alone say which attempts begin.
    Nobody,
    /// A thread of scripts.
    Thread,
    /// The conversation with a worker.
    Worker {
        /// The worker. What begins in it because of the event is in the reply.
        worker: WorkerKey,
        /// The prefetched attempt that it has begun already, if its turn has ended so.
        follows: Option<AttemptKey>,
        /// Whether nothing more of it has come: otherwise it may have begun all that it was sent.
        is_last: bool,
    },
    /// A process whose turn has ended, and where another one has begun already.
    Process {
        /// The attempt that has begun, which was sent before.
        follows: AttemptKey,
    },
}

/// What the caller has to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Nothing: it continues if its turn has not ended.
    Nothing,
    /// All that it waits for is ready: it continues at once.
    Continue {
        /// What became of what it waits for.
        answers: Answers,
        /// How the wait ended, if that depends on time.
        ended: Option<WaitEnd>,
    },
    /// It waits, and its slot is free.
    Suspended,
    /// The graph has ended its attempt, and its slot is free: nothing of it is kept.
    Stopped,
    /// What it has begun by itself is not to run. The slot of the attempt before stays taken until
    /// that one's `TurnEnded` comes once more, when the worker has stopped.
    FollowerStopped,
    /// Its turn has ended or waits, if it had one, and this attempt begins in its slot.
    Begin(Box<Begun>),
    /// The resolutions of all that the earlier run had requested.
    Recalled(Known),
}

/// An attempt that begins in a slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    /// What to run.
    pub assignment: Box<Assignment>,
    /// Starts for the same worker, each to follow the one before it.
    pub ahead: Vec<Ahead>,
}

/// A task whose result may have been kept by an earlier run.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultQuery {
    /// The attempt, which waits for the answer.
    pub attempt: AttemptKey,
    /// Its strand.
    pub strand: StrandKey,
    /// The label of the task.
    pub label: Label,
    /// Number of actions of the strand before it.
    pub after: u64,
    /// What it would run.
    pub descriptor: Arc<Descriptor>,
    /// What it is given, in order.
    pub inputs: Vec<(Form, Content)>,
}

/// What has to be done. Effects are performed in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A task waits for a thread, which submits `TurnTaken` when it starts the task.
    TurnOffered {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// A preempted script has its next turn.
    NextTurn {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// The state of a script that waits or was preempted is not wanted any more.
    DropScript {
        /// The task.
        task: TaskKey,
    },
    /// Look up whether the result of a task was kept by an earlier run.
    FindResult(Box<ResultQuery>),
    /// Run a task in a process of its own. If it was sent before, it begins now.
    StartProcess(Box<Assignment>),
    /// End that process and everything it started.
    StopProcess(AttemptKey),
    /// Have the process of a task begin as soon as another one exits with 0 that [`passes_on`] its
    /// slot, the first that was sent first. The end of that one names it as [`Caller::Process`]. If
    /// it cannot begin it is returned, see [`Event::ProcessReturned`].
    ///
    /// [`passes_on`]: crate::passes_on
    SendProcess(Box<Assignment>),
    /// What was sent is not to begin. It is returned, unless it has begun meanwhile.
    WithdrawProcess(AttemptKey),
    /// A process that has begun where another one has ended is to run on.
    ProcessFollowed(Box<Assignment>),
    /// Read on what that process writes, which was paused.
    ReadOn(AttemptKey),
    /// Start a worker.
    StartWorker {
        /// Its key.
        worker: WorkerKey,
        /// Its pool.
        pool: Pool,
    },
    /// End a worker that has nothing to do.
    StopWorker {
        /// The worker.
        worker: WorkerKey,
    },
    /// Run a task in that worker.
    StartInWorker {
        /// The worker.
        worker: WorkerKey,
        /// The task.
        begun: Box<Begun>,
    },
    /// End a task that runs in that worker.
    StopInWorker {
        /// The worker.
        worker: WorkerKey,
        /// The attempt.
        attempt: AttemptKey,
    },
    /// Have the store take at most so many bytes of memory, or as few as it can, and submit
    /// [`Event::StoreShrank`] then.
    ShrinkStore {
        /// All that it is to take.
        bytes: u64,
    },
    /// The store may take so many bytes of memory from now on.
    GrowStore {
        /// All that it may take.
        bytes: u64,
    },
    /// Tell a task that runs in that worker what it has asked to be told.
    NotifyWatcher {
        /// The worker.
        worker: WorkerKey,
        /// The attempt.
        attempt: AttemptKey,
        /// What is the case now.
        notice: Notice,
    },
    /// The answer to a request of an attempt of this site, if its home is in another process.
    ReplyLate {
        /// The attempt.
        attempt: AttemptKey,
        /// What it has to do.
        reply: Reply,
    },
    /// Starts that may follow an attempt in its worker, if the home is in another process.
    SendStarts {
        /// The worker.
        worker: WorkerKey,
        /// The attempt.
        attempt: AttemptKey,
        /// Each follows the one before it, and what the worker has received already.
        starts: Vec<Ahead>,
    },
    /// A worker can forget a parked strand.
    DropParked {
        /// The worker.
        worker: WorkerKey,
        /// The task.
        task: TaskKey,
        /// Whether the task continues elsewhere; if not, it was cancelled.
        moves: bool,
    },
    /// No one can name this object any more; its file can go.
    DropObject(Name),
    /// [`Engine::next_deadline`](crate::Engine::next_deadline) has changed.
    DeadlineMoved,
    /// An attempt failed and will be retried.
    AttemptFailed {
        /// The task.
        task: Label,
        /// Its failure.
        failure: Arc<Failure>,
        /// Retries left.
        left: u32,
        /// The action to which its strand is rolled back; `None` if the retry repeats all of them.
        to: Option<u64>,
    },
    /// Something happened to a task while an observer watches.
    Happened {
        /// The moment, and the task that it belongs to.
        happening: Box<Happening>,
        /// Where the task runs, if it does.
        slot: Option<Slot>,
    },
    /// Compare what two runs of a task gave, whose files are there until the next effect.
    Compare(Box<Comparison>),
    /// A task ended.
    TaskEnded(Box<TaskSummary>),
    /// The job is over.
    JobEnded(Box<JobOutcome>),
    /// The job is over, and no task is in its slot any more.
    Quiet,
}

/// The attempt that an assignment is for.
pub(crate) fn attempt_of(assignment: &Assignment) -> AttemptKey {
    AttemptKey {
        task: assignment.task,
        number: assignment.attempt,
    }
}
