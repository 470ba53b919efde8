//! Starts that wait until a process that passes its slot on has ended.
//!
//! So a slot does not wait for the engine between two short processes. This machine does not know
//! whether a process exited well, and starts nothing. Next: `server`, its only user.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::CString;

use crate::Start;

/// The starts that wait, each with what it is given, and the tasks that pass their slots on.
pub(crate) struct Waiting<D> {
    starts: VecDeque<(Start, D)>,
    /// With the files that they are to leave.
    passing: BTreeMap<u64, Vec<CString>>,
}

impl<D> Waiting<D> {
    /// Nothing waits.
    pub(crate) fn new() -> Waiting<D> {
        Waiting {
            starts: VecDeque::new(),
            passing: BTreeMap::new(),
        }
    }

    /// Whether a task waits.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.starts.iter().any(|(start, _)| start.id == id)
    }

    /// A start waits from now on, behind all others.
    pub(crate) fn push(&mut self, start: Start, given: D) {
        self.starts.push_back((start, given));
    }

    /// A start waits no more; none if it does not wait.
    pub(crate) fn take(&mut self, id: u64) -> Option<(Start, D)> {
        let at = self.starts.iter().position(|(start, _)| start.id == id)?;
        self.starts.remove(at)
    }

    /// The first process of a task runs.
    pub(crate) fn on_started(&mut self, start: &Start) {
        if let Some(files) = &start.passes_on {
            self.passing.insert(start.id, files.clone());
        }
    }

    /// A task passes its slot on no more; the files that it was to leave, if it did.
    pub(crate) fn keep_slot(&mut self, id: u64) -> Option<Vec<CString>> {
        self.passing.remove(&id)
    }

    /// The start that has waited longest.
    pub(crate) fn pop(&mut self) -> Option<(Start, D)> {
        self.starts.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(id: u64, passes_on: bool) -> Start {
        Start {
            passes_on: passes_on.then(Vec::new),
            ..Start::new(id, "task", Vec::new())
        }
    }

    #[test]
    fn starts_begin_in_the_order_in_which_they_came_but_for_those_that_were_taken() {
        let mut waiting = Waiting::new();
        (1..4).for_each(|id| waiting.push(start(id, false), ()));
        assert!(waiting.take(2).is_some() && waiting.take(2).is_none() && !waiting.has(2));
        let mut order = std::iter::from_fn(|| waiting.pop()).map(|(start, ())| start.id);
        assert_eq!(
            [order.next(), order.next(), order.next()],
            [Some(1), Some(3), None]
        );
    }

    #[test]
    fn slot_is_passed_on_once_and_only_by_a_task_that_does_so() {
        let mut waiting: Waiting<()> = Waiting::new();
        waiting.on_started(&start(1, true));
        waiting.on_started(&start(2, false));
        let mut keeps = |id| waiting.keep_slot(id).is_some();
        assert_eq!([keeps(1), keeps(1), keeps(2)], [true, false, false]);
    }
}
