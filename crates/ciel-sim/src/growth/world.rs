//! Virtual time: workers, the engine's thread, and the messages between them.
//!
//! The engine's thread takes one message after the other; each costs its time, and the first after
//! a pause wakes it. A worker runs a strand until it waits or ends, and begins prefetched starts by
//! itself. Nothing is decided here. Read next: `worker`, `strand`, and `ciel_engine`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use ciel_coordinator::Coordinator;
use ciel_engine::{Begun, Caller, Effect, Engine, Event, Reply};
use ciel_graph::{self as graph, Ahead, Continuation, Entry, Output, Policy, Step, Wait};
use ciel_model::{
    Class, Descriptor, Form, Handle, IdleCores, Name, Pace, Pool, Resources, TaskKey, Value,
};
use ciel_node::{AttemptKey, Capacity, Node, WorkerKey};

use super::strand::{Move, Promoted, Strand};
use super::worker::{Running, Task, Turn, Worker};
use super::{Costs, Course, Job, Machine, Shape};

/// Nanoseconds after which a worker returns what was prefetched behind a running task.
const LONG_TURN_NS: u64 = 1_000_000;

/// Messages that take an event to the engine, with their senders.
#[derive(Debug)]
struct Message {
    event: Event,
    caller: Caller,
    cost_ns: u64,
}

#[derive(Debug)]
enum Happening {
    /// A message arrives at the engine's thread.
    Arrives(Box<Message>),
    /// An attempt begins in a worker, unless it has begun there by itself.
    Begins(WorkerKey, Box<Begun>),
    /// What runs in a worker has done its last move.
    Moves(WorkerKey, Turn),
    /// A worker looks for an idle core.
    Beats(WorkerKey, Turn),
    /// A core has become idle, for which a worker keeps children.
    Rings(WorkerKey, Turn),
    /// A worker has run one task for long.
    IsLong(WorkerKey, Turn),
    /// The engine's time.
    Ticks,
}

pub(super) struct World<'a> {
    costs: &'a Costs,
    job: &'a Job,
    machine: &'a Machine,
    engine: Engine,
    now: u64,
    sequence: u64,
    turns: Turn,
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    engine_free_at: u64,
    engine_ns: u64,
    processors: Option<BinaryHeap<Reverse<u64>>>,
    idle_cores: IdleCores,
    workers: BTreeMap<WorkerKey, Worker>,
    parked: BTreeMap<TaskKey, Task>,
    tasks: u64,
    began_at: u64,
    ended_at: Option<u64>,
    ticks_at: Option<u64>,
}

impl<'a> World<'a> {
    pub(super) fn new(costs: &'a Costs, job: &'a Job, machine: &'a Machine) -> World<'a> {
        let resources = Resources {
            millicores: machine.slots * 1000,
            ..Resources::default()
        };
        let capacity = Capacity {
            resources,
            threads: machine.slots,
            serial: false,
        };
        let coordinator = Coordinator::new(Policy::default(), false);
        let free = |count: u32| (0..count).map(|_| Reverse(0)).collect();
        World {
            costs,
            job,
            machine,
            engine: Engine::new(coordinator, Node::new(capacity)),
            now: 0,
            sequence: 0,
            turns: 0,
            heap: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            engine_free_at: 0,
            engine_ns: 0,
            processors: machine.processors.map(free),
            idle_cores: IdleCores::of(machine.slots as usize),
            workers: BTreeMap::new(),
            parked: BTreeMap::new(),
            tasks: 0,
            began_at: 0,
            ended_at: None,
            ticks_at: None,
        }
    }

    pub(super) fn run(mut self) -> Course {
        let event = graph::Event::RootSubmitted {
            name: Name::of_root(b"growth"),
            descriptor: Arc::new(descriptor(None)),
        };
        self.send(event, Caller::Nobody, 0);
        while let Some(Reverse((at, sequence))) = self.heap.pop() {
            self.now = at;
            let happening = self.happenings.remove(&sequence);
            self.happen(happening.expect("it was scheduled"));
        }
        let ended_at = self.ended_at.expect("every job ends");
        Course {
            elapsed_ns: ended_at - self.began_at,
            ideal_ns: self.job.count() * self.job.grain_ns / u64::from(self.machine.slots),
            tasks: self.tasks,
            engine_ns: self.engine_ns,
        }
    }

    fn schedule(&mut self, at: u64, happening: Happening) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence)));
        self.happenings.insert(self.sequence, happening);
    }

    /// When a computation of that length ends that could begin at `from`.
    fn compute(&mut self, from: u64, ns: u64) -> u64 {
        let Some(processors) = &mut self.processors else {
            return from + ns;
        };
        let Reverse(free_at) = processors.pop().expect("there is one");
        let ends_at = free_at.max(from) + ns;
        processors.push(Reverse(ends_at));
        ends_at
    }

    fn send(&mut self, event: impl Into<Event>, caller: Caller, cost_ns: u64) {
        let message = Message {
            event: event.into(),
            caller,
            cost_ns,
        };
        self.schedule(self.now, Happening::Arrives(Box::new(message)));
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrives(message) => self.take(*message),
            Happening::Begins(worker, begun) => self.begin(worker, *begun),
            Happening::Moves(worker, turn) => self.move_on(worker, turn),
            Happening::Beats(worker, turn) => self.beat(worker, turn),
            Happening::Rings(worker, turn) => self.hear(worker, turn),
            Happening::IsLong(worker, turn) => self.return_starts(worker, turn),
            Happening::Ticks => {
                self.ticks_at = None;
                self.send(Event::Ticked, Caller::Nobody, 0);
            }
        }
    }

    /// The engine's thread takes a message; what follows from it leaves when it has done so.
    fn take(&mut self, message: Message) {
        let is_asleep = self.engine_free_at < self.now;
        let wake_ns = if is_asleep { self.costs.wake_ns } else { 0 };
        let begins_at = self.engine_free_at.max(self.now + wake_ns);
        let ends_at = self.compute(begins_at, message.cost_ns);
        self.engine_free_at = ends_at;
        self.engine_ns += message.cost_ns;
        let mut effects = Vec::new();
        let caller = message.caller;
        let micros = self.now / 1000;
        let reply = self
            .engine
            .tell(micros, message.event, caller, &mut effects);
        self.answer(caller, reply, ends_at);
        for effect in effects {
            self.perform(effect, ends_at);
        }
        self.note_idle_cores(ends_at);
        self.note_deadline();
    }

    /// The engine counts, and rings for as many workers as there are more idle cores.
    fn note_idle_cores(&mut self, at: u64) {
        let count = self.engine.node().idle_cores();
        let more = count.saturating_sub(self.idle_cores.count() as usize);
        self.idle_cores = self.idle_cores.counted(count).unwrap_or(self.idle_cores);
        let listeners = self.workers.iter().filter(|(_, worker)| worker.listens(at));
        let turn_of = |worker: &Worker| worker.running.as_ref().map(|running| running.turn);
        let rung: Vec<_> = listeners
            .filter_map(|(key, worker)| Some((*key, turn_of(worker)?)))
            .take(more)
            .collect();
        for (worker, turn) in rung {
            self.schedule(at + self.costs.wake_ns, Happening::Rings(worker, turn));
        }
    }

    fn note_deadline(&mut self) {
        let Some(at) = self.engine.next_deadline() else {
            return;
        };
        let at = (at * 1000).max(self.now + 1);
        if self.ticks_at.is_none_or(|ticks_at| ticks_at > at) {
            self.ticks_at = Some(at);
            self.schedule(at, Happening::Ticks);
        }
    }

    fn answer(&mut self, caller: Caller, reply: Reply, at: u64) {
        let Caller::Worker { worker, .. } = caller else {
            return;
        };
        let wake_ns = self.costs.wake_ns;
        match reply {
            Reply::Begin(begun) => self.schedule(at + wake_ns, Happening::Begins(worker, begun)),
            Reply::Continue { .. } => {
                let running = self.running(worker).expect("it asked");
                running.asks = false;
                let turn = running.turn;
                self.schedule(at + wake_ns, Happening::Moves(worker, turn));
            }
            Reply::Suspended => self.park(worker),
            reply => assert_eq!(reply, Reply::Nothing, "nothing is stopped or replayed here"),
        }
    }

    fn running(&mut self, worker: WorkerKey) -> Option<&mut Running> {
        self.workers.get_mut(&worker)?.running.as_mut()
    }

    fn worker(&mut self, worker: WorkerKey) -> &mut Worker {
        self.workers.get_mut(&worker).expect("it lives")
    }

    /// What runs in a worker, if it is still the same turn.
    fn in_turn(&mut self, worker: WorkerKey, turn: Turn) -> Option<&mut Running> {
        self.running(worker).filter(|running| running.turn == turn)
    }

    fn perform(&mut self, effect: Effect, at: u64) {
        let wakes_at = at + self.costs.wake_ns;
        match effect {
            Effect::StartWorker { worker, .. } => {
                self.workers.insert(worker, Worker::default());
                let ready = Event::WorkerReady {
                    worker,
                    prefetches: true,
                    slots: 1,
                };
                self.send(ready, Caller::Nobody, 0);
            }
            Effect::StopWorker { worker } => drop(self.workers.remove(&worker)),
            Effect::StartInWorker { worker, begun } => {
                self.schedule(wakes_at, Happening::Begins(worker, begun));
            }
            Effect::JobEnded(_) => self.ended_at = Some(at),
            _ => {}
        }
    }

    /// A strand waits; its worker is free.
    fn park(&mut self, worker: WorkerKey) {
        self.is_wanted(worker, 0, None);
        let it = self.worker(worker);
        it.ahead.clear();
        if let Some(running) = it.running.take() {
            let attempt = running.attempt.expect("what waits is a task");
            self.parked.insert(attempt.task, running.task);
        }
    }

    fn begin(&mut self, worker: WorkerKey, begun: Begun) {
        let Begun { assignment, ahead } = begun;
        let attempt = AttemptKey {
            task: assignment.task,
            number: assignment.attempt,
        };
        let it = self.worker(worker);
        it.ahead.extend(ahead);
        match &mut it.running {
            Some(running) if running.attempt == Some(attempt) => return,
            Some(running) if running.attempt.is_none() => {
                running.attempt = Some(attempt);
                return;
            }
            _ => self.park(worker),
        }
        let resumes = matches!(assignment.entry, Entry::Resume(_));
        let task = match resumes {
            true => self.parked.remove(&attempt.task).expect("it waits"),
            false => self.task_of(&assignment.descriptor),
        };
        self.run_task(worker, attempt, task, resumes);
    }

    fn task_of(&mut self, descriptor: &Descriptor) -> Task {
        match descriptor.payload[..].try_into() {
            Ok(halvings) => Task::Strand(Strand::new(u32::from_be_bytes(halvings))),
            Err(_) => {
                self.began_at = self.now;
                let left = match self.job.shape {
                    Shape::Flat => self.job.grains,
                    Shape::Halves => 1,
                };
                Task::Root { left, handles: 0 }
            }
        }
    }

    fn run_task(&mut self, worker: WorkerKey, attempt: AttemptKey, task: Task, resumes: bool) {
        self.turns += 1;
        let turn = self.turns;
        let it = self.worker(worker);
        it.running = Some(Running {
            turn,
            attempt: Some(attempt),
            task,
            beats: 0,
            calls: [0; 2],
            pace: Pace::default(),
            rests_until: 0,
            asks: false,
        });
        let ns = match resumes {
            true => self.costs.wait_ns,
            false => self.costs.task_ns,
        };
        let at = self.compute(self.now, ns);
        self.schedule(at, Happening::Moves(worker, turn));
        self.schedule(at + LONG_TURN_NS, Happening::IsLong(worker, turn));
        self.schedule(at + self.costs.beat_ns, Happening::Beats(worker, turn));
    }

    fn move_on(&mut self, worker: WorkerKey, turn: Turn) {
        let later = self.now + self.costs.wake_ns;
        let Some(running) = self.in_turn(worker, turn) else {
            return;
        };
        let Some(attempt) = running.attempt else {
            return self.schedule(later, Happening::Moves(worker, turn));
        };
        match &mut running.task {
            Task::Root { left: 0, handles } => match std::mem::take(handles) {
                0 => self.end(worker, attempt),
                count => {
                    running.asks = true;
                    self.wait(worker, attempt, (0..count).map(Handle).collect());
                }
            },
            Task::Root { left, handles } => {
                *left -= 1;
                *handles += 1;
                let handle = Handle(*handles - 1);
                self.spawn_from_root(worker, turn, attempt, handle);
            }
            Task::Strand(strand) => match strand.advance() {
                Move::Work { spawns } => self.work(worker, turn, spawns),
                Move::Wait(handle) => {
                    running.asks = true;
                    self.wait(worker, attempt, vec![handle]);
                }
                Move::End => self.end(worker, attempt),
            },
        }
    }

    fn spawn_from_root(
        &mut self,
        worker: WorkerKey,
        turn: Turn,
        attempt: AttemptKey,
        handle: Handle,
    ) {
        let halvings = match self.job.shape {
            Shape::Flat => 0,
            Shape::Halves => self.job.grains.next_power_of_two().ilog2(),
        };
        self.spawn(attempt, handle, Some(halvings));
        let at = self.compute(self.now, self.costs.spawn_ns);
        self.schedule(at, Happening::Moves(worker, turn));
    }

    /// A task of so many halvings, or one that has begun in the worker of its spawner.
    fn spawn(&mut self, attempt: AttemptKey, handle: Handle, halvings: Option<u32>) {
        self.tasks += 1;
        let step = Step::Spawn {
            action: u64::from(handle.0),
            first: handle,
            descriptor: Arc::new(descriptor(Some(halvings.unwrap_or(0)))),
        };
        let AttemptKey { task, number } = attempt;
        let event = graph::Event::TaskStepped {
            task,
            attempt: number,
            step,
        };
        let event = match halvings {
            Some(_) => Event::from(event),
            None => Event::SpawnedBegun(event),
        };
        self.send(event, Caller::Nobody, self.costs.take_spawn_ns);
    }

    fn work(&mut self, worker: WorkerKey, turn: Turn, spawns: u32) {
        let ns = u64::from(spawns) * self.costs.call_ns;
        let at = self.compute(self.now, ns) + self.job.grain_ns;
        self.schedule(at, Happening::Moves(worker, turn));
    }

    /// What runs in place of a task becomes one, if a core is idle or it has run for long.
    fn beat(&mut self, worker: WorkerKey, turn: Turn) {
        let beats_max = self.idle_cores.beats_max();
        let now = self.now;
        let Some(running) = self.in_turn(worker, turn) else {
            return;
        };
        let Task::Strand(strand) = &running.task else {
            return;
        };
        let (calls, pending) = (strand.calls(), strand.pending());
        let is_beat = running.pace.is_beat();
        if is_beat {
            running.calls = [calls, running.calls[0]];
        }
        let (before, is_asleep) = (running.before(now), running.is_asleep());
        running.beats += u32::from(is_beat && !is_asleep);
        let is_long = is_beat && running.beats > beats_max;
        let looks = !is_asleep && (is_beat || self.worker(worker).claim.cores() > 0);
        if looks && (self.is_wanted(worker, pending, before) || is_long) {
            self.promote(worker);
        }
        self.look_again(worker, turn);
    }

    /// A worker that listens looks at once.
    fn hear(&mut self, worker: WorkerKey, turn: Turn) {
        let now = self.now;
        let it = self.worker(worker);
        if !it.listens(now) || self.in_turn(worker, turn).is_none() {
            return;
        }
        let pending = match &self.running(worker).expect("it listens").task {
            Task::Strand(strand) => strand.pending(),
            Task::Root { .. } => 0,
        };
        if self.is_wanted(worker, pending, Some(0)) {
            self.promote(worker);
        }
    }

    fn look_again(&mut self, worker: WorkerKey, turn: Turn) {
        let beat_ns = self.costs.beat_ns;
        let now = self.now;
        let is_due = self.worker(worker).claim.cores() > 0;
        let Some(running) = self.in_turn(worker, turn) else {
            return;
        };
        running.pace = running.pace.after(is_due);
        let at = now + beat_ns / u64::from(running.pace.divisor());
        self.schedule(at, Happening::Beats(worker, turn));
    }

    /// Whether an idle core waits for one of so many children that a worker keeps.
    fn is_wanted(&mut self, worker: WorkerKey, pending: usize, before: Option<usize>) -> bool {
        let it = self.workers.get_mut(&worker).expect("it runs");
        if pending == 0 || before.is_none() {
            self.idle_cores = self.idle_cores.returned(it.claim.end());
        } else if let Some(before) = before
            && let Some((next, cores)) = it.claim.look(self.idle_cores, 1, before)
        {
            self.idle_cores = next;
            it.claim.take(cores);
        }
        it.claim.cores() > 0
    }

    fn promote(&mut self, worker: WorkerKey) {
        let running = self.running(worker).expect("it beats");
        let (Some(attempt), Task::Strand(strand)) = (running.attempt, &mut running.task) else {
            return;
        };
        let Promoted {
            child,
            handle,
            other,
        } = strand.promote();
        running.beats = 0;
        running.attempt = None;
        let spawner = std::mem::replace(&mut running.task, Task::Strand(child));
        self.parked.insert(attempt.task, spawner);
        self.spawn(attempt, handle, None);
        if let Some((handle, halvings)) = other {
            self.worker(worker).claim.end();
            let rests_until = self.now + 3 * self.costs.beat_ns / 2;
            let running = self.running(worker).expect("it beats");
            running.rests_until = rests_until;
            self.spawn(attempt, handle, Some(halvings));
        }
        self.wait(worker, attempt, vec![handle]);
    }

    fn return_starts(&mut self, worker: WorkerKey, turn: Turn) {
        if self.in_turn(worker, turn).is_none() {
            return;
        }
        let it = self.workers.get_mut(&worker).expect("it runs");
        let attempts: Vec<_> = it.ahead.drain(..).map(|ahead| attempt_of(&ahead)).collect();
        if !attempts.is_empty() {
            let event = Event::PrefetchReturned { worker, attempts };
            self.send(event, Caller::Nobody, self.costs.take_spawn_ns);
        }
    }

    fn wait(&mut self, worker: WorkerKey, attempt: AttemptKey, on: Vec<Handle>) {
        let AttemptKey { task, number } = attempt;
        let event = graph::Event::TaskBlocked {
            task,
            attempt: number,
            kept: None,
            on,
            wait: Wait::ALL,
            continuation: Continuation::Live,
            checkpoint: None,
        };
        let caller = Caller::Worker {
            worker,
            follows: None,
            is_last: true,
        };
        self.send(event, caller, self.costs.take_wait_ns);
    }

    /// A task ends, and its worker begins what it has received.
    fn end(&mut self, worker: WorkerKey, attempt: AttemptKey) {
        let AttemptKey { task, number } = attempt;
        let end = Some(graph::Event::TaskFinished {
            task,
            attempt: number,
            outputs: vec![Output::Value(Value::inline(Form::Json, b"7".as_slice()))],
            printed: false,
            audit: None,
        });
        self.is_wanted(worker, 0, None);
        let it = self.worker(worker);
        it.running = None;
        let follower = it.ahead.pop_front();
        let follows = follower.as_ref().map(attempt_of);
        let caller = Caller::Worker {
            worker,
            follows,
            is_last: true,
        };
        let event = Event::TurnEnded { attempt, end };
        self.send(event, caller, self.costs.take_end_ns);
        if let Some(ahead) = follower {
            let task = self.task_of(&ahead.assignment.descriptor);
            self.run_task(worker, attempt_of(&ahead), task, false);
        }
    }
}

fn attempt_of(ahead: &Ahead) -> AttemptKey {
    AttemptKey {
        task: ahead.assignment.task,
        number: ahead.assignment.attempt,
    }
}

/// Of the root, or of a task with so many halvings before it.
fn descriptor(halvings: Option<u32>) -> Descriptor {
    let payload = halvings.map_or(Vec::new(), |halvings| halvings.to_be_bytes().to_vec());
    let class = Class::Pooled(Pool::new("growth", 1));
    Descriptor::plain("growth", class, "task", payload).with(|it| it.replayable = true)
}
