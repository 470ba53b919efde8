//! The node's door: what is offered, what is placed where.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ciel_model::{AttemptNumber, Class, KeyMap, Micros, OrderLabel, Pairing, Resources, TaskKey};

use crate::attempts::Attempts;
use crate::event::{Action, AttemptKey, Event, Kept, Slot, WorkerKey};
use crate::lending::Lent;
use crate::loan::Loan;
use crate::need::{Need, Needs};
use crate::pool::Pools;
use crate::queue::{Entry, Lane};

/// What this machine has to give.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
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
    pub(crate) task: TaskKey,
    pub(crate) number: AttemptNumber,
    pub(crate) label: OrderLabel,
    pub(crate) need: Arc<Need>,
    pub(crate) resumed: Option<Micros>,
    /// It runs in a worker of its own, and takes no core: the root where there are several.
    pub(crate) is_apart: bool,
    /// It was offered as one that needs no core, as is the root of a session.
    pub(crate) only_listens: bool,
    /// Its worker may be killed for it, so it goes where no strand is kept.
    pub(crate) is_limited: bool,
    pub(crate) since: Micros,
}

impl Ready {
    pub(crate) fn attempt(&self) -> AttemptKey {
        AttemptKey {
            task: self.task,
            number: self.number,
        }
    }

    pub(crate) fn entry(&self) -> Entry {
        (self.label, self.attempt())
    }

    /// Whether it goes before tasks that have not begun.
    fn goes_first(&self) -> bool {
        self.resumed.is_some() || self.need.pairing.reads.is_some()
    }
}

/// A task in its place.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) slot: Slot,
    pub(crate) resources: Resources,
    /// It is an end of a direct stream, or may become one.
    pub(crate) is_stream_end: bool,
}

impl Placed {
    /// Whether it does nothing but listen, as the root of a session does.
    pub(crate) fn only_listens(&self) -> bool {
        matches!(self.slot, Slot::Worker(_)) && self.resources.millicores == 0
    }
}

/// The machine of one machine.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) capacity: Capacity,
    pub(crate) free: Resources,
    pub(crate) placed: KeyMap<AttemptKey, Placed>,
    pub(crate) threads_busy: u32,
    /// Scripts that are ready for their first turn, or resume after a wait.
    coordination: Lane,
    /// Scripts that wait for another turn, oldest first.
    turns: VecDeque<AttemptKey>,
    /// Whose turn is next: a preempted script's?
    turn_next: bool,
    /// Everything that takes resources, but for strands whose worker is busy.
    pub(crate) computation: Lane,
    /// The root, if it waits for the worker of its own.
    pub(crate) apart: Option<AttemptKey>,
    /// What is in either lane, held for its worker, or apart. Entries of the lanes that are not
    /// here are out of date.
    pub(crate) queued: Attempts<Box<Ready>>,
    /// Ready tasks in no queue: a worker may begin them by itself.
    pub(crate) lent: KeyMap<AttemptKey, Lent>,
    /// How often the first of `computation` has been overtaken.
    pub(crate) overtaken: u32,
    needs: Needs,
    /// Producers that have their slots, and until when a core is kept for the reader of each.
    pub(crate) kept_for_readers: BTreeMap<AttemptKey, Micros>,
    /// Ready producers that leave a slot free, to begin with their readers, and since when.
    pub(crate) held_producers: BTreeMap<AttemptKey, Micros>,
    /// When waiting for its worker has taken a strand as long as a replay would.
    pub(crate) deadline: Option<Micros>,
    pub(crate) pools: Pools,
    /// The part of the memory that the store has.
    pub(crate) loan: Loan,
    /// The last round found a place for all that could have one, and nothing has changed since.
    settled: bool,
}

impl Node {
    /// A node with nothing to do.
    pub fn new(capacity: Capacity) -> Node {
        let slots = slots_of(&capacity);
        Node {
            free: capacity.resources.clone(),
            placed: KeyMap::default(),
            threads_busy: 0,
            coordination: Lane::new(capacity.serial),
            turns: VecDeque::new(),
            turn_next: false,
            computation: Lane::new(capacity.serial),
            apart: None,
            queued: Attempts::default(),
            lent: KeyMap::default(),
            overtaken: 0,
            needs: Needs::default(),
            kept_for_readers: BTreeMap::new(),
            held_producers: BTreeMap::new(),
            settled: false,
            deadline: None,
            pools: Pools::new(slots),
            loan: Loan::default(),
            capacity,
        }
    }

    /// Cores, whole ones.
    pub(crate) fn slots(&self) -> usize {
        slots_of(&self.capacity)
    }

    /// What it has to give.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
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

    /// The slots of the tasks in their places, and a thread for each that has another turn.
    pub fn taken(&self) -> impl Iterator<Item = Slot> {
        let turns = self.turns.iter().map(|_| Slot::Thread);
        self.placed.values().map(|placed| placed.slot).chain(turns)
    }

    /// Whether a worker has been requested and has not said hello.
    pub fn awaits_worker(&self) -> bool {
        self.pools.is_any_starting()
    }

    /// What is free now.
    pub fn free(&self) -> &Resources {
        &self.free
    }

    /// Whole cores that are free while nothing waits for one but strands whose worker is busy. The
    /// root waits for none.
    pub fn idle_cores(&self) -> usize {
        let root_waits = self.apart.filter(|root| self.queued.contains_key(root));
        match self.queued.len() == self.pools.held() + usize::from(root_waits.is_some()) {
            true => self.free.millicores as usize / 1000,
            false => 0,
        }
    }

    /// Whether this run waits in a queue, and if so for want of what.
    pub fn waits_for(&self, attempt: AttemptKey, need: &Resources) -> Option<String> {
        let waits = self.queued.contains_key(&attempt) || self.lent.contains_key(&attempt);
        waits.then(|| {
            self.free
                .awaited(need)
                .unwrap_or_else(|| "its turn in serial order".to_string())
        })
    }

    /// Whether a task is in its place; a preempted script is not.
    pub fn is_placed(&self, attempt: AttemptKey) -> bool {
        self.placed.contains_key(&attempt)
    }

    /// Takes what has happened by now, then looks for places once, and appends what has to be done
    /// about it. So what a task made ready when it ended can have the place that it left, if both
    /// are among `events`.
    pub fn handle(
        &mut self,
        now: Micros,
        events: impl IntoIterator<Item = Event>,
        actions: &mut Vec<Action>,
    ) {
        for event in events {
            self.settled = self.settled && matches!(event, Event::TaskOffered { .. });
            self.note(now, event, actions);
        }
        if !self.settled {
            self.place(now, actions);
            self.settled = true;
        }
        #[cfg(debug_assertions)]
        self.check_all();
    }

    fn note(&mut self, now: Micros, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::TaskOffered {
                attempt,
                label,
                class,
                resources,
                resumed,
                is_root,
                is_limited,
                near,
                pairing,
            } => {
                let is_apart = is_root && self.sets_root_apart(&class);
                let only_listens = resources.millicores == 0;
                let ready = Ready {
                    task: attempt.task,
                    number: attempt.number,
                    label,
                    need: self.needs.share(Need {
                        class,
                        resources,
                        near,
                        pairing,
                    }),
                    resumed,
                    is_apart,
                    only_listens,
                    is_limited,
                    since: now,
                };
                self.on_task_offered(Box::new(ready), actions)
            }
            Event::TaskRelabeled { attempt, label } => self.on_task_relabeled(attempt, label),
            Event::ReaderWaits { producer } => self.on_reader_waits(now, producer),
            Event::TaskWithdrawn { attempt } => self.on_task_withdrawn(attempt, actions),
            Event::TaskStopping { attempt } => self.on_task_stopping(attempt),
            Event::TaskLeft { attempt, kept } => self.on_task_left(attempt, kept),
            Event::TaskReserved { attempt, inside } => self.on_task_reserved(attempt, inside),
            Event::TaskUnreserved { attempt, inside } => self.on_task_unreserved(attempt, inside),
            Event::TaskFollowed {
                attempt,
                next,
                kept,
            } => self.on_task_followed(attempt, next, kept, actions),
            Event::TaskReturned { attempt } => self.on_task_returned(attempt),
            Event::TaskPreempted { attempt } => self.on_task_preempted(attempt),
            Event::TaskForgotten { task } => self.on_task_forgotten(task, actions),
            Event::WorkerReady { worker, slots } => self.pools.on_ready(worker, slots),
            Event::WorkerCaches {
                worker,
                held,
                dropped,
            } => self.pools.on_caches(worker, held, &dropped),
            Event::WorkerRetired { worker } => self.pools.on_retired(worker, actions),
            Event::WorkerGone { worker } => self.on_worker_gone(worker, actions),
            Event::StoreShrank { bytes } => self.on_store_shrank(bytes),
            Event::StoreFreed => self.loan.retry(),
            Event::Ticked => {}
        }
    }

    fn on_task_offered(&mut self, mut ready: Box<Ready>, actions: &mut Vec<Action>) {
        if ready.need.class == Class::Coordination {
            self.settled = false;
            return self.enqueue(ready);
        }
        if let Some(lacking) = self.capacity.resources.lacking(&ready.need.resources) {
            return actions.push(Action::Refuse {
                attempt: ready.attempt(),
                lacking,
            });
        }
        if ready.is_apart {
            Arc::make_mut(&mut ready.need).resources.millicores = 0;
        }
        self.settled = self.settled && self.must_wait(&ready);
        self.enqueue(ready);
    }

    /// Adds a task to its queue. If it is queued with another label, that entry is stale.
    pub(crate) fn enqueue(&mut self, ready: Box<Ready>) {
        let (entry, goes_first) = (ready.entry(), ready.goes_first());
        if ready.is_apart {
            self.apart = Some(ready.attempt());
        } else if let Some(worker) = self.busy_keeper(&ready) {
            self.pools.hold(worker, entry);
        } else if ready.need.class == Class::Coordination {
            self.coordination.push(entry, goes_first);
        } else {
            self.computation.push(entry, goes_first);
        }
        self.queued.insert(ready.attempt(), ready);
    }

    /// A task that is in no queue and not lent has its place, or has lost it.
    fn on_task_relabeled(&mut self, attempt: AttemptKey, label: OrderLabel) {
        if let Some(lent) = self.lent.get_mut(&attempt) {
            lent.relabel(label);
        }
        if let Some(mut ready) = self.queued.remove(&attempt) {
            let is_newer = ready.label.epoch < label.epoch;
            if is_newer && ready.label.position != label.position {
                self.pools.hold_no_more(&ready.entry());
                ready.label = label;
                self.enqueue(ready);
                return self.sweep();
            }
            self.queued.insert(attempt, ready);
        }
    }

    /// Whether a task that has come can only wait, for a core or for a worker that is busy or on
    /// its way, so that a round would find nothing that the last one did not.
    fn must_wait(&self, ready: &Ready) -> bool {
        match &ready.need.class {
            _ if self.capacity.serial || ready.is_apart => false,
            _ if self.free.millicores == 0 || self.busy_keeper(ready).is_some() => true,
            Class::Pooled(pool) if ready.resumed.is_none() => {
                let room = self.free.millicores / ready.need.resources.millicores.max(1);
                self.pools.has_started(pool, room.max(1) as usize)
            }
            _ => false,
        }
    }

    fn on_task_withdrawn(&mut self, attempt: AttemptKey, actions: &mut Vec<Action>) {
        let ready = self.queued.remove(&attempt);
        self.held_producers.remove(&attempt);
        if let Some(ready) = &ready {
            self.pools.hold_no_more(&ready.entry());
        }
        self.on_task_forgotten(attempt.task, actions);
        if self.lent.remove(&attempt).is_some() {
            return;
        }
        if ready.is_none() {
            // Placed by an event of the same call, or before; it will not begin.
            actions.retain(|action| match action {
                Action::Place {
                    attempt: placed, ..
                } => *placed != attempt,
                _ => true,
            });
            return self.on_task_left(attempt, Kept::Nothing);
        }
        self.sweep();
    }

    /// Entries that are out of date are passed over when they come up; when most are, they are
    /// swept out.
    fn sweep(&mut self) {
        if self.computation.len() + self.coordination.len() > 64 + 2 * self.queued.len() {
            let queued = &self.queued;
            self.computation.retain(|entry| is_current(queued, entry));
            self.coordination.retain(|entry| is_current(queued, entry));
        }
    }

    fn on_task_stopping(&mut self, attempt: AttemptKey) {
        if let Some(Placed {
            slot: Slot::Worker(worker),
            ..
        }) = self.placed.get(&attempt)
        {
            self.pools.on_stopping(*worker, attempt);
        }
    }

    pub(crate) fn on_task_left(&mut self, attempt: AttemptKey, kept: Kept) {
        self.turns.retain(|waiting| *waiting != attempt);
        self.kept_for_readers.remove(&attempt);
        let Some(Placed {
            slot, resources, ..
        }) = self.placed.remove(&attempt)
        else {
            return;
        };
        self.loan.retry();
        match slot {
            Slot::Thread => self.threads_busy -= 1,
            Slot::Process => self.free.give_back(&resources),
            Slot::Worker(worker) => {
                self.free.give_back(&resources);
                self.pools.on_left(worker, attempt, kept);
                self.let_next_go(worker);
            }
        }
    }

    fn on_task_preempted(&mut self, attempt: AttemptKey) {
        if self.placed.remove(&attempt).is_some() {
            self.threads_busy -= 1;
            self.turns.push_back(attempt);
        }
    }

    fn on_task_forgotten(&mut self, task: TaskKey, actions: &mut Vec<Action>) {
        if let Some(worker) = self.pools.home(task) {
            self.loan.retry();
            actions.push(Action::DropParked {
                worker,
                task,
                moves: false,
            });
            self.pools.forget(task);
            self.let_next_go(worker);
        }
    }

    fn on_worker_gone(&mut self, worker: WorkerKey, actions: &mut Vec<Action>) {
        self.take_back(worker);
        self.loan.retry();
        let (lost, held) = self.pools.on_gone(worker);
        for entry in held {
            self.computation.push(entry, true);
        }
        for task in lost {
            actions.push(Action::ContinuationLost { task });
        }
    }

    /// A scheduling round: threads first, then whatever takes resources.
    fn place(&mut self, now: Micros, actions: &mut Vec<Action>) {
        self.deadline = None;
        if self.capacity.serial {
            return self.place_earliest(now, actions);
        }
        while self.threads_busy < self.capacity.threads && self.place_on_thread(actions) {}
        self.keep_no_longer(now);
        self.place_apart(now, actions);
        self.place_computation(now, actions);
        // The last that it has let go first may have its place now.
        self.place_apart(now, actions);
    }

    /// The serial program: one thing at a time, the earliest that is ready. A script that yielded
    /// to its child resumes when nothing earlier is ready, the innermost first.
    fn place_earliest(&mut self, now: Micros, actions: &mut Vec<Action>) {
        self.drop_outdated();
        if self.is_busy() {
            return;
        }
        match (self.coordination.first(), self.computation.first()) {
            (Some(script), Some(other)) if script < other => {
                self.first_turn(actions);
            }
            (_, Some(_)) => self.place_computation(now, actions),
            (Some(_), None) => {
                self.first_turn(actions);
            }
            (None, None) => {
                if let Some(attempt) = self.turns.pop_back() {
                    self.seat(attempt);
                    actions.push(Action::NextTurn { attempt });
                }
            }
        }
    }

    /// Whether anything has its turn.
    pub(crate) fn is_busy(&self) -> bool {
        !self.placed.values().all(Placed::only_listens)
    }

    fn drop_outdated(&mut self) {
        for lane in [&mut self.coordination, &mut self.computation] {
            let is_outdated = |entry: Entry| !is_current(&self.queued, &entry);
            while lane.first().is_some_and(is_outdated) {
                lane.pop();
            }
        }
    }

    /// Places one script, old and new ones by turns; false if none waits.
    fn place_on_thread(&mut self, actions: &mut Vec<Action>) -> bool {
        self.turn_next = !self.turn_next;
        if (self.turn_next && self.next_turn(actions)) || self.first_turn(actions) {
            return true;
        }
        self.next_turn(actions)
    }

    fn next_turn(&mut self, actions: &mut Vec<Action>) -> bool {
        let Some(attempt) = self.turns.pop_front() else {
            return false;
        };
        self.seat(attempt);
        actions.push(Action::NextTurn { attempt });
        true
    }

    fn first_turn(&mut self, actions: &mut Vec<Action>) -> bool {
        while let Some(entry) = self.coordination.pop() {
            if !is_current(&self.queued, &entry) {
                continue;
            }
            let (_, attempt) = entry;
            self.queued.remove(&attempt);
            self.seat(attempt);
            let slot = Slot::Thread;
            actions.push(Action::Place { attempt, slot });
            return true;
        }
        false
    }

    fn seat(&mut self, attempt: AttemptKey) {
        self.threads_busy += 1;
        let resources = Resources {
            millicores: 0,
            ..Resources::default()
        };
        self.placed.insert(
            attempt,
            Placed {
                slot: Slot::Thread,
                resources,
                is_stream_end: false,
            },
        );
    }

    pub(crate) fn settle(&mut self, ready: &Ready, slot: Slot, actions: &mut Vec<Action>) {
        self.free.take(&ready.need.resources);
        if let Slot::Worker(worker) = slot {
            self.pools.on_taken(worker, ready.attempt(), ready.is_apart);
        }
        self.placed.insert(
            ready.attempt(),
            Placed {
                slot,
                resources: ready.need.resources.clone(),
                is_stream_end: ready.need.pairing != Pairing::default(),
            },
        );
        actions.push(Action::Place {
            attempt: ready.attempt(),
            slot,
        });
    }
}

/// Whether an entry of a queue is that of a task as it is now.
pub(crate) fn is_current(queued: &Attempts<Box<Ready>>, (label, attempt): &Entry) -> bool {
    queued
        .get(attempt)
        .is_some_and(|ready| ready.label == *label)
}

fn slots_of(capacity: &Capacity) -> usize {
    let whole = (capacity.resources.millicores as usize).div_ceil(1000);
    whole.max(1)
}
