//! The numbers by which a worker names objects in one task.
//!
//! A worker counts what it makes, the graph counts what it delivers from another range, so neither
//! has to wait for the other. They are the graph's handles, but for a strand that was saved: it
//! counts from 0 again. This module knows no objects. Read next: `held`.

use ciel_model::Handle;
use ciel_protocol::limits::DELIVERED_HANDLE_MIN;

const _: () = assert!(DELIVERED_HANDLE_MIN == Handle::DELIVERED_MIN);

/// What one task can name.
#[derive(Debug, Default)]
pub(super) struct Handles {
    /// The handle of the worker's number 0.
    first: u32,
    /// Inputs, and what the task made.
    made: u32,
    delivered: u32,
}

impl Handles {
    /// Those of a task that starts with `inputs` inputs.
    pub(super) fn starting(inputs: u32) -> Handles {
        Handles {
            first: 0,
            made: inputs,
            delivered: 0,
        }
    }

    /// Those of a saved strand: `delivered` go to the worker, and its own go on from `next`.
    pub(super) fn restored(delivered: u32, next: Handle) -> Handles {
        Handles {
            first: next.0,
            made: 0,
            delivered,
        }
    }

    /// The handle of a number that the worker used.
    pub(super) fn find(&self, number: u32) -> Option<Handle> {
        match number.checked_sub(DELIVERED_HANDLE_MIN) {
            Some(index) => (index < self.delivered).then_some(Handle(number)),
            None => (number < self.made).then(|| Handle(self.first + number)),
        }
    }

    /// The number by which the worker knows a handle.
    pub(super) fn number_of(&self, handle: Handle) -> u32 {
        match handle.0 < DELIVERED_HANDLE_MIN {
            true => handle.0 - self.first,
            false => handle.0,
        }
    }

    /// Numbers that the worker has left for what it makes.
    pub(super) fn room(&self) -> u32 {
        DELIVERED_HANDLE_MIN - self.first - self.made
    }

    /// The task makes `count` objects, no more than there is [`Handles::room`] for; the first.
    pub(super) fn make(&mut self, count: u32) -> Handle {
        self.made += count;
        Handle(self.first + self.made - count)
    }

    /// References are delivered; gives their numbers.
    pub(super) fn deliver(&mut self, references: &[Handle]) -> Vec<u32> {
        if let Some(last) = references.last() {
            self.delivered = last.0 - DELIVERED_HANDLE_MIN + 1;
        }
        references.iter().map(|handle| handle.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(index: u32) -> Handle {
        Handle(DELIVERED_HANDLE_MIN + index)
    }

    #[test]
    fn number_that_was_never_given_is_not_found() {
        let mut handles = Handles::starting(1);
        assert_eq!(handles.make(2), Handle(1));
        assert_eq!(handles.deliver(&[delivered(0)]), [DELIVERED_HANDLE_MIN]);
        for (number, found) in [(0, true), (2, true), (3, false), (u32::MAX, false)] {
            assert_eq!(handles.find(number).is_some(), found, "{number}");
        }
        assert_eq!(handles.find(DELIVERED_HANDLE_MIN), Some(delivered(0)));
        assert_eq!(handles.find(DELIVERED_HANDLE_MIN + 1), None);
    }

    #[test]
    fn restored_strand_counts_from_zero_again() {
        let mut handles = Handles::restored(2, Handle(7));
        assert_eq!(handles.find(DELIVERED_HANDLE_MIN + 1), Some(delivered(1)));
        assert_eq!(handles.find(0), None);
        assert_eq!(handles.make(1), Handle(7));
        assert_eq!(handles.find(0), Some(Handle(7)));
        assert_eq!(handles.number_of(Handle(7)), 0);
        assert_eq!(handles.number_of(delivered(1)), DELIVERED_HANDLE_MIN + 1);
    }
}
