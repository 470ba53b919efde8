//! A home and three sites in virtual time, over a network that loses, repeats and reorders frames.
//!
//! Home and sites are the production halves of the engine, and every message between them travels
//! as bytes. Sites are killed; sites are cut off, taken for dead, and speak again. The program must
//! give what the serial program gives all the same. This module moves time; it does not know what
//! a site does about messages. Read next: `sites/machine`, then `sites/network`.

mod events;
mod faults;
mod files;
mod machine;
mod network;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use ciel_coordinator::Coordinator;
use ciel_engine::Effect;
use ciel_engine::home::{FromHome, Home};
use ciel_engine::link::{FromSessions, Sessions};
use ciel_engine::message::{SiteKey, ToHome, ToSite};
use ciel_graph::{self as graph, Assignment, Entry, JobOutcome};
use ciel_model::{FactAct, Name, RerunReason, SegmentedQueue, TaskKey, WaitEnd};
use ciel_node::{AttemptKey, WorkerKey};

use crate::crash::text_of;
use crate::kept::Attempts;
use crate::program::Scenario;
use crate::random::Random;
use crate::script::{Script, descriptor};
use crate::setup::policy_of;
use crate::summaries::{Summaries, is_cut};
use crate::told::Told;
use crate::trace::Trace;
use faults::Blow;
use files::Files;
use machine::Machine;
use network::{Network, Way};

/// Sites of a world.
const SITES: u32 = 3;

/// Happenings after which a run is taken to be endless.
const HAPPENINGS_MAX: u64 = 400_000;

/// What happens at a site.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Local {
    Turn(AttemptKey),
    Act(AttemptKey),
    Dead(AttemptKey),
    Hello(WorkerKey),
    Withdrawn(AttemptKey),
    Tick,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Happening {
    /// At that incarnation of a site.
    Site(SiteKey, u64, Local),
    /// At the home.
    Tick,
    /// A frame arrives.
    Arrival(Way, u64),
    /// Something strikes.
    Blow(Blow),
    /// A site that was killed comes back.
    Return(SiteKey),
}

/// What is met in one run; a swarm that meets too little proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SitesMet {
    /// Frames that the network lost, cuts not counted.
    pub lost: u64,
    /// Frames that came twice.
    pub repeated: u64,
    /// Frames that came after one that was sent later.
    pub reordered: u64,
    /// Sites that were killed.
    pub killed: u64,
    /// Sites that were cut off.
    pub cut: u64,
    /// Sites that were taken for dead, ran on, and were fenced when they spoke again.
    pub fenced: u64,
    /// Workers that began a prefetched start by themselves.
    pub followed: u64,
    /// Processes that began where others had ended.
    pub passed_on: u64,
    /// Attempts that the home did not let begin, because they were given up or ran elsewhere.
    pub refused: u64,
    /// Strands that continued from a checkpoint.
    pub restored: u64,
    /// Live copies that a task resumed with.
    pub resumed: u64,
    /// Bytes that tasks took and that were at their sites when they began.
    pub near_bytes: u64,
    /// Bytes that tasks took and that were not.
    pub moved_bytes: u64,
}

/// What all parts of a world share.
#[derive(Debug)]
struct Common<'a> {
    scenario: &'a Scenario,
    now: u64,
    random: Random,
    heap: BinaryHeap<Reverse<(u64, u64, Happening)>>,
    sequence: u64,
    attempts: Attempts,
    saved: Vec<Script>,
    network: Network,
    met: SitesMet,
    trace: Trace,
}

impl Common<'_> {
    fn schedule(&mut self, at: u64, happening: Happening) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, happening)));
    }
}

/// A world in which one scenario runs.
#[derive(Debug)]
pub struct SitesWorld<'a> {
    common: Common<'a>,
    home: Home,
    sessions: Sessions,
    machines: BTreeMap<SiteKey, Machine>,
    summaries: Summaries,
    files: Files,
    /// Attempts that may still be lost without a change to the job.
    losses_left: u32,
    home_ticks_at: Option<u64>,
    /// Which action of its strand the race is that a task is in.
    racing: BTreeMap<TaskKey, u64>,
    races: BTreeMap<Name, BTreeMap<u64, WaitEnd>>,
    /// Tasks that another one cancelled.
    cut: BTreeSet<Name>,
    /// What came out in order.
    pub output: String,
    /// How the job ended.
    pub ending: Option<JobOutcome>,
}

impl<'a> SitesWorld<'a> {
    /// The world of `scenario`, before anything happened.
    pub fn new(scenario: &'a Scenario, keeps_trace: bool) -> SitesWorld<'a> {
        let mut coordinator = Coordinator::new(policy_of(scenario), false);
        coordinator.watch(true);
        let common = Common {
            scenario,
            now: 0,
            random: Random::new(scenario.seed),
            heap: BinaryHeap::new(),
            sequence: 0,
            attempts: Attempts::default(),
            saved: Vec::new(),
            network: Network::default(),
            met: SitesMet::default(),
            trace: Trace::new(keeps_trace),
        };
        SitesWorld {
            common,
            home: Home::new(coordinator),
            sessions: Sessions::new(network::TIMING),
            machines: BTreeMap::new(),
            summaries: Summaries::default(),
            files: Files::default(),
            losses_left: ciel_model::limits::LOSSES_MAX,
            home_ticks_at: None,
            racing: BTreeMap::new(),
            races: BTreeMap::new(),
            cut: BTreeSet::new(),
            output: String::new(),
            ending: None,
        }
    }

    /// Runs the program to its end, and until every site knows of it.
    pub fn run(&mut self) {
        for site in (0..SITES).map(SiteKey) {
            let machine = Machine::start(&mut self.common, site, 1);
            self.machines.insert(site, machine);
        }
        self.schedule_blows();
        self.submit_root();
        while !self.is_over() {
            let next = self.common.heap.pop();
            let Reverse((at, sequence, happening)) = next.expect("sites never stop to tick");
            assert!(sequence < HAPPENINGS_MAX, "stuck: {:#?}", self.waiting());
            self.common.now = at;
            self.common.trace.add(at, "happens", &happening);
            self.happen(happening);
        }
        self.release_output();
        self.check_end();
    }

    fn submit_root(&mut self) {
        let scenario = self.common.scenario;
        let root = descriptor(scenario, 0, Vec::new(), scenario.tasks[0].outputs);
        self.tell_home(graph::Event::RootSubmitted {
            name: Name::of_root(b"sim"),
            descriptor: root,
        });
    }

    fn is_over(&self) -> bool {
        self.ending.is_some() && self.machines.values().all(Machine::is_over)
    }

    fn check_end(&self) {
        let output = self.home.state().output();
        assert!(
            output.stopped_at().is_some() || output.frontier().is_none(),
            "output held for ever"
        );
        self.summaries.check(&self.counts());
    }

    fn waiting(&self) -> Vec<String> {
        let graph = self.home.graph();
        let tasks = graph.all().into_iter();
        let views = tasks.filter_map(|task| Some((graph.view(task)?, self.home.location(task))));
        views
            .map(|(view, at)| format!("{}: {:?} at {at:?}", view.label, view.situation))
            .collect()
    }

    /// What it recorded of its environment.
    pub fn told(&self) -> Told {
        let all = self.races.iter();
        let races = all.map(|(name, races)| (*name, races.values().cloned().collect()));
        Told {
            races: races.collect(),
            cut: self.cut.clone(),
        }
    }

    /// What was met.
    pub fn met(&self) -> SitesMet {
        self.common.met
    }

    /// What happened, if it is kept.
    pub fn trace(&self) -> &Trace {
        &self.common.trace
    }

    /// The counters of the graph.
    pub fn counts(&self) -> ciel_graph::Counts {
        self.home.graph().counts()
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Site(site, incarnation, local) => {
                let machine = self.machines.get_mut(&site).expect("all sites are there");
                if machine.is_incarnation(incarnation) {
                    machine.happen(&mut self.common, local);
                }
            }
            Happening::Tick => self.tick_home(),
            Happening::Arrival(way, number) => self.arrive(way, number),
            Happening::Blow(blow) => self.strike(blow),
            Happening::Return(site) => {
                let machine = self.machines.get_mut(&site).expect("all sites are there");
                machine.restart(&mut self.common);
            }
        }
        self.schedule_home_tick();
    }

    /// A frame arrives, unless its receiver is dead.
    fn arrive(&mut self, way: Way, number: u64) {
        let Some(bytes) = self.common.take_frame(way, number) else {
            return;
        };
        match way {
            Way::ToHome(site) => {
                let frame = network::decode(&bytes);
                let (now, mut out) = (self.common.now, Vec::new());
                self.sessions.receive(now, site, frame, &mut out);
                self.take_from_sessions(out);
            }
            Way::ToSite(site) => {
                let machine = self.machines.get_mut(&site).expect("all sites are there");
                machine.receive(&mut self.common, network::decode(&bytes));
            }
        }
    }

    fn tick_home(&mut self) {
        let (now, mut out) = (self.common.now, Vec::new());
        self.sessions.tick(now, &mut out);
        self.take_from_sessions(out);
        let is_due = self.home.next_deadline().is_some_and(|at| at <= now);
        if is_due {
            self.tell_home(graph::Event::Ticked);
        }
    }

    fn schedule_home_tick(&mut self) {
        let deadlines = [self.sessions.next_deadline(), self.home.next_deadline()];
        let now = self.common.now;
        if let Some(at) = deadlines.into_iter().flatten().min()
            && self
                .home_ticks_at
                .is_none_or(|ticks_at| ticks_at <= now || ticks_at > at)
        {
            let at = at.max(now + 1);
            self.home_ticks_at = Some(at);
            self.common.schedule(at, Happening::Tick);
        }
    }

    fn take_from_sessions(&mut self, told: Vec<FromSessions>) {
        let now = self.common.now;
        for told in told {
            match told {
                FromSessions::Frame(site, frame) => {
                    self.common.send(Way::ToSite(site), &frame);
                }
                FromSessions::Received(site, message) => self.take_message(site, message),
                FromSessions::Lost(site) => {
                    self.common.trace.add(now, "lost", &site);
                    let mut out = SegmentedQueue::default();
                    self.files.lose(site);
                    self.home.lose_site(now, site, &mut out);
                    self.take_from_home(out);
                }
            }
        }
    }

    fn take_message(&mut self, site: SiteKey, message: ToHome) {
        let now = self.common.now;
        self.common.trace.add(now, "home <-", &(site, &message));
        self.note_race(site, &message);
        self.files.note_made(site, &message);
        let mut out = SegmentedQueue::default();
        self.home.receive(now, site, message, &mut out);
        self.take_from_home(out);
    }

    fn tell_home(&mut self, event: graph::Event) {
        let mut out = SegmentedQueue::default();
        self.home.tell(self.common.now, event, &mut out);
        self.take_from_home(out);
    }

    fn take_from_home(&mut self, mut told: SegmentedQueue<FromHome>) {
        let now = self.common.now;
        while let Some(told) = told.pop_front() {
            self.common.trace.add(now, "home ->", &told);
            match told {
                FromHome::Send(site, message) => {
                    self.note_sent(site, &message);
                    let mut out = Vec::new();
                    self.sessions.send(now, site, message, &mut out);
                    self.take_from_sessions(out);
                }
                FromHome::Do(effect) => self.do_at_home(effect),
            }
        }
        self.home.check_all();
        let refusal = self.home.state().refusal();
        assert_eq!(refusal, None, "the ordered output refused something");
        if self.common.random.one_in(2) {
            self.release_output();
        }
    }

    fn note_sent(&mut self, site: SiteKey, message: &ToSite) {
        match message {
            ToSite::Refuse { .. } => self.common.met.refused += 1,
            ToSite::Begin(assignment) => {
                let met = &mut self.common.met;
                self.files.note_begun(site, &assignment.entry, met);
                self.note_begin(assignment);
            }
            ToSite::Continue {
                attempt,
                ended: Some(ended),
                ..
            } => {
                let name = self.label(attempt.task).name;
                self.note_race_ended(attempt.task, name, ended);
            }
            _ => {}
        }
    }

    /// An attempt begins, with what is recorded of its races.
    fn note_begin(&mut self, assignment: &Assignment) {
        self.common.attempts.begun(assignment);
        let name = assignment.label.name;
        if let Some(ended) = &assignment.ended {
            self.note_race_ended(assignment.task, name, ended);
        }
        match &assignment.entry {
            Entry::Start(_) => drop(self.races.remove(&name)),
            Entry::Replay { facts, .. } | Entry::Restore { facts, .. } => {
                for fact in facts {
                    if let FactAct::Waited(ended) = &fact.act {
                        self.add_race(name, fact.at.action, ended);
                    }
                }
            }
            Entry::Resume(_) => {}
        }
    }

    fn do_at_home(&mut self, effect: Effect) {
        match effect {
            Effect::AttemptFailed { task, to, .. } => {
                self.common.attempts.failed(&task);
                if let Some(to) = to {
                    self.undo_races(task.name, to);
                }
            }
            Effect::JobEnded(ending) => {
                assert!(self.ending.is_none(), "the job ended twice");
                self.ending = Some(*ending);
            }
            Effect::TaskEnded(summary) => {
                self.note_ended(summary.label.name, is_cut(&summary));
                self.summaries.on_ended(&summary);
            }
            Effect::Happened { happening, .. } => self.summaries.on_happened(&happening),
            Effect::FindResult(query) => self.tell_home(graph::Event::ResultMissing {
                task: query.attempt.task,
                attempt: query.attempt.number,
                reason: Box::new(RerunReason::New),
            }),
            Effect::Compare(comparison) => {
                assert!(comparison.failure.is_some(), "{comparison:?}");
            }
            Effect::DropObject(_) => {}
            effect => unreachable!("{effect:?} at the home"),
        }
    }

    /// What a task did from that action on is undone.
    fn undo_races(&mut self, task: Name, to: u64) {
        if let Some(races) = self.races.get_mut(&task) {
            races.retain(|action, _| *action < to);
        }
    }

    /// A task that ends again after a rollback ends perhaps as another one.
    fn note_ended(&mut self, task: Name, cut: bool) {
        if cut {
            self.cut.insert(task);
        } else {
            self.cut.remove(&task);
        }
    }

    fn release_output(&mut self) {
        while let Some(chunk) = self.home.state_mut().output_mut().take_ready(u64::MAX) {
            self.output.push_str(&text_of(chunk.piece));
        }
    }
}
