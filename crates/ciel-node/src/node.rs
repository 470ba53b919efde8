//! The node's door: what is offered, what is placed where.

use std::collections::VecDeque;

use ciel_model::{Class, Mark, Micros, Resources, SerialOrder, TaskKey, limits};
use rustc_hash::FxHashMap;

use crate::event::{Action, AttemptKey, Event, Slot, WorkerKey};
use crate::lending::Lent;
use crate::pool::Pools;
use crate::queue::Queue;

/// What this machine has to give.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// For processes and workers.
    pub resources: Resources,
    /// Threads for scripts and small internal work.
    pub threads: u32,
    /// One thing at a time, the earliest in serial order: the serial program.
    pub serial: bool,
}

/// A ready task in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) run: AttemptKey,
    pub(crate) class: Class,
    pub(crate) resources: Resources,
    pub(crate) resumed: Option<Micros>,
    since: Micros,
}

/// A task in its place.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) place: Slot,
    pub(crate) resources: Resources,
}

impl Placed {
    /// Whether it does nothing but listen, as the root of a session does.
    pub(crate) fn only_listens(&self) -> bool {
        matches!(self.place, Slot::Worker(_)) && self.resources.millicores == 0
    }
}

/// The machine of one machine.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) capacity: Capacity,
    pub(crate) free: Resources,
    pub(crate) placed: FxHashMap<AttemptKey, Placed>,
    pub(crate) threads_busy: u32,
    /// Scripts that wait for their first turn or go on after waiting.
    coordination: Queue<Ready>,
    /// Scripts that wait for another turn, oldest first.
    turns: VecDeque<AttemptKey>,
    /// Whose turn is next: a preempted script's?
    turn_next: bool,
    /// Everything that takes resources.
    pub(crate) computation: Queue<Ready>,
    /// Runs in either queue.
    pub(crate) queued: FxHashMap<AttemptKey, ()>,
    /// Ready tasks in no queue: a worker may begin them by itself.
    pub(crate) lent: FxHashMap<AttemptKey, Lent>,
    /// How often the first of `computation` has been overtaken.
    overtaken: u32,
    /// When a strand that waits for its worker loses patience.
    deadline: Option<Micros>,
    pub(crate) pools: Pools,
    /// The last round found a place for all that could have one, and nothing has changed since.
    settled: bool,
}

impl Node {
    /// A node with nothing to do.
    pub fn new(capacity: Capacity) -> Node {
        let slots = slots_of(&capacity);
        Node {
            free: capacity.resources.clone(),
            placed: FxHashMap::default(),
            threads_busy: 0,
            coordination: Queue::default(),
            turns: VecDeque::new(),
            turn_next: false,
            computation: Queue::default(),
            queued: FxHashMap::default(),
            lent: FxHashMap::default(),
            overtaken: 0,
            settled: false,
            deadline: None,
            pools: Pools::new(slots + limits::SPARE_WORKERS_MAX),
            capacity,
        }
    }

    /// Cores, whole ones.
    pub(crate) fn slots(&self) -> usize {
        slots_of(&self.capacity)
    }

    /// Whether it does one thing at a time, in serial order.
    pub fn is_serial(&self) -> bool {
        self.capacity.serial
    }

    /// When [`Event::Ticked`] is wanted at the latest.
    pub fn next_deadline(&self) -> Option<Micros> {
        self.deadline
    }

    /// Number of ready tasks without a place.
    pub fn queued(&self) -> usize {
        self.queued.len() + self.turns.len()
    }

    /// Number of tasks in their places, preempted scripts not counted.
    pub fn placed(&self) -> usize {
        self.placed.len()
    }

    /// What is free now.
    pub fn free(&self) -> &Resources {
        &self.free
    }

    /// Whether this run waits in a queue, and if so for want of what.
    pub fn waits_for(&self, run: AttemptKey, need: &Resources) -> Option<String> {
        let waits = self.queued.contains_key(&run) || self.lent.contains_key(&run);
        waits.then(|| {
            self.free
                .awaited(need)
                .unwrap_or_else(|| "its turn in serial order".to_string())
        })
    }

    /// Whether a task is in its place; a preempted script is not.
    pub fn is_placed(&self, run: AttemptKey) -> bool {
        self.placed.contains_key(&run)
    }

    /// Takes what has happened by now, then looks for places once, and appends what has to be done
    /// about it. `order` is the graph's. So what a task made ready when it ended can have the place
    /// that it left, if both are among `events`.
    pub fn handle(
        &mut self,
        now: Micros,
        events: impl IntoIterator<Item = Event>,
        order: &SerialOrder,
        actions: &mut Vec<Action>,
    ) {
        for event in events {
            self.settled = self.settled && matches!(event, Event::TaskOffered { .. });
            self.note(now, event, order, actions);
        }
        if !self.settled {
            self.place(now, order, actions);
            self.settled = true;
        }
        #[cfg(debug_assertions)]
        self.check_all();
    }

    fn note(&mut self, now: Micros, event: Event, order: &SerialOrder, actions: &mut Vec<Action>) {
        match event {
            Event::TaskOffered {
                run,
                mark,
                class,
                resources,
                resumed,
            } => self.on_task_offered(
                order,
                mark,
                Ready {
                    run,
                    class,
                    resources,
                    resumed,
                    since: now,
                },
                actions,
            ),
            Event::TaskWithdrawn { run } => self.on_task_withdrawn(order, run, actions),
            Event::TaskLeft { run, parked } => self.on_task_left(run, parked),
            Event::TaskFollowed { run, next } => self.on_task_followed(run, next, actions),
            Event::TaskReturned { run } => self.on_task_returned(order, run),
            Event::TaskPreempted { run } => self.on_task_preempted(run),
            Event::TaskForgotten { task } => self.on_task_forgotten(task, actions),
            Event::WorkerReady { worker } => self.pools.on_ready(worker),
            Event::WorkerRetired { worker } => self.pools.on_retired(worker, actions),
            Event::WorkerGone { worker } => self.on_worker_gone(order, worker, actions),
            Event::Ticked => {}
        }
    }

    fn on_task_offered(
        &mut self,
        order: &SerialOrder,
        mark: Mark,
        ready: Ready,
        actions: &mut Vec<Action>,
    ) {
        if ready.class == Class::Coordination {
            self.settled = false;
            self.queued.insert(ready.run, ());
            return self.coordination.push(order, mark, ready);
        }
        if let Some(lacking) = self.capacity.resources.lacking(&ready.resources) {
            return actions.push(Action::Refuse {
                run: ready.run,
                lacking,
            });
        }
        self.settled = self.settled && self.must_wait(&ready);
        self.queued.insert(ready.run, ());
        self.computation.push(order, mark, ready);
    }

    /// Whether a task that has come can only wait, for a core or for a worker that is busy or on
    /// its way, so that a round would find nothing that the last one did not.
    fn must_wait(&self, ready: &Ready) -> bool {
        match &ready.class {
            _ if self.capacity.serial => false,
            _ if self.free.millicores == 0 => true,
            Class::Pooled(pool) if ready.resumed.is_none() => {
                let room = self.free.millicores / ready.resources.millicores.max(1);
                self.pools.has_started(pool, room.max(1) as usize)
            }
            _ => false,
        }
    }

    fn on_task_withdrawn(
        &mut self,
        order: &SerialOrder,
        run: AttemptKey,
        actions: &mut Vec<Action>,
    ) {
        self.on_task_forgotten(run.task, actions);
        if self.lent.remove(&run).is_some() {
            return;
        }
        if self.queued.remove(&run).is_none() {
            // Placed in the same instant; nobody will begin it.
            return self.on_task_left(run, false);
        }
        // Withdrawn entries are passed over when they come up; when most are, they are swept out.
        if self.computation.len() + self.coordination.len() > 64 + 2 * self.queued.len() {
            let queued = &self.queued;
            self.computation
                .retain(order, |ready| queued.contains_key(&ready.run));
            self.coordination
                .retain(order, |ready| queued.contains_key(&ready.run));
        }
    }

    fn on_task_left(&mut self, run: AttemptKey, parked: bool) {
        self.turns.retain(|waiting| *waiting != run);
        let Some(Placed { place, resources }) = self.placed.remove(&run) else {
            return;
        };
        match place {
            Slot::Thread => self.threads_busy -= 1,
            Slot::Process => self.free.give_back(&resources),
            Slot::Worker(worker) => {
                self.free.give_back(&resources);
                self.pools.on_left(worker, run.task, parked);
            }
        }
    }

    fn on_task_preempted(&mut self, run: AttemptKey) {
        if self.placed.remove(&run).is_some() {
            self.threads_busy -= 1;
            self.turns.push_back(run);
        }
    }

    fn on_task_forgotten(&mut self, task: TaskKey, actions: &mut Vec<Action>) {
        if let Some(worker) = self.pools.home(task) {
            actions.push(Action::DropParked { worker, task });
        }
        self.pools.forget(task);
    }

    fn on_worker_gone(
        &mut self,
        order: &SerialOrder,
        worker: WorkerKey,
        actions: &mut Vec<Action>,
    ) {
        self.take_back(order, worker);
        for task in self.pools.on_gone(worker) {
            actions.push(Action::ContinuationLost { task });
        }
    }

    /// A scheduling round: threads first, then whatever takes resources.
    fn place(&mut self, now: Micros, order: &SerialOrder, actions: &mut Vec<Action>) {
        self.deadline = None;
        if self.capacity.serial {
            return self.place_earliest(now, order, actions);
        }
        while self.threads_busy < self.capacity.threads && self.place_on_thread(order, actions) {}
        self.place_computation(now, order, actions);
    }

    /// The serial program: one thing at a time, the earliest that is ready. A script that stepped
    /// aside for its child goes on when nothing earlier is ready, the innermost first.
    fn place_earliest(&mut self, now: Micros, order: &SerialOrder, actions: &mut Vec<Action>) {
        self.drop_withdrawn(order);
        if self.is_busy() {
            return;
        }
        let script = self.coordination.first(order).map(|(mark, _)| mark);
        let other = self.computation.first(order).map(|(mark, _)| mark);
        match (script, other) {
            (Some(script), Some(other)) if order.precedes(script, other) => {
                self.first_turn(order, actions);
            }
            (_, Some(_)) => self.place_computation(now, order, actions),
            (Some(_), None) => {
                self.first_turn(order, actions);
            }
            (None, None) => {
                if let Some(run) = self.turns.pop_back() {
                    self.seat(run);
                    actions.push(Action::NextTurn { run });
                }
            }
        }
    }

    /// Whether anything has its turn.
    fn is_busy(&self) -> bool {
        !self.placed.values().all(Placed::only_listens)
    }

    fn drop_withdrawn(&mut self, order: &SerialOrder) {
        for queue in [&mut self.coordination, &mut self.computation] {
            while queue
                .first(order)
                .is_some_and(|(_, ready)| !self.queued.contains_key(&ready.run))
            {
                queue.pop(order);
            }
        }
    }

    /// Places one script, old and new ones by turns; false if none waits.
    fn place_on_thread(&mut self, order: &SerialOrder, actions: &mut Vec<Action>) -> bool {
        self.turn_next = !self.turn_next;
        if (self.turn_next && self.next_turn(actions)) || self.first_turn(order, actions) {
            return true;
        }
        self.next_turn(actions)
    }

    fn next_turn(&mut self, actions: &mut Vec<Action>) -> bool {
        let Some(run) = self.turns.pop_front() else {
            return false;
        };
        self.seat(run);
        actions.push(Action::NextTurn { run });
        true
    }

    fn first_turn(&mut self, order: &SerialOrder, actions: &mut Vec<Action>) -> bool {
        while let Some((_, ready)) = self.coordination.pop(order) {
            if self.queued.remove(&ready.run).is_some() {
                self.seat(ready.run);
                actions.push(Action::Slot {
                    run: ready.run,
                    place: Slot::Thread,
                });
                return true;
            }
        }
        false
    }

    fn seat(&mut self, run: AttemptKey) {
        self.threads_busy += 1;
        let resources = Resources {
            millicores: 0,
            ..Resources::default()
        };
        self.placed.insert(
            run,
            Placed {
                place: Slot::Thread,
                resources,
            },
        );
    }

    /// Places what fits, earliest first; later tasks may overtake one that does not fit, but not
    /// for ever.
    fn place_computation(&mut self, now: Micros, order: &SerialOrder, actions: &mut Vec<Action>) {
        let mut passed = Vec::new();
        while passed.len() < limits::BACKFILL_SCAN_MAX && self.may_overtake(passed.len()) {
            if self.free.millicores == 0 || (self.capacity.serial && self.is_busy()) {
                break;
            }
            let Some((mark, ready)) = self.computation.pop(order) else {
                break;
            };
            if !self.queued.contains_key(&ready.run) {
                continue;
            }
            match self.place_for(now, &ready, &passed, actions) {
                Some(place) => {
                    self.settle(&ready, place, actions);
                    self.overtaken = if passed.is_empty() {
                        0
                    } else {
                        self.overtaken + 1
                    };
                }
                None => passed.push((mark, ready)),
            }
        }
        for (mark, ready) in passed {
            self.computation.push(order, mark, ready);
        }
    }

    fn may_overtake(&self, passed: usize) -> bool {
        passed == 0 || self.overtaken < limits::OVERTAKEN_MAX
    }

    /// Where a task can go now, if anywhere; asks for a worker if one is lacking. Those in `passed`
    /// come before it and could not be placed.
    fn place_for(
        &mut self,
        now: Micros,
        ready: &Ready,
        passed: &[(Mark, Ready)],
        actions: &mut Vec<Action>,
    ) -> Option<Slot> {
        if !self.free.holds(&ready.resources) {
            return None;
        }
        match &ready.class {
            Class::Pooled(pool) => {
                let home = ready.resumed.and_then(|_| self.pools.home(ready.run.task));
                let busy = home.filter(|home| !self.pools.is_idle(*home));
                if busy.is_some() && !self.is_impatient(now, ready) {
                    return None;
                }
                let home = home.xor(busy);
                let room = (self.free.millicores / ready.resources.millicores.max(1)).max(1);
                // No more of them count than there is room for, and there may be many.
                let same = passed
                    .iter()
                    .filter(|(_, other)| other.class == ready.class)
                    .take(room as usize);
                let wanting = (same.count() + 1).min(room as usize);
                let worker = self.pools.worker_for(pool, home, wanting, actions)?;
                if let Some(worker) = busy {
                    self.move_away(worker, ready.run.task, actions);
                }
                Some(Slot::Worker(worker))
            }
            Class::Process | Class::Coordination => Some(Slot::Process),
        }
    }

    /// Whether a strand has waited for its worker as long as its replay would take. If not, the
    /// time when it has is a deadline.
    fn is_impatient(&mut self, now: Micros, ready: &Ready) -> bool {
        let cost = ready.resumed.unwrap_or_default();
        let patience = cost.saturating_add(limits::RESUME_PATIENCE_US);
        let until = ready.since.saturating_add(patience);
        if until > now {
            let earlier = self.deadline.map_or(until, |deadline| deadline.min(until));
            self.deadline = Some(earlier).filter(|deadline| *deadline != Micros::MAX);
        }
        until <= now
    }

    /// A strand goes on elsewhere: its live copy is dropped, and it is replayed.
    fn move_away(&mut self, worker: WorkerKey, task: TaskKey, actions: &mut Vec<Action>) {
        self.pools.forget(task);
        actions.push(Action::DropParked { worker, task });
        actions.push(Action::ContinuationLost { task });
    }

    fn settle(&mut self, ready: &Ready, place: Slot, actions: &mut Vec<Action>) {
        self.queued.remove(&ready.run);
        self.free.take(&ready.resources);
        if let Slot::Worker(worker) = place {
            self.pools.on_taken(worker, ready.run.task);
        }
        self.placed.insert(
            ready.run,
            Placed {
                place,
                resources: ready.resources.clone(),
            },
        );
        actions.push(Action::Slot {
            run: ready.run,
            place,
        });
    }
}

fn slots_of(capacity: &Capacity) -> usize {
    let whole = (capacity.resources.millicores as usize).div_ceil(1000);
    whole.max(1)
}
