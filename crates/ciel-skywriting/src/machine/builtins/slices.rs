//! Parts of lists and strings by position, and the positions of parts.
//!
//! A string is counted in characters. Read next: `strings`.

use crate::builtins::Builtin;
use crate::machine::Machine;
use crate::machine::compare::Comparison;
use crate::machine::failure::Pause;
use crate::value::{Index, Value};

impl Machine {
    /// `x[start:stop]`. A negative bound counts from the end; one beyond an end means that end.
    pub(super) fn slice(&mut self, first: usize) -> Result<Value, Pause> {
        let value = self.as_container(self.stack[first])?;
        match value {
            Value::List(index) => {
                let (start, stop) = self.bounds(first, self.heap.list(index).len())?;
                self.heap.room((stop - start) * size_of::<Value>())?;
                let items = self.heap.list(index)[start..stop].to_vec();
                Ok(self.heap.new_list(items))
            }
            Value::Constant(_) | Value::Text { .. } => {
                let length = self.characters(value);
                let (start, stop) = self.bounds(first, length)?;
                let (start, stop) = (self.byte_at(value, start), self.byte_at(value, stop));
                self.heap.room(stop - start)?;
                let piece = self.heap.text(value)[start..stop].to_owned();
                Ok(self.heap.adopt_text(piece))
            }
            _ => self.wrong_argument(Builtin::Slice, "a list or string first", value),
        }
    }

    /// The two bounds of a slice of something that long, the second not below the first.
    fn bounds(&self, first: usize, length: usize) -> Result<(usize, usize), Pause> {
        let bound = |at: usize, otherwise: usize| match self.stack.get(at) {
            None | Some(Value::Null) => Ok(otherwise),
            Some(Value::Int(number)) => Ok(inside(*number, length)),
            Some(other) => {
                self.wrong_argument(Builtin::Slice, "integers or null as bounds", *other)
            }
        };
        let start = bound(first + 1, 0)?;
        Ok((start, bound(first + 2, length)?.max(start)))
    }

    /// How many characters a string has.
    pub(super) fn characters(&mut self, text: Value) -> usize {
        if self.heap.is_ascii(text) {
            return self.heap.text(text).len();
        }
        let count = self.heap.text(text).chars().count();
        self.burn(count / 64);
        count
    }

    /// Where the character at that position begins; the end, for the position behind the last one.
    fn byte_at(&mut self, text: Value, position: usize) -> usize {
        if self.heap.is_ascii(text) {
            return position;
        }
        self.burn(position / 64);
        let text = self.heap.text(text);
        text.char_indices()
            .nth(position)
            .map_or(text.len(), |(at, _)| at)
    }

    /// `find(x, wanted, start)`: the first position from `start` on, or null.
    pub(super) fn find(&mut self, first: usize) -> Result<Value, Pause> {
        let wanted = self.stack[first + 1];
        let found = match self.as_container(self.stack[first])? {
            Value::List(index) => self.find_element(index, wanted, first + 2)?,
            text @ (Value::Constant(_) | Value::Text { .. }) if wanted.is_text() => {
                self.find_text(text, wanted, first + 2)?
            }
            Value::Constant(_) | Value::Text { .. } => {
                return self.wrong_argument(Builtin::Find, "a string to find", wanted);
            }
            other => return self.wrong_argument(Builtin::Find, "a list or string first", other),
        };
        Ok(found.map_or(Value::Null, |at| Value::Int(at as i64)))
    }

    fn find_element(
        &mut self,
        index: Index,
        wanted: Value,
        from: usize,
    ) -> Result<Option<usize>, Pause> {
        let items = self.heap.list(index);
        let from = self.start_of_search(from, items.len())?;
        let mut comparison = Comparison::new(&self.heap);
        let mut found = None;
        for (at, item) in items.iter().enumerate().skip(from) {
            if comparison.equal(*item, wanted)? {
                found = Some(at);
                break;
            }
        }
        let visited = comparison.visited;
        self.burn(visited);
        Ok(found)
    }

    fn find_text(
        &mut self,
        text: Value,
        wanted: Value,
        from: usize,
    ) -> Result<Option<usize>, Pause> {
        let length = self.characters(text);
        let from = self.start_of_search(from, length)?;
        let start = self.byte_at(text, from);
        let rest = &self.heap.text(text)[start..];
        let found = rest
            .find(self.heap.text(wanted))
            .map(|at| from + rest[..at].chars().count());
        let steps = rest.len() / 64;
        self.burn(steps);
        Ok(found)
    }

    fn start_of_search(&self, at: usize, length: usize) -> Result<usize, Pause> {
        match self.stack.get(at) {
            None => Ok(0),
            Some(Value::Int(number)) => Ok(inside(*number, length)),
            Some(other) => self.wrong_argument(Builtin::Find, "an integer as start", *other),
        }
    }
}

/// A bound that may count from the end, within a length.
fn inside(number: i64, length: usize) -> usize {
    let from_start = match number < 0 {
        true => number.saturating_add(length as i64).max(0),
        false => number,
    };
    usize::try_from(from_start).unwrap_or(length).min(length)
}
