//! The interface of a running script to its host.
//!
//! The machine emits spawns like any other SDK; it does not know who runs them. Read next:
//! `machine`.

use std::sync::Arc;

use bytes::Bytes;

/// A reference as one task sees it: an index into the task's table, like a file descriptor.
///
/// Numbering is a contract: the handles `0..n` are the references the task was given; each spawn
/// adds its outputs at the next numbers, in order. What is delivered to the task inside an
/// [`Answer`] is numbered by the host, from [`Handle::DELIVERED_MIN`] on. A child that the machine
/// keeps (see [`Keeping`]) has a number from [`Handle::KEPT_MIN`] on, which the host never sees.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Handle(pub u32);

impl Handle {
    /// Handles of a task's own are below this, and below [`Handle::KEPT_MIN`].
    pub const DELIVERED_MIN: u32 = 1 << 31;
    /// Handles of what only the machine knows are from here on.
    pub const KEPT_MIN: u32 = 1 << 30;
}

/// References side by side in a table: number `i` in the bytes that name them is `first + i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct References {
    /// The handle of the first.
    pub first: Handle,
    /// How many.
    pub count: u32,
}

impl References {
    /// No references.
    pub const NONE: References = References::given(0);

    /// So many references that a task was given.
    pub const fn given(count: u32) -> References {
        let first = Handle(0);
        References { first, count }
    }

    pub(crate) fn handles(self) -> impl Iterator<Item = Handle> {
        (self.first.0..self.first.0 + self.count).map(Handle)
    }
}

/// What becomes of a spawned function without options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// The host runs it.
    Promoted,
    /// The machine keeps it as a call that it runs when its value is needed, and promotes it when
    /// somebody else can run it.
    Kept,
    /// The machine keeps it and never promotes it: so it was in a run that the task repeats.
    Sealed,
}

/// What a script wants to have run.
#[derive(Debug, Clone, PartialEq)]
pub struct SpawnRequest {
    /// The index of the spawn among the task's actions. Those of kept children are left out.
    pub action: u64,
    /// What to run.
    pub work: Work,
    /// The references that `work` names by index, in order; the child's handles `0..n`.
    pub references: Vec<Handle>,
    /// Number of outputs; 1 for a function.
    pub outputs: u32,
    /// A dictionary of options as JSON, with names and types checked: `cores`, `memory`, `retries`,
    /// `timeout`, `lazy`, `name`, `pure`, `live`, `gpu`; `Null` for none.
    pub options: serde_json::Value,
    /// Name for messages: the function, or the executor.
    pub label: Arc<str>,
    /// Line of the spawn, from 1.
    pub line: u32,
    /// File of the spawn.
    pub file: Arc<str>,
}

/// The kinds of work a script can spawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// A call of a function of this program: bytes for
    /// [`Machine::for_call`](crate::machine::Machine::for_call).
    Call(Vec<u8>),
    /// A task of another executor, with its arguments as JSON in which reference number `i` of
    /// [`SpawnRequest::references`] is spelt `{"$ref": i}` (a user's own key that begins with `$`
    /// is spelt with one more `$`).
    Executor {
        /// Its name.
        executor: String,
        /// Its arguments.
        arguments: serde_json::Value,
    },
}

/// The surroundings of a running script.
pub trait Host {
    /// What becomes of the spawn of a function that is the task's action of that index. A host that
    /// does not say so lets the machine keep none.
    fn keeping(&mut self, _action: u64) -> Keeping {
        Keeping::Promoted
    }

    /// Whether a thread is idle that could run a child of those that the machine keeps. A host
    /// without threads has none.
    fn has_idle_thread(&self) -> bool {
        false
    }

    /// Takes a request; its outputs get the next handles. The order of calls is program order.
    fn spawn(&mut self, request: SpawnRequest);

    /// Takes the result of a child that the machine kept, as an object that gets the next handle: a
    /// part of the task's action of that index.
    ///
    /// # Errors
    /// The text of why it cannot be stored. A host that lets the machine keep none is never asked.
    fn construct(
        &mut self,
        _action: u64,
        _bytes: Vec<u8>,
        _references: Vec<Handle>,
    ) -> Result<(), String> {
        Err("nothing can be stored here".to_owned())
    }

    /// Ordered standard output, after so many actions.
    fn print(&mut self, actions: u64, line: &str);

    /// Text at the end of the ordered file at a path, after so many actions; none only opens it.
    ///
    /// # Errors
    /// The file cannot be used. A host without files refuses each.
    fn append(&mut self, _actions: u64, path: &str, _text: &str) -> Result<(), RefusedFile> {
        Err(RefusedFile {
            message: format!("{path} cannot be opened: there are no ordered files here"),
            hint: "run the script with `ciel run`".to_string(),
        })
    }

    /// The handle of the object that the job was given under `name`: the next number of the table,
    /// or a number that it already has there. What it makes is a part of the task's action of that
    /// index.
    ///
    /// # Errors
    /// There is no such package, or its file cannot be used. A host without packages knows none.
    fn package(&mut self, _action: u64, _name: &str) -> Result<Handle, NoPackage> {
        Err(NoPackage::Unknown)
    }

    /// The first digits of the task that made the object of that name, for messages: a task which
    /// this script has spawned, and not too long ago. The answer is the same in a replay.
    fn maker(&self, _object: &str) -> Option<String> {
        None
    }
}

/// An ordered file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedFile {
    /// Why, with its path.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// Why a script cannot have a package.
#[derive(Debug, Clone, PartialEq)]
pub enum NoPackage {
    /// The job was given none of that name.
    Unknown,
    /// Its file cannot be used, for this reason.
    Unusable(String),
}

/// The resolution of a reference, passed to the machine before it resumes.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A Skywriting value as made by a task that finished.
    Value {
        /// What [`Ended::value`](crate::machine::Ended::value) gave.
        bytes: Bytes,
        /// The references it names, delivered to the task with it.
        references: References,
    },
    /// A JSON value (what a task in another language returned) with `{"$ref": i}` in it.
    Json {
        /// JSON text.
        bytes: Bytes,
        /// The references it names, delivered to the task with it.
        references: References,
    },
    /// Plain bytes of an executor, at most 16 MiB: the JSON value they spell, or `text()` of them.
    Bytes {
        /// The object's name for messages, shown when the job's result is not text.
        name: String,
        /// All of them.
        bytes: Bytes,
    },
    /// Plain bytes that are too many for a script. A strict use is an error with a hint; in the
    /// job's result it appears as `{"object": name, "bytes": n}`.
    Large {
        /// The object's name for messages.
        name: String,
        /// How many.
        bytes: u64,
    },
    /// The task that should have made it failed.
    Error(Thrown),
}

/// A failure as scripts see it: what `catch` binds.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Thrown {
    /// `TaskError`, `Cancelled`, `Timeout`, `OutOfMemory`, `WorkerLost`, … .
    pub kind: String,
    /// What happened.
    pub message: String,
    /// The label of the failed task; empty when it is this one.
    pub task: String,
    /// One line per call or task, innermost first.
    pub trace: Vec<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The value of a `throw` statement as JSON, if that is what failed.
    pub value: Option<serde_json::Value>,
}
