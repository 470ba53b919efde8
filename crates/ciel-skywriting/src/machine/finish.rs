//! How a value leaves a machine, by the role of its script.
//!
//! Each way may have to wait; then it is retried from the beginning. Read next: `force`.

use super::failure::{Failure, Pause};
use super::kept::{Kept, Slot};
use super::{Ended, Machine, Returned, Role};
use super::{graph, json};
use crate::code::Instruction;
use crate::host::{Answer, Handle, Host};
use crate::value::Value;
use crate::wire::WITH_FUNCTIONS;

impl Machine {
    /// Whether all that is left to do is to return a value that is known, perhaps as a reference:
    /// no more spawns, prints or calls will follow.
    pub fn is_leaving(&self) -> bool {
        let [frame] = self.frames.as_slice() else {
            return false;
        };
        let function = &self.code.functions[frame.function as usize];
        let left = function.instructions[frame.pc as usize..].iter();
        let mut others = left.skip_while(|instruction| {
            matches!(
                instruction,
                Instruction::Load(_)
                    | Instruction::LoadDereferenced(_)
                    | Instruction::Store(_)
                    | Instruction::Dereference
            )
        });
        matches!(others.next(), Some(Instruction::Return))
    }

    /// The value on top leaves the script.
    pub(super) fn finish(&mut self, host: &mut dyn Host) -> Result<Ended, Pause> {
        let value = match self.surroundings.role {
            // Whoever waits for the value waits for each of the row, which ends sooner here.
            Role::Function if self.returns_row() => Err(Pause::Blocked(Vec::new())),
            Role::Function => {
                self.promote_pending(host, usize::MAX)?;
                self.leave_function(host)
            }
            Role::Script => self.leave_script(host),
            Role::Job => self.leave_job(),
        }?;
        self.promote_pending(host, usize::MAX)?;
        Ok(Ended { value })
    }

    /// Whether the value on top is, or names, what a row of children has not given yet.
    fn returns_row(&self) -> bool {
        let is_pending = |number| matches!(self.kept.slot(number), Slot::Pending(_));
        self.has_row() && self.names_kept(self.top(), is_pending)
    }

    fn leave_function(&mut self, host: &mut dyn Host) -> Result<Returned, Pause> {
        let value = self.heap.settled(self.top());
        let Some(handle) = self.heap.waiting(value) else {
            return self.encoded(host, value);
        };
        let handle = self.outer(handle);
        match Kept::number(handle) {
            None => Ok(Returned::Delegated(handle)),
            Some(_) => {
                let value = self.force(value, false)?;
                self.encoded(host, value)
            }
        }
    }

    fn leave_script(&mut self, host: &mut dyn Host) -> Result<Returned, Pause> {
        let waiting = self.heap.waiting(self.heap.settled(self.top()));
        let forced = self.force_deeply(&[self.top()], false);
        let delegated = match (self.heap.settled(self.top()), waiting) {
            (Value::Reference(handle), _) => Some(handle),
            (_, Some(handle)) => {
                let has_failed = matches!(forced, Err(Pause::Failed(_)));
                Some(handle).filter(|handle| has_failed && self.is_bytes(*handle))
            }
            _ => None,
        };
        if let Some(handle) = delegated {
            let outer = self.outer_all(host, self.strand().actions, &[handle])?;
            return Ok(Returned::Delegated(outer[0]));
        }
        forced?;
        match self.encoded(host, self.heap.settled(self.top()))? {
            Returned::Value { bytes, .. } if bytes[1] == WITH_FUNCTIONS => Err(Failure::new(
                "TypeError",
                "a script cannot return a function",
            )
            .hint("return the result of a call; a function stays in its own program")
            .into()),
            plain => Ok(plain),
        }
    }

    fn leave_job(&mut self) -> Result<Returned, Pause> {
        let height = self.stack.len();
        if let Value::Reference(handle) = self.heap.settled(self.top()) {
            self.stack[height - 1] = self.heap.new_thunk(handle);
        }
        self.force_deeply(&[self.top()], true)?;
        let result = json::tree(&self.heap, self.top(), json::Style::Result)?;
        Ok(Returned::Json(result))
    }

    fn encoded(&mut self, host: &mut dyn Host, value: Value) -> Result<Returned, Pause> {
        let encoded = graph::encode(&self.heap, &[value], graph::Form::Value)
            .map_err(|_| Failure::new("OutOfMemory", "the result is too large"))?;
        let references = self.outer_all(host, self.strand().actions, &encoded.references)?;
        Ok(Returned::Value {
            bytes: encoded.bytes,
            references,
        })
    }

    /// Whether the object of a reference is known to be plain bytes.
    fn is_bytes(&self, handle: Handle) -> bool {
        let answered = self.answered(handle);
        answered.is_some_and(|it| matches!(it.answer, Answer::Bytes { .. } | Answer::Large { .. }))
    }
}
