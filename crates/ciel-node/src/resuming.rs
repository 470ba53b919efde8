//! Which worker a ready task goes to: a strand to the one that keeps it, the root to one of its
//! own, any other task to one that keeps as little as possible.
//!
//! A strand whose worker is busy is *held* for it and goes first when that worker is idle. Only one
//! that may be replayed although its copy lives goes elsewhere, once it has waited as long as its
//! replay would take. It does not know how a strand is kept. Read next: `pool`.

use ciel_model::{Class, Micros, Pool, TaskKey, limits};

use crate::event::{Action, AttemptKey, Slot, WorkerKey};
use crate::node::{Node, Ready};

impl Node {
    /// Whether the root of the job runs in a worker of its own, which no other task holds up. With
    /// a single slot a task would hold it up in any case.
    pub(crate) fn sets_root_apart(&self, class: &Class) -> bool {
        matches!(class, Class::Pooled(_)) && self.slots() > 1 && !self.capacity.serial
    }

    /// Whether a worker may begin tasks by itself: it keeps no strand that is ready or wants to
    /// resume at once, and it is not the root's own.
    pub fn takes_starts(&self, worker: WorkerKey) -> bool {
        let worker = self.pools.workers.get(&worker);
        worker.is_some_and(|worker| {
            worker.held.is_empty() && worker.timely.is_empty() && !worker.is_roots
        })
    }

    /// Whether the root runs in a worker, and takes no core there.
    pub fn has_root_apart(&self, worker: WorkerKey) -> bool {
        let worker = self.pools.workers.get(&worker);
        worker.is_some_and(|worker| worker.is_roots)
    }

    /// Whether strands wait in a worker, for whatever runs there.
    pub fn keeps_strands(&self, worker: WorkerKey) -> bool {
        let worker = self.pools.workers.get(&worker);
        worker.is_some_and(|worker| !worker.parked.is_empty())
    }

    /// The task that runs in the worker for which a ready strand waits, if it waits for one.
    pub fn held_behind(&self, attempt: AttemptKey) -> Option<TaskKey> {
        let ready = self.queued.get(&attempt)?;
        self.pools.running_in(self.busy_keeper(ready)?)
    }

    /// The busy worker that a ready strand has to wait for.
    pub(crate) fn busy_keeper(&self, ready: &Ready) -> Option<WorkerKey> {
        if ready.resumed != Some(Micros::MAX) {
            return None;
        }
        let keeper = self.pools.home(ready.task)?;
        (!self.pools.has_free_slot(keeper)).then_some(keeper)
    }

    /// Of the strands that are held for a worker, the first may have its free slots.
    pub(crate) fn let_next_go(&mut self, worker: WorkerKey) {
        for entry in self.pools.take_held(worker) {
            self.computation.push(entry, true);
        }
    }

    /// The root takes no core, so that it hears of what it waits for although all are busy. While
    /// others are ready it hears of that a little later, and of more.
    pub(crate) fn place_apart(&mut self, now: Micros, actions: &mut Vec<Action>) {
        let Some(attempt) = self.apart.take() else {
            return;
        };
        if self.may_wait_apart(now, attempt) {
            self.apart = Some(attempt);
            return;
        }
        let Some(ready) = self.queued.remove(&attempt) else {
            return;
        };
        match self.worker_apart(&ready, actions) {
            Some(worker) => self.settle(&ready, Slot::Worker(worker), actions),
            None => self.enqueue(ready),
        }
    }

    /// Whether the root lets ready tasks go on. If so, the time when it does not is a deadline.
    fn may_wait_apart(&mut self, now: Micros, attempt: AttemptKey) -> bool {
        let Some(ready) = self.queued.get(&attempt) else {
            return false;
        };
        let until = ready.since.saturating_add(limits::ROOT_PATIENCE_US);
        let is_patient = ready.resumed.is_some() && !self.pools.is_timely(attempt.task);
        let waits = is_patient && self.queued.len() > 1 && until > now;
        if waits {
            self.set_deadline(until);
        }
        waits
    }

    pub(crate) fn set_deadline(&mut self, at: Micros) {
        let earlier = self.deadline.map_or(at, |deadline| deadline.min(at));
        self.deadline = Some(earlier);
    }

    fn worker_apart(&mut self, ready: &Ready, actions: &mut Vec<Action>) -> Option<WorkerKey> {
        let Class::Pooled(pool) = &ready.need.class else {
            unreachable!("only what runs in workers is set apart");
        };
        if !self.free.holds(&ready.need.resources) {
            return None;
        }
        match self.pools.home(ready.task) {
            Some(keeper) => self.pools.has_free_slot(keeper).then_some(keeper),
            None => self.pools.worker_apart(pool, ready.only_listens, actions),
        }
    }

    /// The worker in which a task can go on or begin now, if any; asks for one if one is lacking.
    /// `wanting` tasks of its pool want one, with this one.
    pub(crate) fn worker_for(
        &mut self,
        now: Micros,
        pool: &Pool,
        ready: &Ready,
        wanting: usize,
        actions: &mut Vec<Action>,
    ) -> Option<WorkerKey> {
        let suits = (&*ready.need, ready.is_limited);
        let Some(keeper) = self.pools.home(ready.task) else {
            return self.pools.worker_for(pool, wanting, suits, actions);
        };
        if self.pools.has_free_slot(keeper) {
            return Some(keeper);
        }
        if !self.may_move(now, ready) {
            return None;
        }
        let worker = self.pools.worker_for(pool, wanting, suits, actions)?;
        self.move_away(keeper, ready.task, actions);
        Some(worker)
    }

    /// Whether a strand has waited for its worker as long as its replay would take. If not, the
    /// time when it has is a deadline.
    fn may_move(&mut self, now: Micros, ready: &Ready) -> bool {
        let cost = ready.resumed.unwrap_or_default();
        let patience = cost.saturating_add(limits::RESUME_PATIENCE_US);
        let until = ready.since.saturating_add(patience);
        if until > now {
            self.set_deadline(until);
        }
        until <= now
    }

    /// A strand resumes elsewhere: its live copy is dropped, and it is replayed.
    fn move_away(&mut self, worker: WorkerKey, task: TaskKey, actions: &mut Vec<Action>) {
        self.pools.forget(task);
        actions.push(Action::DropParked {
            worker,
            task,
            moves: true,
        });
        actions.push(Action::ContinuationLost { task });
    }
}
