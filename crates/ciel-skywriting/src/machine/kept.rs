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
    /// How many arguments it was given.
    pub(super) arguments: u32,
    /// It is never promoted.
    pub(super) is_sealed: bool,
    /// Nothing of its call has to be copied.
    pub(super) is_plain: bool,
}

/// What is known of a handle from [`Handle::KEPT_MIN`] on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// It has not begun; its value is the function, and those of the next slots its arguments.
    Pending(Child),
    /// It runs in place; the same.
    Running(Child),
    /// An argument of the child before it, which has not ended.
    Argument,
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

    /// Whether so many slots can be added without more memory.
    #[inline]
    pub(super) fn fits(&self, slots: usize) -> bool {
        let free = |capacity: usize, len: usize| capacity - len >= slots;
        free(self.slots.capacity(), self.slots.len())
            && free(self.values.capacity(), self.values.len())
    }

    /// Bytes that [`Kept::reserve`] takes for so many slots.
    pub(super) fn bytes_for(&self, slots: usize) -> usize {
        match self.fits(slots) {
            true => 0,
            false => slots.max(self.slots.len()) * Kept::SLOT_BYTES,
        }
    }

    /// Makes room for so many slots, or for as many as there are.
    pub(super) fn reserve(&mut self, slots: usize) {
        if !self.fits(slots) {
            let more = slots.max(self.slots.len());
            self.slots.reserve_exact(more);
            self.values.reserve_exact(more);
        }
    }

    /// Adds a child that is to run that call: a function and its arguments.
    #[inline]
    pub(super) fn add_call(&mut self, child: Child, call: &[Value]) -> usize {
        let number = self.slots.len();
        self.slots.push(Slot::Pending(child));
        for _ in 0..child.arguments {
            self.slots.push(Slot::Argument);
        }
        for value in call {
            self.values.push(*value);
        }
        number
    }

    /// The function and the arguments of a child that has not ended.
    #[inline]
    pub(super) fn call(&self, number: usize) -> &[Value] {
        match self.slots[number] {
            Slot::Pending(child) | Slot::Running(child) => {
                &self.values[number..=number + child.arguments as usize]
            }
            other => unreachable!("a child that has not ended, not {other:?}"),
        }
    }

    pub(super) fn set(&mut self, number: usize, slot: Slot) {
        self.slots[number] = slot;
    }

    pub(super) fn end(&mut self, number: usize, value: Value) {
        self.close(number, Slot::Here, value);
    }

    /// Forgets a child.
    pub(super) fn free(&mut self, number: usize) {
        self.close(number, Slot::Free, Value::Null);
    }

    /// It has its arguments no longer.
    #[inline]
    fn close(&mut self, number: usize, slot: Slot, value: Value) {
        if let Slot::Pending(child) | Slot::Running(child) = self.slots[number] {
            for at in number + 1..=number + child.arguments as usize {
                self.slots[at] = Slot::Free;
                self.values[at] = Value::Null;
            }
        }
        self.slots[number] = slot;
        self.values[number] = value;
    }

    pub(super) fn promoted(&mut self, number: usize, handle: Handle) {
        self.close(number, Slot::Promoted(handle), Value::Null);
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
        let rest = self.slots.get(from..).unwrap_or_default();
        for (number, slot) in rest.iter().enumerate() {
            if let Slot::Pending(child) = slot {
                return Some((from + number, *child));
            }
        }
        None
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
        let is_open =
            |slot: &Slot| matches!(slot, Slot::Pending(_) | Slot::Running(_) | Slot::Argument);
        self.slots.iter().map(is_open).collect()
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
