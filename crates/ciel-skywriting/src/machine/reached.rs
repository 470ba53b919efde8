//! The few objects that a small value reaches, in the order in which they were found.

use crate::value::{Index, Value};

/// Objects that are remembered at most.
const REACHED_MAX: usize = 104;

/// See the module.
pub(super) struct Reached {
    indices: [Index; REACHED_MAX],
    count: usize,
}

impl Default for Reached {
    fn default() -> Reached {
        Reached {
            indices: [Index(0); REACHED_MAX],
            count: 0,
        }
    }
}

impl Reached {
    /// Adds the object of a value, once. False if there are too many.
    pub(super) fn add(&mut self, value: Value) -> bool {
        let Some(index) = value.index() else {
            return true;
        };
        if self.indices[..self.count].contains(&index) {
            return true;
        }
        let Some(free) = self.indices.get_mut(self.count) else {
            return false;
        };
        *free = index;
        self.count += 1;
        true
    }

    /// The object of that number.
    pub(super) fn get(&self, number: usize) -> Option<Index> {
        self.indices[..self.count].get(number).copied()
    }
}
