//! Where files are: which sites have their bytes, and where workers keep what they made of them.
//!
//! A site has the files that its tasks have made, and those that tasks which began there have
//! taken. What a site has of the inputs of a task is its *weight* for that task: bytes need not be
//! moved there, and what a worker has decoded need not be decoded again either, so it counts twice;
//! both times the locality weight that the program has given to the input.
//! All of this is a hint: what is wrong or missing here costs time and nothing else, so it is not
//! recorded. It does not know how busy sites are. Read next: `placement`, which weighs both.

use std::collections::{BTreeMap, BTreeSet};

use ciel_model::{Name, TaskKey, limits};
use ciel_node::{AttemptKey, WorkerKey};
use rustc_hash::FxHashMap;

use super::Home;
use crate::message::SiteKey;

/// How often the bytes of a file count where a worker keeps what it has made of them.
const KEPT_WEIGHT: u64 = 2;

/// A worker of a site.
type Keeper = (SiteKey, WorkerKey);

#[derive(Clone, Debug, Default)]
struct Places {
    sites: BTreeSet<SiteKey>,
    keepers: BTreeSet<Keeper>,
}

impl Places {
    /// How often the bytes count for a site.
    fn weight(&self, site: SiteKey) -> u64 {
        let workers = (site, WorkerKey(0))..=(site, WorkerKey(u64::MAX));
        match self.keepers.range(workers).next() {
            Some(_) => KEPT_WEIGHT,
            None => u64::from(self.sites.contains(&site)),
        }
    }

    fn are_none(&self) -> bool {
        self.sites.is_empty() && self.keepers.is_empty()
    }
}

/// The places of all files.
#[derive(Clone, Debug, Default)]
pub(super) struct Locality {
    files: FxHashMap<Name, Places>,
    /// Of which files each worker keeps something.
    kept: BTreeMap<Keeper, BTreeSet<Name>>,
}

impl Locality {
    /// A site has the bytes of a file.
    pub(super) fn note(&mut self, site: SiteKey, file: Name) {
        self.files.entry(file).or_default().sites.insert(site);
    }

    /// A worker keeps something of some files, and nothing of others any more. What is beyond the
    /// bound is not heeded.
    pub(super) fn keep(&mut self, keeper: Keeper, held: &[Name], dropped: &[Name]) {
        let kept = self.kept.entry(keeper).or_default();
        for file in dropped.iter().filter(|file| kept.remove(*file)) {
            drop_keeper(&mut self.files, *file, keeper);
        }
        let room = limits::CACHES_MAX.saturating_sub(kept.len());
        for file in held.iter().take(room) {
            kept.insert(*file);
            self.files.entry(*file).or_default().keepers.insert(keeper);
        }
        if kept.is_empty() {
            self.kept.remove(&keeper);
        }
    }

    /// A worker is gone.
    pub(super) fn lose_worker(&mut self, keeper: Keeper) {
        for file in self.kept.remove(&keeper).into_iter().flatten() {
            drop_keeper(&mut self.files, file, keeper);
        }
    }

    /// A site is gone with all that it has; linear in all files.
    pub(super) fn lose_site(&mut self, site: SiteKey) {
        self.kept.retain(|keeper, _| keeper.0 != site);
        self.files.retain(|_, places| {
            places.sites.remove(&site);
            places.keepers.retain(|keeper| keeper.0 != site);
            !places.are_none()
        });
    }

    /// A file is not needed any more.
    pub(super) fn forget(&mut self, file: Name) {
        let places = self.files.remove(&file).unwrap_or_default();
        for keeper in places.keepers {
            let kept = self.kept.get_mut(&keeper).expect("it keeps that file");
            kept.remove(&file);
            if kept.is_empty() {
                self.kept.remove(&keeper);
            }
        }
    }

    /// The weight of a site for a task with these inputs, given with their weighed lengths.
    pub(super) fn weight(&self, site: SiteKey, inputs: &[(Name, u64)]) -> u64 {
        let weights = inputs.iter().filter_map(|(file, length)| {
            let places = self.files.get(file)?;
            Some(length.saturating_mul(places.weight(site)))
        });
        weights.fold(0, u64::saturating_add)
    }

    pub(super) fn check(&self, knows: impl Fn(SiteKey) -> bool) {
        for (file, places) in &self.files {
            assert!(!places.are_none(), "{file} is nowhere");
            assert!(places.sites.iter().all(|site| knows(*site)), "{places:?}");
            for keeper in &places.keepers {
                assert!(self.kept[keeper].contains(file), "{keeper:?} keeps {file}");
            }
        }
        for (keeper, kept) in &self.kept {
            assert!(knows(keeper.0) && !kept.is_empty(), "{keeper:?}: {kept:?}");
            assert!(
                kept.iter()
                    .all(|file| self.files[file].keepers.contains(keeper))
            );
        }
    }
}

fn drop_keeper(files: &mut FxHashMap<Name, Places>, file: Name, keeper: Keeper) {
    let places = files.get_mut(&file).expect("it is kept somewhere");
    places.keepers.remove(&keeper);
    if places.are_none() {
        files.remove(&file);
    }
}

/// With one site there is nothing to choose, and nothing is noted.
impl Home {
    /// A file has been made at a site.
    pub(super) fn note_place(&mut self, site: SiteKey, file: Name) {
        if self.placement.has_a_choice() {
            self.locality.note(site, file);
        }
    }

    /// An attempt begins at a site, which has its inputs from then on.
    pub(super) fn note_inputs(&mut self, site: SiteKey, attempt: AttemptKey) {
        if self.placement.has_a_choice() {
            for (file, _) in self.graph().input_files(attempt.task) {
                self.locality.note(site, file);
            }
        }
    }

    /// A worker of a site says of which files it keeps something.
    pub(super) fn on_caches(&mut self, keeper: Keeper, held: &[Name], dropped: &[Name]) {
        if self.placement.has_a_choice() && self.placement.knows(keeper.0) {
            self.locality.keep(keeper, held, dropped);
        }
    }

    /// The files that a task takes, with their weighed lengths, if sites differ in what they have
    /// of them.
    pub(super) fn files_to_weigh(&self, task: TaskKey) -> Vec<(Name, u64)> {
        match self.placement.has_a_choice() {
            true => self.graph().input_files(task),
            false => Vec::new(),
        }
    }
}
