//! What is said of tasks as they are requested: keys, classes, options.
//!
//! It does not know what a task runs. Read next: `descriptor`, which has all of one.

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::rare::Rare;
use crate::reference::Handle;
use crate::resources::Resources;
use crate::weights::Weights;

/// The engine's key of a task; never reused within a run.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct TaskKey(pub u64);

/// The engine's key of a strand: a chain of tail-spawned tasks; never reused within a run.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct StrandKey(pub u64);

/// Which try of a task this is, from 0. A message about an older one is stale and dropped.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Debug,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct AttemptNumber(pub u32);

/// How a task takes an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
pub enum InputMode {
    /// By its value: the task starts when the input is ready or has failed, and receives that.
    Value,
    /// By reference: the task starts without it, and waits for it by itself.
    Reference,
    /// As a stream: the task starts when the input is ready, has failed, or is an output that its
    /// running producer has opened. It ends only after that producer.
    Stream,
}

/// A reference that a task is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
pub struct Input {
    /// As its spawner names it.
    pub handle: Handle,
    /// How the task takes it.
    pub mode: InputMode,
}

impl Input {
    /// Given by value.
    pub fn value(handle: Handle) -> Input {
        let mode = InputMode::Value;
        Input { handle, mode }
    }

    /// Given as a stream.
    pub fn stream(handle: Handle) -> Input {
        let mode = InputMode::Stream;
        Input { handle, mode }
    }

    /// Given by reference.
    pub fn reference(handle: Handle) -> Input {
        let mode = InputMode::Reference;
        Input { handle, mode }
    }
}

/// Workers that can run each other's tasks.
#[derive(Clone, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
pub struct Pool {
    /// Whose tasks they run.
    pub executor: Arc<str>,
    /// Whole cores that each of them may use.
    pub cores: u32,
    /// They run nothing but tasks that another worker of the same kind has run before, for checks.
    pub is_apart: bool,
}

impl Pool {
    /// The workers of `executor` with so many cores each.
    pub fn new(executor: impl Into<Arc<str>>, cores: u32) -> Pool {
        let executor = executor.into();
        Pool {
            executor,
            cores,
            is_apart: false,
        }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.executor)?;
        if self.cores != 1 {
            write!(f, ":{}", self.cores)?;
        }
        match self.is_apart {
            true => f.write_str(" (checks)"),
            false => Ok(()),
        }
    }
}

/// How tasks of an executor are run.
#[derive(Clone, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
pub enum Class {
    /// On a thread of the engine: scripts and small internal work. They have slots of their own,
    /// as many as the machine has cores, so coordination never waits for computation.
    Coordination,
    /// One process for each task.
    Process,
    /// A worker process of that pool.
    Pooled(Pool),
}

impl Class {
    /// The same in a process that has not run such a task before.
    pub fn apart(&self) -> Class {
        match self {
            Class::Pooled(pool) => Class::Pooled(Pool {
                is_apart: true,
                ..pool.clone()
            }),
            Class::Coordination | Class::Process => self.clone(),
        }
    }
}

/// The options of a task.
#[derive(Clone, PartialEq, Eq, Debug, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct Options {
    /// What it needs of a machine.
    pub resources: Resources,
    /// How often it is retried after a failure of its own.
    pub retries: u32,
    /// Microseconds it may run, waiting not counted.
    pub timeout_us: Option<u64>,
    /// Runs only on demand.
    pub lazy: bool,
    /// Its output may go out while it runs.
    pub live: bool,
    /// Whether its result is kept for later runs; none if the run decides.
    pub keep: Option<bool>,
    /// How much the bytes of its inputs count when it is decided where it runs.
    pub weights: Rare<Weights>,
}

impl Options {
    /// Whether it has a limit of time or memory, for which its process may be killed.
    pub fn is_limited(&self) -> bool {
        self.timeout_us.is_some() || self.resources.memory_bytes.is_some()
    }
}

/// What a task has to do with results that are kept across runs.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Keeping {
    /// It has nothing to do with them.
    #[default]
    Never,
    /// Its result is kept, for a later run.
    Keeps,
    /// So, and it takes a kept result instead of running.
    Takes,
}

/// What is said about the effects of a task. Equal calls of a pure one share a result.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Purity {
    /// Its program declares that it has side effects: its results are never recomputed.
    Impure,
    /// Nothing: each call runs, once unless something fails.
    #[default]
    Unsaid,
    /// Nothing by its program, and its executor runs what is pure as a rule.
    Assumed,
    /// Its program declares that it is pure: it may run any number of times, and beside itself.
    Declared,
}

impl Purity {
    /// Of a task whose program declares it, or not; `is_assumed` is what its executor assumes.
    pub fn of(declared: Option<bool>, is_assumed: bool) -> Purity {
        match (declared, is_assumed) {
            (Some(false), _) => Purity::Impure,
            (Some(true), _) => Purity::Declared,
            (None, true) => Purity::Assumed,
            (None, false) => Purity::Unsaid,
        }
    }

    /// The same for a task whose result has one reader only, so that nobody can share it.
    pub fn unshared(self) -> Purity {
        match self {
            Purity::Impure => Purity::Impure,
            Purity::Unsaid | Purity::Assumed | Purity::Declared => Purity::Unsaid,
        }
    }

    /// Whether equal calls share one result.
    pub fn is_pure(self) -> bool {
        match self {
            Purity::Impure | Purity::Unsaid => false,
            Purity::Assumed | Purity::Declared => true,
        }
    }
}

impl Options {
    /// The default options but that output may go out while the task runs, one copy for all tasks.
    pub fn shared_live() -> Arc<Options> {
        static LIVE: LazyLock<Arc<Options>> = LazyLock::new(|| {
            Arc::new(Options {
                live: true,
                ..Options::default()
            })
        });
        LIVE.clone()
    }

    /// The default options, one copy for all tasks.
    pub fn shared_default() -> Arc<Options> {
        static DEFAULT: LazyLock<Arc<Options>> = LazyLock::new(Arc::default);
        DEFAULT.clone()
    }
}
