//! What the world does about the engine's effects and replies, as the runtime does.
//!
//! Nothing is decided here: threads take the turns that they are offered, processes and workers run
//! what they receive and stop on request. It does not know what scripts do. Read next: `world`.

use std::collections::VecDeque;

use ciel_engine::{Alive, Begun, Caller, Effect, Event, Known, Notice, Reply, passes_on};
use ciel_graph::{self as graph, Assignment, Continuation};
use ciel_model::{StrandKey, limits};
use ciel_node::{AttemptKey, Slot, WorkerKey};
use ciel_ordered::Piece;

use crate::ahead::attempt_of;
use crate::crash::{file_of, take_out, words_of};
use crate::entry::{self, Beginning};
use crate::kept::{Note, Snapshot};
use crate::script::Script;
use crate::setup::ready;
use crate::summaries::is_cut;
use crate::world::{Happening, Mood, Process, World};

/// Kinds of workers in a scenario.
const POOLS_MAX: usize = 4;

impl World<'_> {
    /// Submits an event without a caller.
    pub(crate) fn submit(&mut self, event: impl Into<Event>) {
        let reply = self.tell(event, Caller::Nobody);
        assert_eq!(reply, Reply::Nothing, "nobody has asked");
    }

    /// Submits an event and performs its effects.
    pub(crate) fn tell(&mut self, event: impl Into<Event>, caller: Caller) -> Reply {
        let (reply, effects) = self.ask(event, caller);
        self.perform_all(effects);
        reply
    }

    /// Submits an event for a caller that handles the reply before the effects are performed: a
    /// suspended task can resume with one of them.
    pub(crate) fn ask(&mut self, event: impl Into<Event>, caller: Caller) -> (Reply, Vec<Effect>) {
        let event = event.into();
        self.trace.add(self.now, "engine <-", &(caller, &event));
        let mut effects = Vec::new();
        let record = self.kept.records.all().len();
        self.change_room();
        let reply = self.engine.tell(self.now, event, caller, &mut effects);
        self.note_ended(record, &effects);
        self.trace.add(self.now, "reply", &reply);
        self.check_accepted();
        assert_eq!(
            self.engine.stall(Alive::ALL),
            None,
            "nothing can happen any more"
        );
        (reply, effects)
    }

    /// Notes which tasks have ended by an event, which is that record: others that follow from it,
    /// such as the begin of a task, may be lost when it is not.
    fn note_ended(&mut self, record: usize, effects: &[Effect]) {
        for effect in effects {
            if let Effect::TaskEnded(summary) = effect {
                let (task, cut) = (summary.label.name, is_cut(summary));
                self.kept.note_at(record, Note::Ended { task, cut });
            }
        }
    }

    pub(crate) fn perform_all(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.trace.add(self.now, "engine ->", &effect);
            self.perform(effect);
        }
        self.release();
        self.note_room();
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::TurnOffered { attempt } => self.schedule_soon(Happening::Turn(attempt)),
            Effect::NextTurn { attempt } => {
                let process = self.processes.get_mut(&attempt).expect("it was preempted");
                process.mood = Mood::Acting;
                self.schedule_soon(Happening::Act(attempt));
            }
            Effect::DropScript { task } => {
                self.copies.drop_one(task);
                self.processes.retain(|attempt, process| {
                    attempt.task != task || process.mood != Mood::Preempted
                });
            }
            Effect::FindResult(query) => {
                let attempt = query.attempt;
                self.results.ask(*query);
                self.schedule_soon(Happening::LookedUp(attempt));
            }
            Effect::StartProcess(assignment) => {
                self.line.take(attempt_of(&assignment));
                self.begin(assignment, Slot::Process);
            }
            Effect::SendProcess(assignment) => self.line.push(*assignment),
            Effect::WithdrawProcess(attempt) => self.schedule_soon(Happening::Withdrawn(attempt)),
            Effect::ProcessFollowed(assignment) => self.run_on(assignment),
            Effect::StartInWorker { worker, begun } => self.begin_in_worker(worker, *begun),
            Effect::ReadOn(attempt) => self.read_on(attempt),
            Effect::StopProcess(attempt) | Effect::StopInWorker { attempt, .. } => {
                self.stop(attempt)
            }
            Effect::StartWorker { worker, .. } => self.start_worker(worker),
            Effect::StopWorker { worker } => {
                self.workers.remove(&worker);
                self.copies.on_worker_stopped(worker);
            }
            Effect::NotifyWatcher {
                attempt, notice, ..
            } => self.check_notice(attempt, notice),
            Effect::DropParked { task, .. } => self.copies.drop_one(task),
            Effect::AttemptFailed { task, to, .. } => {
                self.attempts.failed(&task);
                if let Some(to) = to {
                    self.repeated += 1;
                    self.kept.note_done(Note::RolledBack(task.name, to));
                }
            }
            Effect::JobEnded(ending) => {
                assert!(self.ending.is_none(), "the job ended twice");
                self.ending = Some(*ending);
            }
            Effect::Quiet => assert!(self.engine.is_quiet() && self.ending.is_some()),
            Effect::TaskEnded(summary) => {
                self.summaries.on_ended(&summary);
            }
            Effect::Happened { happening, .. } => self.summaries.on_happened(&happening),
            Effect::ReplyLate { .. } | Effect::SendStarts { .. } => {
                unreachable!("the home is in this process")
            }
            Effect::Compare(comparison) => {
                // Which attempts fail depends on how many there were; what is given does not.
                assert!(comparison.failure.is_some(), "{comparison:?}");
            }
            Effect::ShrinkStore { bytes } => self.shrink_store(bytes),
            Effect::GrowStore { bytes } => self.grow_store(bytes),
            Effect::DropObject(_) | Effect::DeadlineMoved => {}
        }
    }

    /// What is told is the case. No root keeps its slot here when it pauses.
    fn check_notice(&self, attempt: AttemptKey, notice: Notice) {
        let Notice::Settled(handle) = notice else {
            unreachable!("{notice:?} for {attempt:?}")
        };
        let graph = self.engine.graph();
        let is_settled = graph.is_settled(attempt.task, attempt.number, handle);
        assert_ne!(
            is_settled,
            Some(false),
            "{attempt:?} was told of {handle:?}"
        );
    }

    /// One for each slot and as many spare ones, one of the root, and one of each kind that finds
    /// no room otherwise.
    fn start_worker(&mut self, worker: WorkerKey) {
        self.workers.insert(worker, VecDeque::new());
        let slots = self.scenario.slots as usize;
        let most = slots + slots.max(limits::SPARE_WORKERS_MIN) + 1 + POOLS_MAX;
        assert!(self.workers.len() <= most, "{:?}", self.workers);
        self.schedule_soon(Happening::Hello(worker));
    }

    pub(crate) fn say_hello(&mut self, worker: WorkerKey) {
        if self.workers.contains_key(&worker) {
            self.submit(ready(self.scenario, worker));
        }
    }

    /// A thread starts a task, unless it was given up meanwhile.
    pub(crate) fn take_turn(&mut self, attempt: AttemptKey) {
        match self.tell(Event::TurnTaken { attempt }, Caller::Thread) {
            Reply::Begin(begun) => self.begin(begun.assignment, Slot::Thread),
            reply => assert_eq!(reply, Reply::Nothing, "{attempt:?}"),
        }
    }

    /// A worker receives a task, and what may follow it.
    pub(crate) fn begin_in_worker(&mut self, worker: WorkerKey, begun: Begun) {
        let runs_there = |process: &Process| process.slot == Slot::Worker(worker);
        self.together += u64::from(self.processes.values().any(runs_there));
        self.begin(begun.assignment, Slot::Worker(worker));
        let starts = self.workers.get_mut(&worker).expect("it has been started");
        starts.extend(begun.ahead);
    }

    pub(crate) fn begin(&mut self, assignment: Box<Assignment>, slot: Slot) {
        self.attempts.begun(&assignment);
        let attempt = AttemptKey {
            task: assignment.task,
            number: assignment.attempt,
        };
        let process = Process {
            strand: assignment.strand,
            streams: assignment.streams.clone(),
            passes_on: slot == Slot::Process && passes_on(&assignment),
            script: self.enter(attempt, *assignment, slot),
            slot,
            mood: Mood::Acting,
            continuation: Continuation::Live,
            stopped: false,
        };
        let before = self.processes.insert(attempt, process);
        assert!(before.is_none(), "{attempt:?} began twice");
        self.schedule_soon(Happening::Act(attempt));
    }

    fn enter(&mut self, attempt: AttemptKey, assignment: Assignment, slot: Slot) -> Script {
        let (task, name) = (assignment.task, assignment.label.name);
        let is_pure = assignment.descriptor.purity.is_pure();
        let opens = !assignment.descriptor.streams.outputs.is_empty();
        let live = self.copies.take(task);
        let (mut script, beginning) = entry::enter(assignment, live, &self.saved);
        self.copies.check(task, beginning.is_replay(), is_pure);
        match beginning {
            Beginning::Start => {
                self.kept.note_done(Note::Began(name));
                if opens {
                    script.open_output();
                }
            }
            Beginning::Replay => script.recall(self.recall(attempt, slot)),
            Beginning::Restore { checkpoint } => self.restored += u64::from(checkpoint),
            Beginning::Resume => self.resumed += u64::from(matches!(slot, Slot::Worker(_))),
        }
        script
    }

    /// The resolutions that a task replayed in a worker receives; scripts on threads request them
    /// again.
    fn recall(&mut self, attempt: AttemptKey, slot: Slot) -> Known {
        let Slot::Worker(worker) = slot else {
            return Known::new();
        };
        let AttemptKey { task, number } = attempt;
        let caller = Caller::Worker {
            worker,
            follows: None,
            is_last: true,
        };
        match self.tell(
            graph::Event::TaskRecalled {
                task,
                attempt: number,
            },
            caller,
        ) {
            Reply::Recalled(known) => {
                self.recalled += known.len() as u64;
                known
            }
            reply => unreachable!("{reply:?} to a task that replays"),
        }
    }

    /// An attempt waits; what it keeps while it does is parked.
    pub(crate) fn suspend(&mut self, attempt: AttemptKey) {
        let process = self.processes.remove(&attempt).expect("it asked");
        if process.continuation == Continuation::Live {
            self.copies.park(attempt.task, process.script, process.slot);
        }
        self.forget_starts(process.slot);
    }

    fn stop(&mut self, attempt: AttemptKey) {
        let process = self
            .processes
            .get_mut(&attempt)
            .expect("what is stopped runs");
        process.stopped = true;
        if self.random.one_in(2) {
            process.mood = Mood::Asking;
        }
        self.schedule_soon(Happening::Dead(attempt));
    }

    pub(crate) fn write(&mut self, strand: StrandKey, after: u64, text: String) {
        for word in words_of(&text) {
            let piece = Piece::Bytes(word.as_bytes().to_vec());
            let state = self.engine.state_mut();
            let written = match file_of(word) {
                None => state.write(strand, after, piece),
                Some(file) => {
                    let sink = state.open_file(file);
                    state.write_file(strand, after, sink, piece)
                }
            };
            assert_eq!(written, Ok(()), "{strand:?}");
        }
        self.check_accepted();
    }

    /// Every script does the same in a replay, so nothing it writes can be refused.
    fn check_accepted(&self) {
        let refusal = self.engine.state().refusal();
        assert_eq!(refusal, None, "the ordered output refused something");
    }

    /// Output is released and snapshots are taken at random times.
    fn release(&mut self) {
        let kept = &mut self.kept;
        if kept.records_all && kept.chance.one_in(3) {
            return;
        }
        if kept.records_all && kept.chance.one_in(20) {
            let snapshot = self.engine.state().snapshot();
            kept.snapshots.push(Snapshot {
                bytes: snapshot.expect("nothing is spilled"),
                covers: kept.records.all().len(),
                released: self.output.len(),
            });
        }
        self.release_output();
    }

    /// Lets all output out that is final; all that is recorded by now must survive from now on.
    pub(crate) fn release_output(&mut self) {
        let before = self.output.len();
        take_out(self.engine.state_mut(), &mut self.output);
        if self.output.len() > before {
            self.kept.gated = self.kept.records.all().len();
        }
    }
}
