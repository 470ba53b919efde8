//! Reports of the engine to the user: they go into the rings, which the input/output thread
//! empties.
//!
//! It does not know what is made of it. Read next: `history`, `moments`.

use ciel_graph::{Happening, TaskSummary};
use ciel_node::Slot;

use super::{Core, Order};

impl Core {
    /// Something happened to a task while an observer watches.
    pub(super) fn note(&mut self, happening: Box<Happening>, slot: Option<Slot>) {
        if self.moments.add(happening, slot) {
            self.order(Order::WriteHistory);
        }
    }

    /// A task ended.
    pub(super) fn summarise(&mut self, summary: Box<TaskSummary>) {
        if let Some(failure) = summary.failure.clone() {
            let task = summary.label.clone();
            self.order(Order::TaskFailed { task, failure });
        }
        if let Some(reason) = &summary.rerun {
            self.reruns.add(&summary.label.what, reason);
        }
        if self.history.task_ended(summary) {
            self.order(Order::WriteHistory);
        }
    }
}
