//! From the checked program to instructions.
//!
//! It does not know source syntax, and it trusts the front end: names are slots, jumps stay inside
//! loops. It recurses as deep as the program is nested, which the front end bounds. Read next:
//! `statements`, `expressions`, then `machine`.

mod expressions;
mod meanings;
mod statements;

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use rustc_hash::FxHashMap;
use std::sync::Arc;

use crate::code::{Code, CodeCapture, Constant, Function, Instruction, Meaning};
use crate::hir::{self, CaptureMode, Program, Slot, Span};

impl Code {
    /// Compiles a checked program. It never fails: the front end has found every static error.
    pub fn compile(program: &Program) -> Code {
        let mut constants = Constants::default();
        let functions = program.functions.iter();
        let mut functions: Vec<Function> =
            functions.map(|hir| function(hir, &mut constants)).collect();
        find_host_needs(&mut functions);
        let spans = |function: &hir::Function| {
            let variables = function.slots.iter();
            variables.map(|variable| variable.span).collect()
        };
        let named: Vec<Vec<Span>> = program.functions.iter().map(spans).collect();
        meanings::find_meanings(&mut functions, &constants.list, &named);
        Code::new(functions, constants.list, &program.sources)
    }
}

fn function(hir: &hir::Function, constants: &mut Constants) -> Function {
    let mut compiler = Compiler {
        hir,
        constants,
        instructions: Vec::new(),
        spans: Vec::new(),
        operands: 0,
        operands_max: 0,
        loops: Vec::new(),
        tries: 0,
    };
    compiler.prologue();
    compiler.block(&hir.body);
    compiler.emit(Instruction::Null, hir.span);
    compiler.emit(Instruction::Return, hir.span);
    let Compiler {
        instructions,
        spans,
        operands_max,
        ..
    } = compiler;
    Function {
        name: hir.name.as_deref().map(Arc::from),
        parameters: hir.parameters,
        slots: hir
            .slots
            .iter()
            .map(|variable| Arc::from(variable.name.as_str()))
            .collect(),
        captures: hir.captures.iter().map(capture).collect(),
        instructions,
        operands_max: u32::try_from(operands_max).unwrap_or(u32::MAX),
        needs_host: false,
        spans,
        meaning: Meaning::default(),
    }
}

/// Marks the functions that need a host, and those that make one of them.
fn find_host_needs(functions: &mut [Function]) {
    // Which functions make that one.
    let mut makers: Vec<Vec<usize>> = vec![Vec::new(); functions.len()];
    let mut todo = Vec::new();
    for (number, function) in functions.iter().enumerate() {
        for instruction in &function.instructions {
            match instruction {
                Instruction::Closure(made) => makers[*made as usize].push(number),
                Instruction::Builtin(builtin) | Instruction::CallBuiltin { builtin, .. }
                    if builtin.needs_host() =>
                {
                    todo.push(number);
                }
                _ => {}
            }
        }
    }
    while let Some(number) = todo.pop() {
        if !std::mem::replace(&mut functions[number].needs_host, true) {
            todo.extend(&makers[number]);
        }
    }
}

fn capture(hir: &hir::Capture) -> CodeCapture {
    CodeCapture {
        outer: hir.outer.0,
        inner: hir.inner.0,
        mode: hir.mode.into(),
    }
}

/// All constants of a program, each once.
#[derive(Default)]
struct Constants {
    list: Vec<Constant>,
    texts: FxHashMap<Arc<str>, u32>,
}

impl Constants {
    fn text(&mut self, text: &Arc<str>) -> u32 {
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        let constant = Constant::Text {
            text: Arc::clone(text),
            is_ascii: text.is_ascii(),
        };
        let number = self.add(constant);
        self.texts.insert(Arc::clone(text), number);
        number
    }

    fn integer(&mut self, number: &BigInt) -> u32 {
        let constant = match number.to_i64() {
            Some(small) => Constant::Int(small),
            None => Constant::Integer(number.clone()),
        };
        self.add(constant)
    }

    fn add(&mut self, constant: Constant) -> u32 {
        self.list.push(constant);
        count(self.list.len() - 1)
    }
}

/// The function being compiled.
struct Compiler<'a> {
    hir: &'a hir::Function,
    constants: &'a mut Constants,
    instructions: Vec<Instruction>,
    spans: Vec<Span>,
    /// Operands on the stack at this point.
    operands: i64,
    operands_max: i64,
    loops: Vec<Loop>,
    /// Handlers that are open at this point.
    tries: usize,
}

/// A loop being compiled.
#[derive(Default)]
struct Loop {
    breaks: Vec<usize>,
    continues: Vec<usize>,
    /// Handlers open around it.
    tries: usize,
}

impl Compiler<'_> {
    /// Variables that closures share start as cells, unless a captured cell comes in their place.
    fn prologue(&mut self) {
        for (slot, variable) in self.hir.slots.iter().enumerate() {
            let slot = count(slot);
            let arrives_as_cell = |capture: &hir::Capture| {
                capture.inner.0 == slot && capture.mode == CaptureMode::Cell
            };
            if variable.cell && !self.hir.captures.iter().any(arrives_as_cell) {
                self.emit(Instruction::MakeCell(slot), variable.span);
            }
        }
    }

    fn is_cell(&self, slot: Slot) -> bool {
        self.hir.slots[slot.0 as usize].cell
    }

    fn emit(&mut self, instruction: Instruction, span: Span) -> usize {
        self.operands += effect(instruction);
        self.operands_max = self.operands_max.max(self.operands);
        self.instructions.push(instruction);
        self.spans.push(span);
        self.instructions.len() - 1
    }

    fn here(&self) -> u32 {
        count(self.instructions.len())
    }

    /// Lets the jump at `at` go to the next instruction.
    fn patch(&mut self, at: usize) {
        let here = self.here();
        match &mut self.instructions[at] {
            Instruction::Jump(target)
            | Instruction::JumpIfFalse(target)
            | Instruction::JumpIfFalseOrPop(target)
            | Instruction::JumpIfTrueOrPop(target)
            | Instruction::IterateNext(target)
            | Instruction::Try(target) => *target = here,
            other => unreachable!("only jumps are patched, not {other:?}"),
        }
    }
}

/// A count of things of one program; sources are below 4 GiB, so it fits.
fn count(number: usize) -> u32 {
    u32::try_from(number).expect("a program has fewer than 2^32 instructions and names")
}

/// How many operands the instruction adds when it does not jump.
fn effect(instruction: Instruction) -> i64 {
    use Instruction as I;
    match instruction {
        I::Null | I::Bool(_) | I::Int(_) | I::Constant(_) | I::Builtin(_) | I::Load(_) => 1,
        I::LoadCell(_)
        | I::LoadDereferenced(_)
        | I::Closure(_)
        | I::IterateStart
        | I::IterateNext(_) => 1,
        I::BinaryOfResults { .. } => 1,
        I::Store(_) | I::StoreCell(_) | I::Accumulate { .. } | I::Pop | I::Binary { .. } => -1,
        I::Index { .. } | I::JumpIfFalse(_) | I::JumpIfFalseOrPop(_) => -1,
        I::JumpIfTrueOrPop(_) | I::Return | I::Throw => -1,
        I::StorePath { keys, .. } => -1 - i64::from(keys),
        I::List(length) | I::SpawnList(length) => 1 - i64::from(length),
        I::Dictionary(pairs) => 1 - 2 * i64::from(pairs),
        I::Call(arguments) => -i64::from(arguments),
        I::CallBuiltin { arguments, .. } => 1 - i64::from(arguments),
        I::MakeCell(_) | I::Negate { .. } | I::Not { .. } | I::Dereference | I::Jump(_) => 0,
        I::Try(_) => 1,
        I::EndTry => -1,
        I::EndTries => 0,
    }
}
