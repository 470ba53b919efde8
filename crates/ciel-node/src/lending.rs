//! Ready tasks that are lent to a busy worker, which begins them by itself when its task ends, or
//! has begun them inside its task; or to whoever starts processes, as soon as one has ended.
//!
//! So a slot does not wait for the engine between short tasks. Reserved tasks are the first in
//! serial order, need the resources of the running task, and are a small share of the queue, so
//! that other workers find enough. They can be returned at any time. When one has begun, it takes
//! over the slot. It does not know how a worker receives a start. Read next: `node`.

use ciel_model::{Class, OrderLabel, Pairing};

use crate::event::{Action, AttemptKey, Kept, Slot, WorkerKey};
use crate::node::{Node, Placed, Ready, is_current};

/// Of the tasks that wait, one in so many may be lent to a worker, for each slot.
const WAITING_FOR_EACH: usize = 2;

/// A ready task in no queue: a worker, or who starts processes, may begin it by itself.
#[derive(Clone, Debug)]
pub(crate) struct Lent {
    ready: Box<Ready>,
    /// The worker that has it; none if it is to begin in a process of its own.
    worker: Option<WorkerKey>,
    /// The placed attempt inside which it has begun.
    inside: Option<AttemptKey>,
}

impl Lent {
    pub(crate) fn relabel(&mut self, label: OrderLabel) {
        if self.ready.label.epoch < label.epoch {
            self.ready.label = label;
        }
    }
}

impl Node {
    /// How many of the tasks that wait may be lent to one worker.
    pub fn share(&self) -> usize {
        match self.capacity.serial {
            true => 0,
            false => self.queued.len() / (WAITING_FOR_EACH * self.slots()),
        }
    }

    /// Lends the first ready task, if it can take the place of `attempt`, which runs in a worker or
    /// in a process of its own.
    pub fn lend(&mut self, attempt: AttemptKey) -> Option<AttemptKey> {
        let Placed {
            slot, resources, ..
        } = self.placed.get(&attempt)?;
        let worker = match slot {
            Slot::Worker(worker) => Some(*worker),
            Slot::Process => None,
            Slot::Thread => return None,
        };
        let (_, first) = loop {
            let entry = self.computation.first()?;
            if is_current(&self.queued, &entry) {
                break entry;
            }
            self.computation.pop();
        };
        let ready = &self.queued[&first];
        let fits = ready.need.resources == *resources
            && ready.resumed.is_none()
            && ready.need.pairing == Pairing::default()
            && match worker {
                Some(worker) => self.can_follow_in(worker, ready),
                None => ready.need.class == Class::Process,
            };
        if !fits {
            return None;
        }
        self.computation.pop();
        let ready = self.queued.remove(&first)?;
        let inside = None;
        let lent = Lent {
            ready,
            worker,
            inside,
        };
        self.lent.insert(first, lent);
        Some(first)
    }

    fn can_follow_in(&self, worker: WorkerKey, ready: &Ready) -> bool {
        let pool = self.pools.workers.get(&worker).map(|worker| &worker.pool);
        self.takes_starts(worker)
            && matches!(&ready.need.class, Class::Pooled(wanted) if Some(wanted) == pool)
            && self.suits(worker, ready)
            && !(ready.is_limited && self.keeps_strands(worker))
    }

    /// Whether that task is lent, and has not begun.
    pub fn is_lent(&self, attempt: AttemptKey) -> bool {
        self.lent.contains_key(&attempt)
    }

    /// A task that has begun inside a placed one leaves the queue, if it can take over the slot.
    /// The slot of a root has no core; what has begun inside it runs on all the same.
    pub(crate) fn on_task_reserved(&mut self, attempt: AttemptKey, inside: AttemptKey) {
        let Some(Placed {
            slot: Slot::Worker(worker),
            resources,
            ..
        }) = self.placed.get(&inside)
        else {
            return;
        };
        let worker = *worker;
        let pool = self.pools.workers.get(&worker).map(|worker| &worker.pool);
        let is_roots = self.pools.is_roots(worker);
        let fits = |ready: &Ready| {
            let mut given = resources.clone();
            if is_roots {
                given.millicores = ready.need.resources.millicores;
            }
            matches!(&ready.need.class, Class::Pooled(wanted) if Some(wanted) == pool)
                && ready.need.resources == given
                && ready.resumed.is_none()
        };
        if self.queued.get(&attempt).is_some_and(|ready| fits(ready))
            && let Some(ready) = self.queued.remove(&attempt)
        {
            let inside = Some(inside);
            let worker = Some(worker);
            let lent = Lent {
                ready,
                worker,
                inside,
            };
            self.lent.insert(attempt, lent);
        }
    }

    /// The slot passes on: the next task needs the same resources. What has begun inside a root
    /// takes a core, if one is free.
    pub(crate) fn on_task_followed(
        &mut self,
        attempt: AttemptKey,
        next: AttemptKey,
        kept: Kept,
        actions: &mut Vec<Action>,
    ) {
        if kept != Kept::Nothing && !self.is_reserved(next, attempt) {
            return self.on_task_left(attempt, kept);
        }
        let lent = self.lent.remove(&next);
        let placed = self.placed.remove(&attempt);
        self.loan.retry();
        let mut placed = placed.expect("only a placed task is followed");
        self.kept_for_readers.remove(&attempt);
        placed.is_stream_end = false;
        let wanted = lent.map_or(0, |lent| lent.ready.need.resources.millicores);
        if placed.resources.millicores == 0 && wanted <= self.free.millicores {
            self.free.millicores -= wanted;
            placed.resources.millicores = wanted;
        }
        let slot = placed.slot;
        if let Slot::Worker(worker) = slot {
            self.pools.on_left(worker, attempt, kept);
            self.pools.on_taken(worker, next, false);
        }
        self.placed.insert(next, placed);
        actions.push(Action::Place {
            attempt: next,
            slot,
        });
    }

    fn is_reserved(&self, attempt: AttemptKey, inside: AttemptKey) -> bool {
        let lent = self.lent.get(&attempt);
        lent.is_some_and(|lent| lent.inside == Some(inside))
    }

    /// What has begun inside a placed task does not take over its slot. If it was not reserved, it
    /// may be lent to another worker by now.
    pub(crate) fn on_task_unreserved(&mut self, attempt: AttemptKey, inside: AttemptKey) {
        if self.is_reserved(attempt, inside) {
            self.on_task_returned(attempt);
        }
    }

    pub(crate) fn on_task_returned(&mut self, attempt: AttemptKey) {
        if let Some(Lent { ready, .. }) = self.lent.remove(&attempt) {
            self.enqueue(ready);
        }
    }

    /// A worker is gone, with what it was lent.
    pub(crate) fn take_back(&mut self, worker: WorkerKey) {
        let lent = self
            .lent
            .iter()
            .filter(|(_, lent)| lent.worker == Some(worker));
        let mut attempts: Vec<AttemptKey> = lent.map(|(attempt, _)| *attempt).collect();
        attempts.sort_unstable();
        for attempt in attempts {
            self.on_task_returned(attempt);
        }
    }
}
