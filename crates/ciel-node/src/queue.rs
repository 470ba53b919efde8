//! Ready tasks, earliest in serial order first.
//!
//! Most tasks are offered in serial order, or before all others: those stand in a row, and come and
//! go at its ends. The rest go into a binary heap. Either way the order is asked of
//! [`SerialOrder`], because marks are compared by it alone. A withdrawn task stays until it comes
//! up, and is passed over then.

use std::collections::VecDeque;

use ciel_model::{Mark, SerialOrder};

/// Marks with something at each, the earliest first.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    row: VecDeque<(Mark, T)>,
    heap: Vec<(Mark, T)>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            row: VecDeque::new(),
            heap: Vec::new(),
        }
    }
}

impl<T> Queue<T> {
    pub(crate) fn push(&mut self, order: &SerialOrder, mark: Mark, item: T) {
        match (self.row.front(), self.row.back()) {
            (_, Some(last)) if order.precedes(last.0, mark) => self.row.push_back((mark, item)),
            (Some(first), _) if !order.precedes(mark, first.0) => self.sift_in(order, mark, item),
            _ => self.row.push_front((mark, item)),
        }
    }

    fn sift_in(&mut self, order: &SerialOrder, mark: Mark, item: T) {
        self.heap.push((mark, item));
        let mut child = self.heap.len() - 1;
        while child > 0 {
            let parent = (child - 1) / 2;
            if !order.precedes(self.heap[child].0, self.heap[parent].0) {
                break;
            }
            self.heap.swap(child, parent);
            child = parent;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.row.len() + self.heap.len()
    }

    pub(crate) fn first(&self, order: &SerialOrder) -> Option<(Mark, &T)> {
        let first = match self.row_is_first(order) {
            true => self.row.front(),
            false => self.heap.first(),
        };
        first.map(|(mark, item)| (*mark, item))
    }

    fn row_is_first(&self, order: &SerialOrder) -> bool {
        match (self.row.front(), self.heap.first()) {
            (Some(row), Some(heap)) => order.precedes(row.0, heap.0),
            (_, None) => true,
            (None, Some(_)) => false,
        }
    }

    pub(crate) fn pop(&mut self, order: &SerialOrder) -> Option<(Mark, T)> {
        match self.row_is_first(order) {
            true => self.row.pop_front(),
            false => self.sift_out(order),
        }
    }

    fn sift_out(&mut self, order: &SerialOrder) -> Option<(Mark, T)> {
        if self.heap.is_empty() {
            return None;
        }
        let first = self.heap.swap_remove(0);
        let mut parent = 0;
        loop {
            let mut child = 2 * parent + 1;
            if child >= self.heap.len() {
                return Some(first);
            }
            if child + 1 < self.heap.len()
                && order.precedes(self.heap[child + 1].0, self.heap[child].0)
            {
                child += 1;
            }
            if !order.precedes(self.heap[child].0, self.heap[parent].0) {
                return Some(first);
            }
            self.heap.swap(child, parent);
            parent = child;
        }
    }

    /// Drops what does not satisfy `keep`, wherever it is.
    pub(crate) fn retain(&mut self, order: &SerialOrder, keep: impl Fn(&T) -> bool) {
        self.row.retain(|(_, item)| keep(item));
        let before = std::mem::take(&mut self.heap);
        for (mark, item) in before.into_iter().filter(|(_, item)| keep(item)) {
            self.sift_in(order, mark, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn items_come_out_in_serial_order(picks in prop::collection::vec(any::<u32>(), 0..200)) {
            let mut order = SerialOrder::default();
            let marks: Vec<Mark> = (0..64).map(|_| order.push_last()).collect();
            let mut queue = Queue::default();
            for pick in &picks {
                queue.push(&order, marks[(pick % 64) as usize], ());
            }
            let mut out = Vec::new();
            while let Some((first, ())) = queue.first(&order) {
                let popped = queue.pop(&order).map(|(mark, ())| mark);
                prop_assert_eq!(popped, Some(first));
                out.push(first);
            }
            prop_assert_eq!(out.len(), picks.len());
            prop_assert!(out.windows(2).all(|pair| !order.precedes(pair[1], pair[0])));
        }
    }
}
