//! The table of references: what is still named, what can be forgotten, and renumbering.
//!
//! Read next: `force` for how answers are used.

use super::Machine;
use crate::host::Handle;
use crate::value::{Object, Thunk, Value};

/// A table up to this long is not worth renumbering.
const REFERENCES_KEPT_MAX: usize = 64;
/// Answers up to this size together are not worth a search.
const ANSWER_BYTES_KEPT_MAX: usize = 1024 * 1024;

impl Machine {
    /// Renumbers the references when most have become garbage, so that a loop that spawns and
    /// forgets stays small. Gives the old handles in their new order, from 0; nothing when it was
    /// not worth it and nothing has changed.
    pub fn compact(&mut self) -> Option<Vec<Handle>> {
        let worth = REFERENCES_KEPT_MAX.max(self.table_compacted * 2);
        if self.table.len() <= worth {
            return None;
        }
        let _ = self.collect(0);
        let live = self.live_references();
        let kept: Vec<Handle> = (0..self.references())
            .map(Handle)
            .filter(|handle| live[handle.0 as usize])
            .collect();
        self.table_compacted = kept.len();
        if kept.len() == self.table.len() {
            return None;
        }
        self.renumber(&kept);
        Some(kept)
    }

    /// Forgets the answers of references that nothing names any more, when the answers kept have
    /// grown past twice what they were.
    pub(super) fn forget_answers(&mut self) {
        if self.answer_bytes <= ANSWER_BYTES_KEPT_MAX.max(self.answer_bytes_compacted * 2) {
            return;
        }
        let _ = self.collect(0);
        let live = self.live_references();
        for (slot, is_live) in self.table.iter_mut().zip(live) {
            if !is_live {
                *slot = None;
            }
        }
        let kept = self.table.iter().flatten();
        self.answer_bytes = kept.map(|answered| answered.bytes()).sum();
        self.answer_bytes_compacted = self.answer_bytes;
    }

    /// Which handles the stack and the heap name, and the answers of those.
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
                    todo.extend(
                        dictionary
                            .entries()
                            .iter()
                            .filter_map(|(_, v)| reference(*v)),
                    );
                }
                Object::Closure(closure) => {
                    todo.extend(closure.captures.iter().filter_map(|v| reference(*v)));
                }
                Object::Cell(value) => todo.extend(reference(*value)),
                Object::Thunk(Thunk::Waiting(handle)) => todo.push(*handle),
                Object::Thunk(Thunk::Forced(value)) => todo.extend(reference(*value)),
                Object::Gone | Object::Text(_) | Object::Integer(_) => {}
            }
        }
        while let Some(handle) = todo.pop() {
            if !std::mem::replace(&mut live[handle.0 as usize], true)
                && let Some(answered) = self.answered(handle)
            {
                let inside = answered.numbering;
                todo.extend((inside.first..inside.first + inside.count).map(Handle));
            }
        }
        live
    }

    /// Gives handle `kept[i]` the number `i` everywhere. The order of the old numbers is kept, so
    /// the references inside an answer stay side by side.
    fn renumber(&mut self, kept: &[Handle]) {
        let mut numbers = vec![u32::MAX; self.table.len()];
        for (number, handle) in (0..).zip(kept) {
            numbers[handle.0 as usize] = number;
        }
        let mut old = std::mem::take(&mut self.table);
        self.table = kept
            .iter()
            .map(|handle| old[handle.0 as usize].take())
            .collect();
        for answered in self.table.iter_mut().flatten() {
            let inside = &mut answered.numbering;
            if inside.count > 0 {
                inside.first = numbers[inside.first as usize];
            }
        }
        let moved = |value: &mut Value| {
            if let Value::Reference(handle) = value {
                *handle = Handle(numbers[handle.0 as usize]);
            }
        };
        self.stack.iter_mut().for_each(moved);
        for object in self.heap.objects_mut() {
            match object {
                Object::List(items) => items.iter_mut().for_each(moved),
                Object::Dictionary(dictionary) => dictionary.values_mut().for_each(moved),
                Object::Closure(closure) => closure.captures.iter_mut().for_each(moved),
                Object::Cell(value) | Object::Thunk(Thunk::Forced(value)) => moved(value),
                Object::Thunk(Thunk::Waiting(handle)) => {
                    *handle = Handle(numbers[handle.0 as usize]);
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
