//! The items of a strand: added at the back, taken at the front, in segments, so that none moves.
//!
//! A ring that doubles copies all that it holds, and a strand may have a million children. It does
//! not know what its items mean. Read next: `strand`.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// Items of a segment.
const SEGMENT: usize = 1024;

/// An emptied front segment of more items than this gives its memory back.
const ROOMY_ITEMS: usize = 64;

/// Items in order.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Row<T> {
    front: VecDeque<T>,
    /// All but the last one are full.
    rest: VecDeque<VecDeque<T>>,
}

impl<T> Row<T> {
    pub(crate) fn new() -> Row<T> {
        Row {
            front: VecDeque::new(),
            rest: VecDeque::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        let last = self.rest.back().map_or(0, VecDeque::len);
        let full = self.rest.len().saturating_sub(1);
        self.front.len() + full * SEGMENT + last
    }

    /// The front segment is empty only if all are.
    pub(crate) fn is_empty(&self) -> bool {
        self.front.is_empty()
    }

    pub(crate) fn push_back(&mut self, item: T) {
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

    pub(crate) fn pop_front(&mut self) -> Option<T> {
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
    pub(crate) fn split_off(&mut self, index: usize) -> Vec<T> {
        let count = self.len().saturating_sub(index);
        let mut gone: Vec<T> = (0..count).filter_map(|_| self.pop_back()).collect();
        gone.reverse();
        gone
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
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

    pub(crate) fn front(&self) -> Option<&T> {
        self.front.front()
    }

    pub(crate) fn back_mut(&mut self) -> Option<&mut T> {
        self.rest.back_mut().unwrap_or(&mut self.front).back_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.front.iter().chain(self.rest.iter().flatten())
    }

    /// All items in order.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = T> {
        self.front
            .into_iter()
            .chain(self.rest.into_iter().flatten())
    }

    /// Gives back the slack of the growing segment when nothing is added any more.
    pub(crate) fn shrink(&mut self) {
        let last = self.rest.back_mut().unwrap_or(&mut self.front);
        last.shrink_to_fit();
    }
}

impl<T> Index<usize> for Row<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        self.get(index).expect("the row has that many items")
    }
}

impl<T> IndexMut<usize> for Row<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.get_mut(index).expect("the row has that many items")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_pushes_and_pops_agree_with_a_ring(
            steps in prop::collection::vec((0u8..4, 0usize..2 * SEGMENT), 0..12)
        ) {
            let (mut row, mut model) = (Row::new(), VecDeque::new());
            for (what, count) in steps {
                match what {
                    0 => {
                        let kept = model.len().saturating_sub(count);
                        prop_assert_eq!(row.split_off(kept), Vec::from(model.split_off(kept)));
                    }
                    1 => for _ in 0..count {
                        prop_assert_eq!(row.pop_front(), model.pop_front());
                    },
                    _ => for number in 0..count {
                        row.push_back(number);
                        model.push_back(number);
                    },
                }
                prop_assert_eq!((row.len(), row.front()), (model.len(), model.front()));
                prop_assert_eq!(row.is_empty(), model.is_empty());
                prop_assert_eq!(row.get(count), model.get(count));
                prop_assert!(row.iter().eq(&model));
            }
            prop_assert_eq!(row.back_mut(), model.back_mut());
            prop_assert!(row.into_entries().eq(model));
        }
    }
}
