//! Ready tasks, earliest in serial order first.
//!
//! A lane has two queues: strands that have run before go before tasks that have not begun, so a
//! strand hears of what it waits for when that happens. Most tasks are offered in serial order, or
//! before all others: those stand in a row, and come and go at its ends. The rest are in a binary
//! heap. An entry is never changed: one whose task was withdrawn, or has another label by now,
//! stays until it comes up, and is passed over then. Which those are the queue does not know. Read
//! next: `node`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ciel_model::{OrderLabel, SegmentedQueue, limits};

use crate::event::AttemptKey;

/// A ready task: its label when it was added, and which it is.
pub(crate) type Entry = (OrderLabel, AttemptKey);

/// Ready tasks, the earliest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    row: SegmentedQueue<Entry>,
    heap: BinaryHeap<Reverse<Entry>>,
}

impl Queue {
    pub(crate) fn push(&mut self, entry: Entry) {
        match (self.row.front(), self.row.back()) {
            (_, Some(last)) if *last < entry => self.row.push_back(entry),
            (Some(first), _) if entry >= *first => self.heap.push(Reverse(entry)),
            _ => self.row.push_front(entry),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.row.len() + self.heap.len()
    }

    pub(crate) fn first(&self) -> Option<Entry> {
        let heap = self.heap.peek().map(|Reverse(entry)| *entry);
        match (self.row.front(), heap) {
            (Some(row), Some(heap)) => Some(heap.min(*row)),
            (row, heap) => row.copied().or(heap),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let first = self.first()?;
        if self.row.pop_front_if(|row| *row == first).is_none() {
            self.heap.pop();
        }
        Some(first)
    }

    /// Drops what does not satisfy `keep`, wherever it is.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Entry) -> bool) {
        self.row.retain(&keep);
        self.heap.retain(|Reverse(entry)| keep(entry));
    }
}

/// All ready tasks that want one kind of slot.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    /// Strands that have run before.
    woken: Queue,
    /// Tasks that have not begun.
    fresh: Queue,
    /// Everything in serial order, whether it has run or not.
    is_serial: bool,
    /// How many strands in a row went before a task that has not begun.
    overtaken: u32,
}

impl Lane {
    pub(crate) fn new(is_serial: bool) -> Lane {
        Lane {
            woken: Queue::default(),
            fresh: Queue::default(),
            is_serial,
            overtaken: 0,
        }
    }

    pub(crate) fn push(&mut self, entry: Entry, has_run: bool) {
        match has_run {
            true => self.woken.push(entry),
            false => self.fresh.push(entry),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.woken.len() + self.fresh.len()
    }

    pub(crate) fn first(&self) -> Option<Entry> {
        match self.is_woken_next() {
            true => self.woken.first(),
            false => self.fresh.first(),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Entry> {
        if self.is_woken_next() {
            self.overtaken += u32::from(self.fresh.len() > 0);
            return self.woken.pop();
        }
        self.overtaken = 0;
        self.fresh.pop()
    }

    /// Strands that ask for the time again and again must not hold up all other tasks for ever.
    fn is_woken_next(&self) -> bool {
        match (self.woken.first(), self.fresh.first()) {
            (Some(woken), Some(fresh)) if self.is_serial => woken < fresh,
            (Some(_), Some(_)) => self.overtaken < limits::OVERTAKEN_MAX,
            (woken, _) => woken.is_some(),
        }
    }

    /// Drops what does not satisfy `keep`, wherever it is.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Entry) -> bool) {
        self.woken.retain(&keep);
        self.fresh.retain(&keep);
    }
}

#[cfg(test)]
mod tests {
    use ciel_model::{AttemptNumber, TaskKey};
    use proptest::prelude::*;

    use super::*;
    use crate::node::Ready;

    /// There may be as many of them as memory has room for.
    #[test]
    fn task_in_a_queue_takes_a_cache_line() {
        assert!(size_of::<Ready>() <= 64, "{}", size_of::<Ready>());
    }

    proptest! {
        #[test]
        fn entries_come_out_in_serial_order(picks in prop::collection::vec(0u64..64, 0..200)) {
            let mut queue = Queue::default();
            for position in &picks {
                let label = OrderLabel { position: *position, epoch: 0 };
                let attempt = AttemptKey { task: TaskKey(*position), number: AttemptNumber(0) };
                queue.push((label, attempt));
            }
            let mut out = Vec::new();
            while let Some(first) = queue.first() {
                prop_assert_eq!(queue.pop(), Some(first));
                out.push(first);
            }
            prop_assert_eq!(out.len(), picks.len());
            prop_assert!(out.is_sorted());
        }
    }
}
