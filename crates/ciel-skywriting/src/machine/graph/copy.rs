//! Copies of values inside one heap, for what behaves as if it had been handed over.
//!
//! What cannot change is shared. Read next: `crate::machine::in_place`.

use crate::machine::collector::besides;
use crate::machine::failure::Pause;
use crate::machine::heap::Heap;
use crate::machine::reached::Reached;
use crate::machine::seen::Seen;
use crate::value::{Closure, Index, Object, Thunk, Value};

/// What the roots reach, as a change of neither side is seen by the other, in the place of the
/// roots. Sharing among them stays.
pub(crate) fn copy(heap: &mut Heap, roots: &mut [Value]) -> Result<(), Pause> {
    for root in &mut *roots {
        *root = heap.settled(*root);
    }
    if roots.iter().all(|root| is_constant(heap, *root)) {
        return Ok(());
    }
    let mut copier = Copier {
        is_fixed: reaches_only_functions(heap, roots),
        heap,
        copies: Seen::default(),
        todo: Vec::new(),
    };
    for root in &mut *roots {
        *root = copier.value(*root)?;
    }
    copier.rest()
}

/// Whether nothing that a value reaches can change.
pub(crate) fn is_constant(heap: &Heap, value: Value) -> bool {
    let is_fixed = |value: &Value| match value {
        Value::Cell(cell) => matches!(heap.object(*cell), Object::Fixed(_)),
        value => !matches!(value, Value::Closure(_)) && !is_data(*value),
    };
    match value {
        Value::Closure(index) => match heap.object(index) {
            Object::Closure(closure) => closure.is_plain || closure.captures.iter().all(is_fixed),
            _ => false,
        },
        value => is_fixed(&value),
    }
}

/// Whether a value is data that can change, or that is not known yet.
fn is_data(value: Value) -> bool {
    matches!(
        value,
        Value::List(_) | Value::Dictionary(_) | Value::Thunk(_)
    )
}

/// Whether functions, and variables without data that can change, are all that the roots reach.
/// Roots that reach much are not looked through.
fn reaches_only_functions(heap: &Heap, roots: &[Value]) -> bool {
    let mut reached = Reached::default();
    let mut may_be_so = roots
        .iter()
        .all(|root| !is_data(*root) && reached.add(*root));
    let mut next = 0;
    while let Some(index) = reached.get(next).filter(|_| may_be_so) {
        next += 1;
        heap.object(index).each_value(|value| {
            let value = heap.settled(value);
            may_be_so = may_be_so && !is_data(value) && reached.add(value);
        });
    }
    may_be_so
}

struct Copier<'h> {
    heap: &'h mut Heap,
    /// Whether nothing in the copies can change: the function whose variable a cell is stays
    /// behind, and only it assigns to it.
    is_fixed: bool,
    /// The copy of each object, by its index.
    copies: Seen<Index>,
    /// Copies of which the values inside are still those of the original.
    todo: Vec<Index>,
}

impl Copier<'_> {
    fn value(&mut self, value: Value) -> Result<Value, Pause> {
        let value = self.heap.settled(value);
        Ok(match value {
            constant if is_constant(self.heap, constant) => constant,
            Value::List(index) => Value::List(self.object(index)?),
            Value::Dictionary(index) => Value::Dictionary(self.object(index)?),
            Value::Cell(index) => Value::Cell(self.object(index)?),
            Value::Thunk(index) => Value::Thunk(self.object(index)?),
            Value::Closure(index) => Value::Closure(self.object(index)?),
            shared => shared,
        })
    }

    fn object(&mut self, index: Index) -> Result<Index, Pause> {
        if let Some(copy) = self.copies.get(index) {
            return Ok(Index(copy));
        }
        let bytes = besides(self.heap.object(index));
        self.heap.room(bytes)?;
        let object = match self.heap.object(index) {
            Object::Thunk(Thunk::Waiting(handle)) => Object::Thunk(Thunk::Waiting(*handle)),
            other => {
                let copy = other.clone();
                self.todo.push(Index(self.heap.objects().len() as u32));
                copy
            }
        };
        let copy = self.heap.adopt(object);
        self.copies.number(index, copy.0);
        Ok(copy)
    }

    fn rest(&mut self) -> Result<(), Pause> {
        while let Some(index) = self.todo.pop() {
            let object = std::mem::replace(self.heap.object_mut(index), Object::Gone);
            *self.heap.object_mut(index) = self.inside(object)?;
        }
        Ok(())
    }

    fn inside(&mut self, object: Object) -> Result<Object, Pause> {
        Ok(match object {
            Object::List(mut items) => {
                for item in &mut items {
                    *item = self.value(*item)?;
                }
                Object::List(items)
            }
            Object::Dictionary(mut dictionary) => {
                for value in dictionary.values_mut() {
                    *value = self.value(*value)?;
                }
                Object::Dictionary(dictionary)
            }
            Object::Closure(closure) => {
                let captures = closure.captures.iter().map(|value| self.value(*value));
                let captures = captures.collect::<Result<_, _>>()?;
                Object::Closure(Closure {
                    captures,
                    ..closure
                })
            }
            Object::Cell(value) => match self.is_fixed {
                true => Object::Fixed(self.value(value)?),
                false => Object::Cell(self.value(value)?),
            },
            other => other,
        })
    }
}
