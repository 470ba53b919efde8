//! Builtins that look at what stands behind a reference, `text` and `is_error`; and `cancel`.
//!
//! A reference behind a reference is looked through, however many follow each other. Each one takes
//! the place of the argument, so that a machine which is saved while it waits still names it. Read
//! next: `tasks`.

use crate::builtins::Builtin;
use crate::host::{Answer, Handle, Host};
use crate::machine::Machine;
use crate::machine::failure::{Failure, Pause};
use crate::machine::force::too_large;
use crate::machine::json::brief;
use crate::value::Value;

impl Machine {
    /// The reference that a value is, or stands for.
    fn reference_behind(&self, value: Value) -> Option<Handle> {
        match self.heap.settled(value) {
            Value::Reference(handle) => Some(handle),
            settled => self.heap.waiting(settled),
        }
    }

    /// `is_error(reference)`
    pub(super) fn is_error(&mut self, first: usize) -> Result<Value, Pause> {
        let mut value = self.stack[first];
        while let Some(handle) = self.reference_behind(value) {
            if self.here(handle).is_some() {
                value = self.step_through(first, handle)?;
                continue;
            }
            value = match self.answered(handle).map(|answered| &answered.answer) {
                None => return Err(Pause::Blocked(vec![handle])),
                Some(Answer::Error(_)) => return Ok(Value::Bool(true)),
                Some(Answer::Value { references, .. } | Answer::Json { references, .. })
                    if references.count > 0 =>
                {
                    self.step_through(first, handle)?
                }
                Some(_) => break,
            };
        }
        Ok(Value::Bool(false))
    }

    /// `cancel(reference)`. Whether it has an effect depends on time, so the machine stops each
    /// time for an answer that is recorded.
    pub(super) fn cancel(&mut self, host: &mut dyn Host, first: usize) -> Result<Value, Pause> {
        let value = self.stack[first];
        let Some(handle) = self.reference_behind(value) else {
            let value = self.force(value, false)?;
            return self.wrong_argument(Builtin::Cancel, "a reference", value);
        };
        if let Some(is_cancelled) = self.cancelled.take() {
            return Ok(Value::Bool(is_cancelled));
        }
        self.at_host()?;
        self.promote_pending(host, usize::MAX)?;
        let outer = self.outer_all(host, self.strand().actions, &[handle])?;
        Err(Pause::Cancels(outer[0]))
    }

    /// The value behind a reference; if that is a reference, it becomes the argument.
    fn step_through(&mut self, argument: usize, handle: Handle) -> Result<Value, Pause> {
        let thunk = self.heap.new_thunk(handle);
        self.stack[argument] = thunk;
        let value = self.force(thunk, false)?;
        if self.reference_behind(value).is_some() {
            self.stack[argument] = value;
        }
        Ok(value)
    }

    /// `text(reference)`
    pub(super) fn text_of_reference(&mut self, first: usize) -> Result<Value, Pause> {
        let given = self.heap.settled(self.stack[first]);
        let mut value = given;
        while let Some(handle) = self.reference_behind(value) {
            if self.here(handle).is_some() {
                value = self.step_through(first, handle)?;
                continue;
            }
            let Some(answered) = self.answered(handle) else {
                return Err(Pause::Blocked(vec![handle]));
            };
            value = match &answered.answer {
                Answer::Bytes { name, bytes } => {
                    let Ok(text) = String::from_utf8(bytes.to_vec()) else {
                        let message = format!("the bytes of {name} are not UTF-8 text");
                        return Err(Failure::new("ValueError", message)
                            .hint("pass the reference on to a task of another executor")
                            .into());
                    };
                    return self.heap.new_text(&text);
                }
                Answer::Large { name, bytes } => return Err(too_large(name, *bytes).into()),
                Answer::Error(thrown) => return Err(Failure::of(thrown.clone()).into()),
                Answer::Value { .. } | Answer::Json { .. } => self.step_through(first, handle)?,
            };
        }
        match value.is_text() {
            true => Ok(value),
            false => self.no_text(given, value),
        }
    }

    /// The failure of `text` on something that is no text; `value` is what `given` stands for.
    fn no_text<T>(&self, given: Value, value: Value) -> Result<T, Pause> {
        let (a_type, shown) = (value.a_type(), brief(&self.heap, value));
        let is_behind = self.reference_behind(given).is_some();
        let message = match is_behind {
            true => format!("`text` takes a reference to text; this one gives {a_type}: {shown}"),
            false => format!("`text` takes a reference, not {a_type}: {shown}"),
        };
        let failure = Failure::new("TypeError", message);
        Err(match given {
            Value::List(_) => failure.hint("spawn_exec gives a list: text(spawn_exec(…)[0])"),
            _ if is_behind => failure.hint("str(*reference) shows any value as text"),
            _ => failure,
        }
        .into())
    }
}
