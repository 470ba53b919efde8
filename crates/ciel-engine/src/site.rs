//! The half of the engine that is once at every site: a node, and the attempts that have its slots.
//!
//! It finds slots for what it was offered, ends turns, resumes and prefetches, and asks the home
//! before anything begins. It does not know the graph: why a task is ready and what becomes of it.
//! The parts: `site/perform` (what home and node want), `site/succession` (the end of a turn, and
//! which task follows it), `site/prefetch` (which starts a worker receives before their time),
//! `site/processes` (which starts of processes are sent so). Read next: `message`.

mod begun;
mod line;
mod perform;
mod prefetch;
mod processes;
mod succession;

use ciel_graph as graph;
use ciel_model::{KeyMap, Micros, SegmentedQueue};
use ciel_node::{self as node, AttemptKey, Capacity, Node, Slot, WorkerKey};
use rustc_hash::FxHashMap;

use crate::event::{Begun, Caller, Effect, Event, Reply, attempt_of};
use crate::message::{ToHome, ToSite};
use line::Line;
use processes::Processes;

pub use processes::passes_on;

/// An attempt in its slot.
#[derive(Clone, Copy, Debug)]
struct TakenSlot {
    slot: Slot,
    /// The home has confirmed that it begins.
    has_begun: bool,
    /// Its worker had begun it by itself before that.
    is_follower: bool,
    /// It waits, if the home has not replied that it continues.
    is_asking: bool,
    /// It has asked a question of which the answer depends on time.
    is_timely: bool,
    /// The graph has ended it; its executor has not yet reported that it has left.
    is_stopping: bool,
    /// It is a script that waits for another turn, and no thread has it.
    is_preempted: bool,
    /// It is a process that passes its slot on.
    passes_on: bool,
    /// When it began, if it does.
    since: Micros,
}

impl TakenSlot {
    fn new(slot: Slot) -> TakenSlot {
        TakenSlot {
            slot,
            has_begun: false,
            is_follower: false,
            is_asking: false,
            is_timely: false,
            is_stopping: false,
            is_preempted: false,
            passes_on: false,
            since: 0,
        }
    }
}

/// The half of the engine that a site has of its own.
#[derive(Debug)]
pub struct Site {
    node: Node,
    /// Attempts that have a slot and have not left it.
    slots: KeyMap<AttemptKey, TakenSlot>,
    /// Attempts that workers have begun by themselves, and those that they followed, until the home
    /// has replied.
    followers: KeyMap<AttemptKey, AttemptKey>,
    /// Attempts in their slots inside which a task has begun that is to take over the slot, and
    /// that task.
    begun: KeyMap<AttemptKey, AttemptKey>,
    /// Workers that have sent `hello`.
    lines: FxHashMap<WorkerKey, Line>,
    processes: Processes,
    job_ended: bool,
    /// What the node is to hear in the next round.
    for_node: SegmentedQueue<node::Event>,
    node_actions: Vec<node::Action>,
}

/// One call of the door.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) now: Micros,
    caller: Caller,
    /// The attempt for which the caller wants a reply.
    asks: Option<AttemptKey>,
    reply: Reply,
    /// The attempt of the caller waits from now on.
    suspended: Option<AttemptKey>,
    /// What has begun in workers, until the node has nothing more to say.
    begun: Vec<(WorkerKey, Begun)>,
    /// Of those, for how many the home was asked what may follow them.
    looked: usize,
    /// A process that has begun and passes its slot on.
    process: Option<AttemptKey>,
    /// What is to stop in workers that hear only now that it has begun.
    stops: Vec<(WorkerKey, AttemptKey)>,
    pub(crate) effects: &'a mut Vec<Effect>,
    pub(crate) to_home: &'a mut Vec<ToHome>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        now: Micros,
        caller: Caller,
        effects: &'a mut Vec<Effect>,
        to_home: &'a mut Vec<ToHome>,
    ) -> Call<'a> {
        Call {
            now,
            caller,
            asks: None,
            reply: Reply::Nothing,
            suspended: None,
            begun: Vec::new(),
            looked: 0,
            process: None,
            stops: Vec::new(),
            effects,
            to_home,
        }
    }

    /// The attempt that has begun already where the caller's turn has ended.
    fn follower(&self) -> Option<AttemptKey> {
        match self.caller {
            Caller::Worker { follows, .. } => follows,
            Caller::Process { follows } => Some(follows),
            Caller::Nobody | Caller::Thread => None,
        }
    }

    /// Whether the caller is that worker, continues by itself, and has sent more than this. It may
    /// have used up its starts by now, and others that are sent ahead would be sent in vain: its
    /// last message says what it needs.
    fn has_sent_more(&self, worker: WorkerKey) -> bool {
        matches!(
            self.caller,
            Caller::Worker { worker: own, follows: Some(_), is_last: false } if own == worker
        )
    }

    /// The caller receives a reply about its own attempt; others have been waiting for theirs.
    fn answer(&mut self, attempt: AttemptKey, reply: Reply) {
        match self.asks == Some(attempt) {
            true => self.reply = reply,
            false => self.effects.push(Effect::ReplyLate { attempt, reply }),
        }
    }

    fn begun_at(&self, attempt: AttemptKey) -> Option<usize> {
        let is_its = |(_, begun): &(WorkerKey, Begun)| attempt_of(&begun.assignment) == attempt;
        self.begun.iter().position(is_its)
    }

    /// An attempt that runs in a worker is to stop, after the worker has heard that it has begun.
    fn stop_in_worker(&mut self, worker: WorkerKey, attempt: AttemptKey) {
        match self.begun_at(attempt) {
            Some(_) => self.stops.push((worker, attempt)),
            None => self.effects.push(Effect::StopInWorker { worker, attempt }),
        }
    }

    /// An attempt does not begin in its worker, unless the worker has received it.
    fn forget_begun(&mut self, attempt: AttemptKey) -> bool {
        let Some(index) = self.begun_at(attempt) else {
            return false;
        };
        self.begun.remove(index);
        self.looked -= usize::from(index < self.looked);
        true
    }

    /// What has begun in the caller's worker is the reply; the rest are effects.
    pub(crate) fn end(mut self) -> Reply {
        for (worker, begun) in self.begun.drain(..) {
            let begun = Box::new(begun);
            let is_callers =
                matches!(self.caller, Caller::Worker { worker: own, .. } if own == worker);
            match (is_callers, &self.reply) {
                (true, Reply::Nothing | Reply::Suspended) => self.reply = Reply::Begin(begun),
                _ => self.effects.push(Effect::StartInWorker { worker, begun }),
            }
        }
        let stops = self.stops.drain(..);
        let stops = stops.map(|(worker, attempt)| Effect::StopInWorker { worker, attempt });
        self.effects.extend(stops);
        self.reply
    }
}

/// The doors of a site whose home is in another process.
impl Site {
    /// Takes an event of what this site runs, appends what has to be done and what the home has to
    /// hear about it, and replies as far as it can; the rest of the reply is a later effect.
    pub fn tell(
        &mut self,
        now: Micros,
        event: Event,
        caller: Caller,
        effects: &mut Vec<Effect>,
        to_home: &mut Vec<ToHome>,
    ) -> Reply {
        let mut call = Call::new(now, caller, effects, to_home);
        self.on_event(&mut call, event);
        while self.advance(&mut call) {}
        call.end()
    }

    /// Takes messages of the home, after which the node looks for slots once.
    pub fn receive(
        &mut self,
        now: Micros,
        messages: impl IntoIterator<Item = ToSite>,
        effects: &mut Vec<Effect>,
        to_home: &mut Vec<ToHome>,
    ) {
        let mut call = Call::new(now, Caller::Nobody, effects, to_home);
        for message in messages {
            self.on_message(&mut call, message);
        }
        while self.advance(&mut call) {}
        call.end();
    }

    /// An attempt writes to its ordered output, when its strand has done `after` actions.
    pub fn write(&self, attempt: AttemptKey, after: u64, text: &[u8], to_home: &mut Vec<ToHome>) {
        if !self.is_stopping(attempt) {
            to_home.push(ToHome::Wrote {
                attempt,
                after,
                bytes: bytes::Bytes::copy_from_slice(text),
            });
        }
    }
}

impl Site {
    /// A site with that node, at which nothing runs.
    pub fn new(node: Node) -> Site {
        Site {
            node,
            slots: KeyMap::default(),
            followers: KeyMap::default(),
            begun: KeyMap::default(),
            lines: FxHashMap::default(),
            processes: Processes::default(),
            job_ended: false,
            for_node: SegmentedQueue::default(),
            node_actions: Vec::new(),
        }
    }

    pub(crate) fn on_event(&mut self, call: &mut Call<'_>, event: Event) {
        match event {
            Event::Graph(event) => {
                if self.passes_on(call, &event) {
                    call.to_home.push(ToHome::Acted(event));
                }
            }
            Event::SpawnedBegun(event) => call.to_home.push(ToHome::SpawnedBegun(event)),
            Event::TurnEnded { attempt, end } => {
                let end = end.filter(|_| !self.is_stopping(attempt));
                call.to_home.extend(end.map(ToHome::Acted));
                self.on_turn_ended(call, attempt);
            }
            Event::TurnTaken { attempt } => self.on_turn_taken(call, attempt),
            Event::TaskPreempted { attempt } => self.on_task_preempted(attempt),
            Event::WorkerReady {
                worker,
                prefetches,
                slots,
            } => {
                self.lines
                    .insert(worker, Line::new(prefetches && slots == 1));
                self.for_node
                    .push_back(node::Event::WorkerReady { worker, slots });
            }
            Event::WorkerCaches {
                worker,
                held,
                dropped,
            } => self.on_caches(call, worker, held, dropped),
            Event::WorkerRetired { worker } => {
                self.on_retired(worker);
                self.for_node
                    .push_back(node::Event::WorkerRetired { worker });
            }
            Event::WorkerGone { worker } => self.on_worker_gone(call, worker),
            Event::PrefetchReturned { worker, attempts } => {
                self.on_prefetch_returned(worker, &attempts)
            }
            Event::ProcessReturned { attempt } => self.on_process_returned(call, attempt),
            // The site has nothing to do with the order of output, and counts no children.
            Event::FrontierMoved { .. }
            | Event::ProcessWrote { .. }
            | Event::ProcessPaused { .. }
            | Event::ChildrenAwaited { .. } => {}
            Event::StoreShrank { bytes } => {
                self.for_node.push_back(node::Event::StoreShrank { bytes })
            }
            Event::StoreFreed => self.for_node.push_back(node::Event::StoreFreed),
            Event::Ticked => self.for_node.push_back(node::Event::Ticked),
        }
    }

    /// An attempt acts, or waits. Whether the home has to receive that; if so it does next.
    pub(crate) fn passes_on(&mut self, call: &mut Call<'_>, event: &graph::Event) -> bool {
        use graph::Event;
        match *event {
            Event::TaskBlocked {
                task,
                attempt,
                wait,
                ..
            } => {
                let number = attempt;
                self.on_task_blocked(call, AttemptKey { task, number }, wait)
            }
            Event::TaskRecalled { task, attempt } => {
                let number = attempt;
                call.asks = Some(AttemptKey { task, number });
                true
            }
            _ => true,
        }
    }

    /// Takes one step of what follows from the events so far: a round of the node, or a question
    /// what may be prefetched. False if nothing follows.
    pub(crate) fn advance(&mut self, call: &mut Call<'_>) -> bool {
        if self.for_node.is_empty() {
            return self.ask_for_starts(call)
                || self.ask_for_processes(call)
                || !self.for_node.is_empty();
        }
        let mut events = std::mem::take(&mut self.for_node);
        let mut actions = std::mem::take(&mut self.node_actions);
        let each = std::iter::from_fn(|| events.pop_front());
        self.node.handle(call.now, each, &mut actions);
        self.for_node = events;
        for action in actions.drain(..) {
            self.perform_on_node(call, action);
        }
        self.node_actions = actions;
        true
    }
}

/// What may be asked.
impl Site {
    /// Slots, queues and workers.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// What the site has to give.
    pub fn capacity(&self) -> &Capacity {
        self.node.capacity()
    }

    /// When [`Event::Ticked`] is wanted at the latest.
    pub fn next_deadline(&self) -> Option<Micros> {
        self.node.next_deadline()
    }

    /// Whether the graph has ended an attempt that has not left its slot.
    pub fn is_stopping(&self, attempt: AttemptKey) -> bool {
        self.slots
            .get(&attempt)
            .is_some_and(|slot| slot.is_stopping)
    }

    /// Where an attempt runs.
    pub fn slot_of(&self, attempt: AttemptKey) -> Option<Slot> {
        self.slots.get(&attempt).map(|slot| slot.slot)
    }

    /// The slots in which something runs, each as often as it is taken.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.slots.values().map(|taken| taken.slot)
    }

    /// Of the attempts in their slots, that of the task that was spawned first.
    pub fn oldest_running(&self) -> Option<AttemptKey> {
        self.slots.keys().min().copied()
    }

    /// Whether no task is in its slot, or was sent to begin in one.
    pub fn is_quiet(&self) -> bool {
        self.slots.is_empty() && self.processes.is_empty()
    }

    /// Whether processes were sent that have not begun and are not returned.
    pub(crate) fn awaits_processes(&self) -> bool {
        !self.processes.is_empty()
    }

    /// Asserts all invariants, those of the node as well; linear in what it holds.
    pub fn check_all(&self) {
        self.node.check_all();
        for (attempt, slot) in &self.slots {
            let is_slow = slot.slot == Slot::Thread && slot.is_preempted;
            assert!(
                is_slow || self.node.is_placed(*attempt),
                "{attempt:?} has a slot that the node does not know"
            );
        }
        for before in self.followers.values() {
            assert!(
                self.slots.contains_key(before),
                "{before:?} has left its slot"
            );
        }
        for (parent, child) in &self.begun {
            let has_slot = matches!(self.slot_of(*parent), Some(Slot::Worker(_)));
            let is_stopping = self.is_stopping(*parent);
            assert!(has_slot && !is_stopping, "{child:?} is in {parent:?}");
            assert!(!self.followers.contains_key(child), "{child:?} follows");
        }
        for (worker, line) in &self.lines {
            line.check(*worker);
        }
    }
}
