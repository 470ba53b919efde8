//! One instruction after the other.
//!
//! An instruction looks at its operands where they are and takes them only when nothing can stop
//! it any more, so after a wait or a collection it is simply run again. Read next: `force` for
//! waiting, `places` for indexing, `builtins`.

use std::sync::Arc;

use super::compare::{Comparison, is_true, satisfies};
use super::failure::{Failure, Pause, fail};
use super::json::brief;
use super::{Ended, Frame, Handler, Machine, Returned, Step, graph, json, numbers};
use crate::code::{
    Code, CodeCapture, CodeCaptureMode, Constant, Function, Instruction, Operator, Update,
};
use crate::host::Host;
use crate::value::{Closure, Dictionary, Index, Object, Value};

/// How a frame is left.
enum Flow {
    Call(usize),
    Return,
    Preempted,
}

impl Machine {
    /// Runs until something needs more than the machine.
    pub(super) fn execute(&mut self, code: &Code, host: &mut dyn Host) -> Result<Step, Pause> {
        loop {
            let top = self.frames.len() - 1;
            let frame = self.frames[top];
            let mut pc = frame.pc as usize;
            let function = &code.functions[frame.function as usize];
            let flow = self.within(function, frame.base as usize, &mut pc, host);
            self.frames[top].pc = pc as u32;
            match flow? {
                Flow::Call(arguments) => self.call(arguments, host)?,
                Flow::Return if top == 0 => {
                    let ended = self.finish()?;
                    self.frames.clear();
                    return Ok(Step::Finished(ended));
                }
                Flow::Return => self.return_to_caller(),
                Flow::Preempted => return Ok(Step::Preempted),
            }
        }
    }

    /// Runs inside one frame; `pc` is left at the instruction that stopped.
    fn within(
        &mut self,
        function: &Function,
        base: usize,
        pc: &mut usize,
        host: &mut dyn Host,
    ) -> Result<Flow, Pause> {
        loop {
            if self.fuel == 0 || self.heap.is_over() {
                return self.interrupted();
            }
            self.fuel -= 1;
            match function.instructions[*pc] {
                Instruction::Load(slot) => {
                    let value = self.stack[base + slot as usize];
                    if value == Value::Unset {
                        return unset(function, slot);
                    }
                    self.stack.push(value);
                }
                Instruction::Store(slot) => {
                    self.stack[base + slot as usize] = self.pop();
                }
                Instruction::Int(number) => self.stack.push(Value::Int(i64::from(number))),
                Instruction::Binary { operator, pending } => self.binary(operator, pending)?,
                Instruction::Jump(target) => {
                    *pc = target as usize;
                    continue;
                }
                Instruction::JumpIfFalse(target) => {
                    if !self.condition()? {
                        self.stack.pop();
                        *pc = target as usize;
                        continue;
                    }
                    self.stack.pop();
                }
                Instruction::JumpIfFalseOrPop(target) | Instruction::JumpIfTrueOrPop(target) => {
                    let wanted =
                        matches!(function.instructions[*pc], Instruction::JumpIfTrueOrPop(_));
                    if self.condition()? == wanted {
                        *pc = target as usize;
                        continue;
                    }
                    self.stack.pop();
                }
                Instruction::IterateNext(target) => match self.next_item()? {
                    Some(item) => self.stack.push(item),
                    None => {
                        *pc = target as usize;
                        continue;
                    }
                },
                Instruction::Call(arguments) => return Ok(Flow::Call(arguments as usize)),
                Instruction::Return => return Ok(Flow::Return),
                other => self.other(other, function, base, host)?,
            }
            *pc += 1;
        }
    }

    fn interrupted(&self) -> Result<Flow, Pause> {
        match self.heap.is_over() {
            true => Err(Pause::Collect(0)),
            false => Ok(Flow::Preempted),
        }
    }

    /// The instructions that neither jump nor leave the frame, apart from the most frequent.
    fn other(
        &mut self,
        instruction: Instruction,
        function: &Function,
        base: usize,
        host: &mut dyn Host,
    ) -> Result<(), Pause> {
        match instruction {
            Instruction::Null => self.stack.push(Value::Null),
            Instruction::Bool(value) => self.stack.push(Value::Bool(value)),
            Instruction::Builtin(builtin) => self.stack.push(Value::Builtin(builtin)),
            Instruction::Constant(number) => self.constant(number)?,
            Instruction::LoadCell(slot) => match self.cell_content(base, slot) {
                Value::Unset => return unset(function, slot).map(|_: Flow| ()),
                value => self.stack.push(value),
            },
            Instruction::StoreCell(slot) => {
                let value = self.pop();
                self.set_variable(base, slot, true, value);
            }
            Instruction::MakeCell(slot) => {
                let at = base + slot as usize;
                self.stack[at] = self.heap.new_cell(self.stack[at]);
            }
            Instruction::Accumulate { slot, is_cell, update } => {
                self.accumulate(function, base, slot, is_cell, update)?;
            }
            Instruction::StorePath { slot, keys, is_cell, update } => {
                let variable = self.variable(function, base, slot, is_cell)?;
                self.store_path(variable, keys as usize, update)?;
            }
            Instruction::Pop => {
                self.stack.pop();
            }
            Instruction::List(length) => self.list_literal(length as usize)?,
            Instruction::Dictionary(pairs) => self.dictionary_literal(pairs as usize)?,
            Instruction::Negate { pending } => {
                self.force_top(1, pending)?;
                let operand = self.top();
                let negated = numbers::negate(&mut self.heap, operand)?;
                self.replace(1, negated);
            }
            Instruction::Not { pending } => {
                self.force_top(1, pending)?;
                let opposite = !is_true(&self.heap, self.top());
                self.replace(1, Value::Bool(opposite));
            }
            Instruction::Dereference => self.dereference()?,
            Instruction::Index { pending } => {
                self.force_top(2, pending)?;
                let (base, key) = self.top_pair();
                let item = self.item(base, key)?;
                self.replace(2, item);
            }
            Instruction::Closure(number) => self.make_closure(number, base)?,
            Instruction::CallBuiltin { builtin, arguments } => {
                let result = self.call_builtin(host, builtin, arguments as usize)?;
                self.replace(arguments as usize, result);
            }
            Instruction::IterateStart => self.start_walk()?,
            Instruction::Try(target) => self.open_handler(target),
            Instruction::EndTry => {
                self.handlers.pop();
            }
            Instruction::Throw => return Err(self.thrown_value()?.into()),
            _ => unreachable!("{instruction:?} is run by the loop itself"),
        }
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Value {
        self.stack.pop().expect("the compiler balances operands")
    }

    pub(super) fn top(&self) -> Value {
        *self.stack.last().expect("the compiler balances operands")
    }

    fn top_pair(&self) -> (Value, Value) {
        let height = self.stack.len();
        (self.stack[height - 2], self.stack[height - 1])
    }

    /// Takes so many operands and puts the result.
    pub(super) fn replace(&mut self, operands: usize, result: Value) {
        self.stack.truncate(self.stack.len() - operands);
        self.stack.push(result);
    }

    #[inline]
    fn condition(&mut self) -> Result<bool, Pause> {
        if let Value::Bool(value) = self.top() {
            return Ok(value);
        }
        self.force_top(1, 0)?;
        Ok(is_true(&self.heap, self.top()))
    }

    #[inline]
    fn binary(&mut self, operator: Operator, pending: u8) -> Result<(), Pause> {
        let pair = self.top_pair();
        if let (Value::Int(left), Value::Int(right)) = pair {
            let fast = match operator {
                Operator::Add => left.checked_add(right).map(Value::Int),
                Operator::Subtract => left.checked_sub(right).map(Value::Int),
                Operator::Less => Some(Value::Bool(left < right)),
                Operator::LessOrEqual => Some(Value::Bool(left <= right)),
                Operator::Greater => Some(Value::Bool(left > right)),
                Operator::GreaterOrEqual => Some(Value::Bool(left >= right)),
                Operator::Equal => Some(Value::Bool(left == right)),
                Operator::NotEqual => Some(Value::Bool(left != right)),
                _ => None,
            };
            if let Some(result) = fast {
                self.replace(2, result);
                return Ok(());
            }
        }
        self.slow_binary(operator, pending)
    }

    fn slow_binary(&mut self, operator: Operator, pending: u8) -> Result<(), Pause> {
        self.force_top(2, pending)?;
        let (left, right) = self.top_pair();
        let before = self.heap.used();
        let result = match operator {
            Operator::Equal | Operator::NotEqual => {
                self.force_deeply(&[left, right], false)?;
                let mut comparison = Comparison::new(&self.heap);
                let equal = comparison.equal(left, right)?;
                let visited = comparison.visited;
                self.burn(visited);
                Value::Bool(equal == (operator == Operator::Equal))
            }
            Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual => {
                self.force_deeply(&[left, right], false)?;
                let mut comparison = Comparison::new(&self.heap);
                let order = comparison.order(operator, left, right)?;
                let visited = comparison.visited;
                self.burn(visited);
                Value::Bool(satisfies(operator, order))
            }
            _ => {
                self.burn(self.limbs(left) * self.limbs(right) / 16);
                numbers::arithmetic(&mut self.heap, operator, left, right)?
            }
        };
        self.burn(self.heap.used().saturating_sub(before) / 64);
        self.replace(2, result);
        Ok(())
    }

    /// Machine words of an integer, for the price of arithmetic.
    fn limbs(&self, value: Value) -> usize {
        match value {
            Value::Big(index) => {
                self.heap.big(index).map_or(0, |number| (number.bits() / 64) as usize + 1)
            }
            _ => 1,
        }
    }

    fn constant(&mut self, number: u32) -> Result<(), Pause> {
        let code = Arc::clone(&self.code);
        let value = match &code.constants[number as usize] {
            Constant::Text { .. } => Value::Constant(number),
            Constant::Int(number) => Value::Int(*number),
            Constant::Float(number) => Value::Float(*number),
            Constant::Integer(number) => self.heap.new_integer(number.clone())?,
        };
        self.stack.push(value);
        Ok(())
    }

    fn cell_content(&self, base: usize, slot: u32) -> Value {
        match self.stack[base + slot as usize] {
            Value::Cell(index) => match self.heap.object(index) {
                Object::Cell(value) => *value,
                _ => Value::Unset,
            },
            value => value,
        }
    }

    fn variable(
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
            Value::Unset => unset(function, slot).map(|_: Flow| value),
            _ => Ok(value),
        }
    }

    fn set_variable(&mut self, base: usize, slot: u32, is_cell: bool, value: Value) {
        let at = base + slot as usize;
        match self.stack[at] {
            Value::Cell(index) if is_cell => {
                *self.heap.object_mut(index) = Object::Cell(value);
            }
            _ => self.stack[at] = value,
        }
    }

    fn accumulate(
        &mut self,
        function: &Function,
        base: usize,
        slot: u32,
        is_cell: bool,
        update: Update,
    ) -> Result<(), Pause> {
        let old = self.variable(function, base, slot, is_cell)?;
        let result = self.updated(old, update)?;
        self.stack.pop();
        self.set_variable(base, slot, is_cell, result);
        Ok(())
    }

    fn list_literal(&mut self, length: usize) -> Result<(), Pause> {
        self.heap.room(length * size_of::<Value>())?;
        let items = self.stack.split_off(self.stack.len() - length);
        let list = self.heap.new_list(items);
        self.stack.push(list);
        Ok(())
    }

    fn dictionary_literal(&mut self, pairs: usize) -> Result<(), Pause> {
        let start = self.stack.len() - 2 * pairs;
        self.force_at((0..pairs).map(|pair| start + 2 * pair))?;
        let mut dictionary = Dictionary::default();
        for at in (start..self.stack.len()).step_by(2) {
            let key = self.key_of(self.stack[at])?;
            dictionary.insert(key, self.stack[at + 1]);
        }
        self.heap.room(dictionary.bytes())?;
        let dictionary = self.heap.new_dictionary(dictionary);
        self.replace(2 * pairs, dictionary);
        Ok(())
    }

    fn make_closure(&mut self, number: u32, base: usize) -> Result<(), Pause> {
        let code = Arc::clone(&self.code);
        let captures = &code.functions[number as usize].captures;
        self.heap.room(captures.len() * size_of::<Value>())?;
        let captured = captures.iter().map(|capture: &CodeCapture| match capture.mode {
            CodeCaptureMode::Value => self.cell_content(base, capture.outer),
            CodeCaptureMode::Cell | CodeCaptureMode::Entry => {
                self.stack[base + capture.outer as usize]
            }
        });
        let closure = Closure { function: number, captures: captured.collect() };
        let closure = self.heap.new_closure(closure);
        self.stack.push(closure);
        Ok(())
    }

    fn start_walk(&mut self) -> Result<(), Pause> {
        self.force_top(1, 0)?;
        let value = self.top();
        match value {
            Value::List(_) | Value::Dictionary(_) | Value::Constant(_) | Value::Text { .. } => {
                self.stack.push(Value::Int(0));
                Ok(())
            }
            _ => {
                let shown = brief(&self.heap, value);
                let message = format!("cannot walk over {}: {shown}", value.a_type());
                Err(Failure::new("TypeError", message)
                    .hint("`for` walks over lists, the keys of dictionaries and the characters of \
                           strings; range(n) gives a list of numbers")
                    .into())
            }
        }
    }

    /// The next item of the walk on the stack, whose position it moves.
    fn next_item(&mut self) -> Result<Option<Value>, Pause> {
        let (walked, position) = self.top_pair();
        let Value::Int(position) = position else {
            return Ok(None);
        };
        let at = position as usize;
        let (item, step) = match walked {
            Value::List(index) => match self.heap.list(index).get(at) {
                Some(item) => (*item, 1),
                None => return Ok(None),
            },
            Value::Dictionary(index) => match self.heap.entries(index).get(at) {
                Some((key, _)) => {
                    let key = key.clone();
                    (self.heap.new_key(&key)?, 1)
                }
                None => return Ok(None),
            },
            _ => match self.heap.text(walked).get(at..).and_then(|rest| rest.chars().next()) {
                Some(character) => {
                    let item = self.heap.new_text(character.encode_utf8(&mut [0; 4]))?;
                    (item, character.len_utf8() as i64)
                }
                None => return Ok(None),
            },
        };
        let height = self.stack.len();
        self.stack[height - 1] = Value::Int(position + step);
        Ok(Some(item))
    }

    fn open_handler(&mut self, target: u32) {
        let frame = self.frames.len() as u32 - 1;
        self.handlers.push(Handler { frame, height: self.stack.len() as u32, target });
    }

    fn call(&mut self, arguments: usize, host: &mut dyn Host) -> Result<(), Pause> {
        let at = self.stack.len() - arguments - 1;
        self.force_at(std::iter::once(at))?;
        match self.stack[at] {
            Value::Closure(index) => self.call_closure(index, arguments),
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
                fail("TypeError", format!("cannot call {}: {shown}", value.a_type()))
            }
        }
    }

    fn advance(&mut self) {
        self.frames.last_mut().expect("a script that runs has a frame").pc += 1;
    }

    fn call_closure(&mut self, index: Index, arguments: usize) -> Result<(), Pause> {
        let code = Arc::clone(&self.code);
        let Object::Closure(closure) = self.heap.object(index) else {
            return fail("DamagedObject", "a function that is none");
        };
        let number = closure.function;
        let function = &code.functions[number as usize];
        let wanted = function.parameters as usize;
        if wanted != arguments {
            return wrong_arity(&function.shown_name(), wanted, wanted, arguments);
        }
        let captures = closure.captures.clone();
        self.enter_function(number, arguments, &captures)
    }

    /// Puts a frame on top; the arguments are the topmost operands.
    pub(super) fn enter_function(
        &mut self,
        number: u32,
        arguments: usize,
        captures: &[Value],
    ) -> Result<(), Pause> {
        let code = Arc::clone(&self.code);
        let function = &code.functions[number as usize];
        let base = self.stack.len() - arguments;
        self.reserve_stack(base + function.slots.len() + function.operands_max as usize)?;
        self.stack.resize(base + function.slots.len(), Value::Unset);
        for (capture, value) in function.captures.iter().zip(captures) {
            let value = match (capture.mode, value) {
                (CodeCaptureMode::Entry, Value::Cell(index)) => match self.heap.object(*index) {
                    Object::Cell(content) => *content,
                    _ => Value::Unset,
                },
                _ => *value,
            };
            self.stack[base + capture.inner as usize] = value;
        }
        self.frames.push(Frame { function: number, pc: 0, base: base as u32 });
        Ok(())
    }

    /// Grows stack and frames within the budget.
    fn reserve_stack(&mut self, height: usize) -> Result<(), Pause> {
        if height > self.stack.capacity() {
            let doubled = if self.stack.capacity() == 0 { 0 } else { self.stack.capacity() * 2 };
            let wanted = height.max(doubled);
            let bytes = (wanted - self.stack.capacity()) * size_of::<Value>();
            self.heap.room(bytes)?;
            self.heap.charge(bytes);
            self.stack.reserve_exact(wanted - self.stack.len());
        }
        if self.frames.len() == self.frames.capacity() {
            let more = self.frames.len().max(2);
            self.heap.room(more * size_of::<Frame>())?;
            self.heap.charge(more * size_of::<Frame>());
            self.frames.reserve_exact(more);
        }
        Ok(())
    }

    fn return_to_caller(&mut self) {
        let value = self.pop();
        let frame = self.frames.pop().expect("a script that runs has a frame");
        let depth = self.frames.len() as u32;
        while self.handlers.last().is_some_and(|handler| handler.frame >= depth) {
            self.handlers.pop();
        }
        self.stack.truncate(frame.base as usize - 1);
        self.stack.push(value);
        self.advance();
    }

    /// The value on top leaves the script.
    fn finish(&mut self) -> Result<Ended, Pause> {
        let height = self.stack.len();
        if !self.surroundings.root {
            let value = self.heap.settled(self.top());
            if let Some(handle) = self.heap.waiting(value) {
                return Ok(Ended { value: Returned::Delegated(handle) });
            }
            let encoded = graph::encode(&self.heap, &[value], graph::Form::Value)
                .map_err(|_| Failure::new("OutOfMemory", "the result is too large"))?;
            let (bytes, references) = (encoded.bytes, encoded.references);
            return Ok(Ended { value: Returned::Value { bytes, references } });
        }
        if let Value::Reference(handle) = self.heap.settled(self.top()) {
            self.stack[height - 1] = self.heap.new_thunk(handle);
        }
        self.force_deeply(&[self.top()], true)?;
        let result = json::tree(&self.heap, self.top(), json::Style::Result)?;
        Ok(Ended { value: Returned::Json(result) })
    }
}

fn unset<T>(function: &Function, slot: u32) -> Result<T, Pause> {
    let name = &function.slots[slot as usize];
    let captured = function.captures.iter().any(|capture| capture.inner == slot);
    let failure = Failure::new("NameError", format!("`{name}` has no value yet"));
    Err(match captured {
        true => failure.hint(format!(
            "the function took `{name}` from around it before `{name}` was assigned; assign it first"
        )),
        false => failure.hint(format!("`{name}` is assigned later, or only on another way here")),
    }
    .into())
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
    fail("ArgumentError", format!("`{name}` takes {wanted}, not {given}"))
}
