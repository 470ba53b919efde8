//! What workers keep of objects beside their tasks, so that tasks go where it is.
//!
//! A worker that has decoded an object keeps the copy, and says so. A task that names the object
//! suits that worker best: of free workers it gets that one, and when only others are free it lets
//! tasks go first whose caches are in those. It never waits while a slot is left over, and nothing
//! is overtaken for ever, so caches change where and in which order tasks begin, and nothing else.
//! The weight of a cache is the length of the object, times the one that the task gives it. It does
//! not know what is kept. Read next:
//! `computation`.

use ciel_model::{Class, Name, Near, limits, weigh};

use crate::event::WorkerKey;
use crate::node::{Node, Ready};
use crate::pool::{Pools, Worker};

impl Worker {
    /// Bytes of those objects of which it keeps something, each times its weight for the task.
    pub(crate) fn weight(&self, near: &[Near]) -> u64 {
        let lengths = near.iter().filter_map(|near| {
            let length = self.caches.get(&near.object)?;
            Some(weigh(*length, near.percent))
        });
        lengths.fold(0, u64::saturating_add)
    }
}

impl Pools {
    /// Whether any worker keeps anything.
    pub(crate) fn keep_caches(&self) -> bool {
        self.caches > 0
    }

    /// A worker keeps something of some objects, and nothing of others any more. What is beyond the
    /// bound is not heeded.
    pub(crate) fn on_caches(&mut self, key: WorkerKey, held: Vec<(Name, u64)>, dropped: &[Name]) {
        let Some(worker) = self.workers.get_mut(&key) else {
            return;
        };
        let before = worker.caches.len();
        for name in dropped {
            worker.caches.remove(name);
        }
        let room = limits::CACHES_MAX.saturating_sub(worker.caches.len());
        worker.caches.extend(held.into_iter().take(room));
        self.caches = self.caches + worker.caches.len() - before;
    }
}

impl Node {
    /// Whether a worker keeps anything.
    pub fn keeps_caches(&self, worker: WorkerKey) -> bool {
        let worker = self.pools.workers.get(&worker);
        worker.is_some_and(|worker| !worker.caches.is_empty())
    }

    /// Whether a task is to let those behind it go that suit a free worker better: its caches are
    /// in a worker that is busy. One that is not the first lets others go, unless a free worker
    /// suits it best.
    pub(crate) fn lets_others_go(&self, ready: &Ready, is_first: bool) -> bool {
        let (free, all) = self.weights(ready);
        match is_first {
            true => all > free,
            false => free == 0 || all > free,
        }
    }

    /// Whether that worker suits a task as well as any other does.
    pub(crate) fn suits(&self, worker: WorkerKey, ready: &Ready) -> bool {
        let (_, all) = self.weights(ready);
        let weight = self.pools.workers.get(&worker);
        weight.map_or(0, |worker| worker.weight(&ready.need.near)) >= all
    }

    /// The weight of what a free worker keeps for a task at most, and of what any worker does.
    fn weights(&self, ready: &Ready) -> (u64, u64) {
        let (mut free, mut all) = (0, 0);
        let Class::Pooled(pool) = &ready.need.class else {
            return (free, all);
        };
        let is_alike = !self.pools.keep_caches() || ready.need.near.is_empty();
        if is_alike || self.pools.home(ready.task).is_some() {
            return (free, all);
        }
        let same = self.pools.workers.values();
        for worker in same.filter(|worker| worker.pool == *pool && worker.is_counted()) {
            let weight = worker.weight(&ready.need.near);
            all = weight.max(all);
            if worker.is_open() {
                free = weight.max(free);
            }
        }
        (free, all)
    }
}
