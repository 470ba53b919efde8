//! The references of one task by handle, with the answers to them.
//!
//! It does not know the content of an answer. Read next: `references`, which forgets and renumbers.

use super::Answered;
use crate::host::{Handle, References};

/// Empty until answered.
type Slot = Option<Box<Answered>>;

/// All references of a task.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Those that it was given and made, from 0 on.
    own: Vec<Slot>,
    /// Those that were delivered to it, from [`Handle::DELIVERED_MIN`] on.
    delivered: Vec<Slot>,
}

impl Table {
    /// Bytes of one reference.
    pub(super) const SLOT_BYTES: usize = size_of::<Slot>();

    /// A table with these references of the task's own.
    pub(super) fn of(own: Vec<Slot>) -> Table {
        let delivered = Vec::new();
        Table { own, delivered }
    }

    pub(super) fn len(&self) -> usize {
        self.own.len() + self.delivered.len()
    }

    pub(super) fn capacity(&self) -> usize {
        self.own.capacity() + self.delivered.capacity()
    }

    /// Gives back memory that no reference takes.
    pub(super) fn shrink(&mut self) {
        self.own.shrink_to_fit();
        self.delivered.shrink_to_fit();
    }

    /// The next handle of the task's own.
    pub(super) fn next(&self) -> Handle {
        Handle(u32::try_from(self.own.len()).expect("the budget bounds the table"))
    }

    /// The index of a handle in [`Table::handles`].
    pub(super) fn index(&self, handle: Handle) -> usize {
        match handle.0.checked_sub(Handle::DELIVERED_MIN) {
            Some(index) => self.own.len() + index as usize,
            None => handle.0 as usize,
        }
    }

    /// All handles, the task's own first.
    pub(super) fn handles(&self) -> impl Iterator<Item = Handle> + use<> {
        let (own, delivered) = (self.own.len() as u32, self.delivered.len() as u32);
        let delivered = Handle::DELIVERED_MIN..Handle::DELIVERED_MIN + delivered;
        (0..own).chain(delivered).map(Handle)
    }

    pub(super) fn get(&self, handle: Handle) -> Option<&Answered> {
        let slot = match handle.0.checked_sub(Handle::DELIVERED_MIN) {
            Some(index) => self.delivered.get(index as usize),
            None => self.own.get(handle.0 as usize),
        };
        slot.and_then(|slot| slot.as_deref())
    }

    pub(super) fn slot(&mut self, handle: Handle) -> Option<&mut Slot> {
        match handle.0.checked_sub(Handle::DELIVERED_MIN) {
            Some(index) => self.delivered.get_mut(index as usize),
            None => self.own.get_mut(handle.0 as usize),
        }
    }

    /// All slots, in the order of [`Table::handles`].
    pub(super) fn slots(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.own.iter_mut().chain(&mut self.delivered)
    }

    /// The task makes `count` references.
    pub(super) fn add(&mut self, count: u32) {
        self.own.extend((0..count).map(|_| None));
    }

    /// References are delivered to the task; gives how many are new.
    pub(super) fn deliver(&mut self, references: References) -> usize {
        if references.count == 0 {
            return 0;
        }
        let first = references.first.0.saturating_sub(Handle::DELIVERED_MIN);
        let end = (first + references.count) as usize;
        let more = end.saturating_sub(self.delivered.len());
        self.delivered.extend((0..more).map(|_| None));
        more
    }
}
