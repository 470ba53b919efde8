//! Builtins on lists and dictionaries.
//!
//! Read next: `tasks`.

use std::cmp::Ordering;

use crate::builtins::Builtin;
use crate::code::Operator;
use crate::machine::Machine;
use crate::machine::compare::Comparison;
use crate::machine::failure::{Pause, fail};
use crate::value::{Index, Object, Value};

impl Machine {
    pub(super) fn length(&mut self, first: usize) -> Result<Value, Pause> {
        let value = self.as_container(self.stack[first])?;
        let length = match value {
            Value::List(index) => self.heap.list(index).len(),
            Value::Dictionary(index) => self.heap.count(index),
            Value::Constant(_) | Value::Text { .. } => self.characters(value),
            _ => {
                return self.wrong_argument(Builtin::Len, "a list, dictionary or string", value);
            }
        };
        Ok(Value::Int(length as i64))
    }

    pub(super) fn range(&mut self, first: usize) -> Result<Value, Pause> {
        let mut numbers = Vec::with_capacity(3);
        for at in first..self.stack.len() {
            match self.stack[at] {
                Value::Int(number) => numbers.push(number),
                value => return self.wrong_argument(Builtin::Range, "integers", value),
            }
        }
        let (start, stop, step) = match numbers[..] {
            [stop] => (0, stop, 1),
            [start, stop] => (start, stop, 1),
            [start, stop, step, ..] => (start, stop, step),
            [] => (0, 0, 1),
        };
        if step == 0 {
            return fail("ValueError", "`range` with a step of 0");
        }
        let distance = i128::from(stop) - i128::from(start);
        let step_wide = i128::from(step);
        let count = if distance.signum() == step_wide.signum() {
            (distance.abs() + step_wide.abs() - 1) / step_wide.abs()
        } else {
            0
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.heap.room(count.saturating_mul(size_of::<Value>()))?;
        let items = (0..count as i64)
            .map(|at| Value::Int(start + at * step))
            .collect();
        Ok(self.heap.new_list(items))
    }

    fn dictionary_argument(&mut self, builtin: Builtin, value: Value) -> Result<Index, Pause> {
        match self.as_container(value)? {
            Value::Dictionary(index) => Ok(index),
            _ => self.wrong_argument(builtin, "a dictionary as first argument", value),
        }
    }

    pub(super) fn has_key(&mut self, first: usize) -> Result<Value, Pause> {
        let index = self.dictionary_argument(Builtin::HasKey, self.stack[first])?;
        let key = self.key_of(self.stack[first + 1])?;
        Ok(Value::Bool(self.heap.lookup(index, key).is_some()))
    }

    pub(super) fn get_key(&mut self, first: usize) -> Result<Value, Pause> {
        let index = self.dictionary_argument(Builtin::GetKey, self.stack[first])?;
        let key = self.key_of(self.stack[first + 1])?;
        match (self.heap.lookup(index, key), self.stack.get(first + 2)) {
            (Some(value), _) => Ok(value),
            (None, Some(otherwise)) => Ok(*otherwise),
            (None, None) => Err(self.missing_key(index, key).into()),
        }
    }

    pub(super) fn keys(&mut self, first: usize) -> Result<Value, Pause> {
        let index = self.dictionary_argument(Builtin::Keys, self.stack[first])?;
        self.keys_of(index)
    }

    /// The list of a dictionary's keys.
    pub(in crate::machine) fn keys_of(&mut self, index: Index) -> Result<Value, Pause> {
        let keys: Vec<_> = self
            .heap
            .entries(index)
            .map(|(key, _)| key.clone())
            .collect();
        let bytes: usize = keys
            .iter()
            .map(|key| key.view().spelling().len() + 64)
            .sum();
        self.heap.room(bytes)?;
        let items: Result<Vec<Value>, Pause> =
            keys.iter().map(|key| self.heap.new_key(key)).collect();
        Ok(self.heap.new_list(items?))
    }

    /// `remove(dict, key)`, `remove(dict, key, otherwise)`, `remove(list, index)`
    pub(super) fn remove(&mut self, first: usize) -> Result<Value, Pause> {
        let key = self.stack[first + 1];
        match self.stack[first] {
            Value::Dictionary(index) => self.remove_entry(index, key, first),
            Value::List(index) => self.remove_element(index, key),
            value => self.wrong_argument(Builtin::Remove, "a list or dictionary first", value),
        }
    }

    fn remove_entry(&mut self, index: Index, key: Value, first: usize) -> Result<Value, Pause> {
        let key = self.key_of(key)?.owned();
        let removed = match self.heap.object_mut(index) {
            Object::Dictionary(dictionary) => dictionary.remove(key.view()),
            _ => None,
        };
        match (removed, self.stack.get(first + 2)) {
            (Some(value), _) => Ok(value),
            (None, Some(otherwise)) => Ok(*otherwise),
            (None, None) => Err(self.missing_key(index, key.view()).into()),
        }
    }

    fn remove_element(&mut self, index: Index, key: Value) -> Result<Value, Pause> {
        let length = self.heap.list(index).len();
        let at = self.position(key, length, "list")?;
        self.burn((length - at) / 64);
        match self.heap.object_mut(index) {
            Object::List(items) => Ok(items.remove(at)),
            _ => Ok(Value::Null),
        }
    }

    pub(super) fn extreme(&mut self, builtin: Builtin, first: usize) -> Result<Value, Pause> {
        let items: Vec<Value> = match &self.stack[first..] {
            [Value::List(index)] => self.heap.list(*index).to_vec(),
            [value] => return self.wrong_argument(builtin, "a list, or several values", *value),
            several => several.to_vec(),
        };
        let Some((&start, rest)) = items.split_first() else {
            return fail(
                "ValueError",
                format!("`{}` of an empty list", builtin.name()),
            );
        };
        let wanted = match builtin {
            Builtin::Max => Ordering::Greater,
            _ => Ordering::Less,
        };
        let mut comparison = Comparison::new(&self.heap);
        let mut best = self.heap.settled(start);
        comparison.order(Operator::Less, best, best)?;
        for item in rest {
            if comparison.order(Operator::Less, *item, best)? == wanted {
                best = self.heap.settled(*item);
            }
        }
        let visited = comparison.visited;
        self.burn(visited);
        Ok(best)
    }

    pub(super) fn sort(&mut self, first: usize) -> Result<Value, Pause> {
        let Value::List(index) = self.stack[first] else {
            return self.wrong_argument(Builtin::Sort, "a list", self.stack[first]);
        };
        let count = self.heap.list(index).len();
        self.heap.room(count * 2 * size_of::<Value>())?;
        let items = self.heap.list(index).to_vec();
        let mut comparison = Comparison::new(&self.heap);
        let sorted = merge_sorted(items, &mut comparison)?;
        let visited = comparison.visited;
        self.burn(visited);
        Ok(self.heap.new_list(sorted))
    }
}

/// A stable sort whose comparisons may fail, which the library's may not.
fn merge_sorted(
    mut items: Vec<Value>,
    comparison: &mut Comparison<'_>,
) -> Result<Vec<Value>, Pause> {
    if let [only] = items[..] {
        comparison.order(Operator::Less, only, only)?;
    }
    let mut merged = Vec::with_capacity(items.len());
    let mut width = 1;
    while width < items.len() {
        merged.clear();
        for pair in items.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
                if comparison.order(Operator::Less, *second, *first)?.is_lt() {
                    merged.push(*second);
                    right = right_rest;
                } else {
                    merged.push(*first);
                    left = left_rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(&mut items, &mut merged);
        width *= 2;
    }
    Ok(items)
}
