//! Numbers of what a walk has seen already: a list while it is little, then a table.
//!
//! Most values that are copied, written or waited for consist of a few objects, for which a table
//! costs more than the walk. Read next: `graph`.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Things that are found by comparing with each.
const FEW: usize = 8;

/// See the module.
pub(super) struct Seen<T> {
    few: SmallVec<[(T, u32); FEW]>,
    many: FxHashMap<T, u32>,
}

impl<T> Default for Seen<T> {
    fn default() -> Seen<T> {
        Seen {
            few: SmallVec::new(),
            many: FxHashMap::default(),
        }
    }
}

impl<T: Copy + Eq + Hash> Seen<T> {
    /// The number that was given to a thing.
    pub(super) fn get(&self, thing: T) -> Option<u32> {
        let few = self.few.iter().find(|(known, _)| *known == thing);
        match few {
            Some((_, number)) => Some(*number),
            None if self.many.is_empty() => None,
            None => self.many.get(&thing).copied(),
        }
    }

    /// The number of `thing`, which is `next` if it is new.
    pub(super) fn number(&mut self, thing: T, next: u32) -> u32 {
        if let Some(known) = self.get(thing) {
            return known;
        }
        match self.few.len() < FEW {
            true => self.few.push((thing, next)),
            false => drop(self.many.insert(thing, next)),
        }
        next
    }

    /// Whether a thing is new; it is not from then on.
    pub(super) fn add(&mut self, thing: T) -> bool {
        let is_new = self.get(thing).is_none();
        if is_new {
            self.number(thing, 0);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_keep_their_numbers_when_they_become_many() {
        let mut seen = Seen::default();
        let things = 0..3 * FEW as u32;
        for thing in things.clone() {
            assert_eq!(seen.number(thing, thing + 100), thing + 100);
        }
        for thing in things {
            assert_eq!(seen.number(thing, 0), thing + 100);
            assert!(!seen.add(thing));
        }
        assert_eq!(seen.get(99), None);
        assert!(seen.add(99) && !seen.add(99));
    }
}
