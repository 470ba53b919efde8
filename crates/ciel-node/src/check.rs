//! Invariants, asserted after every event in debug builds and in simulation.

use crate::event::Slot;
use crate::node::Node;

impl Node {
    /// Asserts all invariants; linear in what is placed.
    pub fn check_all(&self) {
        let mut free = self.capacity.resources.clone();
        let mut threads = 0;
        for (attempt, placed) in &self.placed {
            match placed.slot {
                Slot::Thread => threads += 1,
                Slot::Process => free.take(&placed.resources),
                Slot::Worker(worker) => {
                    free.take(&placed.resources);
                    // A worker that has just died is already gone from the pool.
                    if let Some(worker) = self.pools.workers.get(&worker) {
                        assert!(
                            worker.running.contains(&attempt.task),
                            "{attempt:?} runs there"
                        );
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
        let busy = self.placed.values().filter(|placed| !placed.only_listens());
        assert!(
            !self.capacity.serial || busy.count() <= 1,
            "serial means one at a time"
        );
    }
}
