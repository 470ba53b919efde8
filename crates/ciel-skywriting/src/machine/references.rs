//! The table of references: what is still named, what can be forgotten, and renumbering.
//!
//! Read next: `force` for how answers are used.

use super::Machine;
use super::kept::Kept;
use super::table::Table;
use crate::host::Handle;
use crate::value::{Object, Thunk, Value};

/// A table up to this long is not worth renumbering, unless what it names takes much room.
const REFERENCES_KEPT_MIN: usize = 16;
/// The same where promoted children took much with them.
const LARGE_REFERENCES_KEPT_MIN: usize = 4;
/// A longer one is, whatever the heap that has to be searched.
const REFERENCES_KEPT_MAX: usize = 64;
/// Bytes of the heap for which one more reference has to be kept before it is searched.
const HEAP_BYTES_EACH: usize = 512;
/// Slots of kept children up to so many are not worth renumbering.
const KEPT_SLOTS_MAX: usize = 64;
/// Bytes of children that were promoted up to which what they give is not worth a search.
const PASSED_BYTES_KEPT_MAX: usize = 1024 * 1024;
/// Answers up to this size together are not worth a search.
const ANSWER_BYTES_KEPT_MAX: usize = 1024 * 1024;

/// What renumbering has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// The old handles in their new order, from 0.
    pub kept: Vec<Handle>,
    /// The old handles that nothing names any more.
    pub dropped: Vec<Handle>,
}

impl Machine {
    /// Renumbers the references when most may have become garbage, so that a loop that spawns and
    /// forgets stays small, and at once if `is_pressed`: what they name takes much room. Nothing
    /// when it was not worth it and nothing has changed.
    pub fn compact(&mut self, is_pressed: bool) -> Option<Compacted> {
        if !(is_pressed || self.is_worth_renumbering()) {
            return None;
        }
        self.passed_bytes = 0;
        let _ = self.collect(0);
        let live = self.live_references();
        let mut live = live.into_iter();
        let (kept, dropped): (Vec<Handle>, Vec<Handle>) = self
            .table
            .handles()
            .partition(|_| live.next() == Some(true));
        self.table_compacted = kept.len() as u32;
        if dropped.is_empty() {
            return None;
        }
        self.renumber(&kept);
        Some(Compacted { kept, dropped })
    }

    /// Whether much may be found for what there is to search. A heap that may be mostly garbage,
    /// which is not searched, is collected first.
    fn is_worth_renumbering(&mut self) -> bool {
        let least = match self.passed_bytes as usize > PASSED_BYTES_KEPT_MAX {
            true => LARGE_REFERENCES_KEPT_MIN,
            false => REFERENCES_KEPT_MIN,
        };
        if self.table.len() <= least.max(self.table_compacted as usize * 2) {
            return false;
        }
        if !self.is_much_named() && self.may_be_garbage() {
            let _ = self.collect(0);
        }
        self.is_much_named()
    }

    /// Whether half of the heap may be garbage: most is new, or was a promoted child's.
    fn may_be_garbage(&self) -> bool {
        self.heap.has_doubled() || self.passed_bytes as usize > self.heap.object_bytes() / 4
    }

    /// Whether the table is long for the heap that has to be searched, or what it names may take
    /// more room than that: promoted children took so much with them, and each that is given the
    /// result of one before it may make as much again.
    fn is_much_named(&self) -> bool {
        let searched = self.heap.object_bytes();
        let few = (REFERENCES_KEPT_MIN + searched / HEAP_BYTES_EACH).min(REFERENCES_KEPT_MAX);
        self.table.len() > few || self.passed_bytes as usize > searched.max(PASSED_BYTES_KEPT_MAX)
    }

    /// Forgets the answers of references that nothing names any more, when the answers kept have
    /// grown past twice what they were.
    pub(super) fn forget_answers(&mut self) {
        if self.answer_bytes <= ANSWER_BYTES_KEPT_MAX.max(self.answer_bytes_compacted * 2) {
            return;
        }
        let _ = self.collect(0);
        let live = self.live_references();
        for (slot, is_live) in self.table.slots().zip(live) {
            if !is_live {
                *slot = None;
            }
        }
        let kept = self.table.slots().flatten();
        self.answer_bytes = kept.map(|answered| answered.bytes()).sum();
        self.answer_bytes_compacted = self.answer_bytes;
    }

    /// Forgets the kept children that nothing names, and renumbers them when that frees much.
    pub(super) fn forget_kept(&mut self, named: &[bool]) {
        let left = self.kept.retain(named);
        if self.kept.len() <= KEPT_SLOTS_MAX.max(left * 2) {
            return;
        }
        let numbers = self.kept.compact();
        let all = left as u32;
        let new = |number: u32| numbers.get(number as usize).copied().unwrap_or(all);
        for strand in &mut self.strands {
            strand.child = strand.child.map(new);
            strand.first_child = new(strand.first_child);
            strand.oldest = new(strand.oldest);
        }
        self.each_handle(|handle| {
            if let Some(number) = Kept::number(*handle) {
                *handle = Kept::handle(new(number as u32) as usize);
            }
        });
    }

    /// Which handles the stack and the heap name, and the answers of those; in the table's order.
    fn live_references(&self) -> Vec<bool> {
        let mut live = vec![false; self.table.len()];
        let mut todo: Vec<Handle> = Vec::new();
        self.stack
            .iter()
            .for_each(|value| todo.extend(reference(*value)));
        for object in self.heap.objects() {
            match object {
                Object::List(items) => todo.extend(items.iter().filter_map(|v| reference(*v))),
                Object::Dictionary(dictionary) => {
                    todo.extend(dictionary.entries().filter_map(|(_, v)| reference(*v)));
                }
                Object::Closure(closure) => {
                    todo.extend(closure.captures.iter().filter_map(|v| reference(*v)));
                }
                Object::Cell(value) | Object::Fixed(value) => todo.extend(reference(*value)),
                Object::Thunk(Thunk::Waiting(handle)) => todo.push(*handle),
                Object::Thunk(Thunk::Forced(value)) => todo.extend(reference(*value)),
                Object::Gone | Object::Text(_) | Object::Integer(_) => {}
            }
        }
        while let Some(handle) = todo.pop() {
            let handle = self.outer(handle);
            if Kept::number(handle).is_some() {
                continue;
            }
            if !std::mem::replace(&mut live[self.table.index(handle)], true)
                && let Some(answered) = self.answered(handle)
            {
                todo.extend(answered.references.handles());
            }
        }
        live
    }

    /// Gives handle `kept[i]` the number `i` everywhere. The order of the old numbers is kept, so
    /// the references inside an answer stay side by side.
    fn renumber(&mut self, kept: &[Handle]) {
        let mut numbers = vec![u32::MAX; self.table.len()];
        for (number, handle) in (0..).zip(kept) {
            numbers[self.table.index(*handle)] = number;
        }
        let mut old = std::mem::take(&mut self.table);
        let slots = kept.iter().map(|handle| old.slot(*handle)?.take());
        self.table = Table::of(slots.collect());
        let new = |handle: Handle| match Kept::number(handle) {
            Some(_) => handle,
            None => Handle(numbers[old.index(handle)]),
        };
        self.kept.renumber(new);
        for answered in self.table.slots().flatten() {
            let inside = &mut answered.references;
            if inside.count > 0 {
                inside.first = new(inside.first);
            }
        }
        self.each_handle(|handle| *handle = new(*handle));
    }

    /// Visits every handle on the stack, in the heap and in the results of kept children.
    pub(super) fn each_handle(&mut self, mut visit: impl FnMut(&mut Handle)) {
        let mut inside = |value: &mut Value| {
            if let Value::Reference(handle) = value {
                visit(handle);
            }
        };
        self.stack.iter_mut().for_each(&mut inside);
        self.kept.values_mut().iter_mut().for_each(&mut inside);
        for object in self.heap.objects_mut() {
            match object {
                Object::List(items) => items.iter_mut().for_each(&mut inside),
                Object::Dictionary(dictionary) => dictionary.values_mut().for_each(&mut inside),
                Object::Closure(closure) => closure.captures.iter_mut().for_each(&mut inside),
                Object::Cell(value)
                | Object::Fixed(value)
                | Object::Thunk(Thunk::Forced(value)) => inside(value),
                Object::Thunk(Thunk::Waiting(handle)) => {
                    let mut value = Value::Reference(*handle);
                    inside(&mut value);
                    if let Value::Reference(moved) = value {
                        *handle = moved;
                    }
                }
                Object::Gone | Object::Text(_) | Object::Integer(_) => {}
            }
        }
    }
}

fn reference(value: Value) -> Option<Handle> {
    match value {
        Value::Reference(handle) => Some(handle),
        _ => None,
    }
}
