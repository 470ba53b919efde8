//! How many tasks there were of each function: exact, bounded by the number of functions.
//!
//! It does not know single tasks. Read next: `graph`, which counts.

use std::sync::Arc;

use ciel_model::limits;
use rustc_hash::FxHashMap;

use crate::task::Task;

/// What functions are counted as that come after too many others.
const OTHERS: &str = "(other functions)";

/// How many tasks there were of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FunctionCounts {
    /// Tasks spawned.
    pub spawned: u64,
    /// Tasks that ended well, with a result of their own, of an equal call, or of a successor.
    pub finished: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Lazy tasks whose outputs cannot be demanded any more.
    pub unneeded: u64,
}

impl FunctionCounts {
    /// Tasks that are over.
    pub fn ended(&self) -> u64 {
        self.finished + self.failed + self.cancelled + self.unneeded
    }
}

/// The counts of all functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Functions(FxHashMap<Arc<str>, FunctionCounts>);

impl Functions {
    pub(crate) fn on_spawned(&mut self, what: &Arc<str>) {
        self.change(what, |counts| counts.spawned += 1);
    }

    pub(crate) fn on_unneeded(&mut self, task: &Task) {
        self.change(&task.descriptor.what, |counts| counts.unneeded += 1);
    }

    /// A second run of a task is no task more.
    pub(crate) fn on_duplicate_ended(&mut self, task: &Task) {
        self.change(&task.descriptor.what, |counts| counts.spawned -= 1);
    }

    /// A task that stands in for one which has ended is no task more,
    pub(crate) fn on_stand_in(&mut self, task: &Task) {
        self.change(&task.descriptor.what, |counts| counts.spawned -= 1);
    }

    /// unless it is to run: then that task has not ended.
    pub(crate) fn on_stand_in_needed(&mut self, task: &Task) {
        self.change(&task.descriptor.what, |counts| counts.finished -= 1);
    }

    /// `cancelled` is `None` for a task that ended well.
    pub(crate) fn on_ended(&mut self, task: &Task, cancelled: Option<bool>) {
        self.change(&task.descriptor.what, |counts| match cancelled {
            None => counts.finished += 1,
            Some(false) => counts.failed += 1,
            Some(true) => counts.cancelled += 1,
        });
    }

    /// All of them, in no order.
    pub(crate) fn all(&self) -> Vec<(Arc<str>, FunctionCounts)> {
        let counts = self.0.iter();
        counts
            .map(|(what, counts)| (what.clone(), *counts))
            .collect()
    }

    fn change(&mut self, what: &Arc<str>, change: impl FnOnce(&mut FunctionCounts)) {
        // A key is only made for a new one.
        if let Some(counts) = self.0.get_mut(what) {
            return change(counts);
        }
        let key = match self.0.len() < limits::FUNCTIONS_COUNTED_MAX {
            true => what.clone(),
            false => OTHERS.into(),
        };
        change(self.0.entry(key).or_default());
    }
}
