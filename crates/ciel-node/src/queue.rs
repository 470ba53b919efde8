//! Ready tasks, earliest in serial order first.
//!
//! A binary heap whose order is asked of [`SerialOrder`], because marks are compared by it alone.
//! A withdrawn task stays in the heap until it comes up, and is passed over then.

use ciel_model::{Mark, SerialOrder};

/// A heap of marks with something at each.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    heap: Vec<(Mark, T)>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { heap: Vec::new() }
    }
}

impl<T> Queue<T> {
    pub(crate) fn push(&mut self, order: &SerialOrder, mark: Mark, item: T) {
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
        self.heap.len()
    }

    pub(crate) fn first(&self) -> Option<(Mark, &T)> {
        self.heap.first().map(|(mark, item)| (*mark, item))
    }

    pub(crate) fn pop(&mut self, order: &SerialOrder) -> Option<(Mark, T)> {
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
        let before = std::mem::take(&mut self.heap);
        for (mark, item) in before.into_iter().filter(|(_, item)| keep(item)) {
            self.push(order, mark, item);
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
            while let Some((mark, ())) = queue.pop(&order) {
                out.push(mark);
            }
            prop_assert_eq!(out.len(), picks.len());
            prop_assert!(out.windows(2).all(|pair| !order.precedes(pair[1], pair[0])));
        }
    }
}
