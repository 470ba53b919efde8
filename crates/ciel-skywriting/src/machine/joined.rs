//! Several instructions in one step, where that needs but a look.
//!
//! Each step stands in the place of the first of its instructions. Where it cannot do all of them
//! it does that one alone, as if nothing had been joined, and the others follow. Read next:
//! `in_place`, and `crate::code`, which joins them.

use super::Machine;
use super::failure::Pause;
use super::step::quick;
use super::variables::unset;
use crate::code::{Function, Instruction, Operator};
use crate::host::{Handle, Host};
use crate::value::Value;

impl Machine {
    /// Runs the instruction at `pc`, and those behind it with which it is joined. Gives how many
    /// these were.
    #[inline]
    pub(super) fn joined(
        &mut self,
        instruction: Instruction,
        function: &Function,
        base: usize,
        pc: usize,
        host: &mut dyn Host,
    ) -> Result<usize, Pause> {
        match instruction {
            Instruction::SpawnList(length) => {
                match self.keep_plain(length as usize, pc as u32 + 1, host) {
                    Some(child) => Ok(2 + self.put_child(child, function, base, pc + 2)),
                    None => self.list_literal(length as usize).map(|()| 1),
                }
            }
            Instruction::BinaryOfResults {
                left,
                right,
                operator,
            } => match self.of_results(base, (left, right), operator)? {
                Some(result) => {
                    self.stack.push(result);
                    Ok(5)
                }
                None => self.load_dereferenced(function, base, left),
            },
            Instruction::LoadDereferenced(slot) => self.load_dereferenced(function, base, slot),
            other => unreachable!("{other:?} stands alone"),
        }
    }

    /// Puts the reference of a kept child where the instruction at `pc` wants it. Gives how many
    /// instructions this was besides the spawn. None of them can stop: the spawn has happened.
    #[inline]
    fn put_child(&mut self, child: Handle, function: &Function, base: usize, pc: usize) -> usize {
        let child = match function.instructions[pc] {
            Instruction::Store(slot) => {
                self.stack[base + slot as usize] = Value::Reference(child);
                return 1;
            }
            Instruction::Dereference if !self.is_trying() => {
                let thunk = self.heap.new_thunk(child);
                self.stack.push(thunk);
                return 1;
            }
            _ => Value::Reference(child),
        };
        self.stack.push(child);
        0
    }

    /// `*variable`, or only `variable` if it is no reference. Gives the number of instructions that
    /// this was.
    fn load_dereferenced(
        &mut self,
        function: &Function,
        base: usize,
        slot: u32,
    ) -> Result<usize, Pause> {
        match self.stack[base + slot as usize] {
            Value::Unset => unset(function, slot),
            Value::Reference(handle) => {
                let thunk = self.awaited(handle)?;
                self.stack.push(thunk);
                Ok(2)
            }
            value => {
                self.stack.push(value);
                Ok(1)
            }
        }
    }

    /// `*left operator *right` of two variables whose results are here, and plain. It waits if a
    /// child of the strand has to run first; nothing if it takes more than that.
    #[inline]
    fn of_results(
        &mut self,
        base: usize,
        (left, right): (u32, u32),
        operator: Operator,
    ) -> Result<Option<Value>, Pause> {
        let left = self.stack[base + left as usize];
        let right = self.stack[base + right as usize];
        let (Value::Reference(left), Value::Reference(right)) = (left, right) else {
            return Ok(None);
        };
        if self.is_trying() {
            return Ok(None);
        }
        let (Some(left), Some(right)) = (self.child_result(left)?, self.child_result(right)?)
        else {
            return Ok(None);
        };
        Ok(quick(operator, (left, right)))
    }
}
