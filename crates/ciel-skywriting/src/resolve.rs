//! From names to slots: what each name means, and everything about names and calls that can be
//! checked before the program runs.
//!
//! A scope is a whole function; blocks make none. A name that a function does not itself give a
//! value to comes from the function around it, or is a builtin. One that it does give a value to,
//! but perhaps only after it was read, starts with what the function around it has. It knows
//! neither files nor values. Read next: `resolve::scope` for the rule of each name,
//! `resolve::lower` for the walk, `hir` for what comes out.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::builtins::Builtin;
use crate::diagnostic::Diagnostic;
use crate::hir::{self, FunctionId, Slot, Source, Span};
use crate::limits::PROBLEMS_MAX;
use crate::syntax::{Function, Name, Stmt};

mod arguments;
mod collect;
mod lower;
mod scope;
mod suggest;

use scope::Scope;

/// The functions of a program, the script itself first; or what is wrong, at most
/// [`PROBLEMS_MAX`] messages.
pub fn resolve(body: Vec<Stmt>, sources: &[Source]) -> Result<Vec<hir::Function>, Vec<Diagnostic>> {
    let head = Span {
        source: 0,
        start: 0,
        end: 0,
    };
    let mut resolver = Resolver {
        sources,
        scopes: Vec::new(),
        functions: Vec::new(),
        problems: Vec::new(),
        reported: FxHashSet::default(),
    };
    resolver.function(
        Function {
            name: None,
            parameters: Vec::new(),
            body,
            head,
        },
        None,
    );
    if resolver.problems.is_empty() {
        Ok(resolver.functions)
    } else {
        Err(resolver.problems)
    }
}

struct Resolver<'a> {
    sources: &'a [Source],
    /// The functions around the place, the script itself first.
    scopes: Vec<Scope>,
    functions: Vec<hir::Function>,
    problems: Vec<Diagnostic>,
    /// Unknown names that were reported.
    reported: FxHashSet<Arc<str>>,
}

impl Resolver<'_> {
    fn report(&mut self, problem: Diagnostic) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    fn level(&self) -> usize {
        self.scopes.len() - 1
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes
            .last_mut()
            .expect("the script itself is a scope")
    }

    /// Lowers a function; `assigned_to` is the variable that gets it.
    fn function(&mut self, function: Function, assigned_to: Option<&Name>) -> FunctionId {
        let id = FunctionId(self.functions.len() as u32);
        self.functions.push(stub(function.head));
        self.check_parameters(&function.parameters);
        let bindings = self.collect(&function.parameters, &function.body);
        self.scopes.push(Scope::new(bindings, &function.parameters));
        let body = self.block(function.body);
        let scope = self.scopes.pop().expect("pushed above");
        let name = function.name.as_ref().or(assigned_to);
        self.functions[id.0 as usize] = hir::Function {
            name: name.map(|name| name.text.to_string()),
            parameters: function.parameters.len() as u32,
            slots: scope.variables,
            captures: scope.captures,
            body: scope.prologue.into_iter().chain(body).collect(),
            span: function.head,
        };
        id
    }

    fn check_parameters(&mut self, parameters: &[Name]) {
        for (index, parameter) in parameters.iter().enumerate() {
            let first = parameters[..index]
                .iter()
                .find(|other| other.text == parameter.text);
            if let Some(first) = first {
                let message = format!("the parameter `{}` is named twice", parameter.text);
                let problem = Diagnostic::new("declaration", message, parameter.span)
                    .with_label("again here")
                    .with_also(first.span, "first here")
                    .with_hint("rename one of them");
                self.report(problem);
            }
        }
    }

    /// The slot of a name that is read at `level`; `None` for a builtin or an unknown name.
    fn read(&mut self, level: usize, name: &Arc<str>, span: Span) -> Option<Slot> {
        let scope = &mut self.scopes[level];
        if !scope.has(name) {
            let around = level.checked_sub(1)?;
            let outer = self.read(around, name, span)?;
            return Some(self.capture(level, name, span, outer));
        }
        let slot = scope.slot(name, span);
        if scope.takes_entry_value(slot) {
            let around = level.checked_sub(1);
            if let Some(outer) = around.and_then(|around| self.read(around, name, span)) {
                self.capture(level, name, span, outer);
            } else if let Some(builtin) = Builtin::by_name(name) {
                self.scopes[level].start_with(slot, builtin);
            }
        }
        Some(slot)
    }

    /// Takes a variable of the function around into the function at `level`.
    fn capture(&mut self, level: usize, name: &Arc<str>, span: Span, outer: Slot) -> Slot {
        let shared = self.scopes[level - 1].share(outer);
        self.scopes[level].capture(name, span, outer, shared)
    }
}

fn stub(span: Span) -> hir::Function {
    hir::Function {
        name: None,
        parameters: 0,
        slots: Vec::new(),
        captures: Vec::new(),
        body: Vec::new(),
        span,
    }
}
