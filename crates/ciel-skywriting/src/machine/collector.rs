//! The collector: a compacting copy of what some roots reach.
//!
//! It does not know budgets. Thunks that have been forced disappear on the way. Read next: `heap`.

use crate::value::{Index, Object, Thunk, Value};

pub(super) const OBJECT_BYTES: usize = size_of::<Object>();
pub(super) const VALUE_BYTES: usize = size_of::<Value>();

/// Bytes an object takes besides its own place.
pub(super) fn besides(object: &Object) -> usize {
    match object {
        Object::Gone | Object::Cell(_) | Object::Thunk(_) => 0,
        Object::Text(text) => text.text.capacity(),
        Object::Integer(number) => usize::try_from(number.bits() / 8).unwrap_or(usize::MAX) + 32,
        Object::List(items) => items.capacity() * VALUE_BYTES,
        Object::Dictionary(dictionary) => dictionary.bytes(),
        Object::Closure(closure) => closure.captures.len() * VALUE_BYTES,
    }
}

/// What the roots reach, moved together, and the bytes it takes. The roots are changed to match.
pub(super) fn collected(old: Vec<Object>, roots: &mut [Value]) -> (Vec<Object>, usize) {
    let moved = vec![u32::MAX; old.len()];
    let mut collector = Collector {
        old,
        moved,
        new: Vec::new(),
        bytes: 0,
    };
    collector.run(roots);
    (collector.new, collector.bytes)
}

/// Moves what is reached, breadth first, so that the order depends on the roots alone.
struct Collector {
    old: Vec<Object>,
    moved: Vec<u32>,
    new: Vec<Object>,
    bytes: usize,
}

impl Collector {
    fn run(&mut self, roots: &mut [Value]) {
        for root in roots {
            *root = self.forward(*root);
        }
        let mut scanned = 0;
        while scanned < self.new.len() {
            let mut object = std::mem::replace(&mut self.new[scanned], Object::Gone);
            self.bytes += OBJECT_BYTES + besides(&object);
            self.scan(&mut object);
            self.new[scanned] = object;
            scanned += 1;
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
            Object::Cell(value) | Object::Thunk(Thunk::Forced(value)) => {
                *value = self.forward(*value);
            }
            Object::Thunk(Thunk::Waiting(_)) => {}
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
            | Value::Builtin(_)
            | Value::Reference(_) => value,
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
