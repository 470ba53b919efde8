//! The language of a conversation: what happens to it, and what it wants done.
//!
//! Plain values; nothing is decided here. Read next: `host`, for what is answered at once.

use ciel_engine::{Begun, Notice};
use ciel_model::{Label, Name, Options, TaskKey};
use ciel_node::AttemptKey;
use ciel_protocol::wire::{EngineMessage, WorkerMessage};

/// Something that happens to a conversation.
#[derive(Clone, Debug)]
pub enum Input {
    /// The worker sent a message.
    Message {
        /// What it sent.
        message: Box<WorkerMessage>,
        /// Whether nothing more of it has come.
        is_last: bool,
    },
    /// The worker sent bytes that are no message, for that reason; or a message to it cannot be
    /// encoded.
    Invalid(String),
    /// The worker closed its connection, or its process has ended.
    Closed,
    /// The engine begins or resumes a task.
    Begin(Box<Begun>),
    /// The engine has ended an attempt that runs here.
    Stop(AttemptKey),
    /// A reference that a running attempt watches is resolved.
    Notify(AttemptKey, Notice),
    /// The engine does not want a parked strand any more.
    DropParked {
        /// Its task.
        task: TaskKey,
        /// Whether the task continues elsewhere; if not, it was cancelled.
        moves: bool,
    },
    /// An attempt, which may run here, has taken more room than there is for it.
    Overdrawn(Box<Overdrawn>),
    /// The engine does not want the worker any more.
    Dismiss,
    /// Time passed; see [`Conversation::next_deadline`](crate::Conversation::next_deadline).
    Ticked,
}

/// Something that has to be done. Effects are performed in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a message to the worker.
    Send(Box<EngineMessage>),
    /// Send the process the signal that goes with a `cancel`, after what was sent before.
    Interrupt,
    /// Tell people something about a task.
    Show(Label, Show),
    /// A task ended as it should: the executor works.
    TaskSucceeded,
    /// The conversation is over: no input changes anything. The worker is ended, and then
    /// [`Conversation::close`](crate::Conversation::close) says what became of its tasks.
    End(WorkerExitReason),
}

/// Something that people see of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    /// Whole lines of its standard error.
    ErrorLines(Vec<u8>),
    /// A remark.
    Info(String),
    /// A warning.
    Warning(String),
    /// Bytes to keep for `ciel logs`, and the name of their stream.
    Log(&'static str, Vec<u8>),
}

/// Why a conversation is over.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkerExitReason {
    /// The engine has no more use for the worker.
    Dismissed,
    /// The worker broke the protocol.
    Breach(String),
    /// The connection was closed.
    Died,
    /// The worker did not end a cancelled task in time.
    Overdue,
    /// A task that runs there has taken more room on the disk than there is for it.
    Overdrawn(Box<Overdrawn>),
    /// The process uses more memory, in bytes, than its tasks declared.
    TooLarge(u64),
}

/// An attempt that has taken more room on the disk than there is for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdrawn {
    /// The name of its task.
    pub task: Name,
    /// The tag of its start, which its files are named by.
    pub tag: u32,
    /// What the failure says.
    pub message: String,
    /// What the user can do.
    pub hint: String,
}

/// What is the same for all workers of a run.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The build of the engine, for people.
    pub build: String,
    /// Absolute path of the folder of the user's program.
    pub folder: String,
    /// Standard error is released in serial order, not live.
    pub ordered_errors: bool,
    /// What a spawn asks for that does not ask for anything.
    pub options: Options,
    /// Milliseconds that a task has to end after it was cancelled; its worker is killed then.
    pub kill_grace_ms: u32,
}
