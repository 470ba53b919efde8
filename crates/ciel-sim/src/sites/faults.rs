//! What strikes a world of several sites: sites that die or are cut off, workers and processes that
//! die, jobs that are cancelled, strands that are rolled back.
//!
//! Nothing is lost more often than a task may be. Read next: `network`.

use ciel_engine::message::{SiteKey, ToHome};
use ciel_graph as graph;
use ciel_model::{Failure, FailureKind, Label, Name, TaskKey, WaitEnd};

use super::network::{Cut, TIMING};
use super::{Happening, SITES, SitesWorld};
use crate::program::Fault;
use crate::random::Random;

/// Microseconds within which most programs come to their end.
const EARLY_US: usize = 8_000;

/// Something that strikes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Blow {
    /// The fault of that index in the scenario.
    Fault(usize),
    /// A site dies.
    Kill(SiteKey),
    /// A site is cut off for so many microseconds.
    Cut(SiteKey, u64),
}

impl SitesWorld<'_> {
    pub(super) fn schedule_blows(&mut self) {
        let scenario = self.common.scenario;
        for (index, (at, _)) in scenario.faults.iter().enumerate() {
            let fault = Happening::Blow(Blow::Fault(index));
            self.common.schedule(*at, fault);
        }
        let mut random = Random::new(scenario.seed.rotate_left(16));
        for _ in 0..random.below(3) {
            let site = SiteKey(random.below(SITES as usize) as u32);
            let at = 100 + random.below(EARLY_US) as u64;
            let blow = match random.below(5) {
                0 | 1 => Blow::Kill(site),
                2 => Blow::Cut(site, 1_000 + random.below(20_000) as u64),
                _ => Blow::Cut(site, TIMING.silence_us * 2 + random.below(50_000) as u64),
            };
            self.common.schedule(at, Happening::Blow(blow));
        }
    }

    pub(super) fn strike(&mut self, blow: Blow) {
        if self.ending.is_some() {
            return;
        }
        match blow {
            Blow::Fault(index) => self.strike_fault(self.common.scenario.faults[index].1),
            Blow::Kill(site) => self.kill(site),
            Blow::Cut(site, lasts_us) => self.cut(site, lasts_us),
        }
    }

    fn strike_fault(&mut self, fault: Fault) {
        let site = SiteKey(self.common.random.below(SITES as usize) as u32);
        match fault {
            Fault::KillProcess => {
                if self.may_lose() {
                    let machine = self.machines.get_mut(&site).expect("all sites are there");
                    machine.kill_process(&mut self.common);
                }
            }
            Fault::KillWorker => {
                if self.may_lose() {
                    let machine = self.machines.get_mut(&site).expect("all sites are there");
                    machine.kill_some_worker(&mut self.common);
                }
            }
            Fault::KillNode | Fault::KillEngine => self.kill(site),
            Fault::RollBack(index) => self.roll_back(index),
            Fault::CancelJob => self.cancel_job(),
        }
    }

    /// Whether every task can be lost once more; it is counted as if every task were.
    fn may_lose(&mut self) -> bool {
        let may_lose = self.losses_left > 0;
        self.losses_left = self.losses_left.saturating_sub(1);
        may_lose
    }

    fn kill(&mut self, site: SiteKey) {
        let machine = self.machines.get_mut(&site).expect("all sites are there");
        if !machine.is_alive() || self.losses_left == 0 {
            return;
        }
        self.losses_left -= 1;
        self.common.met.killed += 1;
        machine.die();
        let returns = self.common.now + 1_000 + self.common.random.below(80_000) as u64;
        self.common.schedule(returns, Happening::Return(site));
    }

    /// A site that is cut off for long is taken for dead; for less, if many frames are lost.
    fn cut(&mut self, site: SiteKey, lasts_us: u64) {
        if !self.may_lose() {
            return;
        }
        self.common.met.cut += 1;
        let is_long = lasts_us > TIMING.silence_us;
        let way = match is_long {
            true => 0,
            false => self.common.random.below(3),
        };
        let cut = Cut {
            until: self.common.now + lasts_us,
            to_home: way != 1,
            to_site: way != 2,
        };
        self.common.network.cuts.insert(site, cut);
    }

    fn roll_back(&mut self, index: usize) {
        self.release_output();
        let graph = self.home.graph();
        let mut allowed = Vec::new();
        for task in graph.all() {
            let next = graph.next_action(task).unwrap_or(0);
            let least = self.home.state().rollback_min(task).unwrap_or(u64::MAX);
            allowed.extend((least..=next).map(|to| (task, to)));
        }
        if allowed.is_empty() {
            return;
        }
        let (task, to) = allowed[index % allowed.len()];
        self.undo_races(self.label(task).name, to);
        self.tell_home(graph::Event::TaskRolledBack { task, to });
    }

    pub(super) fn label(&self, task: TaskKey) -> Label {
        let view = self.home.graph().view(task);
        view.expect("it is one of the graph's").label
    }

    fn cancel_job(&mut self) {
        let origin = Label {
            what: "user".into(),
            name: Name(0),
        };
        let failure = Failure::new(FailureKind::Cancelled, origin, "interrupted");
        self.tell_home(graph::Event::JobCancelled {
            failure: Box::new(failure),
        });
    }

    /// Which action of its strand a race is that a task of a site begins.
    pub(super) fn note_race(&mut self, site: SiteKey, message: &ToHome) {
        if let ToHome::Acted(graph::Event::TaskBlocked { task, wait, .. }) = message
            && !wait.until.is_all()
            && matches!(self.home.location(*task), Some((at, Some(_))) if at == site)
        {
            self.racing.insert(*task, wait.at.action);
        }
    }

    /// How a race of a task has ended; every replay receives the same.
    pub(super) fn note_race_ended(&mut self, task: TaskKey, name: Name, ended: &WaitEnd) {
        if let Some(action) = self.racing.remove(&task) {
            self.add_race(name, action, ended);
        }
    }

    pub(super) fn add_race(&mut self, name: Name, action: u64, ended: &WaitEnd) {
        let races = self.races.entry(name).or_default();
        let before = races.insert(action, ended.clone());
        assert!(
            before.is_none_or(|before| before == *ended),
            "a race of {name} ended otherwise when it was told again"
        );
    }
}
