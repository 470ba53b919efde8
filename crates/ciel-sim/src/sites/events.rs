//! What a machine does about the effects of its site, and about what the home replies later.
//!
//! Threads take the turns that they are offered, processes and workers run what they receive and
//! stop on request. It does not know what scripts do. Read next: `machine`.

use std::collections::VecDeque;

use ciel_engine::{Begun, Caller, Effect, Event, Reply, passes_on};
use ciel_graph::{self as graph, Ahead, Assignment, Continuation};
use ciel_model::{Failure, FailureKind, Label, Name};
use ciel_node::{AttemptKey, Slot, WorkerKey};

use super::files::taken;
use super::machine::Machine;
use super::{Common, Local};
use crate::ahead::{assert_sent, attempt_of, gives_plain_values};
use crate::entry::{Beginning, enter};
use crate::world::{Mood, Process};

impl Machine {
    pub(super) fn perform(&mut self, common: &mut Common<'_>, effect: Effect) {
        match effect {
            Effect::TurnOffered { attempt } => self.schedule_soon(common, Local::Turn(attempt)),
            Effect::NextTurn { attempt } => {
                let process = self.processes.get_mut(&attempt).expect("it was preempted");
                process.mood = Mood::Acting;
                self.schedule_soon(common, Local::Act(attempt));
            }
            Effect::DropScript { task } => {
                self.parked.remove(&task);
                self.processes.retain(|attempt, process| {
                    attempt.task != task || process.mood != Mood::Preempted
                });
            }
            Effect::StartProcess(assignment) => {
                self.line.take(attempt_of(&assignment));
                self.begin(common, *assignment, Slot::Process);
            }
            Effect::SendProcess(assignment) => self.line.push(*assignment),
            Effect::WithdrawProcess(attempt) => {
                self.schedule_soon(common, Local::Withdrawn(attempt));
            }
            Effect::ProcessFollowed(assignment) => {
                let sent = self.line.confirm(&assignment);
                assert_sent(&sent, &assignment);
                common.met.passed_on += 1;
                self.begin(common, *assignment, Slot::Process);
            }
            Effect::StartInWorker { worker, begun } => self.begin_in_worker(common, worker, *begun),
            Effect::StopProcess(attempt) | Effect::StopInWorker { attempt, .. } => {
                self.stop(common, attempt)
            }
            Effect::StartWorker { worker, .. } => {
                self.workers.insert(worker, VecDeque::new());
                self.schedule_soon(common, Local::Hello(worker));
            }
            Effect::StopWorker { worker } => self.forget_worker(worker),
            Effect::DropParked { task, .. } => drop(self.parked.remove(&task)),
            Effect::ReplyLate { attempt, reply } => self.take_reply(common, attempt, reply),
            Effect::SendStarts { worker, starts, .. } => {
                let line = self.workers.get_mut(&worker).expect("it runs a task");
                line.extend(starts);
            }
            Effect::NotifyWatcher { .. } | Effect::Quiet => {}
            effect => unreachable!("{effect:?} at a site"),
        }
    }

    /// The home has replied to what an attempt asked.
    pub(super) fn take_reply(
        &mut self,
        common: &mut Common<'_>,
        attempt: AttemptKey,
        reply: Reply,
    ) {
        match reply {
            Reply::Begin(begun) => self.begin(common, *begun.assignment, Slot::Thread),
            Reply::Continue { answers, ended } => {
                let process = self.processes.get_mut(&attempt).expect("it asked");
                process.script.answer(answers, ended);
                process.mood = Mood::Acting;
                let slot = process.slot;
                self.schedule_soon(common, Local::Act(attempt));
                self.give_all_back(common, slot);
            }
            Reply::Suspended => {
                let process = self.processes.remove(&attempt).expect("it asked");
                if process.continuation == Continuation::Live {
                    self.parked.insert(attempt.task, process.script);
                }
                self.forget_starts(process.slot);
            }
            Reply::Stopped => {
                if let Some(process) = self.processes.remove(&attempt) {
                    self.forget_starts(process.slot);
                }
            }
            Reply::FollowerStopped => {
                let slot = match self.followers.remove(&attempt) {
                    Some((worker, _)) => Slot::Worker(worker),
                    None => Slot::Process,
                };
                let is_process = slot == Slot::Process;
                assert_eq!(
                    self.line.stop(attempt),
                    is_process,
                    "{attempt:?} is followed"
                );
                self.leave(common, attempt, slot);
            }
            Reply::Recalled(known) => {
                let process = self.processes.get_mut(&attempt).expect("it asked");
                process.script.recall(known);
                process.mood = Mood::Acting;
                self.schedule_soon(common, Local::Act(attempt));
            }
            Reply::Nothing => unreachable!("nothing is no reply"),
        }
    }

    fn begin_in_worker(&mut self, common: &mut Common<'_>, worker: WorkerKey, begun: Begun) {
        let attempt = attempt_of(&begun.assignment);
        let is_this = |(_, ahead): &(WorkerKey, Ahead)| attempt_of(&ahead.assignment) == attempt;
        let before = self.followers.iter().find(|(_, next)| is_this(next));
        if let Some(before) = before.map(|(before, _)| *before) {
            let (_, ahead) = self.followers.remove(&before).expect("just found");
            assert_sent(&ahead, &begun.assignment);
            common.met.followed += 1;
        }
        self.begin(common, *begun.assignment, Slot::Worker(worker));
        let starts = self.workers.get_mut(&worker).expect("it has been started");
        starts.extend(begun.ahead);
    }

    fn begin(&mut self, common: &mut Common<'_>, assignment: Assignment, slot: Slot) {
        let attempt = attempt_of(&assignment);
        let strand = assignment.strand;
        let files = taken(&assignment.entry);
        let live = self.parked.remove(&assignment.task);
        let passes_on = slot == Slot::Process && passes_on(&assignment);
        let (script, beginning) = enter(assignment, live, &common.saved);
        let checkpoint = Beginning::Restore { checkpoint: true };
        common.met.restored += u64::from(beginning == checkpoint);
        common.met.resumed += u64::from(beginning == Beginning::Resume);
        let asks = beginning == Beginning::Replay && matches!(slot, Slot::Worker(_));
        let mood = match asks {
            true => Mood::Asking,
            false => Mood::Acting,
        };
        let process = Process {
            strand,
            script,
            passes_on,
            slot,
            mood,
            continuation: Continuation::Live,
            streams: Vec::new(),
            stopped: false,
        };
        let before = self.processes.insert(attempt, process);
        assert!(before.is_none(), "{attempt:?} began twice");
        if let Slot::Worker(worker) = slot {
            self.keep_caches(common, worker, files);
        }
        if asks {
            let AttemptKey { task, number } = attempt;
            return self.submit(
                common,
                graph::Event::TaskRecalled {
                    task,
                    attempt: number,
                },
            );
        }
        self.schedule_soon(common, Local::Act(attempt));
    }

    fn stop(&mut self, common: &mut Common<'_>, attempt: AttemptKey) {
        let process = self
            .processes
            .get_mut(&attempt)
            .expect("what is stopped runs");
        process.stopped = true;
        if common.random.one_in(2) {
            process.mood = Mood::Asking;
        }
        self.schedule_soon(common, Local::Dead(attempt));
    }

    /// What was stopped has died; in a worker, with it.
    pub(super) fn end_stopped(&mut self, common: &mut Common<'_>, attempt: AttemptKey) {
        let Some(process) = self.processes.get(&attempt) else {
            return;
        };
        if let Slot::Worker(worker) = process.slot {
            return self.kill_worker(common, worker);
        }
        let slot = process.slot;
        self.processes.remove(&attempt);
        self.leave(common, attempt, slot);
    }

    pub(super) fn leave(&mut self, common: &mut Common<'_>, attempt: AttemptKey, slot: Slot) {
        self.forget_starts(slot);
        self.submit(common, Event::TurnEnded { attempt, end: None });
    }

    pub(super) fn kill_process(&mut self, common: &mut Common<'_>) {
        let living = |process: &Process| process.slot == Slot::Process && !process.stopped;
        let living = self.processes.iter().filter(|(_, process)| living(process));
        let victims: Vec<AttemptKey> = living.map(|(attempt, _)| *attempt).collect();
        if !victims.is_empty() {
            let attempt = victims[common.random.below(victims.len())];
            self.processes.remove(&attempt);
            self.lose(common, attempt);
        }
    }

    pub(super) fn kill_some_worker(&mut self, common: &mut Common<'_>) {
        let victims: Vec<WorkerKey> = self.workers.keys().copied().collect();
        if !victims.is_empty() {
            let worker = victims[common.random.below(victims.len())];
            self.kill_worker(common, worker);
        }
    }

    /// The worker is gone; so is what ran in it, and the node reports what was parked there.
    fn kill_worker(&mut self, common: &mut Common<'_>, worker: WorkerKey) {
        self.forget_worker(worker);
        let in_it = |process: &Process| process.slot == Slot::Worker(worker);
        let victims = self.processes.iter().filter(|(_, process)| in_it(process));
        let victims: Vec<AttemptKey> = victims.map(|(attempt, _)| *attempt).collect();
        let gone_on = self.followers.iter().filter(|(_, next)| next.0 == worker);
        let gone_on: Vec<AttemptKey> = gone_on.map(|(before, _)| *before).collect();
        self.submit(common, Event::WorkerGone { worker });
        for attempt in victims {
            let process = self.processes.remove(&attempt);
            match process.is_some_and(|process| !process.stopped) {
                true => self.lose(common, attempt),
                false => self.submit(common, Event::TurnEnded { attempt, end: None }),
            }
        }
        for attempt in gone_on {
            self.followers.remove(&attempt);
            self.submit(common, Event::TurnEnded { attempt, end: None });
        }
    }

    fn forget_worker(&mut self, worker: WorkerKey) {
        self.workers.remove(&worker);
        self.caches.remove(&worker);
    }

    fn lose(&mut self, common: &mut Common<'_>, attempt: AttemptKey) {
        let label = Label {
            what: "gone".into(),
            name: Name(0),
        };
        let end = Some(graph::Event::TaskLost {
            task: attempt.task,
            attempt: attempt.number,
            failure: Box::new(Failure::new(FailureKind::WorkerLost, label, "it died")),
        });
        self.submit(common, Event::TurnEnded { attempt, end });
    }
}

/// Starts that a worker has received before their time.
impl Machine {
    /// At random times a worker returns starts that a long task would keep waiting.
    pub(super) fn give_back_starts(&mut self, common: &mut Common<'_>, worker: WorkerKey) {
        let starts = self.workers.entry(worker).or_default();
        if starts.is_empty() || !common.random.one_in(8) {
            return;
        }
        let first = common.random.below(starts.len());
        let gone = starts.drain(first..);
        let attempts = gone.map(|ahead| attempt_of(&ahead.assignment)).collect();
        self.submit(common, Event::PrefetchReturned { worker, attempts });
    }

    fn give_all_back(&mut self, common: &mut Common<'_>, slot: Slot) {
        if let Slot::Worker(worker) = slot
            && let Some(starts) = self.workers.get_mut(&worker)
            && !starts.is_empty()
        {
            let gone = starts.drain(..);
            let attempts = gone.map(|ahead| attempt_of(&ahead.assignment)).collect();
            self.submit(common, Event::PrefetchReturned { worker, attempts });
        }
    }

    fn forget_starts(&mut self, slot: Slot) {
        if let Slot::Worker(worker) = slot
            && let Some(starts) = self.workers.get_mut(&worker)
        {
            starts.clear();
        }
    }

    /// A task in a worker ends; perhaps the worker has begun the next one, and the home replies
    /// later whether that may run.
    pub(super) fn end_in_worker(
        &mut self,
        common: &mut Common<'_>,
        worker: WorkerKey,
        attempt: AttemptKey,
        end: graph::Event,
    ) {
        let goes_on = gives_plain_values(&end) && !common.random.one_in(4);
        let starts = self.workers.get_mut(&worker).expect("it runs a task");
        let follower = goes_on.then(|| starts.pop_front()).flatten();
        if follower.is_none() {
            starts.clear();
        }
        let follows = follower.as_ref().map(|ahead| attempt_of(&ahead.assignment));
        if let Some(ahead) = follower {
            self.followers.insert(attempt, (worker, ahead));
        }
        let end = Some(end);
        let caller = Caller::Worker {
            worker,
            follows,
            is_last: true,
        };
        let reply = self.ask(common, Event::TurnEnded { attempt, end }, caller);
        if reply != Reply::Nothing {
            self.take_reply(common, attempt, reply);
        }
    }
}
