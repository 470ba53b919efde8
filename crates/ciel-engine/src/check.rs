//! Invariants of what joins the machines; those of each machine are its own.

use ciel_node::Slot;

use crate::engine::Engine;

impl Engine {
    /// Asserts all invariants, those of graph and node as well; linear in what they hold.
    pub fn check_all(&self) {
        self.graph().check_all();
        self.node.check_all();
        for (run, slot) in &self.slots {
            let is_slow = slot.place == Slot::Thread && slot.is_preempted;
            assert!(
                is_slow || self.node.is_placed(*run),
                "{run:?} has a slot that the node does not know"
            );
        }
        for (worker, line) in &self.lines {
            line.check(*worker);
        }
    }
}
