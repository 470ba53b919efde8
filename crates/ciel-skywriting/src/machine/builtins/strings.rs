//! Builtins on strings: parts, replacement, case, JSON.
//!
//! Read next: `format`, `slices`.

use crate::builtins::Builtin;
use crate::machine::Machine;
use crate::machine::failure::{Failure, Pause};
use crate::machine::graph::Refusal;
use crate::machine::json::{self, Style, brief, shown};
use crate::value::Value;

impl Machine {
    pub(super) fn join(&mut self, first: usize) -> Result<Value, Pause> {
        let (list, separator) = (self.stack[first], self.stack[first + 1]);
        let Value::List(index) = list else {
            return self.wrong_argument(Builtin::Join, "a list as first argument", list);
        };
        if !separator.is_text() {
            return self.wrong_argument(Builtin::Join, "a string as second argument", separator);
        }
        let heap = &self.heap;
        let mut joined = String::new();
        for (at, item) in heap.list(index).iter().enumerate() {
            if at > 0 {
                joined.push_str(heap.text(separator));
            }
            joined.push_str(&shown(heap, *item)?);
            heap.room(joined.len())?;
        }
        Ok(self.heap.adopt_text(joined))
    }

    pub(super) fn split(&mut self, first: usize) -> Result<Value, Pause> {
        let value = self.stack[first];
        let separator = self.stack.get(first + 1).copied();
        if !value.is_text() {
            return self.wrong_argument(Builtin::Split, "a string as first argument", value);
        }
        if let Some(separator) = separator
            && !separator.is_text()
        {
            return self.wrong_argument(Builtin::Split, "a string as second argument", separator);
        }
        let text = self.heap.text(value);
        let pieces: Vec<(usize, usize)> = match separator.map(|separator| self.heap.text(separator))
        {
            Some("") => {
                return Err(
                    Failure::new("ValueError", "`split` with an empty separator")
                        .hint("`for` iterates over the characters of a string")
                        .into(),
                );
            }
            Some(separator) => {
                self.heap
                    .room((text.matches(separator).count() + 1) * PIECE_BYTES + text.len())?;
                places(text, text.split(separator))
            }
            None => {
                self.heap
                    .room(text.split_whitespace().count() * PIECE_BYTES + text.len())?;
                places(text, text.split_whitespace())
            }
        };
        let mut items = Vec::with_capacity(pieces.len());
        for (start, end) in pieces {
            let piece = self.heap.text(value)[start..end].to_owned();
            items.push(self.heap.adopt_text(piece));
        }
        Ok(self.heap.new_list(items))
    }

    /// `replace(string, old, new)`
    pub(super) fn replace_text(&mut self, first: usize) -> Result<Value, Pause> {
        for at in first..first + 3 {
            if !self.stack[at].is_text() {
                return self.wrong_argument(Builtin::Replace, "three strings", self.stack[at]);
            }
        }
        let text = self.heap.text(self.stack[first]);
        let old = self.heap.text(self.stack[first + 1]);
        let new = self.heap.text(self.stack[first + 2]);
        if old.is_empty() {
            return Err(Failure::new("ValueError", "`replace` of an empty string")
                .hint("join(list, separator) puts a string between others")
                .into());
        }
        let steps = text.len() / 64;
        let added = text.matches(old).count().saturating_mul(new.len());
        self.heap.room(text.len().saturating_add(added))?;
        let replaced = text.replace(old, new);
        self.burn(steps);
        Ok(self.heap.adopt_text(replaced))
    }

    /// `trim(string)`, `lower(string)`, `upper(string)`
    pub(super) fn changed(&mut self, builtin: Builtin, first: usize) -> Result<Value, Pause> {
        /// A character may become three, of as many bytes.
        const GROWTH_MAX: usize = 3;
        let value = self.stack[first];
        if !value.is_text() {
            return self.wrong_argument(builtin, "a string", value);
        }
        let text = self.heap.text(value);
        self.heap.room(text.len().saturating_mul(GROWTH_MAX))?;
        let changed = match builtin {
            Builtin::Lower => text.to_lowercase(),
            Builtin::Upper => text.to_uppercase(),
            _ => text.trim().to_owned(),
        };
        Ok(self.heap.adopt_text(changed))
    }

    /// `starts_with(string, start)`, `ends_with(string, end)`
    pub(super) fn has_affix(&mut self, builtin: Builtin, first: usize) -> Result<Value, Pause> {
        for at in first..first + 2 {
            if !self.stack[at].is_text() {
                return self.wrong_argument(builtin, "two strings", self.stack[at]);
            }
        }
        let text = self.heap.text(self.stack[first]);
        let affix = self.heap.text(self.stack[first + 1]);
        Ok(Value::Bool(match builtin {
            Builtin::StartsWith => text.starts_with(affix),
            _ => text.ends_with(affix),
        }))
    }

    /// `to_json(x)`
    pub(super) fn write_json(&mut self, first: usize) -> Result<Value, Pause> {
        let json = json::tree(&self.heap, self.stack[first], Style::Written)?;
        let text = json.to_string();
        self.heap.room(text.len())?;
        Ok(self.heap.adopt_text(text))
    }

    /// `from_json(string)`
    pub(super) fn read_json(&mut self, first: usize) -> Result<Value, Pause> {
        let value = self.stack[first];
        if !value.is_text() {
            return self.wrong_argument(Builtin::FromJson, "a string", value);
        }
        let text = self.heap.text(value).to_owned();
        json::read(&mut self.heap, text.as_bytes(), None).map_err(|refusal| match refusal {
            Refusal::Room(need) => Pause::Collect(need),
            Refusal::Load(_) => {
                let message = format!("{} is not JSON", brief(&self.heap, value));
                Failure::new("ValueError", message).into()
            }
        })
    }
}

/// What a piece of a split string takes besides its bytes.
const PIECE_BYTES: usize = 96;

/// Where the pieces lie in the text.
fn places<'a>(text: &str, pieces: impl Iterator<Item = &'a str>) -> Vec<(usize, usize)> {
    let start = text.as_ptr() as usize;
    pieces
        .map(|piece| {
            let from = piece.as_ptr() as usize - start;
            (from, from + piece.len())
        })
        .collect()
}
