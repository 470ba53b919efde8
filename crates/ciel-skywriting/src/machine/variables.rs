//! Variables: plain slots of the stack, cells shared with closures, and the making of closures.
//!
//! Read next: `calls`.

use std::sync::Arc;

use super::Machine;
use super::failure::{Failure, Pause};
use crate::code::{CodeCapture, CodeCaptureMode, Function, Update};
use crate::value::{Closure, Object, Value};

impl Machine {
    pub(super) fn cell_content(&self, base: usize, slot: u32) -> Value {
        match self.stack[base + slot as usize] {
            Value::Cell(index) => self.heap.content(index),
            value => value,
        }
    }

    pub(super) fn variable(
        &self,
        function: &Function,
        base: usize,
        slot: u32,
        is_cell: bool,
    ) -> Result<Value, Pause> {
        let value = match is_cell {
            true => self.cell_content(base, slot),
            false => self.stack[base + slot as usize],
        };
        match value {
            Value::Unset => unset(function, slot),
            _ => Ok(value),
        }
    }

    pub(super) fn set_variable(&mut self, base: usize, slot: u32, is_cell: bool, value: Value) {
        let at = base + slot as usize;
        match self.stack[at] {
            Value::Cell(index) if is_cell => {
                *self.heap.object_mut(index) = Object::Cell(value);
            }
            _ => self.stack[at] = value,
        }
    }

    pub(super) fn accumulate(
        &mut self,
        function: &Function,
        base: usize,
        slot: u32,
        is_cell: bool,
        update: Update,
    ) -> Result<(), Pause> {
        let old = self.variable(function, base, slot, is_cell)?;
        if let (Value::Int(old), Value::Int(operand), false) = (old, self.top(), is_cell) {
            let sum = match update {
                Update::Subtract => old.checked_sub(operand),
                _ => old.checked_add(operand),
            };
            if let Some(sum) = sum {
                self.stack.pop();
                self.stack[base + slot as usize] = Value::Int(sum);
                return Ok(());
            }
        }
        let result = self.updated(old, update)?;
        self.stack.pop();
        self.set_variable(base, slot, is_cell, result);
        Ok(())
    }

    pub(super) fn make_closure(&mut self, number: u32, base: usize) -> Result<(), Pause> {
        let code = Arc::clone(&self.code);
        let captures = &code.functions[number as usize].captures;
        self.heap.room(captures.len() * size_of::<Value>())?;
        let captured = captures
            .iter()
            .map(|capture: &CodeCapture| match capture.mode {
                CodeCaptureMode::Value => self.cell_content(base, capture.outer),
                CodeCaptureMode::Cell | CodeCaptureMode::Entry => {
                    self.stack[base + capture.outer as usize]
                }
            });
        let closure = Closure {
            function: number,
            is_plain: false,
            captures: captured.collect(),
        };
        let closure = self.heap.new_closure(closure);
        self.stack.push(closure);
        Ok(())
    }
}

/// The failure of reading a variable before its first assignment.
pub(super) fn unset<T>(function: &Function, slot: u32) -> Result<T, Pause> {
    let name = &function.slots[slot as usize];
    let captured = function
        .captures
        .iter()
        .any(|capture| capture.inner == slot);
    let failure = Failure::new("NameError", format!("`{name}` has no value yet"));
    Err(match captured {
        true => failure.hint(format!(
            "the function captured `{name}` before `{name}` was assigned; assign it \
                first"
        )),
        false => failure.hint(format!("`{name}` is assigned later, or on another branch")),
    }
    .into())
}
