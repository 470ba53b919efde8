//! Statements. Between statements the stack holds only the walks of the `for` loops around.
//!
//! Read next: `expressions`.

use super::{Compiler, Loop};
use crate::code::{Instruction, Update};
use crate::hir::{AssignOp, Branch, Expr, Place, Slot, Span, Stmt, StmtKind};

impl Compiler<'_> {
    pub(super) fn block(&mut self, statements: &[Stmt]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        let span = statement.span;
        match &statement.kind {
            StmtKind::Assign { place, op, value } => self.assign(place, *op, value, span),
            StmtKind::Return(value) => self.return_value(value.as_ref(), span),
            StmtKind::Break => self.leave(true, span),
            StmtKind::Continue => self.leave(false, span),
            StmtKind::Expr(expression) => {
                self.expression(expression, 0);
                self.emit(Instruction::Pop, span);
            }
            StmtKind::If {
                branches,
                otherwise,
            } => self.branches(branches, otherwise),
            StmtKind::While { condition, body } => self.while_loop(condition, body, span),
            StmtKind::DoWhile { body, condition } => self.do_while_loop(body, condition),
            StmtKind::For {
                variable,
                iterable,
                body,
            } => {
                self.for_loop(*variable, iterable, body, span);
            }
            StmtKind::Function { slot, function } => {
                self.emit(Instruction::Closure(function.0), span);
                self.store(*slot, span);
            }
            StmtKind::Try {
                body,
                variable,
                handler,
            } => {
                self.try_catch(body, *variable, handler, span);
            }
            StmtKind::Throw(value) => {
                self.expression(value, 0);
                self.emit(Instruction::Throw, span);
            }
        }
    }

    fn assign(&mut self, place: &Place, op: AssignOp, value: &Expr, span: Span) {
        let update = match op {
            AssignOp::Set => Update::Set,
            AssignOp::Add => Update::Add,
            AssignOp::Subtract => Update::Subtract,
        };
        for key in &place.path {
            self.expression(key, 0);
        }
        self.expression(value, 0);
        let (slot, is_cell) = (place.slot.0, self.is_cell(place.slot));
        if !place.path.is_empty() {
            let keys = super::count(place.path.len());
            self.emit(
                Instruction::StorePath {
                    slot,
                    keys,
                    is_cell,
                    update,
                },
                span,
            );
        } else if update == Update::Set {
            self.store(place.slot, span);
        } else {
            self.emit(
                Instruction::Accumulate {
                    slot,
                    is_cell,
                    update,
                },
                span,
            );
        }
    }

    fn store(&mut self, slot: Slot, span: Span) {
        let instruction = match self.is_cell(slot) {
            true => Instruction::StoreCell(slot.0),
            false => Instruction::Store(slot.0),
        };
        self.emit(instruction, span);
    }

    fn return_value(&mut self, value: Option<&Expr>, span: Span) {
        match value {
            Some(value) => self.expression(value, 0),
            None => {
                self.emit(Instruction::Null, span);
            }
        }
        if self.tries > 0 {
            self.emit(Instruction::EndTries, span);
        }
        self.emit(Instruction::Return, span);
    }

    /// `break` or `continue`: closes the handlers inside the loop and jumps.
    fn leave(&mut self, is_break: bool, span: Span) {
        let Some(tries) = self.loops.last().map(|innermost| innermost.tries) else {
            return;
        };
        for _ in tries..self.tries {
            self.emit(Instruction::EndTry, span);
        }
        // What follows in the source is still inside of them.
        self.operands += (self.tries - tries) as i64;
        let jump = self.emit(Instruction::Jump(0), span);
        let innermost = self
            .loops
            .last_mut()
            .expect("there is one, it was asked above");
        match is_break {
            true => innermost.breaks.push(jump),
            false => innermost.continues.push(jump),
        }
    }

    fn branches(&mut self, branches: &[Branch], otherwise: &[Stmt]) {
        let mut to_end = Vec::new();
        for (at, Branch { condition, body }) in branches.iter().enumerate() {
            self.expression(condition, 0);
            let to_next = self.emit(Instruction::JumpIfFalse(0), condition.span);
            self.block(body);
            let is_last = at + 1 == branches.len() && otherwise.is_empty();
            if !is_last {
                to_end.push(self.emit(Instruction::Jump(0), condition.span));
            }
            self.patch(to_next);
        }
        self.block(otherwise);
        for jump in to_end {
            self.patch(jump);
        }
    }

    fn open_loop(&mut self) {
        self.loops.push(Loop {
            tries: self.tries,
            ..Loop::default()
        });
    }

    fn patch_continues(&mut self) {
        let innermost = self.loops.last_mut().expect("a loop is open");
        for jump in std::mem::take(&mut innermost.continues) {
            self.patch(jump);
        }
    }

    fn close_loop(&mut self) {
        let closed = self.loops.pop().expect("a loop is open");
        for jump in closed.breaks {
            self.patch(jump);
        }
    }

    fn while_loop(&mut self, condition: &Expr, body: &[Stmt], span: Span) {
        let top = self.here();
        self.open_loop();
        self.expression(condition, 0);
        let to_end = self.emit(Instruction::JumpIfFalse(0), condition.span);
        self.block(body);
        self.patch_continues();
        self.emit(Instruction::Jump(top), span);
        self.patch(to_end);
        self.close_loop();
    }

    fn do_while_loop(&mut self, body: &[Stmt], condition: &Expr) {
        let top = self.here();
        self.open_loop();
        self.block(body);
        self.patch_continues();
        self.expression(condition, 0);
        let to_end = self.emit(Instruction::JumpIfFalse(0), condition.span);
        self.emit(Instruction::Jump(top), condition.span);
        self.patch(to_end);
        self.close_loop();
    }

    fn for_loop(&mut self, variable: Slot, iterable: &Expr, body: &[Stmt], span: Span) {
        self.expression(iterable, 0);
        self.emit(Instruction::IterateStart, iterable.span);
        let top = self.here();
        self.open_loop();
        let to_end = self.emit(Instruction::IterateNext(0), iterable.span);
        self.store(variable, span);
        self.block(body);
        self.patch_continues();
        self.emit(Instruction::Jump(top), span);
        self.patch(to_end);
        self.close_loop();
        self.emit(Instruction::Pop, span);
        self.emit(Instruction::Pop, span);
    }

    fn try_catch(&mut self, body: &[Stmt], variable: Slot, handler: &[Stmt], span: Span) {
        let to_handler = self.emit(Instruction::Try(0), span);
        self.tries += 1;
        self.block(body);
        self.tries -= 1;
        self.emit(Instruction::EndTry, span);
        let to_end = self.emit(Instruction::Jump(0), span);
        self.patch(to_handler);
        self.operands += 1;
        self.operands_max = self.operands_max.max(self.operands);
        self.store(variable, span);
        self.block(handler);
        self.patch(to_end);
    }
}
