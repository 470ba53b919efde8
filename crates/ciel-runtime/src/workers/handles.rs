//! The numbers by which a worker and the engine name objects in one task.
//!
//! A worker counts what it makes, the engine counts what it delivers from another range, so
//! neither has to wait for the other. The graph has one table for both, in the order in which the
//! core performed things. This module keeps the two numberings together; it knows no objects.
//! Read next: `held`.

use ciel_model::Handle;
use ciel_protocol::limits::DELIVERED_HANDLE_MIN;

/// Both numberings of one task.
#[derive(Debug, Default)]
pub(super) struct Handles {
    /// Inputs, then what the task made, by the worker's numbers.
    made: Vec<Handle>,
    /// What was delivered, by the engine's numbers; places in the table only grow.
    delivered: Vec<Handle>,
    /// The next place in the graph's table.
    next: u32,
}

impl Handles {
    /// The table of a task that starts with `inputs` inputs.
    pub(super) fn starting(inputs: u32) -> Handles {
        Handles {
            made: (0..inputs).map(Handle).collect(),
            delivered: Vec::new(),
            next: inputs,
        }
    }

    /// The table of a saved strand: of `kept` places, the first `delivered` go to the worker.
    pub(super) fn restored(delivered: u32, kept: u32) -> Handles {
        Handles {
            made: Vec::new(),
            delivered: (0..delivered).map(Handle).collect(),
            next: kept,
        }
    }

    /// The place in the graph's table of a number that the worker used.
    pub(super) fn find(&self, number: u32) -> Option<Handle> {
        let (list, index) = match number.checked_sub(DELIVERED_HANDLE_MIN) {
            Some(index) => (&self.delivered, index),
            None => (&self.made, number),
        };
        list.get(index as usize).copied()
    }

    /// The number by which the worker knows a place of the table.
    pub(super) fn number_of(&self, handle: Handle) -> Option<u32> {
        if let Ok(index) = self.delivered.binary_search(&handle) {
            return Some(DELIVERED_HANDLE_MIN + index as u32);
        }
        let index = self.made.binary_search(&handle).ok()?;
        Some(index as u32)
    }

    /// Numbers that the worker has left for what it makes.
    pub(super) fn room(&self) -> u32 {
        DELIVERED_HANDLE_MIN - self.made.len() as u32
    }

    /// The task made `count` objects, no more than there is [`Handles::room`] for; gives the first.
    pub(super) fn make(&mut self, count: u32) -> Handle {
        let first = self.next;
        self.next += count;
        self.made.extend((first..self.next).map(Handle));
        Handle(first)
    }

    /// References joined the table; gives their numbers.
    pub(super) fn deliver(&mut self, references: &[Handle]) -> Vec<u32> {
        let number = |handle: &Handle| {
            debug_assert_eq!(handle.0, self.next, "both sides of the core count alike");
            self.next = handle.0 + 1;
            self.delivered.push(*handle);
            DELIVERED_HANDLE_MIN + (self.delivered.len() as u32 - 1)
        };
        references.iter().map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stay_apart_while_the_table_is_shared() {
        let mut handles = Handles::starting(2);
        assert_eq!(handles.make(1), Handle(2));
        let numbers = handles.deliver(&[Handle(3), Handle(4)]);
        assert_eq!(numbers, [DELIVERED_HANDLE_MIN, DELIVERED_HANDLE_MIN + 1]);
        assert_eq!(handles.make(2), Handle(5));
        assert_eq!(handles.find(3), Some(Handle(5)));
        assert_eq!(handles.find(numbers[1]), Some(Handle(4)));
        assert_eq!(handles.number_of(Handle(4)), Some(numbers[1]));
        assert_eq!(handles.number_of(Handle(6)), Some(4));
    }

    #[test]
    fn number_that_was_never_given_is_not_found() {
        let handles = Handles::starting(1);
        for number in [1, DELIVERED_HANDLE_MIN, u32::MAX] {
            assert_eq!(handles.find(number), None, "{number}");
        }
    }

    #[test]
    fn restored_strand_knows_only_what_it_kept() {
        let mut handles = Handles::restored(2, 3);
        assert_eq!(handles.find(DELIVERED_HANDLE_MIN + 1), Some(Handle(1)));
        assert_eq!(handles.find(0), None);
        assert_eq!(handles.make(1), Handle(3));
        assert_eq!(handles.find(0), Some(Handle(3)));
    }
}
