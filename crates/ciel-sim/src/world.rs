//! One run in virtual time: a heap of things that will happen, and the processes that act.
//!
//! Every delay and choice comes from the scenario's seed. This module moves time and lets scripts
//! act and faults strike; it does not know how events travel between the machines. Read next:
//! `driver`, which does.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use ciel_coordinator::Coordinator;
use ciel_graph::{Checkpoint, Continuation, Ending, Event, Policy, Step, Wait};
use ciel_model::{Failure, FailureKind, Handle, Label, Name, Resources, StrandKey, TaskKey};
use ciel_node::{Capacity, Node, Place, Run, WorkerKey};

use crate::ahead::Line;
use crate::driver::Pending;
use crate::kept::{Attempts, Kept, Note};
use crate::oracle::Races;
use crate::program::{Act, Fault, Kind, Scenario};
use crate::random::Random;
use crate::script::{Move, Script, descriptor};
use crate::summaries::Summaries;
use crate::trace::Trace;

/// Happenings after which a run is taken to be endless.
pub const HAPPENINGS_MAX: u64 = 200_000;

/// Microseconds that one act takes at most, beside what it asks for.
const ACT_US_MAX: usize = 100;

/// Marks the index of a saved script as that of a checkpoint.
pub(crate) const CHECKPOINT: u64 = 1 << 63;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Happening {
    Act(Run),
    Dead(Run),
    Hello(WorkerKey),
    Tick,
    Fault(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    Acting,
    Asking,
    Preempted,
}

/// An attempt in its place.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) script: Script,
    pub(crate) strand: StrandKey,
    pub(crate) place: Place,
    pub(crate) mood: Mood,
    pub(crate) continuation: Continuation,
    /// The graph has ended it; it does not know yet.
    pub(crate) stopped: bool,
}

/// A world in which one scenario runs.
#[derive(Debug)]
pub struct World<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) now: u64,
    pub(crate) random: Random,
    pub(crate) coordinator: Coordinator,
    pub(crate) node: Node,
    pub(crate) queue: VecDeque<Pending>,
    pub(crate) processes: BTreeMap<Run, Process>,
    pub(crate) places: BTreeMap<Run, Place>,
    pub(crate) parked: BTreeMap<TaskKey, Script>,
    pub(crate) saved: Vec<Script>,
    pub(crate) workers: BTreeMap<WorkerKey, Vec<TaskKey>>,
    pub(crate) refused: BTreeSet<Run>,
    pub(crate) attempts: Attempts,
    pub(crate) summaries: Summaries,
    pub(crate) kept: Kept,
    pub(crate) line: Line,
    pub(crate) trace: Trace,
    heap: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    sequence: u64,
    ticks_at: Option<u64>,
    /// What came out in order.
    pub output: String,
    /// How the job ended.
    pub ending: Option<Ending>,
    /// How often the engine was lost.
    pub crashes: u64,
    /// How often a strand went on from a checkpoint.
    pub restored: u64,
}

impl<'a> World<'a> {
    /// The world of `scenario`, before anything happened.
    pub fn new(scenario: &'a Scenario, keeps_trace: bool) -> World<'a> {
        let random = Random::new(scenario.seed);
        let kept = Kept::new(scenario);
        let mut coordinator = Coordinator::new(policy_of(scenario), false);
        coordinator.watch(true);
        if kept.records_all {
            coordinator.record_to(Box::new(kept.records.clone()));
        }
        World {
            scenario,
            now: 0,
            random,
            coordinator,
            node: Node::new(capacity_of(scenario)),
            queue: VecDeque::new(),
            processes: BTreeMap::new(),
            places: BTreeMap::new(),
            parked: BTreeMap::new(),
            saved: Vec::new(),
            workers: BTreeMap::new(),
            refused: BTreeSet::new(),
            attempts: Attempts::default(),
            summaries: Summaries::default(),
            kept,
            line: Line::default(),
            trace: Trace::new(keeps_trace),
            heap: BinaryHeap::new(),
            sequence: 0,
            ticks_at: None,
            output: String::new(),
            ending: None,
            crashes: 0,
            restored: 0,
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
            self.coordinator.graph().check_all();
            self.node.check_all();
        }
        self.let_out();
        self.check_end();
    }

    pub(crate) fn submit_root(&mut self) {
        let root = descriptor(self.scenario, 0, Vec::new(), self.scenario.tasks[0].outputs);
        self.submit(Event::RootSubmitted {
            name: Name::of_root(b"sim"),
            descriptor: root,
        });
    }

    /// What each task was told in its races, by its name.
    pub fn races(&self) -> &Races {
        &self.kept.noted.races
    }

    /// Whether a single task was cancelled, or was about to be.
    pub fn was_cancelled(&self) -> bool {
        self.kept.noted.cancelled
    }

    /// What happened, if it is kept.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// How often a worker went on by itself with what it was told ahead.
    pub fn followed(&self) -> u64 {
        self.line.followed
    }

    /// The counters of the graph.
    pub fn counts(&self) -> ciel_graph::Counts {
        self.coordinator.graph().counts()
    }

    /// How many tasks have handed over to a successor, as their summaries tell.
    pub fn handed_over(&self) -> u64 {
        self.summaries.handed_over()
    }

    fn check_end(&self) {
        assert!(self.ending.is_some(), "stuck: {:#?}", self.waiting());
        assert_eq!(self.node.placed(), 0, "places taken at the end");
        assert_eq!(self.node.queued(), 0, "tasks queued at the end");
        let output = self.coordinator.output();
        assert!(
            output.stopped_at().is_some() || output.frontier().is_none(),
            "output held for ever"
        );
        self.summaries.check(&self.counts());
    }

    fn waiting(&self) -> Vec<String> {
        let graph = self.coordinator.graph();
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
        let outside = |happening: &Happening| matches!(happening, Happening::Fault(_));
        self.heap
            .retain(|Reverse((_, _, happening))| outside(happening));
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Act(run) => self.act(run),
            Happening::Dead(run) => self.die(run),
            Happening::Hello(worker) => self.say_hello(worker),
            Happening::Tick => {
                self.submit(Event::Ticked);
                self.tell_node(ciel_node::Event::Ticked);
            }
            Happening::Fault(index) => self.strike(self.scenario.faults[index].1),
        }
        let deadlines = [
            self.coordinator.graph().next_deadline(),
            self.node.next_deadline(),
        ];
        if let Some(at) = deadlines.into_iter().flatten().min()
            && self
                .ticks_at
                .is_none_or(|ticks_at| ticks_at <= self.now || ticks_at > at)
        {
            // A deadline may have passed while nobody was there to hear of it.
            let at = at.max(self.now);
            self.ticks_at = Some(at);
            self.schedule(at, Happening::Tick);
        }
    }

    fn act(&mut self, run: Run) {
        let failures = self.attempts.failures_of(run.task);
        let Some(process) = self.processes.get_mut(&run) else {
            return;
        };
        if process.mood != Mood::Acting {
            return;
        }
        let place = process.place;
        let next = process.script.advance(self.scenario, failures);
        let strand = process.strand;
        let stale = process.stopped;
        match next {
            Move::Wait(time) => self.schedule(self.now + time, Happening::Act(run)),
            Move::Write(text) => {
                if !stale {
                    self.write(strand, text);
                }
                self.schedule_soon(Happening::Act(run));
            }
            Move::Step(step) => self.step(run, step),
            Move::Block(on, wait) => self.block(run, on, wait),
            Move::Watch(handle) => self.watch(run, handle),
            Move::Finish(_) | Move::Tail(_) | Move::Fail(_) => self.end(run, next),
            Move::Hang => {}
        }
        if matches!(place, Place::Worker(_)) && self.processes.contains_key(&run) {
            self.tell_ahead(run);
        }
    }

    fn step(&mut self, run: Run, step: Step) {
        let spawns = matches!(step, Step::Spawn(_));
        let process = self.processes.get(&run).expect("it acts");
        if matches!(step, Step::Input { .. }) && !process.stopped {
            let (name, races) = (process.script.name(), process.script.races.clone());
            self.kept.note(Note::Raced(name, races));
        }
        if spawns {
            self.kept.note(Note::Spawned(run));
        }
        let Run { task, attempt } = run;
        self.submit(Event::TaskStepped {
            task,
            attempt,
            step,
        });
        let aside = (spawns && self.scenario.serial) || self.random.one_in(6);
        let Some(process) = self.processes.get_mut(&run) else {
            return;
        };
        if aside && process.place == Place::Thread {
            process.mood = Mood::Preempted;
            self.tell_node(ciel_node::Event::TaskPreempted { run });
        } else {
            self.schedule_soon(Happening::Act(run));
        }
    }

    fn watch(&mut self, run: Run, handle: Handle) {
        let Run { task, attempt } = run;
        self.submit(Event::TaskWatched {
            task,
            attempt,
            handle,
        });
        self.schedule_soon(Happening::Act(run));
    }

    fn block(&mut self, run: Run, on: Vec<Handle>, wait: Wait) {
        let continuation = self.choose_continuation(run);
        let compacts = continuation != Continuation::Replay && self.random.one_in(2);
        let process = self.processes.get_mut(&run).expect("it acts");
        process.mood = Mood::Asking;
        process.continuation = continuation.clone();
        let (kept, on) = match compacts {
            true => {
                let (kept, on) = process.script.compact();
                (Some(kept), on)
            }
            false => (None, on),
        };
        if let Continuation::Saved(_) = continuation {
            self.saved.push(process.script.clone());
        }
        let checkpoint = self.take_checkpoint(run, wait);
        self.submit(Event::TaskBlocked {
            task: run.task,
            attempt: run.attempt,
            kept,
            on,
            wait,
            continuation,
            checkpoint,
        });
    }

    /// Sometimes a strand that waits for one thing can be run again from there. One whose output
    /// has not come as far as before must not: what it is compared with began earlier.
    fn take_checkpoint(&mut self, run: Run, wait: Wait) -> Option<Checkpoint> {
        let process = &self.processes[&run];
        let replayable = self.scenario.tasks[process.script.definition].replayable;
        let behind = self
            .coordinator
            .output()
            .is_behind(strand_of(process.strand));
        let apt = self.scenario.checkpoints && replayable && wait == Wait::ALL && !behind;
        if !apt || self.kept.chance.one_in(2) {
            return None;
        }
        let mut script = process.script.clone();
        let (kept, _) = script.compact();
        script.forget_told();
        let state = (CHECKPOINT | self.saved.len() as u64)
            .to_be_bytes()
            .to_vec()
            .into();
        self.saved.push(script);
        Some(Checkpoint { state, kept })
    }

    /// A live copy needs a home; a strand that cannot be replayed must not depend on one.
    fn choose_continuation(&mut self, run: Run) -> Continuation {
        let definition = &self.scenario.tasks[self.processes[&run].script.definition];
        let thread = definition.kind == Kind::Thread;
        let homeless = definition.kind == Kind::Process;
        match self.random.below(4) {
            0 if definition.replayable => Continuation::Replay,
            1 | 2 if thread || (definition.replayable && !homeless) => Continuation::Live,
            _ => Continuation::Saved((self.saved.len() as u64).to_be_bytes().to_vec().into()),
        }
    }

    fn end(&mut self, run: Run, last: Move) {
        let Run { task, attempt } = run;
        let process = self.processes.remove(&run).expect("it acts");
        let printed = process.script.printed;
        let event = match last {
            Move::Finish(outputs) => Event::TaskFinished {
                task,
                attempt,
                outputs,
                printed,
            },
            Move::Tail(descriptor) => Event::TaskTailSpawned {
                task,
                attempt,
                descriptor,
            },
            Move::Fail(failure) => Event::TaskFailed {
                task,
                attempt,
                failure,
            },
            _ => unreachable!("not an end"),
        };
        if !self.end_followed(run, &event) {
            self.submit(event);
            self.tell_node(ciel_node::Event::TaskLeft { run, parked: false });
        }
    }

    fn die(&mut self, run: Run) {
        let Some(process) = self.processes.get(&run) else {
            return;
        };
        if let Place::Worker(worker) = process.place {
            return self.kill_worker(worker);
        }
        self.processes.remove(&run);
        if let Some(returned) = self.forget_ahead(run) {
            self.tell_node(returned);
        }
        self.tell_node(ciel_node::Event::TaskLeft { run, parked: false });
    }

    fn say_hello(&mut self, worker: WorkerKey) {
        if self.workers.contains_key(&worker) {
            self.tell_node(ciel_node::Event::WorkerReady { worker });
        }
    }

    fn strike(&mut self, fault: Fault) {
        if self.ending.is_some() && fault != Fault::KillEngine {
            return;
        }
        match fault {
            Fault::KillProcess => {
                let victims: Vec<Run> = self.in_processes();
                if !victims.is_empty() {
                    let victim = victims[self.random.below(victims.len())];
                    self.kill_process(victim);
                }
            }
            Fault::KillWorker => {
                let victims: Vec<WorkerKey> = self.workers.keys().copied().collect();
                if !victims.is_empty() {
                    let victim = victims[self.random.below(victims.len())];
                    self.lose_worker(victim);
                }
            }
            Fault::KillNode => {
                let workers: Vec<WorkerKey> = self.workers.keys().copied().collect();
                workers
                    .into_iter()
                    .for_each(|worker| self.lose_worker(worker));
                self.in_processes()
                    .into_iter()
                    .for_each(|run| self.kill_process(run));
            }
            Fault::KillEngine => self.kill_engine(),
            Fault::Cancel(index) => self.cancel(index),
            Fault::CancelJob => self.cancel_job(),
        }
    }

    fn in_processes(&self) -> Vec<Run> {
        let living = self
            .processes
            .iter()
            .filter(|(_, process)| process.place == Place::Process && !process.stopped);
        living.map(|(run, _)| *run).collect()
    }

    /// Whether the oracle can still say what the job does when this task loses its process.
    fn may_lose(&self, task: TaskKey, script: &Script) -> bool {
        let losses = self.kept.noted.losses.get(&task).copied().unwrap_or(0);
        let definition = &self.scenario.tasks[script.definition];
        let process = definition.kind == Kind::Process;
        // Children of an attempt whose output is out already cannot be taken back.
        let spawns = definition
            .acts
            .iter()
            .any(|act| matches!(act, Act::Spawn(..)));
        let held = !definition.live || definition.retries > 0;
        match definition.replayable || (process && (held || !spawns)) {
            true => losses < ciel_model::limits::LOSSES_MAX,
            false if process => false,
            false => losses < self.scenario.spare_attempts(script.definition),
        }
    }

    fn kill_process(&mut self, run: Run) {
        if self.may_lose(run.task, &self.processes[&run].script) {
            self.processes.remove(&run);
            self.lose(run);
            self.tell_node(ciel_node::Event::TaskLeft { run, parked: false });
        }
    }

    fn lose_worker(&mut self, worker: WorkerKey) {
        let busy = |process: &&Process| process.place == Place::Worker(worker);
        let allowed = self.processes.iter().all(|(run, process)| {
            !busy(&process) || process.stopped || self.may_lose(run.task, &process.script)
        });
        if allowed && self.workers.contains_key(&worker) {
            self.kill_worker(worker);
        }
    }

    /// The worker is gone; so is what ran in it, and the node tells what was parked there.
    pub(crate) fn kill_worker(&mut self, worker: WorkerKey) {
        self.workers.remove(&worker);
        self.forget_line_of(Place::Worker(worker));
        let victims: Vec<Run> = self
            .processes
            .iter()
            .filter(|(_, process)| process.place == Place::Worker(worker))
            .map(|(run, _)| *run)
            .collect();
        self.tell_node(ciel_node::Event::WorkerGone { worker });
        for run in victims {
            let process = self.processes.remove(&run);
            if process.is_some_and(|process| !process.stopped) {
                self.lose(run);
            }
            self.tell_node(ciel_node::Event::TaskLeft { run, parked: false });
        }
    }

    fn lose(&mut self, run: Run) {
        self.kept.note(Note::Lost(run.task));
        let failure = Failure::new(FailureKind::WorkerLost, self.label(run.task), "it died");
        let Run { task, attempt } = run;
        self.submit(Event::TaskLost {
            task,
            attempt,
            failure,
        });
    }

    pub(crate) fn label(&self, task: TaskKey) -> Label {
        let view = self.coordinator.graph().view(task);
        view.map_or(
            Label {
                what: "gone".into(),
                name: Name(0),
            },
            |view| view.label,
        )
    }

    fn cancel(&mut self, index: usize) {
        let all = self.coordinator.graph().all();
        if !all.is_empty() {
            self.kept.note(Note::Cancelled);
            let task = all[index % all.len()];
            self.submit(Event::CancelRequested { task });
        }
    }

    fn cancel_job(&mut self) {
        let origin = Label {
            what: "user".into(),
            name: Name(0),
        };
        let failure = Failure::new(FailureKind::Cancelled, origin, "interrupted");
        self.submit(Event::JobCancelled { failure });
    }
}

/// The machine of a scenario.
pub(crate) fn capacity_of(scenario: &Scenario) -> Capacity {
    let resources = Resources {
        millicores: scenario.slots * 1000,
        ..Resources::default()
    };
    Capacity {
        resources,
        threads: scenario.slots,
        serial: scenario.serial,
    }
}

/// What a failure does in a scenario.
pub(crate) fn policy_of(scenario: &Scenario) -> Policy {
    Policy {
        keep_going: scenario.keep_going,
        fail_fast: scenario.fail_fast,
    }
}

fn strand_of(strand: StrandKey) -> ciel_ordered::StrandKey {
    ciel_ordered::StrandKey(strand.0)
}
