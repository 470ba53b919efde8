//! One site: its half of the engine, its end of the link, and the processes that it runs.
//!
//! What the home is asked it replies later. Each incarnation begins with nothing. Read next:
//! `events`, which performs what the site wants done.

use std::collections::{BTreeMap, VecDeque};

use ciel_engine::link::{Body, Frame, Link};
use ciel_engine::message::{SiteKey, ToHome, ToSite};
use ciel_engine::site::Site;
use ciel_engine::{Caller, Effect, Event, Reply};
use ciel_graph::{self as graph, Ahead, Checkpoint, Continuation, Step, Wait};
use ciel_model::{Handle, Name, TaskKey};
use ciel_node::{AttemptKey, Node, Slot, WorkerKey};

use super::network::{TIMING, Way};
use super::{Common, Happening, Local};
use crate::begun::spawns_begun;
use crate::entry::{CHECKPOINT, end_of, may_compact};
use crate::line::{Line, exits_well};
use crate::program::Kind;
use crate::script::{Move, Script};
use crate::setup::{capacity_of, ready};
use crate::world::{Mood, Process, STRAGGLES};

/// Microseconds that one act takes at most, beside its declared time.
const ACT_US_MAX: usize = 200;

/// Microseconds after which a thread whose script runs for ever looks whether it is to stop.
const HANG_US: u64 = 10_000;

/// A site.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) key: SiteKey,
    is_alive: bool,
    pub(super) site: Site,
    link: Link<ToHome, ToSite>,
    pub(super) processes: BTreeMap<AttemptKey, Process>,
    pub(super) parked: BTreeMap<TaskKey, Script>,
    /// Living workers, and the starts that each has received and not begun.
    pub(super) workers: BTreeMap<WorkerKey, VecDeque<Ahead>>,
    /// What workers have begun by themselves, behind which attempt, before the home has replied.
    pub(super) followers: BTreeMap<AttemptKey, (WorkerKey, Ahead)>,
    /// Starts of processes that wait until another one has ended.
    pub(super) line: Line,
    /// Files of which each worker keeps something, the oldest first.
    pub(super) caches: BTreeMap<WorkerKey, Vec<Name>>,
    ticks_at: Option<u64>,
}

impl Machine {
    /// A site that joins.
    pub(super) fn start(common: &mut Common<'_>, key: SiteKey, incarnation: u64) -> Machine {
        let site = Site::new(Node::new(capacity_of(common.scenario)));
        let capacity = site.capacity().clone();
        let mut machine = Machine {
            key,
            is_alive: true,
            site,
            link: Link::new(common.now, incarnation, TIMING),
            processes: BTreeMap::new(),
            parked: BTreeMap::new(),
            workers: BTreeMap::new(),
            followers: BTreeMap::new(),
            line: Line::default(),
            caches: BTreeMap::new(),
            ticks_at: None,
        };
        machine.say(common, vec![ToHome::Joined { capacity }]);
        machine.schedule_tick(common);
        machine
    }

    pub(super) fn die(&mut self) {
        self.is_alive = false;
    }

    pub(super) fn is_alive(&self) -> bool {
        self.is_alive
    }

    /// Joins as the next incarnation.
    pub(super) fn restart(&mut self, common: &mut Common<'_>) {
        *self = Machine::start(common, self.key, self.link.incarnation() + 1);
    }

    pub(super) fn is_incarnation(&self, incarnation: u64) -> bool {
        self.is_alive && self.link.incarnation() == incarnation
    }

    /// Whether nothing runs here any more.
    pub(super) fn is_over(&self) -> bool {
        !self.is_alive || (self.site.is_quiet() && self.processes.is_empty())
    }

    pub(super) fn happen(&mut self, common: &mut Common<'_>, local: Local) {
        match local {
            Local::Turn(attempt) => {
                let reply = self.ask(common, Event::TurnTaken { attempt }, Caller::Thread);
                assert_eq!(reply, Reply::Nothing, "the home replies later");
            }
            Local::Act(attempt) => self.act(common, attempt),
            Local::Dead(attempt) => self.end_stopped(common, attempt),
            Local::Hello(worker) => self.say_hello(common, worker),
            Local::Withdrawn(attempt) => self.give_back_process(common, attempt),
            Local::Tick => self.tick(common),
        }
        self.site.check_all();
        self.schedule_tick(common);
    }

    /// A frame of the home arrives.
    pub(super) fn receive(&mut self, common: &mut Common<'_>, frame: Frame<ToSite>) {
        if !self.is_incarnation(frame.incarnation) {
            return;
        }
        if frame.body == Body::Fenced {
            common.met.fenced += 1;
            return self.restart(common);
        }
        let mut messages = Vec::new();
        let received = self.link.receive(common.now, frame, &mut messages);
        received.expect("the incarnation was compared above");
        if !messages.is_empty() {
            let (mut effects, mut to_home) = (Vec::new(), Vec::new());
            self.site
                .receive(common.now, messages, &mut effects, &mut to_home);
            self.say(common, to_home);
            self.perform_all(common, effects);
            self.site.check_all();
        }
        self.schedule_tick(common);
    }

    fn tick(&mut self, common: &mut Common<'_>) {
        let (now, mut frames) = (common.now, Vec::new());
        self.link.tick(now, &mut frames);
        for frame in frames {
            common.send(Way::ToHome(self.key), &frame);
        }
        if self.site.next_deadline().is_some_and(|at| at <= now) {
            self.submit(common, Event::Ticked);
        }
    }

    fn schedule_tick(&mut self, common: &mut Common<'_>) {
        // A site that receives nothing continues to run.
        let link = self
            .link
            .next_deadline()
            .max(common.now + TIMING.resend_us / 4);
        let at = self.site.next_deadline().unwrap_or(u64::MAX).min(link);
        let is_sooner = |ticks_at| ticks_at <= common.now || ticks_at > at;
        if self.ticks_at.is_none_or(is_sooner) {
            let at = at.max(common.now + 1);
            self.ticks_at = Some(at);
            self.schedule(common, at, Local::Tick);
        }
    }

    fn schedule(&self, common: &mut Common<'_>, at: u64, local: Local) {
        let incarnation = self.link.incarnation();
        common.schedule(at, Happening::Site(self.key, incarnation, local));
    }

    pub(super) fn schedule_soon(&self, common: &mut Common<'_>, local: Local) {
        let at = common.now + 1 + common.random.below(ACT_US_MAX) as u64;
        self.schedule(common, at, local);
    }

    fn say(&mut self, common: &mut Common<'_>, messages: Vec<ToHome>) {
        let mut frames = Vec::new();
        for message in messages {
            self.link.send(common.now, message, &mut frames);
        }
        for frame in frames {
            common.send(Way::ToHome(self.key), &frame);
        }
    }

    pub(super) fn submit(&mut self, common: &mut Common<'_>, event: impl Into<Event>) {
        let reply = self.ask(common, event, Caller::Nobody);
        assert_eq!(reply, Reply::Nothing, "nobody has asked");
    }

    /// Submits an event to the site, and performs its effects before the home has replied.
    pub(super) fn ask(
        &mut self,
        common: &mut Common<'_>,
        event: impl Into<Event>,
        caller: Caller,
    ) -> Reply {
        let event = event.into();
        common
            .trace
            .add(common.now, "site <-", &(self.key, caller, &event));
        let (mut effects, mut to_home) = (Vec::new(), Vec::new());
        let now = common.now;
        let reply = self
            .site
            .tell(now, event, caller, &mut effects, &mut to_home);
        common.trace.add(now, "reply", &reply);
        self.say(common, to_home);
        self.perform_all(common, effects);
        reply
    }

    fn perform_all(&mut self, common: &mut Common<'_>, effects: Vec<Effect>) {
        for effect in effects {
            common
                .trace
                .add(common.now, "site ->", &(self.key, &effect));
            self.perform(common, effect);
        }
    }

    fn act(&mut self, common: &mut Common<'_>, attempt: AttemptKey) {
        let failures = common.attempts.failures_of(attempt.task);
        let Some(process) = self.processes.get_mut(&attempt) else {
            return;
        };
        let slot = process.slot;
        if slot == Slot::Thread && self.site.is_stopping(attempt) {
            self.processes.remove(&attempt);
            return self.leave(common, attempt, slot);
        }
        match process.mood {
            Mood::Acting => {}
            Mood::Hanging => {
                return self.schedule(common, common.now + HANG_US, Local::Act(attempt));
            }
            Mood::Asking | Mood::Preempted | Mood::Paused => return,
        }
        match process.script.advance(common.scenario, failures) {
            Move::Wait(time) => self.schedule(common, common.now + time, Local::Act(attempt)),
            Move::Straggle(time) => {
                let time = if common.random.one_in(STRAGGLES) {
                    time
                } else {
                    1
                };
                self.schedule(common, common.now + time, Local::Act(attempt));
            }
            Move::Write(text, after) => {
                let mut to_home = Vec::new();
                self.site
                    .write(attempt, after, text.as_bytes(), &mut to_home);
                self.say(common, to_home);
                self.schedule_soon(common, Local::Act(attempt));
            }
            Move::Step(step) => self.step(common, attempt, step),
            Move::Block(on, wait) => self.block(common, attempt, on, wait),
            Move::Watch(handle) => {
                let AttemptKey { task, number } = attempt;
                let event = graph::Event::TaskWatched {
                    task,
                    attempt: number,
                    handle,
                };
                self.submit(common, event);
                self.schedule_soon(common, Local::Act(attempt));
            }
            last @ (Move::Finish(_) | Move::Tail(..) | Move::Fail(_)) => {
                self.end(common, attempt, last);
            }
            Move::Hang => {
                process.mood = Mood::Hanging;
                self.schedule_soon(common, Local::Act(attempt));
            }
        }
        if let Slot::Worker(worker) = slot
            && self.processes.contains_key(&attempt)
        {
            self.give_back_starts(common, worker);
        }
    }

    fn step(&mut self, common: &mut Common<'_>, attempt: AttemptKey, step: Step) {
        let spawns = matches!(step, Step::Spawn { .. });
        let AttemptKey { task, number } = attempt;
        let process = &self.processes[&attempt];
        let has_begun = spawns_begun(common.scenario, &process.script, process.slot, &step);
        let event = graph::Event::TaskStepped {
            task,
            attempt: number,
            step,
        };
        let event = common.with_files(process.script.name(), event);
        match has_begun {
            true => self.submit(common, Event::SpawnedBegun(event)),
            false => self.submit(common, event),
        }
        let aside = (spawns && common.scenario.serial) || common.random.one_in(6);
        let Some(process) = self.processes.get_mut(&attempt) else {
            return;
        };
        if aside && process.slot == Slot::Thread {
            process.mood = Mood::Preempted;
            self.submit(common, Event::TaskPreempted { attempt });
        } else {
            self.schedule_soon(common, Local::Act(attempt));
        }
    }

    fn block(&mut self, common: &mut Common<'_>, attempt: AttemptKey, on: Vec<Handle>, wait: Wait) {
        let process = self.processes.get_mut(&attempt).expect("it acts");
        let continuation = choose_continuation(common, process);
        let compacts = may_compact(&continuation, wait, process.slot) && common.random.one_in(2);
        process.mood = Mood::Asking;
        process.continuation = continuation.clone();
        let saved = matches!(continuation, Continuation::Saved(_));
        let (kept, on) = match compacts {
            true => {
                let (kept, on) = process.script.compact(saved);
                (Some(kept), on)
            }
            false => (None, on),
        };
        if saved {
            common.saved.push(process.script.clone());
        }
        let event = graph::Event::TaskBlocked {
            task: attempt.task,
            attempt: attempt.number,
            kept,
            on,
            wait,
            continuation,
            checkpoint: take_checkpoint(common, process, wait).map(Box::new),
        };
        let caller = match process.slot {
            Slot::Thread => Caller::Thread,
            Slot::Process => Caller::Nobody,
            Slot::Worker(worker) => Caller::Worker {
                worker,
                follows: None,
                is_last: true,
            },
        };
        let reply = self.ask(common, event, caller);
        if reply != Reply::Nothing {
            self.take_reply(common, attempt, reply);
        }
    }

    fn end(&mut self, common: &mut Common<'_>, attempt: AttemptKey, last: Move) {
        let process = self.processes.remove(&attempt).expect("it acts");
        let event = end_of(attempt, last, process.script.printed);
        let event = common.with_files(process.script.name(), event);
        if let Slot::Worker(worker) = process.slot {
            return self.end_in_worker(common, worker, attempt, event);
        }
        let goes_on = process.passes_on && exits_well(&event) && !common.random.one_in(8);
        let follows = goes_on.then(|| self.line.follow(attempt)).flatten();
        let end = Some(event);
        if let Some(follows) = follows {
            return self.end_as_process(common, attempt, end, follows);
        }
        self.submit(common, Event::TurnEnded { attempt, end });
    }

    /// A process has ended and another one has begun there; the home replies later whether that may
    /// run on.
    fn end_as_process(
        &mut self,
        common: &mut Common<'_>,
        attempt: AttemptKey,
        end: Option<graph::Event>,
        follows: AttemptKey,
    ) {
        let caller = Caller::Process { follows };
        let reply = self.ask(common, Event::TurnEnded { attempt, end }, caller);
        if reply != Reply::Nothing {
            self.take_reply(common, attempt, reply);
        }
    }

    /// What was withdrawn is returned, if it has not begun.
    fn give_back_process(&mut self, common: &mut Common<'_>, attempt: AttemptKey) {
        if self.line.take(attempt) {
            self.submit(common, Event::ProcessReturned { attempt });
        }
    }

    fn say_hello(&mut self, common: &mut Common<'_>, worker: WorkerKey) {
        if self.workers.contains_key(&worker) {
            let hello = ready(common.scenario, worker);
            self.submit(common, hello);
        }
    }
}

/// A live copy needs a home; a strand that cannot be replayed must not depend on one.
fn choose_continuation(common: &mut Common<'_>, process: &Process) -> Continuation {
    let kind = &common.scenario.tasks[process.script.definition].kind;
    match common.random.below(4) {
        0 => Continuation::Replay,
        1 | 2 if *kind != Kind::Process => Continuation::Live,
        _ => Continuation::Saved((common.saved.len() as u64).to_be_bytes().to_vec().into()),
    }
}

/// Sometimes a strand that waits for one object can be replayed from there. The home does not keep
/// the checkpoint of one whose output is shorter than before.
fn take_checkpoint(common: &mut Common<'_>, process: &Process, wait: Wait) -> Option<Checkpoint> {
    let apt = common.scenario.checkpoints && wait == Wait::ALL;
    if !apt || common.random.one_in(2) {
        return None;
    }
    let mut script = process.script.clone();
    let (kept, _) = script.compact(false);
    script.forget_told();
    let index = CHECKPOINT | common.saved.len() as u64;
    common.saved.push(script);
    Some(Checkpoint {
        state: index.to_be_bytes().to_vec().into(),
        kept,
    })
}
