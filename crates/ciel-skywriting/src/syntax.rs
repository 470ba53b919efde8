//! The syntax tree: what the parser made of one file.
//!
//! It knows no scopes: names are text, and an `include` is still a statement. Read next: `parser`
//! makes it, `front` puts included files in their place, `resolve` lowers it.

use std::sync::Arc;

use num_bigint::BigInt;

use crate::hir::{AssignOp, BinaryOp, Span};

/// A name with its location.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    /// The identifier.
    pub text: Arc<str>,
    /// Its place.
    pub span: Span,
}

/// `function` or `lambda`, as a statement or as a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// What a `function` statement calls it.
    pub name: Option<Name>,
    /// In order; may still hold a name twice.
    pub parameters: Vec<Name>,
    /// A lambda's body is a single `return`.
    pub body: Vec<Stmt>,
    /// The keyword to the end of the parameters.
    pub head: Span,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// All of it.
    pub span: Span,
}

/// The forms of statements; as in [`crate::hir::StmtKind`] unless a variant differs.
#[derive(Debug, Clone, PartialEq)]
pub enum StmtKind {
    Assign {
        target: Target,
        op: AssignOp,
        value: Expr,
    },
    Return(Option<Expr>),
    Break,
    Continue,
    /// Outside functions only.
    Include(Expr),
    Expr(Expr),
    If {
        branches: Vec<Branch>,
        otherwise: Vec<Stmt>,
    },
    While {
        condition: Expr,
        body: Vec<Stmt>,
    },
    DoWhile {
        body: Vec<Stmt>,
        condition: Expr,
    },
    For {
        variable: Name,
        iterable: Expr,
        body: Vec<Stmt>,
    },
    /// Has a name.
    Function(Function),
    Try {
        body: Vec<Stmt>,
        variable: Name,
        handler: Vec<Stmt>,
    },
    Throw(Expr),
}

/// A condition and what runs when it is true: one of `if … else if …`.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Evaluated when those of the branches before are false.
    pub condition: Expr,
    /// What runs then.
    pub body: Vec<Stmt>,
}

/// The left side of an assignment.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The variable.
    pub name: Name,
    /// Keys, outermost first.
    pub path: Vec<Expr>,
    /// All of it.
    pub span: Span,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// All of it; with its parentheses.
    pub span: Span,
    /// Levels of the tree below and with it, bodies of functions included.
    pub height: u32,
}

/// The forms of expressions; as in [`crate::hir::ExprKind`] unless a variant differs.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    Null,
    Bool(bool),
    Int(BigInt),
    Float(f64),
    Str(Arc<str>),
    /// A variable or a builtin.
    Name(Arc<str>),
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Negate(Box<Expr>),
    Not(Box<Expr>),
    Dereference(Box<Expr>),
    Binary {
        first: Box<Expr>,
        rest: Vec<(BinaryOp, Expr)>,
    },
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Index {
        base: Box<Expr>,
        key: Box<Expr>,
    },
    /// `base[start:stop]`, each bound may be left out.
    Slice {
        base: Box<Expr>,
        start: Option<Box<Expr>>,
        stop: Option<Box<Expr>>,
    },
    Call {
        callee: Box<Expr>,
        arguments: Vec<Expr>,
    },
    Closure(Box<Function>),
}

impl Expr {
    /// An expression with its height computed from the parts.
    pub fn new(kind: ExprKind, span: Span) -> Self {
        let height = 1 + kind.parts_height();
        Expr { kind, span, height }
    }
}

impl ExprKind {
    fn parts_height(&self) -> u32 {
        match self {
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Name(_) => 0,
            ExprKind::List(items) => highest(items),
            ExprKind::Dict(entries) => entries
                .iter()
                .map(|(key, value)| key.height.max(value.height))
                .max()
                .unwrap_or(0),
            ExprKind::Negate(operand) | ExprKind::Not(operand) | ExprKind::Dereference(operand) => {
                operand.height
            }
            ExprKind::Binary { first, rest } => rest
                .iter()
                .map(|(_, operand)| operand.height)
                .fold(first.height, u32::max),
            ExprKind::And(operands) | ExprKind::Or(operands) => highest(operands),
            ExprKind::Index { base, key } => base.height.max(key.height),
            ExprKind::Slice { base, start, stop } => [start, stop]
                .into_iter()
                .flatten()
                .map(|bound| bound.height)
                .fold(base.height, u32::max),
            ExprKind::Call { callee, arguments } => callee.height.max(highest(arguments)),
            ExprKind::Closure(function) => block_height(&function.body),
        }
    }
}

fn highest(expressions: &[Expr]) -> u32 {
    expressions
        .iter()
        .map(|expression| expression.height)
        .max()
        .unwrap_or(0)
}

fn block_height(block: &[Stmt]) -> u32 {
    block
        .iter()
        .map(|statement| 1 + statement.kind.parts_height())
        .max()
        .unwrap_or(0)
}

impl StmtKind {
    fn parts_height(&self) -> u32 {
        match self {
            StmtKind::Break | StmtKind::Continue | StmtKind::Return(None) => 0,
            StmtKind::Assign { target, value, .. } => highest(&target.path).max(value.height),
            StmtKind::Return(Some(value))
            | StmtKind::Include(value)
            | StmtKind::Expr(value)
            | StmtKind::Throw(value) => value.height,
            StmtKind::If {
                branches,
                otherwise,
            } => branches
                .iter()
                .map(|branch| branch.condition.height.max(block_height(&branch.body)))
                .fold(block_height(otherwise), u32::max),
            StmtKind::While { condition, body } | StmtKind::DoWhile { condition, body } => {
                condition.height.max(block_height(body))
            }
            StmtKind::For { iterable, body, .. } => iterable.height.max(block_height(body)),
            StmtKind::Function(function) => block_height(&function.body),
            StmtKind::Try { body, handler, .. } => block_height(body).max(block_height(handler)),
        }
    }
}
