//! A set of the numbers of actions, in ranges: a loop that spawns is one of them.
//!
//! It does not know what the actions are. Read next: `subtrees`.

use std::collections::BTreeMap;

/// Actions of one strand.
#[derive(Debug, Default)]
pub(super) struct Actions {
    /// The last action of each range, by its first.
    ranges: BTreeMap<u64, u64>,
}

impl Actions {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds an action; false if it was there.
    pub(super) fn insert(&mut self, action: u64) -> bool {
        let before = self.ranges.range_mut(..=action).next_back();
        let first = match before {
            Some((_, last)) if *last >= action => return false,
            Some((first, last)) if *last + 1 == action => {
                *last = action;
                *first
            }
            _ => {
                self.ranges.insert(action, action);
                action
            }
        };
        let after = action.checked_add(1);
        if let Some(last) = after.and_then(|after| self.ranges.remove(&after)) {
            self.ranges.insert(first, last);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_is_added_once_in_any_order_and_neighbours_are_one_range() {
        let mut actions = Actions::default();
        assert!(actions.is_empty());
        let order = [5, 3, 4, u64::MAX, 0, 6, u64::MAX - 1, 9];
        assert!(order.into_iter().all(|action| actions.insert(action)));
        assert!(order.into_iter().all(|action| !actions.insert(action)));
        let ranges: Vec<(u64, u64)> = actions.ranges.into_iter().collect();
        assert_eq!(ranges, [(0, 0), (3, 6), (9, 9), (u64::MAX - 1, u64::MAX)]);
    }
}
