//! What the tests of the front end share: files in memory, and expressions as short text.

use ciel_skywriting::front::{Loader, Problems, check};
use ciel_skywriting::hir::{Expr, ExprKind, Function, Program, StmtKind};

/// Files by name; each is shown under its own name.
pub struct Files(pub Vec<(&'static str, Vec<u8>)>);

impl Loader for Files {
    fn load(&mut self, name: &str, _from: &str) -> Result<(String, Vec<u8>), String> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found
            .map(|(known, bytes)| ((*known).to_owned(), bytes.clone()))
            .ok_or_else(|| "there is no such file".to_owned())
    }
}

/// A program of one file.
pub fn check_text(text: &str) -> Result<Program, Problems> {
    check("job.sw", text.as_bytes(), &mut Files(Vec::new()))
}

/// A program of one file that is right.
pub fn program(text: &str) -> Program {
    check_text(text).unwrap_or_else(|problems| panic!("{}", problems.render(false)))
}

/// The messages about a program that is wrong, one line each.
pub fn messages(text: &str) -> Vec<String> {
    match check_text(text) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.to_string().lines().map(str::to_owned).collect(),
    }
}

/// The function of that name.
pub fn function<'a>(program: &'a Program, name: &str) -> &'a Function {
    let found = program
        .functions
        .iter()
        .find(|function| function.name.as_deref() == Some(name));
    found.unwrap_or_else(|| panic!("there is no function {name}"))
}

/// The captures of a function as `name:mode`, sorted.
pub fn captures(program: &Program, name: &str) -> String {
    let function = function(program, name);
    let mut shown: Vec<String> = function
        .captures
        .iter()
        .map(|capture| {
            let variable = &function.slots[capture.inner.0 as usize];
            format!("{}:{:?}", variable.name, capture.mode)
        })
        .collect();
    shown.sort();
    shown.join(" ")
}

/// The value of the last `return` of the script, as text with a parenthesis for each operator.
pub fn returned(text: &str) -> String {
    let program = program(text);
    let script = &program.functions[0];
    match &script.body.last().expect("the script has a statement").kind {
        StmtKind::Return(Some(value)) => shown(value, script),
        other => panic!("the script ends with {other:?}"),
    }
}

/// An expression as text with a parenthesis for each operator.
pub fn shown(expression: &Expr, function: &Function) -> String {
    let show = |expression: &Expr| shown(expression, function);
    let list = |items: &[Expr]| items.iter().map(show).collect::<Vec<_>>().join(", ");
    let joined = |word: &str, operands: &[Expr]| {
        let shown = operands.iter().map(show);
        shown
            .reduce(|left, right| format!("({word} {left} {right})"))
            .unwrap_or_default()
    };
    match &expression.kind {
        ExprKind::Null => "null".to_owned(),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Int(value) => value.to_string(),
        ExprKind::Float(value) => format!("{value:?}"),
        ExprKind::Str(value) => format!("{value:?}"),
        ExprKind::Local(slot) => function.slots[slot.0 as usize].name.clone(),
        ExprKind::Builtin(builtin) => builtin.name().to_owned(),
        ExprKind::List(items) => format!("[{}]", list(items)),
        ExprKind::Dict(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", show(key), show(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        ExprKind::Negate(operand) => format!("(- {})", show(operand)),
        ExprKind::Not(operand) => format!("(! {})", show(operand)),
        ExprKind::Dereference(operand) => format!("(* {})", show(operand)),
        ExprKind::Binary { first, rest } => rest.iter().fold(show(first), |left, (op, operand)| {
            format!("({op:?} {left} {})", show(operand))
        }),
        ExprKind::And(operands) => joined("And", operands),
        ExprKind::Or(operands) => joined("Or", operands),
        ExprKind::Index { base, key } => format!("{}[{}]", show(base), show(key)),
        ExprKind::Call { callee, arguments } => format!("{}({})", show(callee), list(arguments)),
        ExprKind::Closure(_) => "closure".to_owned(),
    }
}
