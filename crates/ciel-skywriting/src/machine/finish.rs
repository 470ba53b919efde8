//! How a value leaves a machine, by the role of its script.
//!
//! Each way may have to wait; then it is retried from the beginning. Read next: `force`.

use super::failure::{Failure, Pause};
use super::{Ended, Machine, Returned, Role};
use super::{graph, json};
use crate::code::Instruction;
use crate::host::{Answer, Handle};
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
                Instruction::Load(_) | Instruction::Store(_) | Instruction::Dereference
            )
        });
        matches!(others.next(), Some(Instruction::Return))
    }

    /// The value on top leaves the script.
    pub(super) fn finish(&mut self) -> Result<Ended, Pause> {
        let value = match self.surroundings.role {
            Role::Function => self.leave_function(),
            Role::Script => self.leave_script(),
            Role::Job => self.leave_job(),
        }?;
        Ok(Ended { value })
    }

    fn leave_function(&mut self) -> Result<Returned, Pause> {
        let value = self.heap.settled(self.top());
        match self.heap.waiting(value) {
            Some(handle) => Ok(Returned::Delegated(handle)),
            None => self.encoded(value),
        }
    }

    fn leave_script(&mut self) -> Result<Returned, Pause> {
        let waiting = self.heap.waiting(self.heap.settled(self.top()));
        let forced = self.force_deeply(&[self.top()], false);
        match (self.heap.settled(self.top()), waiting) {
            (Value::Reference(handle), _) => return Ok(Returned::Delegated(handle)),
            (_, Some(handle))
                if self.is_bytes(handle) && matches!(forced, Err(Pause::Failed(_))) =>
            {
                return Ok(Returned::Delegated(handle));
            }
            _ => forced?,
        }
        match self.encoded(self.heap.settled(self.top()))? {
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

    fn encoded(&self, value: Value) -> Result<Returned, Pause> {
        let encoded = graph::encode(&self.heap, &[value], graph::Form::Value)
            .map_err(|_| Failure::new("OutOfMemory", "the result is too large"))?;
        Ok(Returned::Value {
            bytes: encoded.bytes,
            references: encoded.references,
        })
    }

    /// Whether the object of a reference is known to be plain bytes.
    fn is_bytes(&self, handle: Handle) -> bool {
        let answered = self.answered(handle);
        answered.is_some_and(|it| matches!(it.answer, Answer::Bytes { .. } | Answer::Large { .. }))
    }
}
