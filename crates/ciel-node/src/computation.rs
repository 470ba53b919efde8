//! Which of the ready tasks that take resources get the free ones, and where.
//!
//! It goes through them in serial order, once or twice in a round. It does not know what they are
//! for. Read next: `caches`, which says whom a task lets go before it.

use ciel_model::{Class, Micros, limits};

use crate::event::{Action, Slot};
use crate::node::{Node, Ready, is_current};

impl Node {
    /// Places what fits, in the order of the lane; later tasks may overtake one that does not fit,
    /// but not for ever. First of all, one whose caches are in a worker that is busy lets one go
    /// whose are in a free one; then nothing waits for caches any more.
    pub(crate) fn place_computation(&mut self, now: Micros, actions: &mut Vec<Action>) {
        if self.pools.keep_caches() {
            self.place_in_order(now, true, actions);
        }
        self.place_in_order(now, false, actions);
    }

    /// `lets_go` is whether tasks are passed over that would be elsewhere, and all behind them that
    /// would not be here.
    fn place_in_order(&mut self, now: Micros, lets_go: bool, actions: &mut Vec<Action>) {
        let mut passed = Vec::new();
        while passed.len() < limits::BACKFILL_SCAN_MAX && self.may_overtake(passed.len()) {
            if self.free.millicores == 0 || (self.capacity.serial && self.is_busy()) {
                break;
            }
            let Some(entry) = self.computation.pop() else {
                break;
            };
            if !is_current(&self.queued, &entry) {
                continue;
            }
            let (_, attempt) = entry;
            let ready = self.queued.remove(&attempt).expect("it is in its queue");
            if self.busy_keeper(&ready).is_some() {
                self.enqueue(ready);
                continue;
            }
            let waits = lets_go && self.lets_others_go(&ready, passed.is_empty())
                || self.leaves_to_pairs(now, &ready);
            let slot = (!waits).then(|| self.place_for(now, &ready, &passed, actions));
            match slot.flatten() {
                Some(slot) => {
                    self.settle(&ready, slot, actions);
                    self.keep_for_reader(now, &ready);
                    self.overtaken = if passed.is_empty() {
                        0
                    } else {
                        self.overtaken + 1
                    };
                }
                None => passed.push(ready),
            }
        }
        if !lets_go {
            passed.retain(|ready| !self.refuses(ready, actions));
            self.share_memory(now, &passed, actions);
        }
        for ready in passed {
            self.enqueue(ready);
        }
    }

    fn may_overtake(&self, passed: usize) -> bool {
        passed == 0 || self.overtaken < limits::OVERTAKEN_MAX
    }

    /// A slot for a task now, if any; requests a worker if one is lacking. Those in `passed` come
    /// before it and could not be placed.
    fn place_for(
        &mut self,
        now: Micros,
        ready: &Ready,
        passed: &[Box<Ready>],
        actions: &mut Vec<Action>,
    ) -> Option<Slot> {
        if !self.free.holds(&ready.need.resources) {
            return None;
        }
        match &ready.need.class {
            Class::Pooled(pool) => {
                let room = (self.free.millicores / ready.need.resources.millicores.max(1)).max(1);
                // No more of them count than there is room for, and there may be many.
                let same = passed
                    .iter()
                    .filter(|other| other.need.class == ready.need.class)
                    .take(room as usize);
                let wanting = (same.count() + 1).min(room as usize);
                let worker = self.worker_for(now, pool, ready, wanting, actions)?;
                Some(Slot::Worker(worker))
            }
            Class::Process | Class::Coordination => Some(Slot::Process),
        }
    }
}
