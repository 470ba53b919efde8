//! Waiting: what `*reference` makes, and what strict uses do with it.
//!
//! Operands are forced from left to right; all unresolved ones are waited for together, and the
//! failure of one is thrown only when nothing before it is missing. So the order in which answers
//! arrive never shows. Read next: the README beside this file.

use super::failure::{Failure, Pause, fail};
use super::graph::{self, Refusal};
use super::json::{self, brief};
use super::kept::{Kept, Slot};
use super::seen::Seen;
use super::{Answered, Machine};
use crate::host::{Answer, Handle};
use crate::value::{Dictionary, Index, KeyView, Object, Thunk, Value};

/// Objects of bytes up to this size appear in the job's result as a string.
const SHOWN_BYTES_MAX: usize = 1024 * 1024;

/// Bytes that a message shows of an object that is not JSON.
const EXCERPT_BYTES_MAX: usize = 40;

impl Machine {
    /// `*operand`
    pub(super) fn dereference(&mut self) -> Result<(), Pause> {
        self.force_top(1, 0)?;
        let value = self.top();
        let Value::Reference(handle) = value else {
            let shown = brief(&self.heap, value);
            let message = format!("cannot dereference {}: {shown}", value.a_type());
            let failure = Failure::new("TypeError", message);
            return Err(match value {
                Value::List(_) => failure.hint(
                    "spawn_exec gives a list: dereference an element, as in *spawn_exec(…)[0]",
                ),
                _ => failure
                    .hint("`*` applies to references, which spawn(…) returns; this is a value"),
            }
            .into());
        };
        let thunk = self.awaited(handle)?;
        self.replace(1, thunk);
        Ok(())
    }

    /// What `*` makes of a reference.
    #[inline]
    pub(super) fn awaited(&mut self, handle: Handle) -> Result<Value, Pause> {
        let thunk = self.heap.new_thunk(handle);
        self.keep_for_try(thunk)?;
        Ok(thunk)
    }

    /// Forces the topmost operands; when it waits, also for the `pending` ones right below.
    #[inline]
    pub(super) fn force_top(&mut self, operands: usize, pending: u8) -> Result<(), Pause> {
        let start = self.stack.len() - operands;
        if !self.stack[start..]
            .iter()
            .any(|value| matches!(value, Value::Thunk(_)))
        {
            return Ok(());
        }
        self.force_operands(start, pending)
    }

    /// Forces the operands from there on, one after the other as long as each needs but a look.
    fn force_operands(&mut self, start: usize, pending: u8) -> Result<(), Pause> {
        for at in start..self.stack.len() {
            let Value::Thunk(index) = self.stack[at] else {
                continue;
            };
            let Object::Thunk(thunk) = *self.heap.object(index) else {
                return self.force_together(start, pending);
            };
            let (value, handle) = match thunk {
                Thunk::Forced(value) => (Some(value), None),
                Thunk::Waiting(handle) => (self.here(handle), Some(handle)),
            };
            match (value.filter(|value| value.index().is_none()), handle) {
                (Some(value), _) => {
                    self.heap.set_forced(index, value);
                    self.stack[at] = value;
                }
                (None, Some(handle)) if self.is_left_to_children(handle) => {
                    return Err(Pause::Blocked(Vec::new()));
                }
                _ => return self.force_together(start, pending),
            }
        }
        Ok(())
    }

    /// Forces the operands from there on.
    fn force_together(&mut self, start: usize, pending: u8) -> Result<(), Pause> {
        self.force_at(start..self.stack.len())
            .map_err(|pause| match pause {
                Pause::Blocked(on) if !on.is_empty() => {
                    Pause::Blocked(self.with_pending(on, start, pending))
                }
                other => other,
            })
    }

    /// The result of a kept child. It waits if the strand has children to run first; nothing if it
    /// is no kept child's, or has to be waited for in another way.
    #[inline]
    pub(super) fn child_result(&self, handle: Handle) -> Result<Option<Value>, Pause> {
        match self.here(handle) {
            None if self.is_left_to_children(handle) => Err(Pause::Blocked(Vec::new())),
            result => Ok(result),
        }
    }

    /// Whether it is a kept child that has not ended, and the strand has children to run first.
    #[inline]
    fn is_left_to_children(&self, handle: Handle) -> bool {
        let slot = Kept::number(handle).map(|number| self.kept.slot(number));
        matches!(slot, Some(Slot::Pending(_) | Slot::Running(_))) && self.has_children_first()
    }

    /// Whether the strand has children to run before it can be said what it waits for. Of the
    /// task's own strand that is said when one is left, which may be that child.
    #[inline]
    fn has_children_first(&self) -> bool {
        self.strand().pending > u32::from(!self.is_in_place())
    }

    fn with_pending(&self, mut on: Vec<Handle>, end: usize, pending: u8) -> Vec<Handle> {
        let start = end.saturating_sub(usize::from(pending));
        for value in &self.stack[start..end] {
            if let Some(handle) = self.heap.waiting(self.heap.settled(*value))
                && !self.is_known(handle)
                && !on.contains(&handle)
            {
                on.push(handle);
            }
        }
        on
    }

    /// Forces the operands at these places of the stack.
    pub(super) fn force_at(&mut self, places: impl Iterator<Item = usize>) -> Result<(), Pause> {
        let mut missing = Missing::default();
        for at in places {
            let Value::Thunk(_) = self.stack[at] else {
                continue;
            };
            let forced = self.force(self.stack[at], false);
            match missing.take(forced)? {
                Some(value) => self.stack[at] = value,
                None if missing.is_final => break,
                None => {}
            }
        }
        missing.result()
    }

    /// The value itself. With `shown`, bytes that are not JSON become what the job's result shows.
    pub(super) fn force(&mut self, value: Value, shown: bool) -> Result<Value, Pause> {
        let mut value = value;
        loop {
            value = self.heap.settled(value);
            let (Value::Thunk(index), Some(handle)) = (value, self.heap.waiting(value)) else {
                return Ok(value);
            };
            let inside = self.fetch(handle, shown)?;
            self.heap.set_forced(index, inside);
            value = inside;
        }
    }

    pub(super) fn answered(&self, handle: Handle) -> Option<&Answered> {
        let handle = self.outer(handle);
        match Kept::number(handle) {
            Some(_) => None,
            None => self.table.get(handle),
        }
    }

    /// Whether the value of a reference, or its failure, is known here.
    pub(super) fn is_known(&self, handle: Handle) -> bool {
        self.here(handle).is_some() || self.answered(handle).is_some()
    }

    /// A fresh copy of the value of a reference.
    fn fetch(&mut self, handle: Handle, shown: bool) -> Result<Value, Pause> {
        if let Some(value) = self.here(handle) {
            let mut copied = [value];
            graph::copy(&mut self.heap, &mut copied)?;
            return Ok(copied[0]);
        }
        let Some(Answered { answer, references }) = self.answered(handle) else {
            return Err(Pause::Blocked(match self.has_children_first() {
                false => vec![handle],
                true => Vec::new(),
            }));
        };
        let references = *references;
        if references.count > 0 && self.is_in_place() {
            // The child has not received what is inside.
            return Err(Pause::NeedsHost);
        }
        match answer {
            Answer::Value { bytes, .. } => {
                let bytes = bytes.clone();
                let mut roots = Vec::with_capacity(1);
                let decoded = graph::decode(&mut self.heap, &bytes, references, &mut roots);
                match (decoded, &roots[..]) {
                    (Ok(()), [Value::Unset | Value::Cell(_)] | []) | (Ok(()), [_, _, ..]) => {
                        fail("DamagedObject", "the value of a reference cannot be read")
                    }
                    (Ok(()), [value]) => Ok(*value),
                    (Err(refusal), _) => refused(refusal),
                }
            }
            Answer::Json { bytes, .. } => {
                let bytes = bytes.clone();
                json::read(&mut self.heap, &bytes, Some(references)).or_else(refused)
            }
            Answer::Bytes { name, bytes } => {
                let (name, bytes) = (name.clone(), bytes.clone());
                match json::read(&mut self.heap, &bytes, None) {
                    Ok(value) => Ok(value),
                    Err(Refusal::Room(need)) => Err(Pause::Collect(need)),
                    Err(Refusal::Load(_)) if shown => self.shown_bytes(&name, &bytes),
                    Err(Refusal::Load(_)) => Err(not_json(&bytes).about(&name).into()),
                }
            }
            Answer::Large { name, bytes } => {
                let (name, bytes) = (name.clone(), *bytes);
                match shown {
                    true => self.shown_object(&name, bytes),
                    false => Err(too_large(&name, bytes).into()),
                }
            }
            Answer::Error(thrown) => Err(Failure::of(thrown.clone()).into()),
        }
    }

    fn shown_bytes(&mut self, name: &str, bytes: &[u8]) -> Result<Value, Pause> {
        match std::str::from_utf8(bytes) {
            Ok(text) if bytes.len() <= SHOWN_BYTES_MAX => self.heap.new_text(text),
            _ => self.shown_object(name, bytes.len() as u64),
        }
    }

    fn shown_object(&mut self, name: &str, bytes: u64) -> Result<Value, Pause> {
        let mut dictionary = Dictionary::default();
        let name = self.heap.new_text(name)?;
        dictionary.insert(KeyView::Text("object"), name);
        let bytes = Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX));
        dictionary.insert(KeyView::Text("bytes"), bytes);
        Ok(self.heap.new_dictionary(dictionary))
    }

    /// Forces every thunk that the values reach through lists and dictionaries, waiting for all
    /// that are missing at once. With `resolve`, references inside become their values too.
    pub(super) fn force_deeply(&mut self, values: &[Value], resolve: bool) -> Result<(), Pause> {
        if !values.iter().any(|value| may_hold_thunks(*value)) {
            return Ok(());
        }
        let mut missing = Missing::default();
        let mut seen = Seen::default();
        let mut todo: Vec<Value> = values.iter().rev().copied().collect();
        while let Some(value) = todo.pop() {
            let forced = self.force_or_resolve(value, resolve);
            let value = match missing.take(forced)? {
                Some(value) => value,
                None if missing.is_final => break,
                None => continue,
            };
            let (Value::List(index) | Value::Dictionary(index)) = value else {
                continue;
            };
            if !seen.add(index) {
                continue;
            }
            if resolve {
                self.references_to_thunks(index);
            }
            let before = todo.len();
            match self.heap.object(index) {
                Object::List(items) => todo.extend(items.iter().rev()),
                Object::Dictionary(dictionary) => {
                    todo.extend(dictionary.entries().rev().map(|(_, value)| *value));
                }
                _ => {}
            }
            self.burn((todo.len() - before) / 4);
        }
        missing.result()
    }

    /// Forces one value; with `resolve` until it is no reference.
    fn force_or_resolve(&mut self, value: Value, resolve: bool) -> Result<Value, Pause> {
        let forced = self.force(value, resolve)?;
        let (Value::Reference(handle), Value::Thunk(index)) = (forced, value) else {
            return Ok(forced);
        };
        if !resolve {
            return Ok(forced);
        }
        let inner = self.heap.new_thunk(handle);
        self.heap.fill(index, Object::Thunk(Thunk::Forced(inner)));
        self.force_or_resolve_inner(inner)
    }

    /// A chain of references inside references, link by link.
    fn force_or_resolve_inner(&mut self, mut thunk: Value) -> Result<Value, Pause> {
        loop {
            match (self.force(thunk, true)?, thunk) {
                (Value::Reference(handle), Value::Thunk(index)) => {
                    let inner = self.heap.new_thunk(handle);
                    self.heap.fill(index, Object::Thunk(Thunk::Forced(inner)));
                    thunk = inner;
                }
                (value, _) => return Ok(value),
            }
        }
    }

    fn references_to_thunks(&mut self, container: Index) {
        let mut object = std::mem::replace(self.heap.object_mut(container), Object::Gone);
        let resolve = |value: &mut Value| {
            if let Value::Reference(handle) = *value {
                *value = self.heap.new_thunk(handle);
            }
        };
        match &mut object {
            Object::List(items) => items.iter_mut().for_each(resolve),
            Object::Dictionary(dictionary) => dictionary.values_mut().for_each(resolve),
            _ => {}
        }
        *self.heap.object_mut(container) = object;
    }
}

fn may_hold_thunks(value: Value) -> bool {
    matches!(
        value,
        Value::Thunk(_) | Value::List(_) | Value::Dictionary(_)
    )
}

fn refused<T>(refusal: Refusal) -> Result<T, Pause> {
    match refusal {
        Refusal::Room(need) => Err(Pause::Collect(need)),
        Refusal::Load(error) => json::unreadable(&error),
    }
}

/// The name of an object says nothing to users; its first bytes show which output it is.
fn not_json(bytes: &[u8]) -> Failure {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_BYTES_MAX)]);
    let more = if bytes.len() > EXCERPT_BYTES_MAX {
        "…"
    } else {
        ""
    };
    Failure::new(
        "ValueError",
        format!("these bytes are not JSON: {shown:?}{more}"),
    )
    .hint("text(reference) gives the bytes as a string")
}

pub(super) fn too_large(name: &str, bytes: u64) -> Failure {
    let message = format!("{name} is too large for a script: {bytes} bytes");
    Failure::new("ValueError", message)
        .hint("pass the reference on to a task of another executor, which reads it as a file")
}

/// What several values are waited for.
#[derive(Default)]
pub(super) struct Missing {
    on: Vec<Handle>,
    seen: Seen<Handle>,
    /// Nothing after this can be tried.
    pub(super) is_final: bool,
}

impl Missing {
    /// The value, if it is resolved. A failure counts only when nothing before it is missing.
    pub(super) fn take(&mut self, forced: Result<Value, Pause>) -> Result<Option<Value>, Pause> {
        match forced {
            Ok(value) => Ok(Some(value)),
            // A child of the strand runs first; then all are forced once more.
            Err(Pause::Blocked(on)) if on.is_empty() => Err(Pause::Blocked(on)),
            Err(Pause::Blocked(on)) => {
                for handle in on {
                    if self.seen.add(handle) {
                        self.on.push(handle);
                    }
                }
                Ok(None)
            }
            Err(pause) if self.on.is_empty() => Err(pause),
            Err(_) => {
                self.is_final = true;
                Ok(None)
            }
        }
    }

    pub(super) fn result(self) -> Result<(), Pause> {
        match self.on.is_empty() {
            true => Ok(()),
            false => Err(Pause::Blocked(self.on)),
        }
    }
}
