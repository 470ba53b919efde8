//! What the statements of one function do to names, before any of them is lowered.
//!
//! It looks into blocks but not into the functions inside. Read next: `scope`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Resolver;
use crate::diagnostic::Diagnostic;
use crate::hir::{AssignOp, Span};
use crate::stdlib::is_library;
use crate::syntax::{Expr, ExprKind, Function, Name, Stmt, StmtKind};

/// What a function is called with, known before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of parameters.
    pub parameters: usize,
    /// The head of the function.
    pub head: Span,
}

impl Shape {
    /// The shape of a function.
    pub fn of(function: &Function) -> Self {
        Shape {
            parameters: function.parameters.len(),
            head: function.head,
        }
    }
}

/// What one function does to one name.
#[derive(Debug, Clone, Copy, Default)]
pub struct Binding {
    /// It is a parameter.
    pub parameter: bool,
    /// Places that give it a value: `=`, `for`, `catch`, `function`.
    sites: u32,
    /// Places that change the value it has: `+=`, `-=`.
    updates: u32,
    /// How many of the sites are `function` statements.
    declarations: u32,
    /// The last function that was put into it.
    shape: Option<Shape>,
}

impl Binding {
    /// Whether the function has a variable of that name of its own.
    pub fn declares(&self) -> bool {
        self.parameter || self.sites > 0
    }

    /// Whether it is the name of a function of this level, which closures of the level share.
    pub fn is_function(&self) -> bool {
        let once = self.sites == 1 && self.updates == 0 && self.shape.is_some();
        !self.parameter && (self.declarations > 0 || once)
    }

    /// The shape of the one function that it ever is.
    pub fn shape(&self) -> Option<Shape> {
        let once = self.sites == 1 && self.updates == 0 && !self.parameter;
        self.shape.filter(|_| once)
    }
}

/// By name. Only ever looked up, never walked, except in sorted order.
pub type Bindings = FxHashMap<Arc<str>, Binding>;

impl Resolver<'_> {
    /// What a function does to names; reports functions that are declared twice.
    pub(super) fn collect(&mut self, parameters: &[Name], body: &[Stmt]) -> Bindings {
        let mut bindings = Bindings::default();
        for parameter in parameters {
            bindings
                .entry(parameter.text.clone())
                .or_default()
                .parameter = true;
        }
        self.collect_block(body, &mut bindings);
        bindings
    }

    fn collect_block(&mut self, block: &[Stmt], bindings: &mut Bindings) {
        self.check_declared_once(block);
        for statement in block {
            self.collect_statement(&statement.kind, bindings);
        }
    }

    fn collect_statement(&mut self, kind: &StmtKind, bindings: &mut Bindings) {
        let mut site = |name: &Name| bindings.entry(name.text.clone()).or_default().sites += 1;
        match kind {
            StmtKind::Assign { target, op, value } if target.path.is_empty() => {
                bindings
                    .entry(target.name.text.clone())
                    .or_default()
                    .assign(*op, value);
            }
            StmtKind::Function(function) => {
                if let Some(name) = &function.name {
                    let binding = bindings.entry(name.text.clone()).or_default();
                    binding.sites += 1;
                    binding.declarations += 1;
                    binding.shape = Some(Shape::of(function));
                }
            }
            StmtKind::If {
                branches,
                otherwise,
            } => {
                for branch in branches {
                    self.collect_block(&branch.body, bindings);
                }
                self.collect_block(otherwise, bindings);
            }
            StmtKind::While { body, .. } | StmtKind::DoWhile { body, .. } => {
                self.collect_block(body, bindings);
            }
            StmtKind::For { variable, body, .. } => {
                site(variable);
                self.collect_block(body, bindings);
            }
            StmtKind::Try {
                body,
                variable,
                handler,
            } => {
                site(variable);
                self.collect_block(body, bindings);
                self.collect_block(handler, bindings);
            }
            StmtKind::Assign { .. }
            | StmtKind::Return(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Include(_)
            | StmtKind::Expr(_)
            | StmtKind::Throw(_) => {}
        }
    }

    /// Two functions of one name in one block are a mistake; in different blocks, such as the
    /// branches of an `if`, they are not. A program may replace a function of the standard library.
    fn check_declared_once(&mut self, block: &[Stmt]) {
        let mut first: FxHashMap<&Arc<str>, Span> = FxHashMap::default();
        for statement in block {
            let StmtKind::Function(Function {
                name: Some(name), ..
            }) = &statement.kind
            else {
                continue;
            };
            let Some(earlier) = first.insert(&name.text, name.span) else {
                continue;
            };
            if self.in_library(earlier) == self.in_library(name.span) {
                let message = format!("the function `{}` is declared twice", name.text);
                let problem = Diagnostic::new("declaration", message, name.span)
                    .with_label("again here")
                    .with_also(earlier, "first here")
                    .with_hint("rename or remove one of them");
                self.report(problem);
            }
        }
    }

    fn in_library(&self, span: Span) -> bool {
        self.sources
            .get(usize::from(span.source))
            .is_some_and(|source| is_library(&source.name))
    }
}

impl Binding {
    fn assign(&mut self, op: AssignOp, value: &Expr) {
        match op {
            AssignOp::Set => self.sites += 1,
            AssignOp::Add | AssignOp::Subtract => self.updates += 1,
        }
        if let ExprKind::Closure(function) = &value.kind {
            self.shape = Some(Shape::of(function));
        }
    }
}
