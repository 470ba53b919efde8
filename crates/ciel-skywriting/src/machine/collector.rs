//! The collector: a compacting copy of what some roots reach.
//!
//! It does not know budgets. Thunks that have been forced disappear on the way. Read next: `heap`.

use super::kept::Kept;
use crate::host::Handle;
use crate::value::{Index, Object, Thunk, Value};

pub(super) const OBJECT_BYTES: usize = size_of::<Object>();
pub(super) const VALUE_BYTES: usize = size_of::<Value>();

/// Bytes an object takes besides its own place.
pub(super) fn besides(object: &Object) -> usize {
    match object {
        Object::Gone | Object::Cell(_) | Object::Fixed(_) | Object::Thunk(_) => 0,
        Object::Text(text) => text.text.capacity(),
        Object::Integer(number) => usize::try_from(number.bits() / 8).unwrap_or(usize::MAX) + 32,
        Object::List(items) => items.capacity() * VALUE_BYTES,
        Object::Dictionary(dictionary) => dictionary.bytes(),
        Object::Closure(closure) => closure.captures.len() * VALUE_BYTES,
    }
}

/// What the roots reach, moved together, and the bytes it takes. The roots are changed to match.
/// The values of kept children are reached by their references, if they are not `named` before.
pub(super) fn collected(
    old: Vec<Object>,
    roots: &mut [Value],
    kept: &mut [Value],
    named: &mut [bool],
) -> (Vec<Object>, usize) {
    let moved = vec![u32::MAX; old.len()];
    let is_named = |number: &usize| named[*number];
    let mut collector = Collector {
        old,
        moved,
        new: Vec::new(),
        bytes: 0,
        reached: (0..kept.len()).filter(is_named).collect(),
        named,
    };
    collector.run(roots, kept);
    (collector.new, collector.bytes)
}

/// Moves what is reached, breadth first, so that the order depends on the roots alone.
struct Collector<'k> {
    old: Vec<Object>,
    moved: Vec<u32>,
    new: Vec<Object>,
    bytes: usize,
    /// Kept children of which the values are still to be moved.
    reached: Vec<usize>,
    named: &'k mut [bool],
}

impl Collector<'_> {
    fn run(&mut self, roots: &mut [Value], kept: &mut [Value]) {
        for root in roots {
            *root = self.forward(*root);
        }
        let mut scanned = 0;
        loop {
            while scanned < self.new.len() {
                let mut object = std::mem::replace(&mut self.new[scanned], Object::Gone);
                self.bytes += OBJECT_BYTES + besides(&object);
                self.scan(&mut object);
                self.new[scanned] = object;
                scanned += 1;
            }
            let Some(number) = self.reached.pop() else {
                return;
            };
            kept[number] = self.forward(kept[number]);
        }
    }

    fn reach(&mut self, handle: Handle) {
        if let Some(number) = Kept::number(handle)
            && !std::mem::replace(&mut self.named[number], true)
        {
            self.reached.push(number);
        }
    }

    fn scan(&mut self, object: &mut Object) {
        match object {
            Object::Gone | Object::Text(_) | Object::Integer(_) => {}
            Object::List(items) => items
                .iter_mut()
                .for_each(|item| *item = self.forward(*item)),
            Object::Dictionary(dictionary) => {
                dictionary
                    .values_mut()
                    .for_each(|value| *value = self.forward(*value));
            }
            Object::Closure(closure) => {
                closure
                    .captures
                    .iter_mut()
                    .for_each(|value| *value = self.forward(*value));
            }
            Object::Cell(value) | Object::Fixed(value) | Object::Thunk(Thunk::Forced(value)) => {
                *value = self.forward(*value);
            }
            Object::Thunk(Thunk::Waiting(handle)) => self.reach(*handle),
        }
    }

    fn forward(&mut self, mut value: Value) -> Value {
        while let Value::Thunk(index) = value {
            match &self.old[index.0 as usize] {
                Object::Thunk(Thunk::Forced(inside)) => value = *inside,
                _ => break,
            }
        }
        match value {
            Value::Reference(handle) => {
                self.reach(handle);
                value
            }
            Value::Text { object, bytes } => Value::Text {
                object: self.place(object),
                bytes,
            },
            Value::Big(index) => Value::Big(self.place(index)),
            Value::List(index) => Value::List(self.place(index)),
            Value::Dictionary(index) => Value::Dictionary(self.place(index)),
            Value::Closure(index) => Value::Closure(self.place(index)),
            Value::Cell(index) => Value::Cell(self.place(index)),
            Value::Thunk(index) => Value::Thunk(self.place(index)),
            Value::Unset
            | Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Constant(_)
            | Value::Builtin(_) => value,
        }
    }

    fn place(&mut self, index: Index) -> Index {
        let old = index.0 as usize;
        if self.moved[old] == u32::MAX {
            self.moved[old] = u32::try_from(self.new.len()).expect("not more than before");
            self.new
                .push(std::mem::replace(&mut self.old[old], Object::Gone));
        }
        Index(self.moved[old])
    }
}
