//! The instructions of a checked program, and the location of each in the source.
//!
//! It does not know how they are made or run. A `Code` is immutable and shared by every machine of
//! a job; its hash ties saved machines and function values to it. Read next: `compiler` makes it,
//! `machine` runs it.

use num_bigint::BigInt;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

use crate::builtins::Builtin;
use crate::hir::{CaptureMode, Source, Span};

/// Identifies the meaning of a program: instructions, constants and names, but neither comments
/// nor layout.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct CodeHash(pub [u8; 16]);

impl fmt::Debug for CodeHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for CodeHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// A location as messages show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Name of the file.
    pub file: Arc<str>,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A compiled program.
#[derive(Debug)]
pub struct Code {
    pub(crate) hash: CodeHash,
    pub(crate) functions: Vec<Function>,
    pub(crate) constants: Vec<Constant>,
    sources: Vec<Lines>,
}

/// A source with the first byte of each line.
#[derive(Debug)]
struct Lines {
    name: Arc<str>,
    text: String,
    starts: Vec<u32>,
}

/// What is too large for an instruction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) enum Constant {
    Text { text: Arc<str>, is_ascii: bool },
    Int(i64),
    Integer(BigInt),
    Float(f64),
}

/// A compiled function.
#[derive(Debug, Serialize)]
pub(crate) struct Function {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) parameters: u32,
    /// Names of all variables, parameters first.
    pub(crate) slots: Vec<Arc<str>>,
    pub(crate) captures: Vec<CodeCapture>,
    pub(crate) instructions: Vec<Instruction>,
    /// Most operands that are ever on the stack above the variables.
    pub(crate) operands_max: u32,
    /// Whether it, or a function that it makes, may do what only a host can do.
    #[serde(skip)]
    pub(crate) needs_host: bool,
    /// One for each instruction.
    #[serde(skip)]
    pub(crate) spans: Vec<Span>,
    /// What it does, wherever it stands.
    #[serde(skip)]
    pub(crate) meaning: Meaning,
}

impl Function {
    /// The functions that it makes, by their numbers.
    pub(crate) fn made(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.instructions
            .iter()
            .filter_map(|instruction| match instruction {
                Instruction::Closure(made) => Some(*made),
                _ => None,
            })
    }

    /// Marks instructions that are mostly run in one step with those behind them. It is how the
    /// function runs, not what it means, so its hash does not cover it. A jump may go between them.
    fn join(&mut self) {
        for at in 0..self.instructions.len() {
            let joined = joined(&self.instructions[at..]);
            self.instructions[at] = joined.unwrap_or(self.instructions[at]);
        }
    }

    /// For messages and labels.
    pub(crate) fn shown_name(&self) -> Arc<str> {
        self.name.clone().unwrap_or_else(|| Arc::from("lambda"))
    }
}

/// What the first of these instructions becomes, if it is mostly run in one step with others.
fn joined(instructions: &[Instruction]) -> Option<Instruction> {
    use Instruction as I;
    Some(match *instructions {
        [
            I::Load(left),
            I::Dereference,
            I::Load(right),
            I::Dereference,
            I::Binary { operator, .. },
            ..,
        ] => I::BinaryOfResults {
            left,
            right,
            operator,
        },
        [I::Load(slot), I::Dereference, ..] => I::LoadDereferenced(slot),
        [
            I::List(length),
            I::CallBuiltin {
                builtin: Builtin::Spawn,
                arguments: 2,
            },
            ..,
        ] => I::SpawnList(length),
        _ => return None,
    })
}

/// What the code of a function means.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Meaning {
    /// Of the function without those that it makes.
    pub(crate) own: CodeHash,
    /// Of the function with those that it makes.
    pub(crate) whole: CodeHash,
    /// What it may ask, without those that it makes.
    pub(crate) asks: Vec<Question>,
    /// Where each variable that it captures is first named, in the order of captures.
    pub(crate) captured: Vec<Span>,
}

/// What a function may ask of its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// The variable of that name.
    Variable(Arc<str>),
    /// The arguments of the script.
    Arguments,
    /// What is known only when it runs.
    Open,
}

/// Hashes plain things, each by its encoding, which tells where it ends.
#[derive(Default)]
pub(crate) struct CodeHasher(blake3::Hasher);

impl CodeHasher {
    pub(crate) fn put<T: Serialize + ?Sized>(&mut self, thing: &T) {
        let bytes = postcard::to_stdvec(thing).expect("plain data always encodes");
        self.0.update(&bytes);
    }

    pub(crate) fn finish(&self) -> CodeHash {
        let mut hash = [0; 16];
        hash.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        CodeHash(hash)
    }
}

/// How a closure gets one captured variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct CodeCapture {
    pub(crate) outer: u32,
    pub(crate) inner: u32,
    pub(crate) mode: CodeCaptureMode,
}

/// The modes of [`CaptureMode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum CodeCaptureMode {
    Cell,
    Value,
    Entry,
}

impl From<CaptureMode> for CodeCaptureMode {
    fn from(mode: CaptureMode) -> CodeCaptureMode {
        match mode {
            CaptureMode::Cell => CodeCaptureMode::Cell,
            CaptureMode::Value => CodeCaptureMode::Value,
            CaptureMode::Entry => CodeCaptureMode::Entry,
        }
    }
}

/// Operators on two forced values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    /// How scripts spell it.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Remainder => "%",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
        }
    }
}

/// What an assignment does with the old value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Update {
    Set,
    Add,
    Subtract,
}

/// One step of the machine. Operands are taken from the stack; `pending` counts the operands right
/// below them that operators around this one are waiting to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Instruction {
    Null,
    Bool(bool),
    Int(i32),
    Constant(u32),
    Builtin(Builtin),
    Load(u32),
    /// `Load`, right before a `Dereference`: both in one step where it is a reference.
    LoadDereferenced(u32),
    LoadCell(u32),
    Store(u32),
    StoreCell(u32),
    /// Wraps what is in the slot into a fresh cell.
    MakeCell(u32),
    /// `slot op= operand`
    Accumulate {
        slot: u32,
        is_cell: bool,
        update: Update,
    },
    /// `slot[key]…[key] op= operand`; the keys lie below the operand, outermost lowest.
    StorePath {
        slot: u32,
        keys: u32,
        is_cell: bool,
        update: Update,
    },
    Pop,
    /// Of so many elements.
    List(u32),
    /// The same, right before the `spawn` to which it gives the arguments: both in one step where
    /// the machine keeps the child.
    SpawnList(u32),
    /// Of so many pairs of key and value.
    Dictionary(u32),
    Negate {
        pending: u8,
    },
    Not {
        pending: u8,
    },
    Dereference,
    Binary {
        operator: Operator,
        pending: u8,
    },
    /// The `Load` with which `*left operator *right` begins: all five instructions in one step
    /// where both results are here, and plain. Else it is a [`Instruction::LoadDereferenced`].
    BinaryOfResults {
        left: u32,
        right: u32,
        operator: Operator,
    },
    Index {
        pending: u8,
    },
    Jump(u32),
    /// Takes the operand.
    JumpIfFalse(u32),
    /// Leaves the operand when it jumps.
    JumpIfFalseOrPop(u32),
    /// Leaves the operand when it jumps.
    JumpIfTrueOrPop(u32),
    Closure(u32),
    /// Of the function below so many arguments.
    Call(u32),
    CallBuiltin {
        builtin: Builtin,
        arguments: u32,
    },
    Return,
    /// Checks that the operand can be walked and puts position 0 above it.
    IterateStart,
    /// Puts the next item above the position, or jumps.
    IterateNext(u32),
    /// Failures from here to `EndTry` go to the target, with the caught dictionary as operand.
    Try(u32),
    EndTry,
    /// Before a return: ends all that were begun in the function.
    EndTries,
    Throw,
}

impl Code {
    /// The identity of the program.
    pub fn hash(&self) -> CodeHash {
        self.hash
    }

    /// Where a span begins.
    pub fn locate(&self, span: Span) -> Location {
        let Some(source) = self.sources.get(usize::from(span.source)) else {
            return Location {
                file: Arc::from("<unknown>"),
                line: 1,
                column: 1,
            };
        };
        let line = source
            .starts
            .partition_point(|start| *start <= span.start)
            .max(1);
        let start = source.starts[line - 1] as usize;
        let before = source.text.get(start..span.start as usize).unwrap_or("");
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Location {
            file: Arc::clone(&source.name),
            line: number(line),
            column: number(before.chars().count() + 1),
        }
    }

    pub(crate) fn new(
        mut functions: Vec<Function>,
        constants: Vec<Constant>,
        sources: &[Source],
    ) -> Code {
        let meaning = postcard::to_stdvec(&(&functions, &constants))
            .expect("instructions and constants are plain data");
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(&meaning).as_bytes()[..16]);
        let sources = sources.iter().map(Lines::new).collect();
        functions.iter_mut().for_each(Function::join);
        Code {
            hash: CodeHash(hash),
            functions,
            constants,
            sources,
        }
    }
}

impl Lines {
    fn new(source: &Source) -> Lines {
        let after_newlines = source
            .text
            .bytes()
            .enumerate()
            .filter(|(_, byte)| *byte == b'\n')
            .map(|(at, _)| at + 1);
        let starts = std::iter::once(0)
            .chain(after_newlines)
            .map(|start| u32::try_from(start).unwrap_or(u32::MAX))
            .collect();
        Lines {
            name: Arc::from(source.name.as_str()),
            text: source.text.clone(),
            starts,
        }
    }
}
