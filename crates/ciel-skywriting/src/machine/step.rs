//! One instruction after the other.
//!
//! An instruction looks at its operands where they are and takes them only when nothing can stop it
//! any more, so after a wait or a collection it is simply rerun. Read next: `force` for waiting,
//! `places` for indexing, `builtins`.

use super::compare::{Comparison, is_true, satisfies};
use super::failure::{Failure, Pause};
use super::json::brief;
use super::variables::unset;
use super::{Machine, Step, numbers};
use crate::code::{Code, Constant, Function, Instruction, Operator};
use crate::host::Host;
use crate::value::{Dictionary, Value};

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
            let flow = match flow {
                Ok(flow) => flow,
                Err(Pause::Blocked(on)) if on.is_empty() => {
                    match self.begin_oldest(code, &[], host)? {
                        true => continue,
                        false => return Err(Pause::Blocked(on)),
                    }
                }
                Err(pause) => return Err(pause),
            };
            match flow {
                Flow::Call(arguments) => self.call(code, arguments, host)?,
                Flow::Return if top == self.strand().frame as usize => {
                    if self.is_in_place() {
                        self.leave_child(code)?;
                        continue;
                    }
                    if self.tail_call(code)? {
                        continue;
                    }
                    let ended = self.finish(host)?;
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
                Instruction::Load(slot) => match self.stack[base + slot as usize] {
                    Value::Unset => return unset(function, slot),
                    value => self.stack.push(value),
                },
                Instruction::Store(slot) => self.stack[base + slot as usize] = self.pop(),
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
                jump @ (Instruction::JumpIfFalseOrPop(target)
                | Instruction::JumpIfTrueOrPop(target)) => {
                    let wanted = matches!(jump, Instruction::JumpIfTrueOrPop(_));
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
                Instruction::LoadCell(slot) => match self.cell_content(base, slot) {
                    Value::Unset => return unset(function, slot),
                    value => self.stack.push(value),
                },
                Instruction::Dereference => self.dereference()?,
                joined @ (Instruction::SpawnList(_)
                | Instruction::LoadDereferenced(_)
                | Instruction::BinaryOfResults { .. }) => {
                    *pc += self.joined(joined, function, base, *pc, host)?;
                    continue;
                }
                Instruction::Call(arguments) => return Ok(Flow::Call(arguments as usize)),
                Instruction::Return => return Ok(Flow::Return),
                other => {
                    self.current_frame().pc = *pc as u32;
                    self.other(other, function, base, host)?;
                }
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
            Instruction::StoreCell(slot) => {
                let value = self.pop();
                self.set_variable(base, slot, true, value);
            }
            Instruction::MakeCell(slot) => {
                let at = base + slot as usize;
                self.stack[at] = self.heap.new_cell(self.stack[at]);
            }
            Instruction::Accumulate {
                slot,
                is_cell,
                update,
            } => {
                self.accumulate(function, base, slot, is_cell, update)?;
            }
            Instruction::StorePath {
                slot,
                keys,
                is_cell,
                update,
            } => {
                let variable = self.variable(function, base, slot, is_cell)?;
                self.store_path(variable, keys as usize, update)?;
            }
            Instruction::Pop => {
                self.stack.pop();
            }
            Instruction::List(length) => self.list_literal(length as usize)?,
            Instruction::Dictionary(pairs) => self.dictionary_literal(pairs as usize)?,
            Instruction::Closure(number) => self.make_closure(number, base)?,
            Instruction::CallBuiltin { builtin, arguments } => {
                let result = self.call_builtin(host, builtin, arguments as usize)?;
                self.replace(arguments as usize, result);
            }
            Instruction::IterateStart => self.start_walk()?,
            Instruction::Try(target) => self.open_handler(target),
            Instruction::EndTry => self.close_handler()?,
            Instruction::EndTries => self.close_handlers_of_frame()?,
            Instruction::Throw => return Err(self.thrown_value()?.into()),
            other => return self.operator(other),
        }
        Ok(())
    }

    /// Operators on one or two operands.
    fn operator(&mut self, instruction: Instruction) -> Result<(), Pause> {
        match instruction {
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
            Instruction::Index { pending } => {
                self.force_top(2, pending)?;
                let (base, key) = self.top_pair();
                let item = match (base, key) {
                    (Value::List(index), Value::Int(at)) if at >= 0 => {
                        self.heap.list(index).get(at as usize).copied()
                    }
                    _ => None,
                };
                let item = match item {
                    Some(item) => item,
                    None => self.item(base, key)?,
                };
                self.replace(2, item);
            }
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
        match quick(operator, self.top_pair()) {
            Some(result) => {
                self.replace(2, result);
                Ok(())
            }
            None => self.slow_binary(operator, pending),
        }
    }

    fn slow_binary(&mut self, operator: Operator, pending: u8) -> Result<(), Pause> {
        self.force_top(2, pending)?;
        let (left, right) = self.top_pair();
        if let Some(result) = quick(operator, (left, right)) {
            self.replace(2, result);
            return Ok(());
        }
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
            Value::Big(index) => self
                .heap
                .big(index)
                .map_or(0, |number| (number.bits() / 64) as usize + 1),
            _ => 1,
        }
    }

    fn constant(&mut self, number: u32) -> Result<(), Pause> {
        let value = match &self.code.constants[number as usize] {
            Constant::Text { .. } => Value::Constant(number),
            Constant::Int(number) => Value::Int(*number),
            Constant::Float(number) => Value::Float(*number),
            Constant::Integer(number) => {
                let number = number.clone();
                self.heap.new_integer(number)?
            }
        };
        self.stack.push(value);
        Ok(())
    }

    pub(super) fn list_literal(&mut self, length: usize) -> Result<(), Pause> {
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

    /// The keys of a dictionary are those at the start of the walk: entries may come and go in it.
    fn start_walk(&mut self) -> Result<(), Pause> {
        self.force_top(1, 0)?;
        let value = match self.as_container(self.top())? {
            Value::Dictionary(index) => self.keys_of(index)?,
            value => value,
        };
        *self.stack.last_mut().expect("it was forced just now") = value;
        match value {
            Value::List(_) | Value::Constant(_) | Value::Text { .. } => {
                self.stack.push(Value::Int(0));
                Ok(())
            }
            _ => {
                let shown = brief(&self.heap, value);
                let message = format!("cannot iterate over {}: {shown}", value.a_type());
                Err(Failure::new("TypeError", message)
                    .hint(
                        "`for` iterates over lists, the keys of dictionaries and the characters of \
                           strings; range(n) gives a list of numbers",
                    )
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
            _ => match self
                .heap
                .text(walked)
                .get(at..)
                .and_then(|rest| rest.chars().next())
            {
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
}

/// The result of an operator on plain numbers, where it is a plain number or a truth.
#[inline]
pub(super) fn quick(operator: Operator, operands: (Value, Value)) -> Option<Value> {
    match operands {
        (Value::Int(left), Value::Int(right)) => match operator {
            Operator::Add => left.checked_add(right).map(Value::Int),
            Operator::Subtract => left.checked_sub(right).map(Value::Int),
            Operator::Multiply => left.checked_mul(right).map(Value::Int),
            Operator::Divide | Operator::Remainder => None,
            _ => Some(Value::Bool(satisfies(operator, left.cmp(&right)))),
        },
        (Value::Float(left), Value::Float(right)) => {
            let result = match operator {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                Operator::Multiply => left * right,
                _ => f64::NAN,
            };
            result.is_finite().then_some(Value::Float(result))
        }
        _ => None,
    }
}
