//! Queues that grow by segments, so that no push moves what is there.
//!
//! A ring that doubles copies all that it holds, and a strand may have a million children, a node a
//! million ready tasks. Read next: `segmented`, for lists.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// Items of a segment.
const SEGMENT: usize = 1024;

/// An emptied front segment of more items than this gives its memory back.
const ROOMY_ITEMS: usize = 64;

/// Items in order: mostly added at the back and taken at the front.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct SegmentedQueue<T> {
    /// Empty only if all are.
    front: VecDeque<T>,
    /// All but the last one are full.
    rest: VecDeque<VecDeque<T>>,
}

impl<T> Default for SegmentedQueue<T> {
    fn default() -> SegmentedQueue<T> {
        SegmentedQueue {
            front: VecDeque::new(),
            rest: VecDeque::new(),
        }
    }
}

impl<T> Extend<T> for SegmentedQueue<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.push_back(item);
        }
    }
}

impl<T> SegmentedQueue<T> {
    /// Number of items.
    pub fn len(&self) -> usize {
        let last = self.rest.back().map_or(0, VecDeque::len);
        let full = self.rest.len().saturating_sub(1);
        self.front.len() + full * SEGMENT + last
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.front.is_empty()
    }

    /// Adds an item at the back.
    pub fn push_back(&mut self, item: T) {
        match self.rest.back_mut() {
            None if self.front.len() < SEGMENT => self.front.push_back(item),
            Some(last) if last.len() < SEGMENT => last.push_back(item),
            _ => {
                let mut segment = VecDeque::with_capacity(SEGMENT);
                segment.push_back(item);
                self.rest.push_back(segment);
            }
        }
    }

    /// Adds an item at the front.
    pub fn push_front(&mut self, item: T) {
        if self.front.len() == SEGMENT {
            let full = std::mem::replace(&mut self.front, VecDeque::with_capacity(SEGMENT));
            self.rest.push_front(full);
        }
        self.front.push_front(item);
    }

    /// Takes the item at the front.
    pub fn pop_front(&mut self) -> Option<T> {
        let item = self.front.pop_front();
        if self.front.is_empty() {
            match self.rest.pop_front() {
                Some(next) => self.front = next,
                None if self.front.capacity() > ROOMY_ITEMS => self.front = VecDeque::new(),
                None => {}
            }
        }
        item
    }

    /// Takes the item at the front if it satisfies `is_due`.
    pub fn pop_front_if(&mut self, is_due: impl FnOnce(&T) -> bool) -> Option<T> {
        is_due(self.front()?).then(|| self.pop_front()).flatten()
    }

    fn pop_back(&mut self) -> Option<T> {
        let Some(last) = self.rest.back_mut() else {
            return self.front.pop_back();
        };
        let item = last.pop_back();
        if last.is_empty() {
            self.rest.pop_back();
        }
        item
    }

    /// Takes away the items from an index on, and gives them in order.
    pub fn split_off(&mut self, index: usize) -> Vec<T> {
        let count = self.len().saturating_sub(index);
        let mut gone: Vec<T> = (0..count).filter_map(|_| self.pop_back()).collect();
        gone.reverse();
        gone
    }

    /// The item at an index, from the front.
    pub fn get(&self, index: usize) -> Option<&T> {
        let Some(behind) = index.checked_sub(self.front.len()) else {
            return self.front.get(index);
        };
        self.rest.get(behind / SEGMENT)?.get(behind % SEGMENT)
    }

    fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let Some(behind) = index.checked_sub(self.front.len()) else {
            return self.front.get_mut(index);
        };
        let segment = self.rest.get_mut(behind / SEGMENT)?;
        segment.get_mut(behind % SEGMENT)
    }

    /// The item at the front.
    pub fn front(&self) -> Option<&T> {
        self.front.front()
    }

    /// The item at the back.
    pub fn back(&self) -> Option<&T> {
        self.rest.back().unwrap_or(&self.front).back()
    }

    /// The item at the back.
    pub fn back_mut(&mut self) -> Option<&mut T> {
        self.rest.back_mut().unwrap_or(&mut self.front).back_mut()
    }

    /// All items in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.front.iter().chain(self.rest.iter().flatten())
    }

    /// All items in order.
    pub fn into_entries(self) -> impl Iterator<Item = T> {
        self.front
            .into_iter()
            .chain(self.rest.into_iter().flatten())
    }

    /// Drops the items that do not satisfy `keep`; linear in their number.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let all = std::mem::take(self).into_entries();
        all.filter(keep).for_each(|item| self.push_back(item));
    }

    /// Gives back the slack of the growing segment when nothing is added any more.
    pub fn shrink(&mut self) {
        let last = self.rest.back_mut().unwrap_or(&mut self.front);
        last.shrink_to_fit();
    }
}

impl<T> FromIterator<T> for SegmentedQueue<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> SegmentedQueue<T> {
        let mut queue = SegmentedQueue::default();
        items.into_iter().for_each(|item| queue.push_back(item));
        queue
    }
}

impl<T> Index<usize> for SegmentedQueue<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        self.get(index).expect("the queue has so many items")
    }
}

impl<T> IndexMut<usize> for SegmentedQueue<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.get_mut(index).expect("the queue has so many items")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_pushes_and_pops_agree_with_a_ring(
            steps in prop::collection::vec((0u8..6, 0usize..2 * SEGMENT), 0..12)
        ) {
            let (mut queue, mut model) = (SegmentedQueue::default(), VecDeque::new());
            for (what, count) in steps {
                match what {
                    0 => {
                        let kept = model.len().saturating_sub(count);
                        prop_assert_eq!(queue.split_off(kept), Vec::from(model.split_off(kept)));
                    }
                    1 => for _ in 0..count {
                        prop_assert_eq!(queue.pop_front(), model.pop_front());
                    },
                    2 => for number in 0..count {
                        queue.push_front(number);
                        model.push_front(number);
                    },
                    3 => {
                        queue.retain(|number| number % 3 != count % 3);
                        model.retain(|number| number % 3 != count % 3);
                    }
                    _ => for number in 0..count {
                        queue.push_back(number);
                        model.push_back(number);
                    },
                }
                prop_assert_eq!((queue.len(), queue.front()), (model.len(), model.front()));
                prop_assert_eq!(queue.is_empty(), model.is_empty());
                prop_assert_eq!(queue.get(count), model.get(count));
                prop_assert!(queue.iter().eq(&model));
            }
            prop_assert_eq!(queue.back(), model.back());
            prop_assert_eq!(queue.back_mut(), model.back_mut());
            prop_assert!(queue.into_entries().eq(model));
        }
    }
}
