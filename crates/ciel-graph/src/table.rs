//! What one task can name: the objects behind its handles.
//!
//! The table only finds objects; `objects` counts their holders. Handles of the task's own may
//! leave gaps, since a child that ran in place keeps the handles it was given. Read next: `spawn`,
//! which fills it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ciel_model::{Handle, ObjectKey, Rare, Segmented, Usual};

/// Stands where a task has released an object; no object has this key.
const RELEASED: ObjectKey = ObjectKey(u64::MAX);

/// The handles of one task.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Table {
    /// Handles from 0 on: the inputs, and what the task made without a gap.
    dense: Segmented<ObjectKey>,
    other: Rare<Other>,
    /// The task's own handles that it has given out end here.
    own_end: u32,
}

/// What a task that has not begun does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Other {
    /// What the task made beyond a gap.
    sparse: BTreeMap<u32, ObjectKey>,
    /// What was delivered to it, from [`Handle::DELIVERED_MIN`] on.
    delivered: Vec<ObjectKey>,
}

impl Usual for Other {
    fn usual() -> &'static Other {
        static NONE: LazyLock<Other> = LazyLock::new(Other::default);
        &NONE
    }
}

impl Table {
    /// A table with these objects at 0, 1, ….
    pub(crate) fn of(objects: Vec<ObjectKey>) -> Table {
        Table {
            own_end: objects.len() as u32,
            dense: objects.into(),
            ..Table::default()
        }
    }

    /// A table in which these objects are delivered, and nothing else is left of this one. Handles
    /// of the task's own keep their numbers.
    pub(crate) fn delivering(&self, objects: Vec<ObjectKey>) -> Table {
        Table {
            other: Rare::from(Other {
                delivered: objects,
                ..Other::default()
            }),
            own_end: self.own_end,
            ..Table::default()
        }
    }

    /// The first handle that the task has not given out.
    pub(crate) fn own_end(&self) -> Handle {
        Handle(self.own_end)
    }

    /// The object behind `handle`.
    pub(crate) fn get(&self, handle: Handle) -> Option<ObjectKey> {
        let entry = match handle.0.checked_sub(Handle::DELIVERED_MIN) {
            Some(index) => self.other.delivered.get(index as usize),
            None => {
                let dense = self.dense.get(handle.0 as usize);
                dense.or_else(|| self.other.sparse.get(&handle.0))
            }
        };
        entry.copied().filter(|object| *object != RELEASED)
    }

    /// The task releases `handle`, which stays taken; the object that was behind it.
    pub(crate) fn release(&mut self, handle: Handle) -> Option<ObjectKey> {
        let object = self.get(handle)?;
        let index = handle.0 as usize;
        if let Some(index) = handle.0.checked_sub(Handle::DELIVERED_MIN) {
            self.other.delivered[index as usize] = RELEASED;
        } else if index < self.dense.len() {
            self.dense[index] = RELEASED;
        } else {
            self.other.sparse.insert(handle.0, RELEASED);
        }
        Some(object)
    }

    /// Whether the task may give `count` objects the handles from `first` on.
    pub(crate) fn is_free(&self, first: Handle, count: u32) -> bool {
        let Some(end) = first.0.checked_add(count) else {
            return false;
        };
        let taken = self.other.sparse.range(first.0..end).next().is_some();
        end <= Handle::DELIVERED_MIN && first.0 as usize >= self.dense.len() && !taken
    }

    /// The task calls these objects by the handles from `first` on, which are free.
    pub(crate) fn add(&mut self, first: Handle, objects: &[ObjectKey]) {
        self.own_end = self.own_end.max(first.0 + objects.len() as u32);
        if first.0 as usize == self.dense.len() && self.other.sparse.is_empty() {
            return self.dense.extend(objects.iter().copied());
        }
        let numbered = (first.0..).zip(objects.iter().copied());
        self.other.sparse.extend(numbered);
    }

    /// References are delivered to the task; gives their handles.
    pub(crate) fn deliver(&mut self, objects: &[ObjectKey]) -> Vec<Handle> {
        let first = Handle::DELIVERED_MIN + self.other.delivered.len() as u32;
        if !objects.is_empty() {
            self.other.delivered.extend(objects);
        }
        let end = Handle::DELIVERED_MIN + self.other.delivered.len() as u32;
        (first..end).map(Handle).collect()
    }

    /// The `index`-th delivered object, from 0.
    pub(crate) fn delivered(&self, index: usize) -> Option<(Handle, ObjectKey)> {
        let handle = Handle(Handle::DELIVERED_MIN + index as u32);
        self.get(handle).map(|object| (handle, object))
    }

    /// All objects, each as often as the table contains it.
    pub(crate) fn objects(&self) -> impl Iterator<Item = ObjectKey> {
        let made = self.dense.iter().chain(self.other.sparse.values());
        let all = made.chain(&self.other.delivered).copied();
        all.filter(|object| *object != RELEASED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(index: u32) -> Handle {
        Handle(Handle::DELIVERED_MIN + index)
    }

    #[test]
    fn own_and_delivered_handles_are_numbered_apart() {
        let mut table = Table::of(vec![ObjectKey(1)]);
        assert_eq!(table.deliver(&[ObjectKey(2)]), [delivered(0)]);
        table.add(Handle(1), &[ObjectKey(3), ObjectKey(4)]);
        assert_eq!(table.deliver(&[ObjectKey(5)]), [delivered(1)]);
        assert_eq!(table.get(Handle(2)), Some(ObjectKey(4)));
        assert_eq!(table.get(delivered(1)), Some(ObjectKey(5)));
        assert_eq!(table.get(Handle(3)), None);
        assert_eq!(table.get(delivered(2)), None);
        assert_eq!(table.objects().count(), 5);
    }

    #[test]
    fn handles_may_leave_gaps_and_fill_them_later() {
        let mut table = Table::of(vec![ObjectKey(1)]);
        table.add(Handle(5), &[ObjectKey(2), ObjectKey(3)]);
        table.add(Handle(1), &[ObjectKey(4)]);
        assert_eq!(table.get(Handle(6)), Some(ObjectKey(3)));
        assert_eq!(table.get(Handle(1)), Some(ObjectKey(4)));
        assert_eq!(table.get(Handle(2)), None);
        for (first, count, free) in [(0, 1, false), (1, 1, false), (2, 3, true), (4, 2, false)] {
            assert_eq!(table.is_free(Handle(first), count), free, "{first}");
        }
    }

    #[test]
    fn released_handles_name_nothing_and_stay_taken() {
        let mut table = Table::of(vec![ObjectKey(1), ObjectKey(2)]);
        table.add(Handle(5), &[ObjectKey(3)]);
        table.deliver(&[ObjectKey(4), ObjectKey(5)]);
        for (handle, object) in [(Handle(0), 1), (Handle(5), 3), (delivered(0), 4)] {
            assert_eq!(table.release(handle), Some(ObjectKey(object)));
            assert_eq!(table.release(handle), None);
            assert_eq!(table.get(handle), None);
        }
        assert_eq!(table.release(Handle(9)), None);
        let left: Vec<ObjectKey> = table.objects().collect();
        assert_eq!(left, [ObjectKey(2), ObjectKey(5)]);
        assert!(!table.is_free(Handle(0), 1) && !table.is_free(Handle(5), 1));
        assert_eq!(table.own_end(), Handle(6));
        assert_eq!(table.deliver(&[ObjectKey(6)]), [delivered(2)]);
    }

    #[test]
    fn handles_of_the_other_range_are_not_free() {
        let table = Table::default();
        assert!(table.is_free(Handle(Handle::DELIVERED_MIN - 1), 1));
        assert!(!table.is_free(Handle(Handle::DELIVERED_MIN - 1), 2));
        assert!(!table.is_free(Handle(u32::MAX), 1));
    }
}
