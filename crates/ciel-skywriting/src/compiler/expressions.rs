//! Expressions. Each leaves one operand.
//!
//! `pending` counts the operands right below that operators around the expression will use: when
//! the expression must wait, it waits for those too. Arguments of calls and elements of literals
//! are not used by what is around them, so they start again at zero. Read next: the README of
//! `machine`.

use num_traits::ToPrimitive;

use super::{Compiler, count};
use crate::code::{Constant, Instruction, Operator};
use crate::hir::{BinaryOp, Expr, ExprKind, Span};

impl Compiler<'_> {
    pub(super) fn expression(&mut self, expression: &Expr, pending: u8) {
        let span = expression.span;
        match &expression.kind {
            ExprKind::Negate(operand) => {
                self.expression(operand, pending);
                self.emit(Instruction::Negate { pending }, span);
            }
            ExprKind::Not(operand) => {
                self.expression(operand, pending);
                self.emit(Instruction::Not { pending }, span);
            }
            ExprKind::Dereference(operand) => {
                self.expression(operand, pending);
                self.emit(Instruction::Dereference, span);
            }
            ExprKind::Binary { first, rest } => self.binary(first, rest, pending),
            ExprKind::Index { base, key } => {
                self.pair(base, key, pending);
                self.emit(Instruction::Index { pending }, span);
            }
            ExprKind::And(operands) => {
                self.short(Instruction::JumpIfFalseOrPop(0), operands, pending);
            }
            ExprKind::Or(operands) => {
                self.short(Instruction::JumpIfTrueOrPop(0), operands, pending);
            }
            ExprKind::List(items) => {
                self.each(items);
                self.emit(Instruction::List(count(items.len())), span);
            }
            ExprKind::Dict(pairs) => self.dictionary(pairs, span),
            ExprKind::Call { callee, arguments } => self.call(callee, arguments, span),
            _ => self.leaf(expression),
        }
    }

    /// What has no expressions inside.
    fn leaf(&mut self, expression: &Expr) {
        let instruction = match &expression.kind {
            ExprKind::Bool(value) => Instruction::Bool(*value),
            ExprKind::Int(number) => match number.to_i32() {
                Some(small) => Instruction::Int(small),
                None => Instruction::Constant(self.constants.integer(number)),
            },
            ExprKind::Float(number) => {
                Instruction::Constant(self.constants.add(Constant::Float(*number)))
            }
            ExprKind::Str(text) => Instruction::Constant(self.constants.text(text)),
            ExprKind::Local(slot) if self.is_cell(*slot) => Instruction::LoadCell(slot.0),
            ExprKind::Local(slot) => Instruction::Load(slot.0),
            ExprKind::Builtin(builtin) => Instruction::Builtin(*builtin),
            ExprKind::Closure(function) => Instruction::Closure(function.0),
            _ => Instruction::Null,
        };
        self.emit(instruction, expression.span);
    }

    fn pair(&mut self, left: &Expr, right: &Expr, pending: u8) {
        self.expression(left, pending);
        self.expression(right, pending.saturating_add(1));
    }

    /// Each operator stands for the text from the first operand to its own right one.
    fn binary(&mut self, first: &Expr, rest: &[(BinaryOp, Expr)], pending: u8) {
        self.expression(first, pending);
        for (op, operand) in rest {
            self.expression(operand, pending.saturating_add(1));
            let operator = operator(*op);
            let span = Span {
                end: operand.span.end,
                ..first.span
            };
            self.emit(Instruction::Binary { operator, pending }, span);
        }
    }

    /// The first operand that decides is the result, else the last one.
    fn short(&mut self, jump: Instruction, operands: &[Expr], pending: u8) {
        let mut to_end = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            self.expression(operand, pending);
            if at + 1 < operands.len() {
                to_end.push(self.emit(jump, operand.span));
            }
        }
        for jump in to_end {
            self.patch(jump);
        }
    }

    fn each(&mut self, items: &[Expr]) {
        for item in items {
            self.expression(item, 0);
        }
    }

    fn dictionary(&mut self, pairs: &[(Expr, Expr)], span: Span) {
        for (key, value) in pairs {
            self.expression(key, 0);
            self.expression(value, 0);
        }
        self.emit(Instruction::Dictionary(count(pairs.len())), span);
    }

    fn call(&mut self, callee: &Expr, arguments: &[Expr], span: Span) {
        if let ExprKind::Builtin(builtin) = callee.kind {
            self.each(arguments);
            let arguments = count(arguments.len());
            self.emit(Instruction::CallBuiltin { builtin, arguments }, span);
            return;
        }
        self.expression(callee, 0);
        self.each(arguments);
        self.emit(Instruction::Call(count(arguments.len())), span);
    }
}

fn operator(op: BinaryOp) -> Operator {
    match op {
        BinaryOp::Add => Operator::Add,
        BinaryOp::Subtract => Operator::Subtract,
        BinaryOp::Multiply => Operator::Multiply,
        BinaryOp::Divide => Operator::Divide,
        BinaryOp::Remainder => Operator::Remainder,
        BinaryOp::Equal => Operator::Equal,
        BinaryOp::NotEqual => Operator::NotEqual,
        BinaryOp::Less => Operator::Less,
        BinaryOp::LessOrEqual => Operator::LessOrEqual,
        BinaryOp::Greater => Operator::Greater,
        BinaryOp::GreaterOrEqual => Operator::GreaterOrEqual,
    }
}
