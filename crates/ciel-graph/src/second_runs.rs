//! What is known of second runs, and what two runs gave.
//!
//! It does not know how they come about. Read next: `duplicate`.

use std::collections::BTreeMap;
use std::sync::Arc;

use ciel_model::{AttemptNumber, Content, Digest, Failure, Form, Label, ObjectKey, Site, TaskKey};

/// Why a task runs a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Purpose {
    /// Both results are compared.
    Check,
    /// It runs for much longer than others of its function.
    Straggler,
}

/// What two runs of a pure task gave, as far as it is not known to be equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The task.
    pub task: Label,
    /// Where it was spawned.
    pub site: Site,
    /// Outputs that may differ: their numbers, and what each run gave.
    pub outputs: Vec<(u32, Given, Given)>,
    /// Digests of what the runs printed, if they differ.
    pub printed: Option<[Option<Digest>; 2]>,
    /// The failure of the second run, if that failed.
    pub failure: Option<Arc<Failure>>,
}

/// What a run gave as an output.
pub type Given = (Form, Content);

/// A second run, by the task that it repeats.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Duplicate {
    pub(crate) purpose: Purpose,
    pub(crate) label: Label,
    pub(crate) site: Site,
    /// The attempt of the first run when this one began.
    pub(crate) attempt: AttemptNumber,
    /// While it has not ended.
    pub(crate) task: Option<TaskKey>,
    /// Outputs of both runs that are compared, each held.
    pub(crate) outputs: Vec<(ObjectKey, ObjectKey)>,
    /// Outputs of the second run that are not compared; each is held.
    pub(crate) others: Vec<ObjectKey>,
    /// Digests of what the runs printed.
    pub(crate) printed: [Option<Digest>; 2],
    /// It was given a slot.
    pub(crate) is_placed: bool,
    /// The first run has ended well.
    pub(crate) is_committed: bool,
    /// How the second run failed, if it did.
    pub(crate) failure: Option<Arc<Failure>>,
}

/// All second runs.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Duplicates {
    pub(crate) of: BTreeMap<TaskKey, Duplicate>,
    /// What tasks that are second runs repeat.
    pub(crate) originals: BTreeMap<TaskKey, TaskKey>,
}

impl Duplicates {
    /// Whether that task is a second run.
    pub(crate) fn contains(&self, key: TaskKey) -> bool {
        self.originals.contains_key(&key)
    }

    /// Whether that task has a second run.
    pub(crate) fn has(&self, original: TaskKey) -> bool {
        self.of.contains_key(&original)
    }

    /// How many second runs have not ended.
    pub(crate) fn live(&self) -> usize {
        self.originals.len()
    }

    /// Objects that are held for them.
    pub(crate) fn held(&self) -> impl Iterator<Item = ObjectKey> {
        let pairs = self.of.values().flat_map(|one| &one.outputs);
        let pairs = pairs.flat_map(|(first, second)| [*first, *second]);
        pairs.chain(self.of.values().flat_map(|one| one.others.iter().copied()))
    }
}

impl Duplicate {
    /// All that is held for it, which it does not name any more.
    pub(crate) fn take_outputs(&mut self) -> Vec<ObjectKey> {
        let pairs = std::mem::take(&mut self.outputs).into_iter();
        let others = std::mem::take(&mut self.others);
        pairs
            .flat_map(|(first, second)| [first, second])
            .chain(others)
            .collect()
    }
}
