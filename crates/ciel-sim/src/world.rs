//! One run in virtual time: a heap of things that will happen, and the processes that act.
//!
//! Every delay and choice comes from the scenario's seed. This module moves time and lets scripts
//! act and faults strike; it does not know how events travel between the machines. Read next:
//! `driver`, which does.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use ciel_coordinator::Coordinator;
use ciel_engine::{Caller, Engine, Event, Reply};
use ciel_graph::{
    self as graph, Ahead, Checkpoint, Continuation, JobOutcome, Step, StreamInput, Wait,
};
use ciel_model::{Handle, Name, StrandKey};
use ciel_node::{AttemptKey, Slot, WorkerKey};

use crate::begun::spawns_begun;
use crate::copies::Copies;
use crate::entry::{CHECKPOINT, end_of, may_compact};
use crate::kept::{Attempts, Note, Saved};
use crate::line::Line;
use crate::memory::Store;
use crate::open_streams::Streams;
use crate::program::{Kind, Scenario};
use crate::random::Random;
use crate::results::Results;
use crate::script::{Move, Script, descriptor};
use crate::setup::{engine_of, policy_of};
use crate::summaries::Summaries;
use crate::told::Told;
use crate::trace::Trace;

/// Happenings after which a run is taken to be endless.
pub const HAPPENINGS_MAX: u64 = 200_000;

/// Microseconds that one act takes at most, beside its declared time.
const ACT_US_MAX: usize = 100;

/// Of so many attempts that may take long one does.
pub(crate) const STRAGGLES: usize = 4;

/// Microseconds after which a thread whose script runs for ever looks whether it is to stop.
const HANG_US: u64 = 10_000;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Happening {
    Turn(AttemptKey),
    Act(AttemptKey),
    Dead(AttemptKey),
    Hello(WorkerKey),
    Withdrawn(AttemptKey),
    LookedUp(AttemptKey),
    Tick,
    Frontier,
    StoreShrank,
    StoreFreed,
    Fault(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    Acting,
    Asking,
    Preempted,
    /// A process whose output is not read.
    Paused,
    Hanging,
}

/// An attempt in its place.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) script: Script,
    pub(crate) strand: StrandKey,
    pub(crate) slot: Slot,
    pub(crate) mood: Mood,
    pub(crate) continuation: Continuation,
    /// What it reads while that is written.
    pub(crate) streams: Vec<StreamInput>,
    /// The graph has ended it; it does not know yet.
    pub(crate) stopped: bool,
    /// It is a process that passes its slot on.
    pub(crate) passes_on: bool,
}

/// What the world has to do about a bound of waiting output, and what it has seen of it.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// A look at the frontier is scheduled.
    pub(crate) is_scheduled: bool,
    /// Most bytes that waited after an event.
    pub(crate) waiting_bytes_max: u64,
    /// Events so far.
    pub(crate) events: u64,
}

/// A world in which one scenario runs.
#[derive(Debug)]
pub struct World<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) now: u64,
    pub(crate) random: Random,
    pub(crate) engine: Engine,
    pub(crate) processes: BTreeMap<AttemptKey, Process>,
    pub(crate) copies: Copies,
    pub(crate) saved: Vec<Script>,
    pub(crate) results: Results,
    /// Living workers, and the starts that each has received and not begun.
    pub(crate) workers: BTreeMap<WorkerKey, VecDeque<Ahead>>,
    pub(crate) line: Line,
    pub(crate) attempts: Attempts,
    pub(crate) summaries: Summaries,
    pub(crate) streams: Streams,
    pub(crate) kept: Saved,
    pub(crate) trace: Trace,
    pub(crate) room: Room,
    pub(crate) store: Store,
    heap: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    sequence: u64,
    ticks_at: Option<u64>,
    /// What came out in order.
    pub output: String,
    /// How the job ended.
    pub ending: Option<JobOutcome>,
    /// How often the engine was lost.
    pub crashes: u64,
    /// How often a strand resumed from a checkpoint.
    pub restored: u64,
    /// How often actions of a strand were undone.
    pub rolled_back: u64,
    /// Retries that spawned tasks again which had failed.
    pub repeated: u64,
    /// Children that ran in place in attempts that came to their end.
    pub called: u64,
    /// Times that a task released handles.
    pub released: u64,
    /// How often a worker began a prefetched start by itself.
    pub followed: u64,
    /// How often a process began where another one had ended.
    pub passed_on: u64,
    /// How often a task that had begun in a worker took over the slot of its spawner.
    pub taken_over: u64,
    /// Attempts that have spawned a task that has begun, and have not waited since.
    pub(crate) begun: BTreeSet<AttemptKey>,
    /// How often a task began in a worker that ran another one.
    pub together: u64,
    /// The resolutions that replayed tasks received at their start.
    pub recalled: u64,
    /// How often a strand resumed with its live copy in a worker.
    pub resumed: u64,
}

impl<'a> World<'a> {
    /// The world of `scenario`, before anything happened.
    pub fn new(scenario: &'a Scenario, keeps_trace: bool) -> World<'a> {
        let random = Random::new(scenario.seed);
        let kept = Saved::new(scenario);
        let mut coordinator = Coordinator::new(policy_of(scenario), false);
        coordinator.watch(true);
        if kept.records_all {
            coordinator.record_to(Box::new(kept.records.clone()));
        }
        World {
            scenario,
            now: 0,
            random,
            engine: engine_of(scenario, coordinator),
            processes: BTreeMap::new(),
            copies: Copies::default(),
            saved: Vec::new(),
            results: Results::default(),
            workers: BTreeMap::new(),
            line: Line::default(),
            attempts: Attempts::default(),
            summaries: Summaries::default(),
            streams: Streams::default(),
            kept,
            trace: Trace::new(keeps_trace),
            room: Room::default(),
            store: Store::new(scenario.seed),
            heap: BinaryHeap::new(),
            sequence: 0,
            ticks_at: None,
            output: String::new(),
            ending: None,
            crashes: 0,
            restored: 0,
            rolled_back: 0,
            repeated: 0,
            called: 0,
            released: 0,
            followed: 0,
            passed_on: 0,
            taken_over: 0,
            begun: BTreeSet::new(),
            together: 0,
            recalled: 0,
            resumed: 0,
        }
    }

    /// Runs the program to its end and lets everything that was stopped die.
    pub fn run(&mut self) {
        for (index, (at, _)) in self.scenario.faults.iter().enumerate() {
            self.schedule(*at, Happening::Fault(index));
        }
        self.submit_root();
        while let Some(Reverse((at, _, happening))) = self.heap.pop() {
            assert!(self.sequence < HAPPENINGS_MAX, "the run does not end");
            self.now = at;
            self.trace.add(at, "happens", &happening);
            self.happen(happening);
            self.engine.check_all();
        }
        self.release_output();
        self.check_end();
    }

    pub(crate) fn submit_root(&mut self) {
        let root = descriptor(self.scenario, 0, Vec::new(), self.scenario.tasks[0].outputs);
        self.submit(graph::Event::RootSubmitted {
            name: Name::of_root(b"sim"),
            descriptor: root,
        });
    }

    /// What it recorded of its environment.
    pub fn told(&self) -> Told {
        self.kept.noted.told()
    }

    /// How often a strand of a pure task was replayed although its process lived.
    pub fn moved(&self) -> u64 {
        self.copies.moved
    }

    /// What happened, if it is kept.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Values that tasks read as streams, and those of them that were not stored.
    pub fn streams_read(&self) -> [u64; 2] {
        [self.streams.read, self.streams.direct]
    }

    /// The counters of the graph.
    pub fn counts(&self) -> ciel_graph::Counts {
        self.engine.graph().counts()
    }

    /// How many tasks have handed over to a successor, by their summaries.
    pub fn handed_over(&self) -> u64 {
        self.summaries.handed_over()
    }

    fn check_end(&self) {
        assert!(self.ending.is_some(), "stuck: {:#?}", self.waiting());
        let node = self.engine.node();
        assert_eq!(node.placed(), 0, "places taken at the end");
        assert_eq!(node.queued(), 0, "tasks queued at the end");
        assert!(self.engine.is_quiet(), "slots taken at the end");
        let output = self.engine.state().output();
        assert!(
            output.stopped_at().is_some() || output.frontier().is_none(),
            "output held for ever"
        );
        self.summaries.check(&self.counts());
    }

    fn waiting(&self) -> Vec<String> {
        let graph = self.engine.graph();
        let views = graph.all().into_iter().filter_map(|task| graph.view(task));
        views
            .map(|view| format!("{}: {:?}", view.label, view.situation))
            .collect()
    }

    pub(crate) fn schedule(&mut self, at: u64, happening: Happening) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, happening)));
    }

    pub(crate) fn schedule_soon(&mut self, happening: Happening) {
        let delay = 1 + self.random.below(ACT_US_MAX) as u64;
        self.schedule(self.now + delay, happening);
    }

    /// Only what comes from outside still happens.
    pub(crate) fn forget_happenings(&mut self) {
        self.ticks_at = None;
        self.room = Room::default();
        self.store.forget();
        let outside = |happening: &Happening| matches!(happening, Happening::Fault(_));
        self.heap
            .retain(|Reverse((_, _, happening))| outside(happening));
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Turn(attempt) => self.take_turn(attempt),
            Happening::Act(attempt) => self.act(attempt),
            Happening::Dead(attempt) => self.die(attempt),
            Happening::Hello(worker) => self.say_hello(worker),
            Happening::Withdrawn(attempt) => self.give_back_process(attempt),
            Happening::LookedUp(attempt) => {
                let answer = self.results.answer(attempt);
                self.submit(answer);
            }
            Happening::Tick => self.submit(Event::Ticked),
            Happening::Frontier => self.look_at_frontier(),
            Happening::StoreShrank => self.give_memory_back(),
            Happening::StoreFreed => self.submit(Event::StoreFreed),
            Happening::Fault(index) => self.strike(self.scenario.faults[index].1),
        }
        if let Some(at) = self.engine.next_deadline()
            && self
                .ticks_at
                .is_none_or(|ticks_at| ticks_at <= self.now || ticks_at > at)
        {
            // A deadline may have passed while no engine was live.
            let at = at.max(self.now);
            self.ticks_at = Some(at);
            // A deadline of the engine that was lost may be past.
            self.schedule(at.max(self.now), Happening::Tick);
        }
    }

    fn act(&mut self, attempt: AttemptKey) {
        let failures = self.attempts.failures_of(attempt.task);
        let Some(process) = self.processes.get_mut(&attempt) else {
            return;
        };
        let slot = process.slot;
        if slot == Slot::Thread && self.engine.is_stopping(attempt) {
            self.processes.remove(&attempt);
            return self.leave(attempt, slot);
        }
        match process.mood {
            Mood::Acting => {}
            // A thread looks up now and then.
            Mood::Hanging => return self.schedule(self.now + HANG_US, Happening::Act(attempt)),
            Mood::Asking | Mood::Preempted | Mood::Paused => return,
        }
        let raced = process.script.races.len();
        let next = process.script.advance(self.scenario, failures);
        let strand = process.strand;
        let stale = process.stopped;
        if process.script.races.len() > raced && !stale {
            let (name, races) = (process.script.name(), process.script.races.clone());
            self.kept.note(Note::Raced(name, races));
        }
        match next {
            Move::Wait(time) => self.schedule(self.now + time, Happening::Act(attempt)),
            Move::Straggle(time) => {
                let time = if self.random.one_in(STRAGGLES) {
                    time
                } else {
                    1
                };
                self.schedule(self.now + time, Happening::Act(attempt));
            }
            Move::Write(text, after) => {
                if !stale {
                    self.write(strand, after, text);
                }
                if stale || !self.asks_for_room(attempt) {
                    self.schedule_soon(Happening::Act(attempt));
                }
            }
            Move::Step(step) => self.step(attempt, step),
            Move::Block(on, wait) => self.block_or_read(attempt, on, wait),
            Move::Watch(handle) => self.watch(attempt, handle),
            Move::Finish(_) | Move::Tail(..) | Move::Fail(_) => self.end(attempt, next),
            Move::Hang => {
                process.mood = Mood::Hanging;
                if slot == Slot::Thread {
                    self.schedule_soon(Happening::Act(attempt));
                }
            }
        }
        if let Slot::Worker(worker) = slot
            && self.processes.contains_key(&attempt)
        {
            self.give_back_starts(worker);
        }
    }

    fn step(&mut self, attempt: AttemptKey, step: Step) {
        let spawns = matches!(step, Step::Spawn { .. });
        if spawns {
            self.kept.note(Note::Spawned(attempt));
            self.results.forget(attempt.task);
        }
        self.released += u64::from(matches!(step, Step::Release { .. }));
        self.note_opened(attempt, &step);
        self.tell_step(attempt, step);
        if spawns && self.pauses_with_children(attempt) {
            return;
        }
        let aside = (spawns && self.scenario.serial) || self.random.one_in(6);
        let Some(process) = self.processes.get_mut(&attempt) else {
            return;
        };
        if aside && process.slot == Slot::Thread {
            process.mood = Mood::Preempted;
            self.submit(Event::TaskPreempted { attempt });
        } else {
            self.schedule_soon(Happening::Act(attempt));
        }
    }

    fn block_or_read(&mut self, attempt: AttemptKey, on: Vec<Handle>, wait: Wait) {
        if !self.read_stream(attempt, &on) {
            self.block(attempt, on, wait);
        }
    }

    /// Some tasks that a worker spawns have begun in it by then.
    pub(crate) fn tell_step(&mut self, attempt: AttemptKey, step: Step) {
        let AttemptKey { task, number } = attempt;
        let process = &self.processes[&attempt];
        let has_begun = spawns_begun(self.scenario, &process.script, process.slot, &step);
        let event = graph::Event::TaskStepped {
            task,
            attempt: number,
            step,
        };
        match has_begun {
            true => {
                self.begun.insert(attempt);
                self.submit(Event::SpawnedBegun(event));
            }
            false => self.submit(event),
        }
    }

    fn watch(&mut self, attempt: AttemptKey, handle: Handle) {
        let AttemptKey { task, number } = attempt;
        self.submit(graph::Event::TaskWatched {
            task,
            attempt: number,
            handle,
        });
        self.schedule_soon(Happening::Act(attempt));
    }

    fn block(&mut self, attempt: AttemptKey, on: Vec<Handle>, wait: Wait) {
        let continuation = self.choose_continuation(attempt);
        let process = self.processes.get_mut(&attempt).expect("it acts");
        let compacts = may_compact(&continuation, wait, process.slot) && self.random.one_in(2);
        process.mood = Mood::Asking;
        process.continuation = continuation.clone();
        let (kept, on) = match compacts {
            true => {
                let saved = matches!(continuation, Continuation::Saved(_));
                let (kept, on) = process.script.compact(saved);
                (Some(kept), on)
            }
            false => (None, on),
        };
        if let Continuation::Saved(_) = continuation {
            self.saved.push(process.script.clone());
        }
        let checkpoint = self.take_checkpoint(attempt, wait);
        let caller = self.caller(attempt);
        let event = graph::Event::TaskBlocked {
            task: attempt.task,
            attempt: attempt.number,
            kept,
            on,
            wait,
            continuation,
            checkpoint: checkpoint.map(Box::new),
        };
        let (reply, effects) = self.ask(event, caller);
        self.after_block(attempt, reply);
        self.perform_all(effects);
    }

    /// In whose name a task in its slot speaks.
    pub(crate) fn caller(&self, attempt: AttemptKey) -> Caller {
        match self.processes[&attempt].slot {
            Slot::Thread => Caller::Thread,
            Slot::Process => Caller::Nobody,
            Slot::Worker(worker) => Caller::Worker {
                worker,
                follows: None,
                is_last: true,
            },
        }
    }

    pub(crate) fn after_block(&mut self, attempt: AttemptKey, reply: Reply) {
        let slot = self.processes[&attempt].slot;
        let gives_slot = self.begun.contains(&attempt) && matches!(reply, Reply::Begin(_));
        self.taken_over += u64::from(gives_slot);
        if !matches!(reply, Reply::Continue { .. }) {
            self.begun.remove(&attempt);
        }
        match reply {
            Reply::Continue { answers, ended } => {
                let process = self.processes.get_mut(&attempt).expect("it asked");
                process.script.answer(answers, ended);
                process.mood = Mood::Acting;
                self.schedule_soon(Happening::Act(attempt));
                if let Slot::Worker(worker) = slot {
                    self.give_all_back(worker);
                }
            }
            Reply::Suspended => self.suspend(attempt),
            Reply::Begin(begun) => {
                self.suspend(attempt);
                let Slot::Worker(worker) = slot else {
                    unreachable!("only a worker gets the next task with a reply");
                };
                self.begin_in_worker(worker, *begun);
            }
            Reply::Stopped => {
                self.processes.remove(&attempt);
                self.forget_starts(slot);
            }
            reply => unreachable!("{reply:?} to one that waits"),
        }
    }

    /// Sometimes a strand that waits for one object can be replayed from there. One whose output is
    /// shorter than before must not: the output that it is compared with began earlier.
    fn take_checkpoint(&mut self, attempt: AttemptKey, wait: Wait) -> Option<Checkpoint> {
        let process = &self.processes[&attempt];
        let replayable = self.scenario.tasks[process.script.definition].replayable;
        let behind = self.engine.state().is_behind(process.strand);
        let apt = self.scenario.checkpoints && replayable && wait == Wait::ALL && !behind;
        if !apt || self.kept.chance.one_in(2) {
            return None;
        }
        let mut script = process.script.clone();
        let (kept, _) = script.compact(false);
        script.forget_told();
        let state = (CHECKPOINT | self.saved.len() as u64)
            .to_be_bytes()
            .to_vec()
            .into();
        self.saved.push(script);
        Some(Checkpoint { state, kept })
    }

    /// A live copy needs a home; a strand that cannot be replayed must not depend on one.
    pub(crate) fn choose_continuation(&mut self, attempt: AttemptKey) -> Continuation {
        let definition = &self.scenario.tasks[self.processes[&attempt].script.definition];
        let thread = definition.kind == Kind::Thread;
        let homeless = definition.kind == Kind::Process;
        match self.random.below(4) {
            0 if definition.replayable => Continuation::Replay,
            1 | 2 if thread || (definition.replayable && !homeless) => Continuation::Live,
            _ => Continuation::Saved((self.saved.len() as u64).to_be_bytes().to_vec().into()),
        }
    }

    fn end(&mut self, attempt: AttemptKey, last: Move) {
        let last = self.with_passed(attempt, last);
        let process = self.processes.remove(&attempt).expect("it acts");
        self.called += process.script.called;
        let event = end_of(attempt, last, process.script.printed);
        self.results.note(&event);
        if let Slot::Worker(worker) = process.slot {
            return self.end_in_worker(worker, attempt, event);
        }
        if process.passes_on && self.end_as_process(attempt, &event) {
            return;
        }
        let end = Some(event);
        self.submit(Event::TurnEnded { attempt, end });
    }

    /// An attempt that was stopped is gone. Its worker is killed for it, unless others in it must
    /// not be lost: then it ends by itself in time.
    fn die(&mut self, attempt: AttemptKey) {
        let Some(process) = self.processes.get(&attempt) else {
            return;
        };
        let slot = process.slot;
        if let Slot::Worker(worker) = slot
            && self.may_kill(worker)
        {
            return self.kill_worker(worker);
        }
        self.processes.remove(&attempt);
        self.leave(attempt, slot);
    }

    /// An attempt that the graph has ended leaves its slot.
    pub(crate) fn leave(&mut self, attempt: AttemptKey, slot: Slot) {
        self.forget_starts(slot);
        self.submit(Event::TurnEnded { attempt, end: None });
    }
}
