//! What goes in through the graph's door and what comes out.

use std::sync::Arc;

use bytes::Bytes;
use ciel_model::{
    ActionKey, AttemptNumber, Descriptor, Fact, Failure, Handle, Label, Micros, Name, ObjectKey,
    OrderLabel, Resolution, Site, StrandKey, TaskKey, Value, WaitEnd, limits,
};

use crate::story::Moment;

/// What happened. Events about an attempt that is over are stale and change nothing.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Event {
    /// Somebody submits a program; the root's outputs are kept until the job ends.
    RootSubmitted {
        /// The root's name: the position everything else hangs from.
        name: Name,
        /// The root task; it has no inputs.
        descriptor: Descriptor,
    },
    /// A place has been found for a ready task.
    TaskPlaced {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
    },
    /// A running task did something that others can see.
    TaskStepped {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
        /// What.
        step: Step,
    },
    /// A running task can go no further before what it waits for is there. It thereby asks for
    /// all of `on`.
    TaskBlocked {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
        /// Handles it still uses, which become 0, 1, …; those of a strand that is saved become
        /// delivered ones, and its own go on where they were. `None` keeps the table as it is.
        kept: Option<Vec<Handle>>,
        /// What it waits for, in the new numbering; nothing for [`Until::Rest`].
        on: Vec<Handle>,
        /// When its waiting ends.
        wait: Wait,
        /// How it goes on.
        continuation: Continuation,
        /// The state it is in here, from which any thread or worker could go on, any number of
        /// times: if the strand is run again, then from here.
        checkpoint: Option<Checkpoint>,
    },
    /// A running task wants to be told when something is there, and goes on. It thereby asks for
    /// it. What it watches when its turn ends is forgotten.
    TaskWatched {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
        /// What it watches.
        handle: Handle,
    },
    /// A running task came to its end.
    TaskFinished {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
        /// One for each output that was not published before, in order.
        outputs: Vec<Output>,
        /// Whether it wrote anything to its ordered output: then equal calls do not share it.
        printed: bool,
    },
    /// A running task ends by handing its outputs to a successor on the same strand.
    TaskTailSpawned {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
        /// The successor, with as many outputs.
        descriptor: Descriptor,
        /// Actions of the strand so far, also those of which nothing was told.
        after: u64,
    },
    /// An attempt failed by itself.
    TaskFailed {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
        /// Why.
        failure: Failure,
    },
    /// The worker of a running attempt is gone; the strand is replayed if it can be.
    TaskLost {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
        /// What to tell if it cannot.
        failure: Failure,
    },
    /// A task that was begun again from its start, and has done nothing yet, wants to be told what
    /// is known of all that it had asked for.
    TaskRecalled {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
    },
    /// The process that ran everything is gone with all its workers; another one goes on, with
    /// this policy.
    EngineLost {
        /// What a failure does from now on.
        policy: Policy,
        /// Files of objects that are gone too; they are made again.
        lost: Vec<Name>,
    },
    /// The live copy of a suspended strand is gone.
    ContinuationLost {
        /// Which.
        task: TaskKey,
    },
    /// Somebody cancels a task and everything beneath it.
    CancelRequested {
        /// Which.
        task: TaskKey,
    },
    /// Somebody ends the whole job.
    JobCancelled {
        /// What the job's failure is then.
        failure: Failure,
    },
    /// Time passed; see [`crate::Graph::next_deadline`].
    Ticked,
    /// A ready task asks for more than there is: it fails without having begun.
    TaskRefused {
        /// The task.
        task: TaskKey,
        /// The attempt that was offered.
        attempt: AttemptNumber,
        /// What it asks for.
        failure: Failure,
    },
    /// What a strand did from some action on is undone, and the strand is run again; see
    /// [`crate::Graph::rollback_min`].
    TaskRolledBack {
        /// The task that the strand is at.
        task: TaskKey,
        /// The first action that is undone.
        to: u64,
    },
}

/// A visible act of a running task, in program order.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Step {
    /// A new task.
    Spawn {
        /// Which action this is.
        action: u64,
        /// The handle of its first output; the others follow it.
        first: Handle,
        /// The task.
        descriptor: Descriptor,
    },
    /// New data.
    Construct {
        /// Which action this is, or a part of which.
        at: ActionKey,
        /// Its handle.
        handle: Handle,
        /// The data.
        value: Value<Handle>,
    },
    /// New data, which is an output before the task ends.
    Publish {
        /// Which action this is, or a part of which.
        at: ActionKey,
        /// Its handle.
        handle: Handle,
        /// Which output.
        index: u32,
        /// The data.
        value: Value<Handle>,
    },
    /// The environment was asked and answered.
    Input {
        /// Which action this is, or a part of which.
        at: ActionKey,
        /// What was asked.
        kind: Arc<str>,
        /// The answer.
        value: Bytes,
    },
}

/// What a finished task gives for one output.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Output {
    /// The object itself.
    Value(Value<Handle>),
    /// Whatever that reference becomes.
    Delegate(Handle),
    /// It was published before.
    Published,
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
        self.until != Until::All || self.limit_us.is_some()
    }
}

/// How a suspended strand goes on.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Continuation {
    /// A live copy is kept by the shell.
    Live,
    /// The program is run again from its start with its recorded facts.
    Replay,
    /// A state that any worker of the executor can take up.
    Saved(Bytes),
}

/// A state of a strand that waits.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Checkpoint {
    /// The state, as the executor understands it.
    pub state: Bytes,
    /// Handles it names, in its own numbering: they will be the table of a strand that goes on
    /// from here. What it waits for is among them.
    pub kept: Vec<Handle>,
}

/// What the shell has to do. Actions are performed in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The task may run as soon as there is a place for it.
    Offer {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
        /// What it needs.
        descriptor: Arc<Descriptor>,
        /// Its place in the serial order.
        label: OrderLabel,
        /// It was running before, so a live copy may be somewhere: microseconds that its strand
        /// would run to come to the same point again, more than all if it cannot be replayed.
        replay_us: Option<Micros>,
    },
    /// The place in the serial order of a task that was offered has another label now.
    Relabel {
        /// The task.
        task: TaskKey,
        /// The attempt that was offered.
        attempt: AttemptNumber,
        /// Its label.
        label: OrderLabel,
    },
    /// A ready task is not to be run any more.
    Withdraw {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
    },
    /// Run it, now, where it was placed.
    Begin(Box<Assignment>),
    /// It asked for what is there already: go on.
    Continue {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
        /// What is there of what it asked for, in order.
        answers: Vec<(Handle, Resolution)>,
        /// How its wait ended, if that depends on time.
        ended: Option<WaitEnd>,
    },
    /// What is known now of all that a task that was begun again had asked for.
    Recalled {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
        /// Each with what became of it. What the earlier run made has its handle of then.
        known: Vec<(Handle, Resolution)>,
    },
    /// What a running task watched is there, be it as a failure.
    Notify {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
        /// What.
        handle: Handle,
    },
    /// It waits; its place is free.
    Suspend {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
    },
    /// A running or suspended attempt is over for the graph: end it and whatever it started.
    Stop {
        /// Which.
        task: TaskKey,
        /// Which attempt.
        attempt: AttemptNumber,
    },
    /// Something about the ordered output of a strand.
    Strand(StrandChange),
    /// No one can name this object any more; its file can go.
    DropObject(Name),
    /// An attempt failed and will be tried again.
    AttemptFailed {
        /// Who.
        task: Label,
        /// Why.
        failure: Arc<Failure>,
        /// Retries left.
        left: u32,
    },
    /// Something happened to a task; only if somebody watches, and after all that was done about
    /// the same event.
    Happened(Box<Happening>),
    /// A task ended; for the history, whose bound is the shell's.
    Ended(Box<TaskSummary>),
    /// The job is over.
    JobEnded(Box<JobOutcome>),
}

/// A change in the tree of ordered output, in program order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrandChange {
    /// A root.
    Root(StrandKey),
    /// A child stands at this point of its parent's output.
    Spawned {
        /// The parent.
        parent: StrandKey,
        /// Which action of the parent it is.
        action: u64,
        /// The child.
        child: StrandKey,
        /// Its output may be released before it commits.
        live: bool,
    },
    /// An attempt's output is final so far.
    Committed(StrandKey),
    /// Nothing more comes from it.
    Closed(StrandKey),
    /// It will not be finished: the serial output ends here.
    Discarded(StrandKey),
    /// It has no place in the output.
    Skipped(StrandKey),
    /// If it is run again, then from here.
    Marked(StrandKey),
    /// It will be run again from its start or its last mark. What came from its action `to` on is
    /// withdrawn, as far as it is not released; what came before must come again.
    RolledBack {
        /// Which strand.
        strand: StrandKey,
        /// The first action that is undone; [`StrandChange::NOTHING`] for a mere replay.
        to: u64,
    },
    /// Its failed attempt's uncommitted output is dropped.
    Withdrawn(StrandKey),
}

impl StrandChange {
    /// As `to` of a rollback: no action is undone.
    pub const NOTHING: u64 = u64::MAX;
}

/// Everything a shell needs to run an attempt.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Assignment {
    /// Which task.
    pub task: TaskKey,
    /// Which attempt.
    pub attempt: AttemptNumber,
    /// Its strand.
    pub strand: StrandKey,
    /// As people call it.
    pub label: Label,
    /// The name of its strand, from which the names of what it makes come.
    pub position: Name,
    /// The index of its next action.
    pub next_action: u64,
    /// The first handle of its own that it has not given out.
    pub next_handle: Handle,
    /// What to run.
    pub descriptor: Arc<Descriptor>,
    /// How to enter it.
    pub entry: Entry,
    /// How its wait ended, if it waited and that depends on time; a replay finds it in its facts.
    pub ended: Option<WaitEnd>,
}

impl Assignment {
    /// Bytes of memory past which the attempt is ended, if its task has declared what it needs.
    pub fn memory_limit(&self) -> Option<u64> {
        let declared = self.descriptor.options.resources.memory_bytes?;
        Some(declared.saturating_add(declared / 100 * limits::MEMORY_EXCESS_PERCENT))
    }
}

/// How an attempt is entered.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Entry {
    /// From its start; with what is known of its inputs (all of them if it needs them).
    Start(Vec<(Handle, Resolution)>),
    /// From its start, with the facts of the time before.
    Replay {
        /// Its inputs.
        inputs: Vec<(Handle, Resolution)>,
        /// What happened, in order.
        facts: Vec<Fact>,
    },
    /// From saved bytes; what it did after that is compared with what it does.
    Restore {
        /// The state.
        bytes: Bytes,
        /// What is there of what it waited for.
        answers: Vec<(Handle, Resolution)>,
        /// What happened after that, in order.
        facts: Vec<Fact>,
    },
    /// The live copy, with what is there of what it waited for.
    Resume(Vec<(Handle, Resolution)>),
}

/// How the job ended.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOutcome {
    /// The root's first output as (name, object), or the job's failure.
    pub result: Result<(Name, Value<ObjectKey>), Arc<Failure>>,
    /// Every failure of a task whose error nobody handled, earliest in serial order first.
    pub failures: Vec<Arc<Failure>>,
}

/// Something that happened to a task, for those who watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// When.
    pub at: Micros,
    /// To which task.
    pub task: TaskKey,
    /// In which attempt; after a loss or a retry, the next one.
    pub attempt: AttemptNumber,
    /// The task as people call it.
    pub label: Label,
    /// The task that spawned it.
    pub parent: Option<Name>,
    /// Which executor.
    pub executor: Arc<str>,
    /// What.
    pub moment: Moment,
}

/// A task that ended, for the history.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSummary {
    /// Who.
    pub label: Label,
    /// Which executor.
    pub executor: Arc<str>,
    /// Where it was spawned.
    pub site: Site,
    /// Who spawned it.
    pub parent: Option<Label>,
    /// How often it was begun.
    pub attempts: u32,
    /// What happened to it.
    pub story: Vec<(Micros, Moment)>,
    /// Why it failed, if it did.
    pub failure: Option<Arc<Failure>>,
    /// Microseconds it ran, waiting not counted.
    pub ran_us: Micros,
}

/// What a failure does to the rest of the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Policy {
    /// All spawned work finishes, whatever fails.
    pub keep_going: bool,
    /// The first failed task in time ends the job.
    pub fail_fast: bool,
}
