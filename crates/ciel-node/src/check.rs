//! Invariants, asserted after every event in debug builds and in simulation.

use ciel_model::TaskKey;

use crate::event::Slot;
use crate::node::Node;

impl Node {
    /// Asserts all invariants; linear in what is placed.
    pub fn check_all(&self) {
        let mut free = self.capacity.resources.clone();
        self.loan.take_from(&mut free);
        let mut threads = 0;
        for (attempt, placed) in &self.placed {
            match placed.slot {
                Slot::Thread => threads += 1,
                Slot::Process => free.take(&placed.resources),
                Slot::Worker(worker) => {
                    free.take(&placed.resources);
                    // A worker that has just died is already gone from the pool.
                    if let Some(worker) = self.pools.workers.get(&worker) {
                        assert!(worker.running.contains(attempt), "{attempt:?} runs there");
                    }
                }
            }
        }
        self.pools.check();
        assert_eq!(free, self.free, "free resources");
        assert_eq!(threads, self.threads_busy, "busy threads");
        assert!(
            threads <= self.capacity.threads,
            "more scripts than threads"
        );
        self.check_held();
        self.check_pairs();
        let busy = self.placed.values().filter(|placed| !placed.only_listens());
        assert!(
            !self.capacity.serial || busy.count() <= 1,
            "serial means one at a time"
        );
    }

    /// A strand is held for the worker that keeps it, and not while nothing else goes first there.
    fn check_held(&self) {
        for (key, worker) in &self.pools.workers {
            for (label, attempt) in &worker.held {
                let ready = self.queued.get(attempt);
                assert!(
                    ready.is_some_and(|ready| ready.label == *label),
                    "{attempt:?} is held"
                );
                assert_eq!(self.pools.home(attempt.task), Some(*key), "{attempt:?}");
            }
            let is_next = |task: &TaskKey| {
                let is_held = worker.held.iter().any(|(_, held)| held.task == *task);
                self.queued.contains_task(*task) && !is_held
            };
            let is_idle = self.pools.has_free_slot(*key) && !worker.held.is_empty();
            assert!(
                !is_idle || worker.parked.iter().any(is_next),
                "{key:?} is idle and holds strands"
            );
        }
    }
}
