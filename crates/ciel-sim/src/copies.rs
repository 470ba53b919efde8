//! Live copies of strands that wait, and the oracle about those that are gone.
//!
//! While the process of a copy lives, its strand is resumed and not replayed, unless its task is
//! pure or a fault undoes what it did. It does not know how a strand is entered. Read next:
//! `driver`.

use std::collections::{BTreeMap, BTreeSet};

use ciel_model::TaskKey;
use ciel_node::{Slot, WorkerKey};

use crate::script::Script;

/// The live copies of one world.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    parked: BTreeMap<TaskKey, (Script, Slot)>,
    /// Strands whose copies the engine dropped although their processes lived.
    dropped: BTreeSet<TaskKey>,
    /// Strands that were rolled back since they began or resumed.
    undone: BTreeSet<TaskKey>,
    /// Strands of pure tasks that were replayed although their processes lived.
    pub(crate) moved: u64,
}

impl Copies {
    pub(crate) fn park(&mut self, task: TaskKey, script: Script, place: Slot) {
        self.parked.insert(task, (script, place));
    }

    /// The engine does not want a copy any more.
    pub(crate) fn drop_one(&mut self, task: TaskKey) {
        if self.parked.remove(&task).is_some() {
            self.dropped.insert(task);
        }
    }

    /// The engine has ended an idle worker.
    pub(crate) fn on_worker_stopped(&mut self, worker: WorkerKey) {
        for task in self.kept_in(worker) {
            self.drop_one(task);
        }
    }

    /// A worker has died.
    pub(crate) fn on_worker_died(&mut self, worker: WorkerKey) {
        for task in self.kept_in(worker) {
            self.parked.remove(&task);
        }
    }

    fn kept_in(&self, worker: WorkerKey) -> Vec<TaskKey> {
        let place = Slot::Worker(worker);
        let kept = self.parked.iter().filter(|(_, (_, at))| *at == place);
        kept.map(|(task, _)| *task).collect()
    }

    /// What a strand did is undone from some action on.
    pub(crate) fn undo(&mut self, task: TaskKey) {
        self.undone.insert(task);
    }

    /// A strand begins or resumes; gives its copy, if there is one.
    pub(crate) fn take(&mut self, task: TaskKey) -> Option<Script> {
        self.parked.remove(&task).map(|(script, _)| script)
    }

    /// The strand whose copy was asked for has begun or gone on; `is_replay` if not with that copy.
    pub(crate) fn check(&mut self, task: TaskKey, is_replay: bool, is_pure: bool) {
        let (dropped, undone) = (self.dropped.remove(&task), self.undone.remove(&task));
        if is_replay && dropped && !undone {
            assert!(is_pure, "{task:?} is replayed although its process lives");
            self.moved += 1;
        }
    }

    /// Nothing that ran is there any more.
    pub(crate) fn clear(&mut self) {
        let moved = self.moved;
        *self = Copies {
            moved,
            ..Copies::default()
        };
    }
}
