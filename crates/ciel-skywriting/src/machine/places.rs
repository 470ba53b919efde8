//! Reading and writing elements: `base[key]` and assignments to paths.
//!
//! Read next: `step`.

use super::Machine;
use super::failure::{Failure, Pause, fail};
use super::json::brief;
use super::numbers;
use crate::builtins::Builtin;
use crate::code::{Operator, Update};
use crate::value::{Index, KeyView, Object, Value};

impl Machine {
    /// `base[key]`, both forced.
    pub(super) fn item(&mut self, base: Value, key: Value) -> Result<Value, Pause> {
        match base {
            Value::List(index) => {
                let length = self.heap.list(index).len();
                let at = self.position(key, length, "list")?;
                Ok(self.heap.list(index)[at])
            }
            Value::Dictionary(index) => {
                let view = self.key_of(key)?;
                match self.heap.lookup(index, view) {
                    Some(value) => Ok(value),
                    None => Err(self.missing_key(index, view).into()),
                }
            }
            Value::Constant(_) | Value::Text { .. } => self.character(base, key),
            Value::Builtin(Builtin::Env) => self.environment_variable(key, None),
            Value::Builtin(Builtin::Argv) => self.argument(key),
            _ => {
                let shown = brief(&self.heap, base);
                let message = format!("cannot index {}: {shown}", base.a_type());
                let failure = Failure::new("TypeError", message);
                Err(match base {
                    Value::Reference(_) => failure.hint("dereference it first: (*reference)[…]"),
                    _ => failure,
                }
                .into())
            }
        }
    }

    fn character(&mut self, text: Value, key: Value) -> Result<Value, Pause> {
        let is_ascii = self.heap.is_ascii(text);
        let string = self.heap.text(text);
        let length = if is_ascii {
            string.len()
        } else {
            string.chars().count()
        };
        let at = self.position(key, length, "string")?;
        let string = self.heap.text(text);
        let character = match is_ascii {
            true => char::from(string.as_bytes()[at]),
            false => string.chars().nth(at).expect("the position is inside"),
        };
        if !is_ascii {
            self.burn(length / 64);
        }
        self.heap.new_text(character.encode_utf8(&mut [0; 4]))
    }

    /// Where an index points to; negative ones count from the end.
    pub(super) fn position(&self, key: Value, length: usize, what: &str) -> Result<usize, Pause> {
        let Value::Int(number) = key else {
            let shown = brief(&self.heap, key);
            let message = format!(
                "a {what} is indexed with an integer, not {}: {shown}",
                key.a_type()
            );
            return fail("TypeError", message);
        };
        let signed = if number < 0 {
            number + length as i64
        } else {
            number
        };
        match usize::try_from(signed) {
            Ok(at) if at < length => Ok(at),
            _ => {
                let of = match (what, length) {
                    ("list", 1) => "element",
                    ("list", _) => "elements",
                    (_, 1) => "character",
                    _ => "characters",
                };
                let message =
                    format!("index {number} is out of range: the {what} has {length} {of}");
                fail("IndexError", message)
            }
        }
    }

    /// A forced value as a key.
    pub(super) fn key_of(&self, value: Value) -> Result<KeyView<'_>, Pause> {
        self.heap.key(value).map_or_else(
            || {
                let shown = brief(&self.heap, value);
                let message = format!(
                    "a key is a string or an integer, not {}: {shown}",
                    value.a_type()
                );
                Err(Failure::new("TypeError", message)
                    .hint("str(x) converts a value to a string")
                    .into())
            },
            Ok,
        )
    }

    pub(super) fn missing_key(&self, dictionary: Index, key: KeyView<'_>) -> Failure {
        let spelling: String = key.spelling().chars().take(80).collect();
        let failure = Failure::new(
            "KeyError",
            format!("the dictionary has no key {spelling:?}"),
        );
        let names = self
            .heap
            .entries(dictionary)
            .filter_map(|(key, _)| match key.view() {
                KeyView::Text(text) => Some(text),
                KeyView::Int(_) => None,
            });
        match super::failure::closest(&spelling, names) {
            Some(name) => failure.hint(format!("did you mean {name:?}?")),
            None => failure.hint("get_key(dictionary, key, default) does not fail"),
        }
    }

    /// What an assignment with an operator leaves in a place that held `old`; the operand is on
    /// top of the stack.
    pub(super) fn updated(&mut self, old: Value, update: Update) -> Result<Value, Pause> {
        let operator = match update {
            Update::Set => return Ok(self.top()),
            Update::Add => Operator::Add,
            Update::Subtract => Operator::Subtract,
        };
        let old = self.force_with_operand(old)?;
        if let (Value::List(index), Update::Add) = (old, update) {
            self.heap.append(index, self.top())?;
            return Ok(old);
        }
        self.force_top(1, 0)?;
        let before = self.heap.used();
        let operand = self.top();
        let result = numbers::arithmetic(&mut self.heap, operator, old, operand)?;
        self.burn(self.heap.used().saturating_sub(before) / 64);
        Ok(result)
    }

    /// Forces the old value of a place; when it waits, also for the operand.
    fn force_with_operand(&mut self, old: Value) -> Result<Value, Pause> {
        self.force(old, false).map_err(|pause| match pause {
            Pause::Blocked(mut on) => {
                let operand = self.heap.waiting(self.heap.settled(self.top()));
                if let Some(handle) = operand
                    && self.answered(handle).is_none()
                    && !on.contains(&handle)
                {
                    on.push(handle);
                }
                Pause::Blocked(on)
            }
            other => other,
        })
    }

    /// `variable[key]…[key] op= operand`. The keys and the operand are on top of the stack.
    pub(super) fn store_path(
        &mut self,
        variable: Value,
        keys: usize,
        update: Update,
    ) -> Result<(), Pause> {
        let first = self.stack.len() - 1 - keys;
        self.force_at(first..first + keys)?;
        let mut container = self.force(variable, false)?;
        for at in first..first + keys - 1 {
            let inside = self.item(container, self.stack[at])?;
            container = self.force(inside, false)?;
        }
        let key = self.stack[first + keys - 1];
        let value = match update {
            Update::Set => self.top(),
            Update::Add | Update::Subtract => {
                let old = self.item(container, key)?;
                self.updated(old, update)?
            }
        };
        self.set_item(container, key, value)?;
        self.stack.truncate(first);
        Ok(())
    }

    fn set_item(&mut self, container: Value, key: Value, value: Value) -> Result<(), Pause> {
        match container {
            Value::List(index) => self.set_element(index, key, value),
            Value::Dictionary(index) => {
                let owned = self.key_of(key)?.owned();
                if self.heap.lookup(index, owned.view()).is_none() {
                    self.heap.room_for_entry(owned.view())?;
                }
                if let Object::Dictionary(dictionary) = self.heap.object_mut(index) {
                    dictionary.insert(owned.view(), value);
                }
                Ok(())
            }
            _ => {
                let shown = brief(&self.heap, container);
                let message = format!(
                    "cannot assign to an element of {}: {shown}",
                    container.a_type()
                );
                fail("TypeError", message)
            }
        }
    }

    /// Writing past the end pads with null.
    fn set_element(&mut self, index: Index, key: Value, value: Value) -> Result<(), Pause> {
        let length = self.heap.list(index).len();
        let at = match key {
            Value::Int(number) if number >= length as i64 => number as usize,
            _ => self.position(key, length, "list")?,
        };
        if at >= length {
            self.heap.reserve_in_list(index, at - length + 1)?;
            self.burn((at - length) / 8);
        }
        if let Object::List(items) = self.heap.object_mut(index) {
            if at >= length {
                items.resize(at + 1, Value::Null);
            }
            items[at] = value;
        }
        Ok(())
    }
}
