//! The checked program: what the front end hands to the compiler.
//!
//! Names are already slots, `include`s are already flattened, every call of a builtin has a legal
//! number of arguments. It knows nothing of source syntax. Read next: `compiler`.

use num_bigint::BigInt;
use std::sync::Arc;

use crate::builtins::Builtin;

/// A range of bytes of one source file.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
pub struct Span {
    /// Index into [`Program::sources`].
    pub source: u16,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// One file of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The name as the user knows it (a path, or `<stdlib>/mapreduce.sw`).
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// Index into [`Program::functions`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct FunctionId(pub u32);

/// A variable of a function activation: parameters first, then captures and locals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// A checked program. `functions[0]` is the body of the script itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// All functions, lambdas and the script body.
    pub functions: Vec<Function>,
    /// All files, by [`Span::source`].
    pub sources: Vec<Source>,
}

/// One function, lambda, or the script body.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its declared name; for a lambda the variable it is assigned to, if any.
    pub name: Option<String>,
    /// Number of parameters; they are slots `0..parameters`.
    pub parameters: u32,
    /// All variables by slot.
    pub slots: Vec<Variable>,
    /// What a closure takes from the function around it when it is made.
    pub captures: Vec<Capture>,
    /// Statements; a lambda's body is a single `Return`.
    pub body: Vec<Stmt>,
    /// From `function` or `lambda` to the end of its head (name and parameters).
    pub span: Span,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name, for messages.
    pub name: String,
    /// Where it is first named, for messages.
    pub span: Span,
    /// The slot holds a *cell* shared with closures: so for names declared by a `function`
    /// statement (or assigned a lambda) that some closure of the same level captures, which is
    /// what lets such functions call themselves and each other in both orders.
    pub cell: bool,
}

/// How a closure gets a captured variable at the moment it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    /// Slot of the enclosing function.
    pub outer: Slot,
    /// Slot of this function.
    pub inner: Slot,
    /// `Cell`: both slots are cells and share one. `Value`: the value is copied when the closure is
    /// made (unset stays unset; reading it is then an error that names it). `Entry`: the closure
    /// shares the outer cell, and each call starts with a copy of what is in it, because the
    /// function assigns to the name itself.
    pub mode: CaptureMode,
}

/// See [`Capture::mode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureMode {
    /// Both slots share one cell.
    Cell,
    /// The value at the making of the closure.
    Value,
    /// The content of the shared cell at each call.
    Entry,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// All of it.
    pub span: Span,
}

/// See the grammar in the language reference.
#[derive(Debug, Clone, PartialEq)]
pub enum StmtKind {
    /// `place op value;`
    Assign {
        /// Where to.
        place: Place,
        /// Whether the value replaces the old one or is combined with it.
        op: AssignOp,
        /// The right-hand side.
        value: Expr,
    },
    /// `return;` gives null.
    Return(Option<Expr>),
    /// Out of the innermost loop.
    Break,
    /// To the next round of the innermost loop.
    Continue,
    /// For its effect.
    Expr(Expr),
    /// The first branch whose condition is true.
    If {
        /// `if` and each `else if`, in order; at least one.
        branches: Vec<Branch>,
        /// When no condition is true; empty for no `else`.
        otherwise: Vec<Stmt>,
    },
    /// Test first.
    While {
        /// Tested before each round.
        condition: Expr,
        /// One round.
        body: Vec<Stmt>,
    },
    /// Test last.
    DoWhile {
        /// One round.
        body: Vec<Stmt>,
        /// Tested after each round; `continue` goes here.
        condition: Expr,
    },
    /// Over a list, the keys of a dictionary, or the characters of a string.
    For {
        /// Holds the element; keeps the last one after the loop.
        variable: Slot,
        /// Evaluated once.
        iterable: Expr,
        /// One round.
        body: Vec<Stmt>,
    },
    /// Makes the closure and stores it.
    Function {
        /// Where to; a cell if some closure of the level captures it.
        slot: Slot,
        /// What it runs.
        function: FunctionId,
    },
    /// A failure inside `body` is bound to `variable` as a dictionary, and `handler` runs.
    Try {
        /// What may fail.
        body: Vec<Stmt>,
        /// Holds the failure; stays visible afterwards.
        variable: Slot,
        /// What runs then.
        handler: Vec<Stmt>,
    },
    /// Fails with a value.
    Throw(Expr),
}

/// A condition and what runs when it is true.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Evaluated when those of the branches before are false.
    pub condition: Expr,
    /// What runs then.
    pub body: Vec<Stmt>,
}

/// `=`, `+=`, `-=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignOp {
    /// `=`
    Set,
    /// `+=`: adds; on a list it appends one element.
    Add,
    /// `-=`
    Subtract,
}

/// What can be assigned to.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The variable.
    pub slot: Slot,
    /// `[key]` and `.name` (a string literal), outermost first; empty for a plain variable.
    pub path: Vec<Expr>,
    /// All of it.
    pub span: Span,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// All of it, operands included.
    pub span: Span,
}

/// See the grammar in the language reference.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// Of any size.
    Int(BigInt),
    /// A finite number; neither infinity nor NaN has a literal.
    Float(f64),
    /// The text, with its escapes resolved.
    Str(Arc<str>),
    /// A variable.
    Local(Slot),
    /// A builtin named without being called (`map(len, x)`).
    Builtin(Builtin),
    /// `[…]`
    List(Vec<Expr>),
    /// `{key: value, …}` in source order.
    Dict(Vec<(Expr, Expr)>),
    /// `-x`
    Negate(Box<Expr>),
    /// `!x`
    Not(Box<Expr>),
    /// `*x`, lazy.
    Dereference(Box<Expr>),
    /// Operators of one strength, applied from the left. A list rather than a tree, so that a sum
    /// of any number of terms is walked without recursion.
    Binary {
        /// Evaluated first.
        first: Box<Expr>,
        /// Each operator with its right operand; at least one.
        rest: Vec<(BinaryOp, Expr)>,
    },
    /// Evaluates an operand only if all before it are true; at least two.
    And(Vec<Expr>),
    /// Evaluates an operand only if all before it are false; at least two.
    Or(Vec<Expr>),
    /// `base[key]`, and `base.name` with a string literal as key.
    Index {
        /// A list, dictionary or string.
        base: Box<Expr>,
        /// A position or a key.
        key: Box<Expr>,
    },
    /// `f(…)`; `callee` may be a [`ExprKind::Builtin`].
    Call {
        /// Evaluated first.
        callee: Box<Expr>,
        /// In order.
        arguments: Vec<Expr>,
    },
    /// `function (…) {…}` or `lambda …: …` as a value.
    Closure(FunctionId),
}

/// Operators that evaluate both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}
