//! Children that were started and have not been seen yet.
//!
//! A thread that starts a process is stopped before the call; the child's process id is known
//! later: by the child's own first call, or, if the thread is faster, from the list of its
//! children. Pure: it does not know where these are read. Read next: `traps`.

use std::collections::BTreeMap;

use crate::order::ProcessKey;

/// A start whose child has no process id yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Birth {
    /// The process that starts it.
    pub(crate) parent: u32,
    /// Who will be its parent in the eyes of the system: its parent, or with `CLONE_PARENT` that
    /// one's own.
    pub(crate) visible_parent: u32,
    /// The thread that makes the call.
    pub(crate) thread: u32,
    /// The child.
    pub(crate) child: ProcessKey,
}

/// All starts without a process id, in their order.
#[derive(Debug, Default)]
pub(crate) struct Births {
    waiting: BTreeMap<ProcessKey, Birth>,
}

impl Births {
    /// A thread makes a call that starts a process.
    pub(crate) fn add(&mut self, birth: Birth) {
        self.waiting.insert(birth.child, birth);
    }

    /// The first start of this thread that has no process id.
    pub(crate) fn of_thread(&self, thread: u32) -> Option<Birth> {
        self.find(|birth| birth.thread == thread)
    }

    /// The first start of this process.
    pub(crate) fn of_process(&self, parent: u32) -> Option<Birth> {
        self.find(|birth| birth.parent == parent)
    }

    /// Whether a start whose child will have that parent is the only one.
    pub(crate) fn only_under(&self, visible_parent: u32) -> Option<Birth> {
        let mut births = self.under(visible_parent);
        let first = births.next();
        first.filter(|_| births.next().is_none())
    }

    /// The starts whose children will have that parent, in their order.
    pub(crate) fn under(&self, visible_parent: u32) -> impl Iterator<Item = Birth> {
        let births = self.waiting.values().copied();
        births.filter(move |birth| birth.visible_parent == visible_parent)
    }

    /// The start is done: its child is known, or it failed.
    pub(crate) fn remove(&mut self, child: ProcessKey) {
        self.waiting.remove(&child);
    }

    /// Whether every child has been seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn find(&self, is_it: impl Fn(&Birth) -> bool) -> Option<Birth> {
        self.waiting.values().find(|birth| is_it(birth)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn birth(parent: u32, thread: u32, child: u64) -> Birth {
        Birth {
            parent,
            visible_parent: parent,
            thread,
            child: ProcessKey(child),
        }
    }

    #[test]
    fn starts_of_one_thread_come_back_in_their_order() {
        let mut births = Births::default();
        births.add(birth(7, 7, 1));
        births.add(birth(7, 7, 2));
        assert_eq!(births.of_thread(7), Some(birth(7, 7, 1)));
        births.remove(ProcessKey(1));
        assert_eq!(births.of_thread(7), Some(birth(7, 7, 2)));
    }

    #[test]
    fn two_starts_under_one_parent_are_told_apart_by_their_threads() {
        let mut births = Births::default();
        births.add(birth(7, 7, 1));
        assert_eq!(births.only_under(7), Some(birth(7, 7, 1)));
        births.add(birth(7, 8, 2));
        assert_eq!(births.only_under(7), None);
        assert!(births.under(7).eq([birth(7, 7, 1), birth(7, 8, 2)]));
        assert_eq!(births.under(8).next(), None);
    }
}
