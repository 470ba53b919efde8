//! Tasks that have begun inside the ones that spawned them, and are to take over their slots.
//!
//! The node reserves such a task for the worker until its parent parks. If the parent leaves its
//! slot otherwise, or is stopped, or its worker is gone, the task is a ready one like any other. It
//! does not know how a worker runs one task inside another. Read next: `succession`.

use ciel_node::{self as node, AttemptKey, Slot, WorkerKey};

use super::Site;

impl Site {
    /// A task that was offered has begun inside `parent`, if that still runs.
    pub(super) fn reserve_in(&mut self, parent: AttemptKey, attempt: AttemptKey) {
        let slot = self.slots.get(&parent).filter(|slot| !slot.is_stopping);
        let Some(Slot::Worker(worker)) = slot.map(|slot| slot.slot) else {
            return;
        };
        let is_followed = self.followers.values().any(|before| *before == parent);
        if is_followed || !self.lines.contains_key(&worker) || self.begun.contains_key(&parent) {
            return;
        }
        self.begun.insert(parent, attempt);
        self.for_node.push_back(node::Event::TaskReserved {
            attempt,
            inside: parent,
        });
    }

    /// What has begun inside an attempt does not take over its slot: it is ready.
    pub(super) fn return_begun(&mut self, parent: AttemptKey) {
        if let Some(attempt) = self.begun.remove(&parent) {
            self.for_node.push_back(node::Event::TaskUnreserved {
                attempt,
                inside: parent,
            });
        }
    }

    /// The same of all that has begun in a worker, which is gone.
    pub(super) fn return_begun_in(&mut self, worker: WorkerKey) {
        let is_there = |parent: &&AttemptKey| self.slot_of(**parent) == Some(Slot::Worker(worker));
        let mut parents: Vec<AttemptKey> = self.begun.keys().filter(is_there).copied().collect();
        parents.sort_unstable();
        for parent in parents {
            self.return_begun(parent);
        }
    }
}
