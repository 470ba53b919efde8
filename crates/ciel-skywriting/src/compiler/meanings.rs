//! What functions do, as digests, and what they may ask of their environment.
//!
//! Names of variables do not count, nor does where they are in a frame around. It does not know
//! calls. Read next: `crate::identity`.

use crate::builtins::Builtin;
use crate::code::{CodeHash, CodeHasher, Constant, Function, Instruction, Meaning, Question};
use crate::hir::Span;

/// Finds what all functions of a program mean. `named` has, for each, where its variables are first
/// named, by slot.
pub(super) fn find_meanings(
    functions: &mut [Function],
    constants: &[Constant],
    named: &[Vec<Span>],
) {
    let mut makers = vec![None; functions.len()];
    for (number, function) in functions.iter().enumerate() {
        for made in function.made() {
            makers[made as usize] = Some(number);
        }
    }
    let captured: Vec<Vec<Span>> = (0..functions.len())
        .map(|number| captured(functions, named, &makers, number))
        .collect();
    for (function, captured) in functions.iter_mut().zip(captured) {
        function.meaning = Meaning {
            own: own(function, constants),
            whole: CodeHash::default(),
            asks: asks(function, constants),
            captured,
        };
    }
    for number in 0..functions.len() {
        functions[number].meaning.whole = whole(functions, number);
    }
}

fn whole(functions: &[Function], number: usize) -> CodeHash {
    let mut hasher = CodeHasher::default();
    let mut todo = vec![number];
    while let Some(number) = todo.pop() {
        let function = &functions[number];
        hasher.put(&(function.meaning.own, function.made().count()));
        todo.extend(function.made().rev().map(|made| made as usize));
    }
    hasher.finish()
}

fn own(function: &Function, constants: &[Constant]) -> CodeHash {
    let mut hasher = CodeHasher::default();
    // Another version of the language may give the same instructions another meaning.
    hasher.put(env!("CARGO_PKG_VERSION"));
    hasher.put(&(
        function.parameters,
        function.slots.len(),
        function.captures.len(),
    ));
    for capture in &function.captures {
        hasher.put(&(capture.inner, capture.mode));
    }
    for instruction in &function.instructions {
        match instruction {
            Instruction::Constant(number) => {
                hasher.put(&(Instruction::Constant(0), &constants[*number as usize]));
            }
            Instruction::Closure(_) => hasher.put(&Instruction::Closure(0)),
            other => hasher.put(other),
        }
    }
    hasher.finish()
}

/// Where the variables that a function captures are first named: in the function whose own they
/// are.
fn captured(
    functions: &[Function],
    named: &[Vec<Span>],
    makers: &[Option<usize>],
    number: usize,
) -> Vec<Span> {
    let place = |outer: u32| {
        let (mut slot, mut maker) = (outer, makers[number]);
        loop {
            let around = maker?;
            let captures = &functions[around].captures;
            match captures.iter().find(|capture| capture.inner == slot) {
                Some(capture) => (slot, maker) = (capture.outer, makers[around]),
                None => return named[around].get(slot as usize).copied(),
            }
        }
    };
    let captures = functions[number].captures.iter();
    captures
        .map(|capture| place(capture.outer).unwrap_or_default())
        .collect()
}

/// What the instructions of a function may ask.
fn asks(function: &Function, constants: &[Constant]) -> Vec<Question> {
    let mut asks = Vec::new();
    for (at, instruction) in function.instructions.iter().enumerate() {
        let (builtin, arguments) = match instruction {
            Instruction::CallBuiltin { builtin, arguments } => (*builtin, Some(*arguments)),
            Instruction::Builtin(builtin) => (*builtin, None),
            _ => continue,
        };
        let question = match builtin {
            Builtin::Env => variable(&function.instructions, constants, (at, arguments)),
            Builtin::Argv => Question::Arguments,
            Builtin::Package | Builtin::Cancel => Question::Open,
            _ => continue,
        };
        if !asks.contains(&question) {
            asks.push(question);
        }
    }
    asks
}

/// What is asked by `env("NAME")` or `env["NAME"]` at an instruction: the variable, if its name
/// stands there.
fn variable(
    instructions: &[Instruction],
    constants: &[Constant],
    (at, arguments): (usize, Option<u32>),
) -> Question {
    use Instruction as I;
    let is_plain = |at: usize| {
        matches!(
            instructions[at],
            I::Constant(_) | I::Null | I::Bool(_) | I::Int(_) | I::Load(_)
        )
    };
    // The name, and the instructions that must follow each other without a jump between them.
    let (name, last) = match arguments {
        Some(1) => (at.checked_sub(1), at),
        Some(2) if at > 0 && is_plain(at - 1) => (at.checked_sub(2), at),
        None if matches!(instructions.get(at + 2), Some(Instruction::Index { .. })) => {
            (Some(at + 1), at + 2)
        }
        _ => (None, at),
    };
    let Some(name) = name.filter(|name| !is_entered(instructions, name + 1..=last)) else {
        return Question::Open;
    };
    match instructions[name] {
        Instruction::Constant(number) => match &constants[number as usize] {
            Constant::Text { text, .. } => Question::Variable(text.clone()),
            _ => Question::Open,
        },
        _ => Question::Open,
    }
}

/// Whether a jump goes into that range.
fn is_entered(instructions: &[Instruction], range: std::ops::RangeInclusive<usize>) -> bool {
    instructions.iter().any(|instruction| match instruction {
        Instruction::Jump(target)
        | Instruction::JumpIfFalse(target)
        | Instruction::JumpIfFalseOrPop(target)
        | Instruction::JumpIfTrueOrPop(target)
        | Instruction::IterateNext(target)
        | Instruction::Try(target) => range.contains(&(*target as usize)),
        _ => false,
    })
}
