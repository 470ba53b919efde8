//! Strings that are known before the program runs: what an `include` may be made of.
//!
//! String literals, sums of known strings, and variables that hold such a string. A variable counts
//! only where it is set on every way: outside blocks. It knows no files. Read next: `include`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::hir::{AssignOp, BinaryOp};
use crate::limits::SOURCE_BYTES_MAX;
use crate::syntax::{Expr, ExprKind, Stmt, StmtKind};

/// Variables with the strings that they hold at one point of a program.
#[derive(Debug, Default)]
pub struct Known {
    texts: FxHashMap<Arc<str>, String>,
}

impl Known {
    /// The string that an expression gives; none if it is not known, or too long to be a name.
    pub fn text_of(&self, expression: &Expr) -> Option<String> {
        let text = match &expression.kind {
            ExprKind::Str(text) => text.to_string(),
            ExprKind::Name(name) => self.texts.get(name)?.clone(),
            ExprKind::Binary { first, rest } => {
                rest.iter()
                    .try_fold(self.text_of(first)?, |so_far, (op, operand)| match op {
                        BinaryOp::Add => Some(so_far + &self.text_of(operand)?),
                        _ => None,
                    })?
            }
            _ => return None,
        };
        (text.len() <= SOURCE_BYTES_MAX).then_some(text)
    }

    /// Takes note of a statement outside functions, in the order in which they run.
    pub fn note(&mut self, statement: &StmtKind) {
        match statement {
            StmtKind::Assign { target, op, value } if target.path.is_empty() => {
                let text = self.text_of(value).filter(|_| *op == AssignOp::Set);
                match text {
                    Some(text) => self.texts.insert(target.name.text.clone(), text),
                    None => self.texts.remove(&target.name.text),
                };
            }
            blocks => self.forget(blocks),
        }
    }

    /// Takes note that the blocks of a statement have ended.
    pub fn forget_blocks(&mut self, statement: &StmtKind) {
        if !matches!(statement, StmtKind::Assign { .. }) {
            self.forget(statement);
        }
    }

    /// What a block sets may or may not be set, in it and after it.
    fn forget(&mut self, statement: &StmtKind) {
        match statement {
            StmtKind::Assign { target, .. } => {
                self.texts.remove(&target.name.text);
            }
            StmtKind::Function(function) => {
                if let Some(name) = &function.name {
                    self.texts.remove(&name.text);
                }
            }
            StmtKind::If {
                branches,
                otherwise,
            } => {
                branches
                    .iter()
                    .for_each(|branch| self.forget_all(&branch.body));
                self.forget_all(otherwise);
            }
            StmtKind::While { body, .. } | StmtKind::DoWhile { body, .. } => self.forget_all(body),
            StmtKind::For { variable, body, .. } => {
                self.texts.remove(&variable.text);
                self.forget_all(body);
            }
            StmtKind::Try {
                body,
                variable,
                handler,
            } => {
                self.texts.remove(&variable.text);
                self.forget_all(body);
                self.forget_all(handler);
            }
            StmtKind::Return(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Include(_)
            | StmtKind::Expr(_)
            | StmtKind::Throw(_) => {}
        }
    }

    fn forget_all(&mut self, block: &[Stmt]) {
        block
            .iter()
            .for_each(|statement| self.forget(&statement.kind));
    }
}
