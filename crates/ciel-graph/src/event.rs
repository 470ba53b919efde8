//! The events that the graph takes and the actions that it returns.

use std::sync::Arc;

use bytes::Bytes;
use ciel_model::{
    ActionKey, AttemptNumber, Audit, Content, Descriptor, Fact, Failure, Form, Handle, Label,
    Micros, Mode, Name, Near, OrderLabel, Pairing, RerunReason, Resolution, Site, StrandKey,
    TaskKey, Value, WaitEnd, limits,
};

pub use crate::checkpoint::Checkpoint;
pub use crate::outcome::JobOutcome;
pub use crate::policy::Policy;
use crate::second_runs::Comparison;
use crate::story::{Happening, Moment};
pub use crate::strand_change::StrandChange;

/// An input of the graph. An event about an attempt that has ended is stale and changes nothing.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Event {
    /// A program is submitted; the root's outputs are kept until the job ends.
    RootSubmitted {
        /// The root's name, from which the names of all other tasks follow.
        name: Name,
        /// The root task; it has no inputs.
        descriptor: Arc<Descriptor>,
    },
    /// A ready task got a slot.
    TaskPlaced {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
    },
    /// A running task acted on the graph.
    TaskStepped {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
        /// Its act.
        step: Step,
    },
    /// A running task waits until references are resolved. It thereby demands all of `on`.
    TaskBlocked {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
        /// Handles that it still uses, which become 0, 1, …; those of a strand that is saved become
        /// delivered ones, and the numbering of its own continues. `None` keeps the table
        /// unchanged.
        kept: Option<Vec<Handle>>,
        /// What it waits for, in the new numbering; nothing for [`Until::Rest`], and for
        /// [`Wait::ALL`] of a strand that yields its slot to earlier ones.
        on: Vec<Handle>,
        /// The condition that ends the wait.
        wait: Wait,
        /// How it resumes.
        continuation: Continuation,
        /// Its state at this wait, from which any thread or worker can resume it, any number of
        /// times: a replay starts from here.
        checkpoint: Option<Box<Checkpoint>>,
    },
    /// A running task asks to be notified when a reference is resolved, and continues. It thereby
    /// demands the reference. At the end of its turn it stops watching all references.
    TaskWatched {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
        /// The reference that it watches.
        handle: Handle,
    },
    /// A running task succeeded.
    TaskFinished {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
        /// One for each output that was not published before, in order.
        outputs: Vec<Output>,
        /// Whether it wrote to its ordered output: then equal calls do not share its result.
        printed: bool,
        /// What it was seen to do; none if nobody watched it.
        audit: Option<Arc<Audit>>,
    },
    /// A running task ends by delegating all of its outputs to a successor on the same strand.
    TaskTailSpawned {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
        /// The successor, with as many outputs.
        descriptor: Arc<Descriptor>,
        /// Number of the strand's actions so far, with those that were left out.
        after: u64,
        /// What it was seen to do; none if nobody watched it.
        audit: Option<Arc<Audit>>,
    },
    /// An attempt failed.
    TaskFailed {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
        /// The cause.
        failure: Box<Failure>,
    },
    /// The worker of a running attempt is gone; the strand is replayed if it can be.
    TaskLost {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
        /// The task's failure if it cannot be replayed.
        failure: Box<Failure>,
    },
    /// A task that is replayed from its start, and has not acted yet, requests the resolutions of
    /// all references that it had demanded, by the handles that it had chosen. A strand that makes
    /// its table smaller without being saved must not request them: its handles mean others then.
    TaskRecalled {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
    },
    /// The engine's process is gone with all of its workers; another process resumes the run.
    EngineLost {
        /// What a failure does to the job from now on.
        policy: Policy,
        /// Names of objects whose files are missing; they are recomputed.
        lost: Vec<Name>,
    },
    /// The live copy of a suspended strand is gone.
    ContinuationLost {
        /// The task.
        task: TaskKey,
    },
    /// A request to cancel a task and all of its descendants.
    CancelRequested {
        /// The task.
        task: TaskKey,
    },
    /// A request to cancel the whole job.
    JobCancelled {
        /// The failure that the job then has.
        failure: Box<Failure>,
    },
    /// Time passed; see [`crate::Graph::next_deadline`].
    Ticked,
    /// A ready task requests more resources than the machine has: it fails before it starts.
    TaskRefused {
        /// The task.
        task: TaskKey,
        /// The attempt that was offered.
        attempt: AttemptNumber,
        /// The failure, which names the resource.
        failure: Box<Failure>,
    },
    /// A strand is rolled back to one of its actions and replayed; see
    /// [`crate::Graph::rollback_min`].
    TaskRolledBack {
        /// The current task of the strand.
        task: TaskKey,
        /// The first action that is undone.
        to: u64,
    },
    /// An earlier run has kept the result of a task that was looked up.
    ResultFound {
        /// The task.
        task: TaskKey,
        /// The attempt that was looked up.
        attempt: AttemptNumber,
        /// Its outputs, in order; they contain no references.
        outputs: Vec<Value<Handle>>,
        /// Whether it prints anything; that was written before.
        printed: bool,
    },
    /// There is no kept result of a task that was looked up.
    ResultMissing {
        /// The task.
        task: TaskKey,
        /// The attempt that was looked up.
        attempt: AttemptNumber,
        /// The reason, for users.
        reason: Box<RerunReason>,
    },
    /// An earlier run has kept the result of a task that was looked up, but some of the bytes are
    /// gone: the task has ended, and runs if they are needed.
    ResultKnown {
        /// The task.
        task: TaskKey,
        /// The attempt that was looked up.
        attempt: AttemptNumber,
        /// Its outputs, in order; they contain no references. Files are only described.
        outputs: Vec<Value<Handle>>,
        /// Whether it prints anything; that was written before.
        printed: bool,
    },
    /// Files of objects are gone or have changed while the run lives; they are recomputed. What
    /// failed for want of them says so by itself: see [`crate::Graph::handle`].
    FilesLost {
        /// Names of the files.
        lost: Vec<Name>,
    },
}

/// An act of a running task, in program order.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Step {
    /// The task spawns a child.
    Spawn {
        /// The index of the action.
        action: u64,
        /// The handle of its first output; the others follow it.
        first: Handle,
        /// The child.
        descriptor: Arc<Descriptor>,
    },
    /// The task stores an object.
    Construct {
        /// The action, or the part of one.
        at: ActionKey,
        /// The handle that the task gives the object.
        handle: Handle,
        /// The content of the object.
        value: Value<Handle>,
    },
    /// New data, which is an output before the task ends.
    Publish {
        /// The action, or the part of one.
        at: ActionKey,
        /// The handle that the task gives the object.
        handle: Handle,
        /// The index of the output.
        index: u32,
        /// The content of the object.
        value: Value<Handle>,
    },
    /// The task observed its environment, and records the answer.
    Input {
        /// The action, or the part of one.
        at: ActionKey,
        /// The kind of the observation, such as a clock.
        kind: Arc<str>,
        /// The recorded answer.
        value: Bytes,
    },
    /// The task uses these handles no more, nor does a replay of it from here on. What nobody else
    /// holds is dropped, unless a replay receives it because the task has demanded it. Handles that
    /// the task does not have, or has released, are ignored.
    Release {
        /// The handles.
        handles: Vec<Handle>,
    },
    /// An output may be read from now on by those that take it as a stream. It is opened before any
    /// reader starts, and may be passed directly to one that has started and has read nothing.
    OpenOutput {
        /// The index of the output.
        index: u32,
        /// The way that its bytes take.
        carriage: Carriage,
    },
    /// The process of the task has opened a stream again of which it had read. The task restarts,
    /// and takes its streams when they are whole.
    ReadWhole,
}

/// One output of a finished task.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Output {
    /// The object itself.
    Value(Value<Handle>),
    /// The output is whatever the reference becomes.
    Delegate(Handle),
    /// The output was published before.
    Published,
    /// The output went directly to its single reader; its bytes are not stored.
    Passed,
}

/// The way that the bytes of an open output take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Carriage {
    /// They are stored; each reader reads what is stored by then.
    Stored,
    /// They go to the one reader, and are not stored.
    Direct,
}

/// For how much a task waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Until {
    /// All references are resolved.
    #[default]
    All,
    /// One of them is.
    First,
    /// One of the last list of which the first was waited for, beside those that were given since.
    /// Such a block lists nothing.
    Rest,
    /// Nothing: those that are not resolved are cancelled, unless another task holds them, too. The
    /// wait ends at once with the places of those that are cancelled by now. It demands nothing.
    Cancelled,
    /// All references are resolved. Small values of the handles behind them, as far as they are
    /// resolved, come with the answers: the strand probably asks for them next.
    AllAndLater,
}

impl Until {
    /// Whether it ends when all references are resolved, and not before.
    pub fn is_all(self) -> bool {
        matches!(self, Until::All | Until::AllAndLater)
    }
}

/// When a wait for references ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Wait {
    /// With what.
    pub until: Until,
    /// After so many microseconds, whatever is resolved.
    pub limit_us: Option<Micros>,
    /// Where in the strand the end is, if it depends on time; the graph records it.
    pub at: ActionKey,
}

impl Wait {
    /// When all are resolved, however long that takes.
    pub const ALL: Wait = Wait {
        until: Until::All,
        limit_us: None,
        at: ActionKey {
            action: 0,
            part: None,
        },
    };

    /// Whether what ends the wait depends on time.
    pub fn is_timely(&self) -> bool {
        !self.until.is_all() || self.limit_us.is_some()
    }
}

/// How a suspended strand resumes.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Continuation {
    /// From a live copy that the shell keeps.
    Live,
    /// By a replay from its start, with its recorded facts.
    Replay,
    /// From a state that any worker of the executor can restore.
    Saved(Bytes),
}

/// A request to the shell. Actions are performed in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The task is ready: it may run as soon as it gets a slot.
    Offer {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
        /// What to run, and its resources.
        descriptor: Arc<Descriptor>,
        /// Its position in the serial order.
        label: OrderLabel,
        /// The cost of a replay, if it ran before and may have a live copy: microseconds that its
        /// strand would run to reach its wait; `Micros::MAX` if it is not to be replayed while that
        /// copy lives.
        replay_us: Option<Micros>,
        /// It is the root of the job.
        is_root: bool,
        /// Files that it takes as references: it may use what a worker has made of them before.
        near: Box<[Near]>,
        /// Which direct streams it reads or writes.
        pairing: Pairing,
    },
    /// The reader of what an offered or placed task will write directly waits for that only.
    ReaderWaits {
        /// The producer.
        task: TaskKey,
        /// The number of its attempt.
        attempt: AttemptNumber,
    },
    /// Look up whether an earlier run has kept the result of a task: [`Event::ResultFound`],
    /// [`Event::ResultKnown`] or [`Event::ResultMissing`] answers.
    FindResult {
        /// The task.
        task: TaskKey,
        /// The attempt that is offered if there is none.
        attempt: AttemptNumber,
        /// Its strand.
        strand: StrandKey,
        /// The label of the task.
        label: Label,
        /// Number of actions of the strand before it.
        after: u64,
        /// What it would run.
        descriptor: Arc<Descriptor>,
        /// What it is given, in order.
        inputs: Vec<(Form, Content)>,
    },
    /// The position of an offered task has another order label now.
    Relabel {
        /// The task.
        task: TaskKey,
        /// The attempt that was offered.
        attempt: AttemptNumber,
        /// Its label.
        label: OrderLabel,
    },
    /// A ready task must not run any more.
    Withdraw {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
    },
    /// Start the attempt, in the slot that it got.
    Begin(Box<Assignment>),
    /// All that the task waits for is resolved: it continues in its slot.
    Continue {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
        /// The resolutions of the awaited references, in order.
        answers: Vec<(Handle, Resolution)>,
        /// How the wait ended, if that depends on time.
        ended: Option<WaitEnd>,
    },
    /// The answer to [`Event::TaskRecalled`].
    Recalled {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
        /// The references with their resolutions; those that the earlier run constructed or
        /// spawned keep their handles.
        known: Vec<(Handle, Resolution)>,
    },
    /// A reference that a running task watches is resolved, or has failed.
    Notify {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
        /// The watched reference.
        handle: Handle,
    },
    /// The task waits; its slot is free.
    Suspend {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
    },
    /// A running or suspended attempt has ended for the graph: stop it and what it started.
    Stop {
        /// The task.
        task: TaskKey,
        /// The number of the attempt.
        attempt: AttemptNumber,
    },
    /// A change of the tree of ordered output.
    Strand(StrandChange),
    /// No more of the children that a strand has spawned are unfinished than
    /// [`Graph::count_children`](crate::Graph::count_children) says.
    FewChildren {
        /// The strand.
        strand: StrandKey,
    },
    /// No holder of this object is left: remove its file.
    DropObject(Name),
    /// An attempt failed and will be retried.
    AttemptFailed {
        /// The task.
        key: TaskKey,
        /// The label of the task.
        task: Label,
        /// The cause.
        failure: Arc<Failure>,
        /// The number of retries left.
        left: u32,
        /// The action to which its strand is rolled back; `None` if the retry repeats all of them.
        to: Option<u64>,
    },
    /// Two runs of a task gave what may differ.
    Compare(Box<Comparison>),
    /// A transition of a task, for observers if there are any; after all other actions.
    Happened(Box<Happening>),
    /// A task ended; for the history, which the shell bounds.
    Ended(Box<TaskSummary>),
    /// The job has ended.
    JobEnded(Box<JobOutcome>),
}

/// All that a shell needs to run an attempt.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Assignment {
    /// The task.
    pub task: TaskKey,
    /// The number of the attempt.
    pub attempt: AttemptNumber,
    /// The strand of the task.
    pub strand: StrandKey,
    /// The label that messages show.
    pub label: Label,
    /// The name of its strand, from which the names of its children and objects follow.
    pub position: Name,
    /// The index of its next action.
    pub next_action: u64,
    /// The first handle of its own that is unused.
    pub next_handle: Handle,
    /// What to run.
    pub descriptor: Arc<Descriptor>,
    /// How the attempt starts or resumes.
    pub entry: Entry,
    /// Inputs that are not resolved: it reads them while they are written.
    pub streams: Vec<StreamInput>,
    /// How its wait ended, if it waited and that depends on time; a replay finds it in its facts.
    pub ended: Option<WaitEnd>,
}

impl Assignment {
    /// The bytes of memory at which the attempt is killed, if its task declares memory.
    pub fn memory_limit(&self) -> Option<u64> {
        let declared = self.descriptor.options.resources.memory_bytes?;
        Some(declared.saturating_add(declared / 100 * limits::MEMORY_EXCESS_PERCENT))
    }
}

/// An input that a task reads while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StreamInput {
    /// Which input it is.
    pub input: Handle,
    /// The name of the object that it will be.
    pub name: Name,
    /// The mode that both ends ask for.
    pub mode: Mode,
}

/// How an attempt starts or resumes.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Entry {
    /// From its start; with the resolutions of its inputs, all of them if it takes them by value.
    Start(Vec<(Handle, Resolution)>),
    /// By replay from its start, with the facts that it recorded.
    Replay {
        /// The resolutions of its inputs.
        inputs: Vec<(Handle, Resolution)>,
        /// Its facts, in order.
        facts: Vec<Fact>,
        /// The index behind the last action that it cannot do in another way: a fact or output
        /// belongs to it, or a value was given up behind it. What it did before that without a fact
        /// was known to nobody else, and has to stay so.
        until: u64,
    },
    /// From saved bytes, then by replay of the facts after them.
    Restore {
        /// The saved state.
        bytes: Bytes,
        /// The resolutions of the awaited references.
        answers: Vec<(Handle, Resolution)>,
        /// Its facts after the saved state, in order.
        facts: Vec<Fact>,
    },
    /// From its live copy, with the resolutions of the awaited references.
    Resume(Vec<(Handle, Resolution)>),
}

/// An ended task, for the history.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSummary {
    /// The label of the task.
    pub label: Label,
    /// The executor of the task.
    pub executor: Arc<str>,
    /// The line of the program that spawned it.
    pub site: Site,
    /// The label of the task that spawned it.
    pub parent: Option<Label>,
    /// The number of attempts that started.
    pub attempts: u32,
    /// The last of them, where those count that started again with others.
    pub last: AttemptNumber,
    /// Its transitions, with their times.
    pub story: Vec<(Micros, Moment)>,
    /// The failure, if it failed.
    pub failure: Option<Arc<Failure>>,
    /// The time for which it ran, without its waits.
    pub ran_us: Micros,
    /// Why no kept result was used for it, if one was looked up.
    pub rerun: Option<RerunReason>,
}
