//! The traversal of statements and expressions.
//!
//! It follows the order in which they run, because whether a variable is certainly set at a place
//! decides whether it must begin with a value from outside. Read next: `arguments`.

use super::Resolver;
use super::collect::Shape;
use crate::builtins::Builtin;
use crate::diagnostic::Diagnostic;
use crate::hir::{self, AssignOp, Slot, Span};
use crate::syntax::{Branch, Expr, ExprKind, Name, Stmt, StmtKind, Target};

impl Resolver<'_> {
    pub(super) fn block(&mut self, block: Vec<Stmt>) -> Vec<hir::Stmt> {
        block
            .into_iter()
            .filter_map(|statement| self.statement(statement))
            .collect()
    }

    fn statement(&mut self, statement: Stmt) -> Option<hir::Stmt> {
        let span = statement.span;
        let kind = match statement.kind {
            StmtKind::Assign { target, op, value } => self.assign(target, op, value),
            StmtKind::Return(value) => {
                hir::StmtKind::Return(value.map(|value| self.expression(value)))
            }
            StmtKind::Break => self.in_loop("break", hir::StmtKind::Break, span),
            StmtKind::Continue => self.in_loop("continue", hir::StmtKind::Continue, span),
            StmtKind::Include(_) => return None,
            StmtKind::Expr(value) => hir::StmtKind::Expr(self.expression(value)),
            StmtKind::Throw(value) => hir::StmtKind::Throw(self.expression(value)),
            StmtKind::If {
                branches,
                otherwise,
            } => self.if_statement(branches, otherwise),
            StmtKind::While { condition, body } => self.while_statement(condition, body),
            StmtKind::DoWhile { body, condition } => self.do_statement(body, condition),
            StmtKind::For {
                variable,
                iterable,
                body,
            } => self.for_statement(&variable, iterable, body),
            StmtKind::Function(function) => {
                let name = function.name.clone()?;
                let function = self.function(function, None);
                hir::StmtKind::Function {
                    slot: self.write(&name),
                    function,
                }
            }
            StmtKind::Try {
                body,
                variable,
                handler,
            } => self.try_statement(body, &variable, handler),
        };
        Some(hir::Stmt { kind, span })
    }

    /// The slot of a variable that gets a value here.
    fn write(&mut self, name: &Name) -> Slot {
        let slot = self.scope().slot(&name.text, name.span);
        self.scope().assigned.insert(slot);
        slot
    }

    fn assign(&mut self, target: Target, op: AssignOp, value: Expr) -> hir::StmtKind {
        let is_plain = target.path.is_empty();
        let value = match value.kind {
            ExprKind::Closure(function) if is_plain => {
                let function = self.function(*function, Some(&target.name));
                hir::Expr {
                    kind: hir::ExprKind::Closure(function),
                    span: value.span,
                }
            }
            kind => self.expression(Expr { kind, ..value }),
        };
        let path = self.expressions(target.path);
        let slot = if is_plain && op == AssignOp::Set {
            self.write(&target.name)
        } else {
            self.change(&target.name)
        };
        let place = hir::Place {
            slot,
            path,
            span: target.span,
        };
        hir::StmtKind::Assign { place, op, value }
    }

    /// The slot of a variable that must have a value already.
    fn change(&mut self, name: &Name) -> Slot {
        let level = self.level();
        match self.read(level, &name.text, name.span) {
            Some(slot) => slot,
            None if Builtin::by_name(&name.text).is_some() => {
                let message = format!("the builtin function `{}` cannot be changed", name.text);
                let problem = Diagnostic::new("assignment", message, name.span)
                    .with_hint("to make it a variable, assign a value with `=` first");
                self.report(problem);
                Slot(0)
            }
            None => {
                let problem = self.unknown_name(&name.text, name.span);
                self.report_unknown(&name.text, problem.with_label("has no value to change"));
                Slot(0)
            }
        }
    }

    fn in_loop(&mut self, word: &str, kind: hir::StmtKind, span: Span) -> hir::StmtKind {
        if self.scope().loops == 0 {
            let problem = Diagnostic::new("loop", format!("`{word}` is outside a loop"), span)
                .with_hint("`return` ends a function, or the script");
            self.report(problem);
        }
        kind
    }

    /// What every branch sets is set afterwards.
    fn if_statement(&mut self, branches: Vec<Branch>, otherwise: Vec<Stmt>) -> hir::StmtKind {
        let before = self.scope().assigned.mark();
        let mut set_by_all: Option<Vec<Slot>> = None;
        let mut lowered = Vec::with_capacity(branches.len());
        for Branch { condition, body } in branches {
            let condition = self.expression(condition);
            let body = self.block(body);
            let set = self.scope().assigned.rewind(before);
            match &mut set_by_all {
                Some(set_by_all) => set_by_all.retain(|slot| set.contains(slot)),
                None => set_by_all = Some(set),
            }
            lowered.push(hir::Branch { condition, body });
        }
        let otherwise = self.block(otherwise);
        for slot in self.scope().assigned.rewind(before) {
            if set_by_all.iter().flatten().any(|set| *set == slot) {
                self.scope().assigned.insert(slot);
            }
        }
        hir::StmtKind::If {
            branches: lowered,
            otherwise,
        }
    }

    fn while_statement(&mut self, condition: Expr, body: Vec<Stmt>) -> hir::StmtKind {
        let condition = self.expression(condition);
        let before = self.scope().assigned.mark();
        let body = self.loop_body(body);
        self.scope().assigned.rewind(before);
        hir::StmtKind::While { condition, body }
    }

    /// What the body sets may be skipped by `continue` and `break`.
    fn do_statement(&mut self, body: Vec<Stmt>, condition: Expr) -> hir::StmtKind {
        let before = self.scope().assigned.mark();
        let body = self.loop_body(body);
        self.scope().assigned.rewind(before);
        hir::StmtKind::DoWhile {
            body,
            condition: self.expression(condition),
        }
    }

    fn for_statement(&mut self, variable: &Name, iterable: Expr, body: Vec<Stmt>) -> hir::StmtKind {
        let iterable = self.expression(iterable);
        let before = self.scope().assigned.mark();
        let variable = self.write(variable);
        let body = self.loop_body(body);
        self.scope().assigned.rewind(before);
        hir::StmtKind::For {
            variable,
            iterable,
            body,
        }
    }

    fn loop_body(&mut self, body: Vec<Stmt>) -> Vec<hir::Stmt> {
        self.scope().loops += 1;
        let body = self.block(body);
        self.scope().loops -= 1;
        body
    }

    fn try_statement(
        &mut self,
        body: Vec<Stmt>,
        variable: &Name,
        handler: Vec<Stmt>,
    ) -> hir::StmtKind {
        let before = self.scope().assigned.mark();
        let body = self.block(body);
        self.scope().assigned.rewind(before);
        let variable = self.write(variable);
        let handler = self.block(handler);
        self.scope().assigned.rewind(before);
        hir::StmtKind::Try {
            body,
            variable,
            handler,
        }
    }

    pub(super) fn expressions(&mut self, expressions: Vec<Expr>) -> Vec<hir::Expr> {
        expressions
            .into_iter()
            .map(|expression| self.expression(expression))
            .collect()
    }

    fn boxed(&mut self, expression: Expr) -> Box<hir::Expr> {
        Box::new(self.expression(expression))
    }

    pub(super) fn expression(&mut self, expression: Expr) -> hir::Expr {
        let span = expression.span;
        let kind = match expression.kind {
            ExprKind::Null => hir::ExprKind::Null,
            ExprKind::Bool(value) => hir::ExprKind::Bool(value),
            ExprKind::Int(value) => hir::ExprKind::Int(value),
            ExprKind::Float(value) => hir::ExprKind::Float(value),
            ExprKind::Str(value) => hir::ExprKind::Str(value),
            ExprKind::Name(name) => self.value_of(&Name { text: name, span }, span),
            ExprKind::List(items) => hir::ExprKind::List(self.expressions(items)),
            ExprKind::Dict(entries) => self.dictionary(entries),
            ExprKind::Negate(operand) => hir::ExprKind::Negate(self.boxed(*operand)),
            ExprKind::Not(operand) => hir::ExprKind::Not(self.boxed(*operand)),
            ExprKind::Dereference(operand) => hir::ExprKind::Dereference(self.boxed(*operand)),
            ExprKind::Binary { first, rest } => {
                let first = self.boxed(*first);
                let rest = rest
                    .into_iter()
                    .map(|(op, operand)| (op, self.expression(operand)))
                    .collect();
                hir::ExprKind::Binary { first, rest }
            }
            ExprKind::And(operands) => hir::ExprKind::And(self.expressions(operands)),
            ExprKind::Or(operands) => hir::ExprKind::Or(self.expressions(operands)),
            ExprKind::Slice { base, start, stop } => self.slice(*base, start, stop, span),
            ExprKind::Index { base, key } => hir::ExprKind::Index {
                base: Box::new(self.named(*base)),
                key: self.boxed(*key),
            },
            ExprKind::Call { callee, arguments } => self.call(*callee, arguments, span),
            ExprKind::Closure(function) => hir::ExprKind::Closure(self.function(*function, None)),
        };
        hir::Expr { kind, span }
    }

    /// `base[start:stop]` is a call of the builtin; a bound that is left out is null.
    fn slice(
        &mut self,
        base: Expr,
        start: Option<Box<Expr>>,
        stop: Option<Box<Expr>>,
        span: Span,
    ) -> hir::ExprKind {
        let mut arguments = vec![self.expression(base)];
        for bound in [start, stop] {
            arguments.push(match bound {
                Some(bound) => self.expression(*bound),
                None => hir::Expr {
                    kind: hir::ExprKind::Null,
                    span,
                },
            });
        }
        let callee = Box::new(hir::Expr {
            kind: hir::ExprKind::Builtin(Builtin::Slice),
            span,
        });
        hir::ExprKind::Call { callee, arguments }
    }

    fn dictionary(&mut self, entries: Vec<(Expr, Expr)>) -> hir::ExprKind {
        let mut lowered = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let span = key.span;
            let key = match key.kind {
                ExprKind::Name(text) => {
                    let hint = format!("a key is a string: write {text:?}");
                    hir::Expr {
                        kind: self.name(&Name { text, span }, Some(hint)),
                        span,
                    }
                }
                kind => self.expression(Expr { kind, ..key }),
            };
            lowered.push((key, self.expression(value)));
        }
        hir::ExprKind::Dict(lowered)
    }

    /// The callee of a call or the base of an index, where a builtin is what its name says.
    fn named(&mut self, expression: Expr) -> hir::Expr {
        match expression.kind {
            ExprKind::Name(text) => {
                let span = expression.span;
                let kind = self.name(&Name { text, span }, None);
                hir::Expr { kind, span }
            }
            _ => self.expression(expression),
        }
    }

    /// A name that is read as a value: `env` and `argv` are a dictionary and a list.
    fn value_of(&mut self, name: &Name, span: Span) -> hir::ExprKind {
        match self.name(name, None) {
            kind @ hir::ExprKind::Builtin(Builtin::Env | Builtin::Argv) => hir::ExprKind::Call {
                callee: Box::new(hir::Expr { kind, span }),
                arguments: Vec::new(),
            },
            kind => kind,
        }
    }

    /// A name that is read; `hint` is for when it is unknown.
    fn name(&mut self, name: &Name, hint: Option<String>) -> hir::ExprKind {
        let level = self.level();
        if let Some(slot) = self.read(level, &name.text, name.span) {
            return hir::ExprKind::Local(slot);
        }
        if let Some(builtin) = Builtin::by_name(&name.text) {
            return hir::ExprKind::Builtin(builtin);
        }
        let mut problem = self.unknown_name(&name.text, name.span);
        problem.hint = hint.or(problem.hint);
        self.report_unknown(&name.text, problem);
        hir::ExprKind::Null
    }

    fn call(&mut self, callee: Expr, arguments: Vec<Expr>, span: Span) -> hir::ExprKind {
        let callee_span = callee.span;
        let called = name_of(&callee);
        let shape_of_literal = literal_shape(&callee);
        let given: Vec<Span> = arguments.iter().map(|argument| argument.span).collect();
        let spawned = arguments
            .first()
            .map(|first| (name_of(first), literal_shape(first)));
        let passed = super::arguments::list_length(arguments.get(1));
        let callee = self.named(callee);
        let arguments = self.expressions(arguments);
        match callee.kind {
            hir::ExprKind::Builtin(builtin) => {
                self.check_builtin(builtin, callee_span, &given);
                if let (Builtin::Spawn, Some((name, literal)), Some(passed)) =
                    (builtin, spawned, passed)
                {
                    let shape = literal.or_else(|| self.shape(&arguments[0]));
                    self.check_shape(
                        shape,
                        name.as_deref(),
                        passed,
                        given.get(1).copied().unwrap_or(span),
                    );
                }
            }
            _ => {
                let shape = shape_of_literal.or_else(|| self.shape(&callee));
                self.check_shape(shape, called.as_deref(), given.len(), callee_span);
            }
        }
        hir::ExprKind::Call {
            callee: Box::new(callee),
            arguments,
        }
    }

    /// The shape of a variable that is always the same function.
    fn shape(&mut self, callee: &hir::Expr) -> Option<Shape> {
        match callee.kind {
            hir::ExprKind::Local(slot) => self.scope().shape(slot),
            _ => None,
        }
    }
}

fn name_of(expression: &Expr) -> Option<String> {
    match &expression.kind {
        ExprKind::Name(name) => Some(name.to_string()),
        _ => None,
    }
}

fn literal_shape(expression: &Expr) -> Option<Shape> {
    match &expression.kind {
        ExprKind::Closure(function) => Some(Shape::of(function)),
        _ => None,
    }
}
