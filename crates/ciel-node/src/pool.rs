//! Pools of worker processes.
//!
//! It does not know how a worker is started or spoken to.

use std::collections::BTreeSet;

use ciel_model::{KeyMap, Pool, TaskKey};
use rustc_hash::FxHashMap;

use crate::event::{Action, WorkerKey};

/// A worker process, which has slots for tasks.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) pool: Pool,
    /// How many tasks it runs at once; none before it has sent `hello`.
    slots: usize,
    /// The tasks that it runs.
    pub(crate) running: BTreeSet<TaskKey>,
    /// It gets no new task; it only resumes the strands parked in it.
    pub(crate) retired: bool,
    /// Strands whose live copies it keeps.
    pub(crate) parked: BTreeSet<TaskKey>,
}

impl Worker {
    fn is_starting(&self) -> bool {
        self.slots == 0
    }

    fn has_free_slot(&self) -> bool {
        self.running.len() < self.slots
    }

    /// Whether it has said hello and runs nothing.
    fn is_idle(&self) -> bool {
        !self.is_starting() && self.running.is_empty()
    }

    /// Whether a task may be given to it that it does not know.
    fn is_open(&self) -> bool {
        self.has_free_slot() && !self.retired
    }
}

/// All workers of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    pub(crate) workers: FxHashMap<WorkerKey, Worker>,
    homes: KeyMap<TaskKey, WorkerKey>,
    /// Slots of the workers of each pool, as the last one that said hello has them.
    slots: FxHashMap<Pool, usize>,
    /// The worker that a task left last: awake, and with warm data.
    warm: Option<WorkerKey>,
    most: usize,
    next: u64,
}

impl Pools {
    pub(crate) fn new(most: usize) -> Pools {
        Pools {
            workers: FxHashMap::default(),
            homes: KeyMap::default(),
            slots: FxHashMap::default(),
            warm: None,
            most,
            next: 0,
        }
    }

    /// Where the live copy of a suspended task is.
    pub(crate) fn home(&self, task: TaskKey) -> Option<WorkerKey> {
        self.homes.get(&task).copied()
    }

    /// A worker that can run a task of `pool` now: its home if it has one, else one with a free
    /// slot; if there is none, one is requested within the bound. `wanting` tasks of this pool need
    /// one, including this one, so as many may be starting at once.
    pub(crate) fn worker_for(
        &mut self,
        pool: &Pool,
        home: Option<WorkerKey>,
        wanting: usize,
        actions: &mut Vec<Action>,
    ) -> Option<WorkerKey> {
        if let Some(home) = home {
            return self.has_free_slot(home).then_some(home);
        }
        let fits = |worker: &Worker| worker.pool == *pool;
        let is_fit = |worker: &Worker| fits(worker) && worker.is_open();
        let warm = self
            .warm
            .filter(|key| self.workers.get(key).is_some_and(is_fit));
        let open = warm.or_else(|| self.pick(is_fit));
        if open.is_none() {
            let is_coming = |worker: &&Worker| fits(worker) && worker.is_starting();
            let starting = self.workers.values().filter(is_coming).count();
            if !self.suffice(pool, starting, wanting) && self.make_room(actions) {
                self.start(pool, actions);
            }
        }
        open
    }

    /// Whether so many new workers of `pool` have slots for so many tasks.
    fn suffice(&self, pool: &Pool, workers: usize, tasks: usize) -> bool {
        workers * self.slots.get(pool).copied().unwrap_or(1) >= tasks
    }

    /// Whether a worker can run one more task.
    pub(crate) fn has_free_slot(&self, worker: WorkerKey) -> bool {
        self.workers[&worker].has_free_slot()
    }

    /// Whether no worker of `pool` is free and `wanting` of them are on their way already, so
    /// that a task that it does not know can only wait.
    pub(crate) fn has_started(&self, pool: &Pool, wanting: usize) -> bool {
        let mut starting = 0;
        for worker in self.workers.values() {
            if worker.pool == *pool {
                if worker.is_open() {
                    return false;
                }
                starting += usize::from(worker.is_starting());
            }
        }
        self.suffice(pool, starting, wanting)
    }

    /// The oldest worker of that kind.
    fn pick(&self, fits: impl Fn(&Worker) -> bool) -> Option<WorkerKey> {
        self.workers
            .iter()
            .filter(|(_, worker)| fits(worker))
            .map(|(key, _)| *key)
            .min()
    }

    fn start(&mut self, pool: &Pool, actions: &mut Vec<Action>) {
        let worker = WorkerKey(self.next);
        self.next += 1;
        let pool = pool.clone();
        self.workers.insert(
            worker,
            Worker {
                pool: pool.clone(),
                slots: 0,
                running: BTreeSet::new(),
                retired: false,
                parked: BTreeSet::new(),
            },
        );
        actions.push(Action::StartWorker { worker, pool });
    }

    /// Whether there may be one more worker, if need be after an idle one of another kind goes. One
    /// that keeps strands goes only when no worker is about to become idle: those strands may wait
    /// for the very task that wants the room, and can be replayed. Those that have retired take no
    /// room from others.
    fn make_room(&mut self, actions: &mut Vec<Action>) -> bool {
        let active = || self.workers.values().filter(|worker| !worker.retired);
        if active().count() < self.most {
            return true;
        }
        let may_leave = |worker: &Worker| worker.is_idle() && !worker.retired;
        let mut leaving = self.pick(|worker| may_leave(worker) && worker.parked.is_empty());
        if leaving.is_none() && active().all(may_leave) {
            leaving = self.pick(may_leave);
        }
        let Some(worker) = leaving else {
            return false;
        };
        self.send_away(worker, actions);
        true
    }

    fn send_away(&mut self, worker: WorkerKey, actions: &mut Vec<Action>) {
        for task in self.on_gone(worker) {
            actions.push(Action::ContinuationLost { task });
        }
        actions.push(Action::StopWorker { worker });
    }

    /// A worker gets nothing new any more. There are at most as many of these as of others: of
    /// more, the oldest one that runs nothing goes, and its strands are replayed.
    pub(crate) fn on_retired(&mut self, worker: WorkerKey, actions: &mut Vec<Action>) {
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.retired = true;
        }
        let retired = self.workers.values().filter(|worker| worker.retired);
        if retired.count() > self.most
            && let Some(oldest) = self.pick(|worker| worker.retired && worker.is_idle())
        {
            self.send_away(oldest, actions);
        }
    }

    pub(crate) fn on_taken(&mut self, worker: WorkerKey, task: TaskKey) {
        let worker = self.workers.get_mut(&worker);
        let worker = worker.expect("a chosen worker exists");
        worker.running.insert(task);
        worker.parked.remove(&task);
        self.homes.remove(&task);
    }

    pub(crate) fn on_left(&mut self, key: WorkerKey, task: TaskKey, parked: bool) {
        let Some(worker) = self.workers.get_mut(&key) else {
            return;
        };
        worker.running.remove(&task);
        self.warm = Some(key);
        if parked {
            worker.parked.insert(task);
            self.homes.insert(task, key);
        }
    }

    pub(crate) fn on_ready(&mut self, worker: WorkerKey, slots: u32) {
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.slots = slots.max(1) as usize;
            self.slots.insert(worker.pool.clone(), worker.slots);
        }
    }

    /// Forgets a worker; gives the tasks whose live copies went with it.
    pub(crate) fn on_gone(&mut self, worker: WorkerKey) -> Vec<TaskKey> {
        let Some(worker) = self.workers.remove(&worker) else {
            return Vec::new();
        };
        for task in &worker.parked {
            self.homes.remove(task);
        }
        worker.parked.into_iter().collect()
    }

    /// A parked strand is not wanted any more.
    pub(crate) fn forget(&mut self, task: TaskKey) {
        if let Some(home) = self.homes.remove(&task)
            && let Some(worker) = self.workers.get_mut(&home)
        {
            worker.parked.remove(&task);
        }
    }

    /// Asserts that no worker runs more than it has slots for.
    pub(crate) fn check(&self) {
        for (key, worker) in &self.workers {
            let count = worker.running.len();
            assert!(count <= worker.slots, "{key:?} runs {count} tasks");
        }
    }
}
