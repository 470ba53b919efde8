//! Pools of worker processes.
//!
//! A worker that keeps strands may run other tasks meanwhile, and those strands wait until it is
//! idle. So there are *spare* workers beside one for each slot: a task that has not begun goes to
//! the worker that keeps the least. No worker that keeps a strand is ended for want of room. It
//! does not know how a worker is started or spoken to.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use ciel_model::{KeyMap, Name, Near, Pool, TaskKey, limits};
use rustc_hash::FxHashMap;

use crate::event::{Action, AttemptKey, Kept, WorkerKey};
use crate::need::Need;
use crate::queue::Entry;

/// A worker process, which has slots for tasks.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) pool: Pool,
    /// How many tasks it runs at once; none before it has sent `hello`.
    slots: usize,
    /// The attempts that it runs.
    pub(crate) running: BTreeSet<AttemptKey>,
    /// Of those the ones that are to stop. It is killed if they do not, with all that it runs, so
    /// nothing more begins or resumes in it before they have left.
    stopping: BTreeSet<AttemptKey>,
    /// It gets no new task; it only resumes the strands parked in it.
    pub(crate) retired: bool,
    /// The root runs in it or is parked there, or something does that began inside the root;
    /// nothing else may.
    pub(crate) is_roots: bool,
    /// Strands whose live copies it keeps.
    pub(crate) parked: BTreeSet<TaskKey>,
    /// Of those the ones that want to go on at once.
    pub(crate) timely: BTreeSet<TaskKey>,
    /// Of those the ones that are ready while it is busy.
    pub(crate) held: BTreeSet<Entry>,
    /// Objects of which it keeps something beside its tasks, with their lengths in bytes.
    pub(crate) caches: FxHashMap<Name, u64>,
}

impl Worker {
    fn is_starting(&self) -> bool {
        self.slots == 0
    }

    fn has_free_slot(&self) -> bool {
        self.free_slots() > 0
    }

    fn free_slots(&self) -> usize {
        match self.stopping.is_empty() {
            true => self.slots.saturating_sub(self.running.len()),
            false => 0,
        }
    }

    /// Whether it has said hello and runs nothing.
    fn is_idle(&self) -> bool {
        !self.is_starting() && self.running.is_empty()
    }

    /// Whether a task may be given to it that it does not know.
    pub(crate) fn is_open(&self) -> bool {
        self.has_free_slot() && !self.retired && !self.is_roots
    }

    /// Whether it counts among those of which there may be so many.
    pub(crate) fn is_counted(&self) -> bool {
        !self.retired && !self.is_roots
    }

    /// What a task that is new to it would hold up at worst.
    fn keeps(&self) -> Kept {
        let leaves_a_slot = self.running.len() + 1 < self.slots;
        match (
            self.parked.is_empty() || leaves_a_slot,
            self.timely.is_empty(),
        ) {
            (true, _) => Kept::Nothing,
            (false, true) => Kept::Copy,
            (false, false) => Kept::TimelyCopy,
        }
    }

    fn park(&mut self, task: TaskKey, is_timely: bool) {
        self.parked.insert(task);
        if is_timely {
            self.timely.insert(task);
        }
    }

    fn unpark(&mut self, task: TaskKey) {
        self.parked.remove(&task);
        self.timely.remove(&task);
    }

    /// Something has left it, or is not wanted any more: if nothing else is there, it is the root's
    /// no more.
    fn note_less(&mut self) {
        self.is_roots &= !(self.running.is_empty() && self.parked.is_empty());
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
    /// Caches of all workers.
    pub(crate) caches: usize,
    /// Whole cores of the machine.
    cores: usize,
    /// Entries that are held for workers.
    held: usize,
    next: u64,
}

impl Pools {
    pub(crate) fn new(cores: usize) -> Pools {
        Pools {
            workers: FxHashMap::default(),
            homes: KeyMap::default(),
            slots: FxHashMap::default(),
            warm: None,
            caches: 0,
            cores,
            held: 0,
            next: 0,
        }
    }

    /// Whether that worker is the root's own.
    pub(crate) fn is_roots(&self, worker: WorkerKey) -> bool {
        let worker = self.workers.get(&worker);
        worker.is_some_and(|worker| worker.is_roots)
    }

    /// Where the live copy of a suspended task is.
    pub(crate) fn home(&self, task: TaskKey) -> Option<WorkerKey> {
        self.homes.get(&task).copied()
    }

    /// Whether a suspended task is kept that wants to resume at once.
    pub(crate) fn is_timely(&self, task: TaskKey) -> bool {
        let keeper = self.home(task).and_then(|worker| self.workers.get(&worker));
        keeper.is_some_and(|worker| worker.timely.contains(&task))
    }

    /// Workers that there may be beside the root's: one for each core, and as many spare ones.
    fn most(&self) -> usize {
        self.cores + self.cores.max(limits::SPARE_WORKERS_MIN)
    }

    /// A worker that can begin a task of `pool` now, if there is one with a free slot. One that
    /// keeps nothing is requested within the bound. `wanting` tasks of this pool need one,
    /// including this one, so as many may be starting at once. One that `is_limited` may take its
    /// worker with it, so it begins above a strand only when no more workers may be started.
    pub(crate) fn worker_for(
        &mut self,
        pool: &Pool,
        wanting: usize,
        (need, is_limited): (&Need, bool),
        actions: &mut Vec<Action>,
    ) -> Option<WorkerKey> {
        let is_fit = |worker: &Worker| worker.pool == *pool && worker.is_open();
        let near: &[Near] = if self.keep_caches() { &need.near } else { &[] };
        let open = self.least_keeping(is_fit, near);
        let kept = open.map_or(Kept::Nothing, |open| self.workers[&open].keeps());
        if open.is_some() && kept == Kept::Nothing {
            return open;
        }
        let starting = self.starting(pool);
        let more = !self.suffice(pool, starting, wanting)
            && match open {
                Some(_) => self.may_be_spare(is_limited),
                None => self.make_room(pool, actions),
            };
        if more {
            self.start(pool, actions);
        }
        let is_coming = more || starting > 0;
        open.filter(|_| (kept == Kept::Copy && !is_limited) || !is_coming)
    }

    /// The worker in which the root is to begin: an idle one that keeps nothing, or one of its own
    /// beside all others. The first one starts together with one for its tasks, unless it
    /// `only_listens`, as the client of a session does, which runs no tasks.
    pub(crate) fn worker_apart(
        &mut self,
        pool: &Pool,
        only_listens: bool,
        actions: &mut Vec<Action>,
    ) -> Option<WorkerKey> {
        let keeps_nothing = |worker: &Worker| worker.parked.is_empty() && worker.is_idle();
        let is_fit = |worker: &Worker| worker.is_open() && keeps_nothing(worker);
        let idle = self.least_keeping(|worker| worker.pool == *pool && is_fit(worker), &[]);
        if idle.is_none() && self.starting(pool) == 0 {
            let is_first = !only_listens && self.workers.is_empty();
            self.start(pool, actions);
            if is_first {
                self.start(pool, actions);
            }
        }
        idle
    }

    /// Whether so many new workers of `pool` have slots for so many tasks.
    fn suffice(&self, pool: &Pool, workers: usize, tasks: usize) -> bool {
        workers * self.slots.get(pool).copied().unwrap_or(1) >= tasks
    }

    /// Of the workers of that kind the one that keeps the fewest strands; of equal ones that with
    /// the heaviest caches of those objects, then the one that a task left last, else the oldest.
    fn least_keeping(&self, fits: impl Fn(&Worker) -> bool, near: &[Near]) -> Option<WorkerKey> {
        let warm = self
            .warm
            .and_then(|key| Some((key, self.workers.get(&key)?)));
        if let Some((key, worker)) = warm
            && near.is_empty()
            && fits(worker)
            && worker.keeps() == Kept::Nothing
        {
            return Some(key);
        }
        let fitting = self.workers.iter().filter(|(_, worker)| fits(worker));
        let rank = |(key, worker): (&WorkerKey, &Worker)| {
            let is_cold = self.warm != Some(*key);
            let lightness = Reverse(worker.weight(near));
            let (keeps, parked) = (worker.keeps(), worker.parked.len());
            (keeps, lightness, parked, is_cold, *key)
        };
        fitting.map(rank).min().map(|(_, _, _, _, key)| key)
    }

    fn starting(&self, pool: &Pool) -> usize {
        let is_starting = |worker: &&Worker| worker.pool == *pool && worker.is_starting();
        self.workers.values().filter(is_starting).count()
    }

    /// Whether a worker of any pool has been requested and has not said hello.
    pub(crate) fn is_any_starting(&self) -> bool {
        self.workers.values().any(Worker::is_starting)
    }

    fn counted(&self) -> usize {
        let counted = self.workers.values().filter(|worker| worker.is_counted());
        counted.count()
    }

    /// Whether there may be one more worker beside idle ones that keep strands. With a single slot
    /// nothing runs beside what runs above them, unless that may take them with it.
    fn may_be_spare(&self, is_limited: bool) -> bool {
        (self.cores > 1 || is_limited) && self.counted() < self.most()
    }

    /// Of the tasks that run in a worker, the one that was spawned first.
    pub(crate) fn running_in(&self, worker: WorkerKey) -> Option<TaskKey> {
        let first = self.workers.get(&worker)?.running.first()?;
        Some(first.task)
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
                stopping: BTreeSet::new(),
                retired: false,
                is_roots: false,
                parked: BTreeSet::new(),
                timely: BTreeSet::new(),
                held: BTreeSet::new(),
                caches: FxHashMap::default(),
            },
        );
        actions.push(Action::StartWorker { worker, pool });
    }

    /// Whether there may be one more worker, if need be after an idle one of another kind goes. One
    /// that keeps strands never does; so that they cannot wait for ever for a task of a kind that
    /// finds no room, there may be one worker of each kind.
    fn make_room(&mut self, pool: &Pool, actions: &mut Vec<Action>) -> bool {
        if self.counted() < self.most() {
            return true;
        }
        let leaving =
            self.pick(|worker| worker.is_idle() && worker.is_counted() && worker.parked.is_empty());
        if let Some(worker) = leaving {
            self.send_away(worker, actions);
            return true;
        }
        let is_same = |worker: &Worker| worker.pool == *pool && worker.is_counted();
        !self.workers.values().any(is_same)
    }

    /// Ends all workers that run nothing and keep no strand, nor are the root's.
    pub(crate) fn send_idle_away(&mut self, actions: &mut Vec<Action>) {
        let goes =
            |worker: &Worker| worker.is_idle() && worker.is_counted() && worker.parked.is_empty();
        while let Some(worker) = self.pick(goes) {
            self.send_away(worker, actions);
        }
    }

    fn send_away(&mut self, worker: WorkerKey, actions: &mut Vec<Action>) {
        let (lost, held) = self.on_gone(worker);
        debug_assert!(held.is_empty(), "a worker that is busy is not sent away");
        for task in lost {
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
        if retired.count() > self.most()
            && let Some(oldest) = self.pick(|worker| worker.retired && worker.is_idle())
        {
            self.send_away(oldest, actions);
        }
    }

    pub(crate) fn on_taken(&mut self, worker: WorkerKey, attempt: AttemptKey, is_root: bool) {
        let worker = self.workers.get_mut(&worker);
        let worker = worker.expect("a chosen worker exists");
        worker.running.insert(attempt);
        worker.is_roots |= is_root;
        worker.unpark(attempt.task);
        self.homes.remove(&attempt.task);
    }

    pub(crate) fn on_stopping(&mut self, worker: WorkerKey, attempt: AttemptKey) {
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.stopping.insert(attempt);
        }
    }

    pub(crate) fn on_left(&mut self, key: WorkerKey, attempt: AttemptKey, kept: Kept) {
        let Some(worker) = self.workers.get_mut(&key) else {
            return;
        };
        let task = attempt.task;
        worker.running.remove(&attempt);
        worker.stopping.remove(&attempt);
        self.warm = Some(key);
        match kept {
            // What has begun inside the root leaves it there.
            Kept::Nothing => worker.note_less(),
            Kept::Copy | Kept::TimelyCopy => {
                worker.park(task, kept == Kept::TimelyCopy);
                self.homes.insert(task, key);
            }
        }
    }

    /// A ready strand waits for that worker, which keeps it and is busy.
    pub(crate) fn hold(&mut self, worker: WorkerKey, entry: Entry) {
        let worker = self.workers.get_mut(&worker);
        let worker = worker.expect("the keeper of a strand is there");
        self.held += usize::from(worker.held.insert(entry));
    }

    /// Ready strands that wait for their workers.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// A ready strand does not wait for its worker, or not with that label any more.
    pub(crate) fn hold_no_more(&mut self, entry: &Entry) {
        let (_, attempt) = entry;
        if let Some(worker) = self.homes.get(&attempt.task) {
            let worker = self.workers.get_mut(worker);
            let worker = worker.expect("a home is there");
            self.held -= usize::from(worker.held.remove(entry));
        }
    }

    /// The first of the ready strands that wait for that worker, one for each of its free slots.
    pub(crate) fn take_held(&mut self, worker: WorkerKey) -> Vec<Entry> {
        let Some(worker) = self.workers.get_mut(&worker) else {
            return Vec::new();
        };
        let held = (0..worker.free_slots()).map_while(|_| worker.held.pop_first());
        let held: Vec<Entry> = held.collect();
        self.held -= held.len();
        held
    }

    pub(crate) fn on_ready(&mut self, worker: WorkerKey, slots: u32) {
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.slots = slots.max(1) as usize;
            self.slots.insert(worker.pool.clone(), worker.slots);
        }
    }

    /// Forgets a worker; gives the tasks whose live copies went with it, and which of them are held
    /// for it.
    pub(crate) fn on_gone(&mut self, worker: WorkerKey) -> (Vec<TaskKey>, BTreeSet<Entry>) {
        let Some(worker) = self.workers.remove(&worker) else {
            return Default::default();
        };
        self.caches -= worker.caches.len();
        for task in &worker.parked {
            self.homes.remove(task);
        }
        self.held -= worker.held.len();
        (worker.parked.into_iter().collect(), worker.held)
    }

    /// A parked strand is not wanted any more.
    pub(crate) fn forget(&mut self, task: TaskKey) {
        if let Some(home) = self.homes.remove(&task)
            && let Some(worker) = self.workers.get_mut(&home)
        {
            worker.unpark(task);
            worker.note_less();
        }
    }

    /// Asserts that no worker runs more than it has slots for, and the count of what is held.
    pub(crate) fn check(&self) {
        for (key, worker) in &self.workers {
            let count = worker.running.len();
            assert!(count <= worker.slots, "{key:?} runs {count} tasks");
        }
        let held = self.workers.values().map(|worker| worker.held.len());
        assert_eq!(held.sum::<usize>(), self.held, "strands that are held");
    }
}
