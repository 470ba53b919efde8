//! How many children of each strand have not ended.
//!
//! Counted is every child that will run; a lazy one is not, since nobody may ever need it. A child
//! that hands over to a successor counts as one, and so does whoever spawns it: the count belongs
//! to the strand. Nothing of it is recorded: children of an earlier process are not counted. It
//! does not know what the count is for. Read next: `spawn`, which creates children.

use std::num::NonZeroU64;

use ciel_model::{KeyMap, StrandKey};

/// The strand that counts a task among its children, if any does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spawner(Option<NonZeroU64>);

impl Spawner {
    /// That strand.
    fn of(strand: StrandKey) -> Spawner {
        Spawner(NonZeroU64::new(strand.0 + 1))
    }

    /// The strand.
    fn strand(self) -> Option<StrandKey> {
        self.0.map(|key| StrandKey(key.get() - 1))
    }
}

/// Children that have not ended, by the strands that have spawned them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Children {
    /// The number that is reported when no more are left; nothing is counted without it.
    few: Option<u32>,
    unfinished: KeyMap<StrandKey, u32>,
}

impl Children {
    /// Counts from now on, and reports when no more than `few` are left.
    pub(crate) fn count(&mut self, few: u32) {
        self.few = Some(few);
    }

    /// How many there are.
    pub(crate) fn of(&self, strand: StrandKey) -> u32 {
        self.unfinished.get(&strand).copied().unwrap_or(0)
    }

    /// A strand has one more; the child keeps who counts it.
    pub(crate) fn add(&mut self, strand: StrandKey) -> Spawner {
        if self.few.is_none() {
            return Spawner::default();
        }
        *self.unfinished.entry(strand).or_default() += 1;
        Spawner::of(strand)
    }

    /// A child has ended. Gives the strand that counted it if it has just a few left.
    pub(crate) fn remove(&mut self, spawner: Spawner) -> Option<StrandKey> {
        let strand = spawner.strand()?;
        let left = self.unfinished.get_mut(&strand);
        let left = left.expect("a child that counts is counted");
        *left -= 1;
        let is_few = self.few == Some(*left);
        if *left == 0 {
            self.unfinished.remove(&strand);
        }
        is_few.then_some(strand)
    }

    /// Asserts that the counts are those of the tasks which are counted.
    pub(crate) fn check(&self, counted: impl Iterator<Item = Spawner>) {
        let mut counts: KeyMap<StrandKey, u32> = KeyMap::default();
        for strand in counted.filter_map(Spawner::strand) {
            *counts.entry(strand).or_default() += 1;
        }
        assert_eq!(counts, self.unfinished, "unfinished children");
    }
}
