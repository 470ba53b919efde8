//! Calls and returns.
//!
//! Read next: `finish` for how results leave.

use super::failure::{Pause, fail};
use super::json::brief;
use super::{Frame, Machine};
use crate::code::{Code, CodeCaptureMode};
use crate::host::Host;
use crate::value::{Index, Object, Value};

impl Machine {
    pub(super) fn call(
        &mut self,
        code: &Code,
        arguments: usize,
        host: &mut dyn Host,
    ) -> Result<(), Pause> {
        let at = self.stack.len() - arguments - 1;
        self.force_at(std::iter::once(at))?;
        match self.stack[at] {
            Value::Closure(index) => self.call_closure(code, index, arguments),
            Value::Builtin(builtin) => {
                let (least, most) = builtin.arity();
                if !(least..=most).contains(&arguments) {
                    return wrong_arity(builtin.name(), least, most, arguments);
                }
                let result = self.call_builtin(host, builtin, arguments)?;
                self.replace(arguments + 1, result);
                self.advance();
                Ok(())
            }
            value => {
                let shown = brief(&self.heap, value);
                fail(
                    "TypeError",
                    format!("cannot call {}: {shown}", value.a_type()),
                )
            }
        }
    }

    /// The frame that runs.
    pub(super) fn current_frame(&mut self) -> &mut Frame {
        self.frames
            .last_mut()
            .expect("a script that runs has a frame")
    }

    fn advance(&mut self) {
        self.current_frame().pc += 1;
    }

    fn call_closure(&mut self, code: &Code, index: Index, arguments: usize) -> Result<(), Pause> {
        let Object::Closure(closure) = self.heap.object(index) else {
            return fail("DamagedObject", "a function that is none");
        };
        let function = &code.functions[closure.function as usize];
        let wanted = function.parameters as usize;
        if wanted != arguments {
            return wrong_arity(&function.shown_name(), wanted, wanted, arguments);
        }
        self.enter_function(code, closure.function, arguments, Some(index))
    }

    /// Puts a frame on top; the arguments are the topmost operands.
    pub(super) fn enter_function(
        &mut self,
        code: &Code,
        number: u32,
        arguments: usize,
        closure: Option<Index>,
    ) -> Result<(), Pause> {
        let function = &code.functions[number as usize];
        let base = self.stack.len() - arguments;
        self.reserve_stack(base + function.slots.len() + function.operands_max as usize)?;
        self.stack.resize(base + function.slots.len(), Value::Unset);
        if let Some(Object::Closure(closure)) = closure.map(|index| self.heap.object(index)) {
            for (capture, value) in function.captures.iter().zip(&closure.captures) {
                self.stack[base + capture.inner as usize] = match (capture.mode, *value) {
                    (CodeCaptureMode::Entry, Value::Cell(index)) => self.heap.content(index),
                    (_, value) => value,
                };
            }
        }
        self.frames.push(Frame {
            function: number,
            pc: 0,
            base: base as u32,
        });
        Ok(())
    }

    /// Grows stack and frames within the budget. The first frame is always let in: if it is too
    /// much, the script runs out of memory at its first instruction.
    fn reserve_stack(&mut self, height: usize) -> Result<(), Pause> {
        if height > self.stack.capacity() {
            let doubled = if self.stack.capacity() == 0 {
                0
            } else {
                self.stack.capacity() * 2
            };
            let wanted = height.max(doubled);
            let bytes = (wanted - self.stack.capacity()) * size_of::<Value>();
            if !self.frames.is_empty() {
                self.heap.room(bytes)?;
            }
            self.heap.charge(bytes);
            self.stack.reserve_exact(wanted - self.stack.len());
        }
        if self.frames.len() == self.frames.capacity() {
            let more = self.frames.len().max(2);
            if !self.frames.is_empty() {
                self.heap.room(more * size_of::<Frame>())?;
            }
            self.heap.charge(more * size_of::<Frame>());
            self.frames.reserve_exact(more);
        }
        Ok(())
    }

    pub(super) fn return_to_caller(&mut self) {
        let value = self.pop();
        let frame = self.frames.pop().expect("a script that runs has a frame");
        let depth = self.frames.len() as u32;
        while self
            .handlers
            .last()
            .is_some_and(|handler| handler.frame >= depth)
        {
            self.handlers.pop();
        }
        self.stack.truncate(frame.base as usize - 1);
        self.stack.push(value);
        self.advance();
    }
}

/// The failure of a call with too few or too many arguments.
pub(super) fn wrong_arity<T>(
    name: &str,
    least: usize,
    most: usize,
    given: usize,
) -> Result<T, Pause> {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let wanted = match (least, most) {
        _ if least == most => format!("{least} argument{}", plural(least)),
        (_, usize::MAX) => format!("at least {least} argument{}", plural(least)),
        _ => format!("{least} to {most} arguments"),
    };
    fail(
        "ArgumentError",
        format!("`{name}` takes {wanted}, not {given}"),
    )
}
