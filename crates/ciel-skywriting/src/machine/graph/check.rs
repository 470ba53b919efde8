//! Whether decoded objects fit together, so that nothing later needs to doubt them.
//!
//! Read next: `decode`.

use crate::code::CodeCaptureMode;
use crate::machine::heap::Heap;
use crate::value::{Closure, Object, Thunk, Value};
use crate::wire::{LoadError, damaged};

/// Whether every value names an object of its own kind.
pub(super) struct Check<'h> {
    pub(super) heap: &'h Heap,
    /// The first of the decoded objects.
    pub(super) first: u32,
}

impl Check<'_> {
    pub(super) fn objects(&self) -> Result<(), LoadError> {
        self.heap.objects()[self.first as usize..]
            .iter()
            .try_for_each(|object| match object {
                Object::Text(_) | Object::Integer(_) | Object::Thunk(Thunk::Waiting(_)) => Ok(()),
                Object::Gone | Object::Thunk(Thunk::Forced(_)) => Err(damaged("a missing object")),
                Object::List(items) => items.iter().try_for_each(|item| self.program_value(*item)),
                Object::Dictionary(dictionary) => dictionary
                    .entries()
                    .try_for_each(|(_, value)| self.program_value(*value)),
                Object::Cell(Value::Cell(_)) => Err(damaged("a variable in a variable")),
                Object::Cell(value) | Object::Fixed(value) => self.value(*value),
                Object::Closure(closure) => self.closure(closure),
            })
    }

    fn closure(&self, closure: &Closure) -> Result<(), LoadError> {
        let function = self.heap.code.functions.get(closure.function as usize);
        let function = function.ok_or(damaged("a function that does not exist"))?;
        if function.captures.len() != closure.captures.len() {
            return Err(damaged("a function with other captured variables"));
        }
        function
            .captures
            .iter()
            .zip(&closure.captures)
            .try_for_each(|(capture, value)| {
                let is_cell = matches!(value, Value::Cell(_));
                match capture.mode {
                    CodeCaptureMode::Cell if !is_cell => {
                        Err(damaged("a captured variable is none"))
                    }
                    CodeCaptureMode::Value if is_cell => Err(damaged("a captured value is none")),
                    _ => self.value(*value),
                }
            })
    }

    /// A value that programs may see.
    fn program_value(&self, value: Value) -> Result<(), LoadError> {
        match value {
            Value::Unset | Value::Cell(_) => Err(damaged("an unset value")),
            _ => self.value(value),
        }
    }

    pub(super) fn value(&self, value: Value) -> Result<(), LoadError> {
        let Some(index) = value.index() else {
            return Ok(());
        };
        let fits = match (value, self.heap.object(index)) {
            (Value::Text { bytes, .. }, Object::Text(text)) => {
                text.text.is_char_boundary(bytes as usize)
            }
            (Value::Big(_), Object::Integer(_))
            | (Value::List(_), Object::List(_))
            | (Value::Dictionary(_), Object::Dictionary(_))
            | (Value::Closure(_), Object::Closure(_))
            | (Value::Cell(_), Object::Cell(_) | Object::Fixed(_))
            | (Value::Thunk(_), Object::Thunk(_)) => true,
            _ => false,
        };
        if fits {
            Ok(())
        } else {
            Err(damaged("an object of another kind"))
        }
    }
}
