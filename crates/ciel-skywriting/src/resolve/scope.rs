//! The variables of one function while it is lowered.
//!
//! It decides slots, cells and captures, and knows which variables certainly have a value at the
//! place that the walk has reached. It does not know the other scopes. Read next: `lower`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::collect::{Bindings, Shape};
use crate::builtins::Builtin;
use crate::hir::{
    AssignOp, Capture, CaptureMode, Expr, ExprKind, Place, Slot, Span, Stmt, StmtKind, Variable,
};
use crate::syntax::Name;

/// See the module.
pub struct Scope {
    bindings: Bindings,
    slots: FxHashMap<Arc<str>, Slot>,
    rules: Vec<Rule>,
    /// By slot.
    pub variables: Vec<Variable>,
    /// What the closure takes along.
    pub captures: Vec<Capture>,
    /// Statements that give variables the builtin of the same name at the start.
    pub prologue: Vec<Stmt>,
    /// Which variables certainly have a value.
    pub assigned: Assigned,
    /// Loops around the place.
    pub loops: u32,
}

/// How a slot behaves.
#[derive(Clone, Copy)]
struct Rule {
    /// Closures share it in a cell.
    shareable: bool,
    /// It may still have to begin with a value from outside.
    enters: bool,
    /// The one function that it ever is.
    shape: Option<Shape>,
}

/// An outer variable as a closure sees it.
#[derive(Clone, Copy)]
pub struct Shared {
    /// It is in a cell.
    cell: bool,
    shape: Option<Shape>,
}

impl Scope {
    /// The scope of a function; the parameters have the first slots.
    pub fn new(bindings: Bindings, parameters: &[Name]) -> Self {
        let mut scope = Scope {
            bindings,
            slots: FxHashMap::default(),
            rules: Vec::new(),
            variables: Vec::new(),
            captures: Vec::new(),
            prologue: Vec::new(),
            assigned: Assigned::default(),
            loops: 0,
        };
        for parameter in parameters {
            let rule = Rule {
                shareable: false,
                enters: false,
                shape: None,
            };
            let slot = scope.add(&parameter.text, parameter.span, rule);
            scope.assigned.insert(slot);
        }
        scope
    }

    /// Whether the name is a variable of this function, or was captured before.
    pub fn has(&self, name: &Arc<str>) -> bool {
        self.slots.contains_key(name)
            || self
                .bindings
                .get(name)
                .is_some_and(|binding| binding.declares())
    }

    /// The names of its own variables, unordered.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.bindings
            .iter()
            .filter(|(_, binding)| binding.declares())
            .map(|(name, _)| name)
    }

    /// The slot of a variable of this function, made at its first use.
    pub fn slot(&mut self, name: &Arc<str>, span: Span) -> Slot {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let binding = self.bindings.get(name).copied().unwrap_or_default();
        let shareable = binding.is_function();
        let rule = Rule {
            shareable,
            enters: !shareable,
            shape: binding.shape(),
        };
        self.add(name, span, rule)
    }

    fn add(&mut self, name: &Arc<str>, span: Span, rule: Rule) -> Slot {
        let slot = Slot(self.variables.len() as u32);
        self.variables.push(Variable {
            name: name.to_string(),
            span,
            cell: false,
        });
        self.rules.push(rule);
        self.slots.insert(name.clone(), slot);
        slot
    }

    /// Whether a variable that is read here may have no value yet and must begin with the one from
    /// outside. Answers yes once.
    pub fn takes_entry_value(&mut self, slot: Slot) -> bool {
        let rule = &mut self.rules[slot.0 as usize];
        let takes = rule.enters && !self.assigned.contains(slot);
        rule.enters &= !takes;
        takes
    }

    /// Lets a variable begin as the builtin of its name.
    pub fn start_with(&mut self, slot: Slot, builtin: Builtin) {
        let span = self.variables[slot.0 as usize].span;
        self.prologue.push(Stmt {
            kind: StmtKind::Assign {
                place: Place {
                    slot,
                    path: Vec::new(),
                    span,
                },
                op: AssignOp::Set,
                value: Expr {
                    kind: ExprKind::Builtin(builtin),
                    span,
                },
            },
            span,
        });
    }

    /// A closure inside takes the variable along.
    pub fn share(&mut self, slot: Slot) -> Shared {
        let rule = self.rules[slot.0 as usize];
        self.variables[slot.0 as usize].cell |= rule.shareable;
        Shared {
            cell: rule.shareable,
            shape: rule.shape,
        }
    }

    /// Takes a variable of the function around along, into its own slot.
    pub fn capture(&mut self, name: &Arc<str>, span: Span, outer: Slot, shared: Shared) -> Slot {
        let changes = self.bindings.contains_key(name);
        let mode = match (shared.cell, changes) {
            (false, _) => CaptureMode::Value,
            (true, false) => CaptureMode::Cell,
            (true, true) => CaptureMode::Entry,
        };
        let inner = self.slots.get(name).copied().unwrap_or_else(|| {
            let shape = shared.shape.filter(|_| !changes);
            let shareable = mode == CaptureMode::Cell;
            self.add(
                name,
                span,
                Rule {
                    shareable,
                    enters: false,
                    shape,
                },
            )
        });
        self.variables[inner.0 as usize].cell = mode == CaptureMode::Cell;
        self.captures.push(Capture { outer, inner, mode });
        inner
    }

    /// The shape of the function that a variable always is.
    pub fn shape(&self, slot: Slot) -> Option<Shape> {
        self.rules[slot.0 as usize].shape
    }
}

/// A set of slots that can be restored to an earlier state.
#[derive(Default)]
pub struct Assigned {
    member: Vec<bool>,
    /// The members in the order of their coming.
    trail: Vec<Slot>,
}

impl Assigned {
    fn contains(&self, slot: Slot) -> bool {
        self.member.get(slot.0 as usize).copied().unwrap_or(false)
    }

    /// Adds a slot.
    pub fn insert(&mut self, slot: Slot) {
        let index = slot.0 as usize;
        if self.member.len() <= index {
            self.member.resize(index + 1, false);
        }
        if !self.member[index] {
            self.member[index] = true;
            self.trail.push(slot);
        }
    }

    /// The state now.
    pub fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Goes back to a state; gives what came since.
    pub fn rewind(&mut self, mark: usize) -> Vec<Slot> {
        let since = self.trail.split_off(mark);
        for slot in &since {
            self.member[slot.0 as usize] = false;
        }
        since
    }
}
