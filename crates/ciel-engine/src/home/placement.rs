//! Which site has which task: what was offered to it, runs at it, or is parked there.
//!
//! A task with a live copy goes to the site that keeps it, any other to the site with the fewest
//! tasks for each of its cores: what a site has of its inputs decides among sites that are as busy,
//! so no task waits for a slot at one while another one has a slot left over. It does not know what
//! the tasks are, nor where files are. Read next: `locality`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ciel_graph::Graph;
use ciel_model::{AttemptNumber, Class, KeyTable, TaskKey};
use ciel_node::{AttemptKey, Capacity, Slot};

use crate::message::{Offer, SiteKey};

/// How far a task has come at its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It may take a slot there.
    Offered,
    /// It runs there.
    Placed(Slot),
    /// It waits, and has a live copy there.
    Parked,
}

/// What becomes of an attempt at its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Nothing new.
    Same,
    /// It has come so far.
    At(Stage),
    /// The site does not have it any more.
    Gone,
    /// It is over; queries in the same event still find where it was.
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    attempt: AttemptNumber,
    site: SiteKey,
    stage: Stage,
}

#[derive(Clone, Debug)]
struct Site {
    capacity: Capacity,
    /// Tasks that it has.
    tasks: u64,
}

/// What each site has.
#[derive(Clone, Debug, Default)]
pub(super) struct Placement {
    sites: BTreeMap<SiteKey, Site>,
    tasks: KeyTable<TaskKey, Entry>,
    /// How many of them are not parked.
    active: usize,
    /// Attempts that the graph has ended in this event.
    ended: Vec<AttemptKey>,
}

impl Placement {
    pub(super) fn sites(&self) -> impl Iterator<Item = SiteKey> {
        self.sites.keys().copied()
    }

    /// Cores of all sites.
    pub(super) fn cores(&self) -> usize {
        let cores = |site: &Site| site.capacity.resources.millicores as usize / 1000;
        self.sites.values().map(cores).sum()
    }

    pub(super) fn knows(&self, site: SiteKey) -> bool {
        self.sites.contains_key(&site)
    }

    pub(super) fn add_site(&mut self, site: SiteKey, capacity: Capacity) {
        self.sites.insert(site, Site { capacity, tasks: 0 });
    }

    /// Forgets a site; gives what it had, in the order of tasks.
    pub(super) fn remove_site(&mut self, site: SiteKey) -> Vec<(AttemptKey, Stage)> {
        self.sites.remove(&site);
        let its = |(task, entry): (TaskKey, &Entry)| {
            let number = entry.attempt;
            (entry.site == site).then_some((AttemptKey { task, number }, entry.stage))
        };
        let had: Vec<(AttemptKey, Stage)> = self.tasks.iter().filter_map(its).collect();
        for (attempt, stage) in &had {
            self.tasks.remove(&attempt.task);
            self.active -= usize::from(*stage != Stage::Parked);
        }
        had
    }

    /// Whether tasks may go to one site or to another.
    pub(super) fn has_a_choice(&self) -> bool {
        self.sites.len() > 1
    }

    /// The site to which a ready task goes, which has it from now on; each site has a weight for
    /// it.
    pub(super) fn choose(
        &mut self,
        offer: &Offer,
        weight: impl Fn(SiteKey) -> u64,
    ) -> Option<SiteKey> {
        let AttemptKey {
            task,
            number: attempt,
        } = offer.attempt;
        let keeper = match self.stage_of(offer.attempt) {
            Some((site, Stage::Parked)) => Some(site),
            Some((_, Stage::Offered | Stage::Placed(_))) | None => None,
        };
        let begun_in = offer.begun_in.and_then(|parent| self.site_of(parent));
        let keeper = begun_in.or(keeper);
        let site = keeper.or_else(|| self.least_busy(offer, weight))?;
        let stage = Stage::Offered;
        let entry = Entry {
            attempt,
            site,
            stage,
        };
        self.active += 1;
        if let Some(before) = self.tasks.insert(task, entry) {
            self.count(before.site, -1);
            self.active -= usize::from(before.stage != Stage::Parked);
        }
        self.count(site, 1);
        Some(site)
    }

    /// One that is large enough, if there is any: else the task fails there.
    fn least_busy(&self, offer: &Offer, weight: impl Fn(SiteKey) -> u64) -> Option<SiteKey> {
        if !self.has_a_choice() {
            return self.sites.keys().next().copied();
        }
        let busy = |(key, site): (&SiteKey, &Site)| {
            let resources = &site.capacity.resources;
            let is_small =
                offer.class != Class::Coordination && resources.lacking(&offer.resources).is_some();
            let load = site.tasks * 1000 / u64::from(resources.millicores.max(1));
            (is_small, load, Reverse(weight(*key)), *key)
        };
        let least = self.sites.iter().map(busy).min()?;
        Some(least.3)
    }

    fn count(&mut self, site: SiteKey, by: i64) {
        if let Some(site) = self.sites.get_mut(&site) {
            site.tasks = site.tasks.saturating_add_signed(by);
        }
    }

    pub(super) fn set(&mut self, attempt: AttemptKey, stage: Stage) {
        let Some(entry) = self.entry_mut(attempt) else {
            return;
        };
        let before = std::mem::replace(&mut entry.stage, stage);
        self.active += usize::from(stage != Stage::Parked);
        self.active -= usize::from(before != Stage::Parked);
    }

    /// Whether any task has a slot, or is on its way to one.
    pub(super) fn is_active(&self) -> bool {
        self.active > 0
    }

    /// Whether any task but the root is.
    pub(super) fn is_active_beside(&self, root: Option<TaskKey>) -> bool {
        let root = root.and_then(|root| self.tasks.get(&root));
        let is_root_active = root.is_some_and(|entry| entry.stage != Stage::Parked);
        self.active > usize::from(is_root_active)
    }

    /// Another site has taken an attempt that was offered; gives the one that had it.
    pub(super) fn take_over(&mut self, attempt: AttemptKey, site: SiteKey) -> Option<SiteKey> {
        let entry = self.entry_mut(attempt)?;
        let before = std::mem::replace(&mut entry.site, site);
        if before == site {
            return None;
        }
        self.count(before, -1);
        self.count(site, 1);
        Some(before)
    }

    pub(super) fn advance(&mut self, attempt: AttemptKey, after: After) {
        match after {
            After::Same => {}
            After::At(stage) => self.set(attempt, stage),
            After::Gone => self.remove(attempt),
            After::Over => self.end(attempt),
        }
    }

    /// The attempt is over; queries in the same event still find where it was.
    pub(super) fn end(&mut self, attempt: AttemptKey) {
        self.ended.push(attempt);
    }

    pub(super) fn forget_ended(&mut self) {
        while let Some(attempt) = self.ended.pop() {
            self.remove(attempt);
        }
    }

    pub(super) fn remove(&mut self, attempt: AttemptKey) {
        if self.entry(attempt).is_some()
            && let Some(entry) = self.tasks.remove(&attempt.task)
        {
            self.active -= usize::from(entry.stage != Stage::Parked);
            self.count(entry.site, -1);
        }
    }

    fn entry(&self, attempt: AttemptKey) -> Option<&Entry> {
        let entry = self.tasks.get(&attempt.task);
        entry.filter(|entry| entry.attempt == attempt.number)
    }

    fn entry_mut(&mut self, attempt: AttemptKey) -> Option<&mut Entry> {
        let entry = self.tasks.get_mut(&attempt.task);
        entry.filter(|entry| entry.attempt == attempt.number)
    }

    pub(super) fn site_of(&self, attempt: AttemptKey) -> Option<SiteKey> {
        self.entry(attempt).map(|entry| entry.site)
    }

    pub(super) fn stage_of(&self, attempt: AttemptKey) -> Option<(SiteKey, Stage)> {
        self.entry(attempt).map(|entry| (entry.site, entry.stage))
    }

    pub(super) fn slot_of(&self, attempt: AttemptKey) -> Option<Slot> {
        match self.entry(attempt)?.stage {
            Stage::Placed(slot) => Some(slot),
            Stage::Offered | Stage::Parked => None,
        }
    }

    /// The attempt of a task that a site has.
    pub(super) fn attempt_at(&self, task: TaskKey, site: SiteKey) -> Option<(AttemptKey, Stage)> {
        let entry = self.tasks.get(&task).filter(|entry| entry.site == site)?;
        let attempt = entry.attempt;
        Some((
            AttemptKey {
                task,
                number: attempt,
            },
            entry.stage,
        ))
    }

    pub(super) fn location(&self, task: TaskKey) -> Option<(SiteKey, Option<Slot>)> {
        let entry = self.tasks.get(&task)?;
        let attempt = entry.attempt;
        Some((
            entry.site,
            self.slot_of(AttemptKey {
                task,
                number: attempt,
            }),
        ))
    }

    pub(super) fn has(&self, attempt: AttemptKey) -> bool {
        self.entry(attempt).is_some()
    }

    pub(super) fn check(&self, graph: &Graph) {
        let mut counts: BTreeMap<SiteKey, u64> = BTreeMap::new();
        for (task, entry) in self.tasks.iter() {
            assert!(self.knows(entry.site), "{task:?} is at {:?}", entry.site);
            *counts.entry(entry.site).or_default() += 1;
            let attempt = entry.attempt;
            if entry.stage == Stage::Offered {
                assert!(graph.awaits_place(task, attempt), "{task:?} was offered");
            }
        }
        let active = self
            .tasks
            .iter()
            .filter(|(_, entry)| entry.stage != Stage::Parked);
        assert_eq!(self.active, active.count(), "tasks that are not parked");
        for (key, site) in &self.sites {
            let count = counts.get(key).copied().unwrap_or(0);
            assert_eq!(site.tasks, count, "tasks of {key:?}");
        }
    }
}
