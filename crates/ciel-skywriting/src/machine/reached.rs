//! The few objects that a small value reaches, in the order in which they were found.

use smallvec::SmallVec;

use crate::value::{Index, Value};

/// Objects that are remembered at most.
const REACHED_MAX: usize = 104;

/// See the module.
#[derive(Default)]
pub(super) struct Reached(SmallVec<[Index; REACHED_MAX]>);

impl Reached {
    /// Adds the object of a value, once. False if there are too many.
    pub(super) fn add(&mut self, value: Value) -> bool {
        let Some(index) = value.index() else {
            return true;
        };
        if self.0.contains(&index) {
            return true;
        }
        let is_room = self.0.len() < REACHED_MAX;
        if is_room {
            self.0.push(index);
        }
        is_room
    }

    /// The object of that number.
    pub(super) fn get(&self, number: usize) -> Option<Index> {
        self.0.get(number).copied()
    }
}
