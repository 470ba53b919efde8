//! The children that a machine keeps, by handle: what they are to run, or what they gave.
//!
//! It does not know how they run. Read next: `in_place`.

use crate::host::Handle;
use crate::value::Value;

/// A spawned function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Child {
    /// The index of the spawn among the actions of the strand.
    pub(super) action: u64,
    /// Where the spawn stands: the function, and the instruction in it.
    pub(super) function: u32,
    pub(super) pc: u32,
    /// It is never promoted.
    pub(super) is_sealed: bool,
}

/// What is known of a handle from [`Handle::KEPT_MIN`] on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// It has not begun; its value is a list of the function and its arguments.
    Pending(Child),
    /// It runs in place; the same.
    Running(Child),
    /// It has ended; its value is the result.
    Here,
    /// The host knows it by that handle.
    Promoted(Handle),
    /// Nothing names it.
    Free,
}

/// All slots, in the order of their handles.
#[derive(Debug, Default)]
pub(super) struct Kept {
    slots: Vec<Slot>,
    values: Vec<Value>,
}

impl Kept {
    /// Bytes of one slot.
    pub(super) const SLOT_BYTES: usize = size_of::<Slot>() + size_of::<Value>();

    /// The number of a handle, if it is one of a kept child.
    pub(super) fn number(handle: Handle) -> Option<usize> {
        let range = Handle::KEPT_MIN..Handle::DELIVERED_MIN;
        let number = || (handle.0 - Handle::KEPT_MIN) as usize;
        range.contains(&handle.0).then(number)
    }

    /// The handle of a number.
    pub(super) fn handle(number: usize) -> Handle {
        Handle(Handle::KEPT_MIN + u32::try_from(number).expect("the budget bounds the children"))
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    pub(super) fn slot(&self, number: usize) -> Slot {
        self.slots[number]
    }

    pub(super) fn value(&self, number: usize) -> Value {
        self.values[number]
    }

    pub(super) fn add(&mut self, slot: Slot, value: Value) -> usize {
        self.slots.push(slot);
        self.values.push(value);
        self.slots.len() - 1
    }

    pub(super) fn set(&mut self, number: usize, slot: Slot) {
        self.slots[number] = slot;
    }

    pub(super) fn end(&mut self, number: usize, value: Value) {
        self.slots[number] = Slot::Here;
        self.values[number] = value;
    }

    pub(super) fn promoted(&mut self, number: usize, handle: Handle) {
        self.slots[number] = Slot::Promoted(handle);
        self.values[number] = Value::Null;
    }

    /// Forgets all slots from that number on.
    pub(super) fn truncate(&mut self, number: usize) {
        self.slots.truncate(number);
        self.values.truncate(number);
    }

    /// The slots from that number on, as slots of another machine.
    pub(super) fn split_off(&mut self, number: usize) -> Kept {
        Kept {
            slots: self.slots.split_off(number),
            values: self.values.split_off(number),
        }
    }

    pub(super) fn values_mut(&mut self) -> &mut Vec<Value> {
        &mut self.values
    }

    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    /// The first pending child from that number on.
    pub(super) fn pending(&self, from: usize) -> Option<(usize, Child)> {
        self.all_pending(from, usize::MAX).next()
    }

    /// The pending children among so many from that number on.
    pub(super) fn all_pending(
        &self,
        from: usize,
        most: usize,
    ) -> impl Iterator<Item = (usize, Child)> {
        let rest = self.slots.iter().enumerate().skip(from).take(most);
        rest.filter_map(|(number, slot)| match slot {
            Slot::Pending(child) => Some((number, *child)),
            _ => None,
        })
    }

    /// What is kept although nothing names it.
    pub(super) fn roots(&self) -> Vec<bool> {
        let runs = |slot: &Slot| matches!(slot, Slot::Pending(_) | Slot::Running(_));
        self.slots.iter().map(runs).collect()
    }

    /// Forgets what nothing names; gives how many are left.
    pub(super) fn retain(&mut self, alive: &[bool]) -> usize {
        for (number, alive) in alive.iter().enumerate() {
            if !alive {
                self.slots[number] = Slot::Free;
                self.values[number] = Value::Null;
            }
        }
        alive.iter().filter(|alive| **alive).count()
    }

    /// Moves what is left together; gives the new number of each.
    pub(super) fn compact(&mut self) -> Vec<u32> {
        let is_left = |slot: &Slot| *slot != Slot::Free;
        let mut next = 0;
        let numbers = self.slots.iter().map(|slot| {
            let number = next;
            next += u32::from(is_left(slot));
            number
        });
        let numbers = numbers.collect();
        let mut slots = self.slots.iter();
        self.values.retain(|_| slots.next().is_some_and(is_left));
        self.slots.retain(is_left);
        numbers
    }

    /// Gives the handles that the host knows new numbers.
    pub(super) fn renumber(&mut self, new: impl Fn(Handle) -> Handle) {
        for slot in &mut self.slots {
            if let Slot::Promoted(handle) = slot {
                *handle = new(*handle);
            }
        }
    }
}
