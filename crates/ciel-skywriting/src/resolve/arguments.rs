//! Numbers of arguments.
//!
//! It knows the callee only when it is a builtin or a name that always is one function. Read next:
//! `suggest`.

use super::Resolver;
use super::collect::Shape;
use crate::builtins::Builtin;
use crate::diagnostic::Diagnostic;
use crate::hir::Span;
use crate::syntax::{Expr, ExprKind};

/// How many arguments `spawn` passes on: none without a list, and unknown for anything but a list
/// that is written out.
pub fn list_length(list: Option<&Expr>) -> Option<usize> {
    match list.map(|list| &list.kind) {
        None => Some(0),
        Some(ExprKind::List(items)) => Some(items.len()),
        Some(_) => None,
    }
}

impl Resolver<'_> {
    /// A call of a builtin with the arguments at those places.
    pub(super) fn check_builtin(&mut self, builtin: Builtin, callee: Span, given: &[Span]) {
        let (least, most) = builtin.arity();
        if (least..=most).contains(&given.len()) {
            return;
        }
        let name = builtin.name();
        let takes = match (least, most) {
            (least, usize::MAX) => format!("at least {}", counted(least)),
            (least, most) if least == most => counted(most),
            (least, most) => format!("{least} to {}", counted(most)),
        };
        let (message, place) = match given.get(most) {
            Some(first) => (too(name, &takes, given.len()), *first),
            None => (too(name, &takes, given.len()), callee),
        };
        let label = if place == callee {
            "too few arguments"
        } else {
            "one too many"
        };
        let problem = Diagnostic::new("arguments", message, place).with_label(label);
        self.report(problem.with_hint(builtin.usage()));
    }

    /// A call of a function with so many arguments.
    pub(super) fn check_shape(
        &mut self,
        shape: Option<Shape>,
        name: Option<&str>,
        given: usize,
        place: Span,
    ) {
        let Some(shape) = shape.filter(|shape| shape.parameters != given) else {
            return;
        };
        let name = name.unwrap_or("the function");
        let message = too(name, &counted(shape.parameters), given);
        let label = if given < shape.parameters {
            "too few arguments"
        } else {
            "too many arguments"
        };
        let mut problem = Diagnostic::new("arguments", message, place).with_label(label);
        let apart = shape.head.end <= place.start || place.end <= shape.head.start;
        if apart || shape.head.source != place.source {
            problem = problem.with_also(shape.head, format!("takes {}", counted(shape.parameters)));
        }
        self.report(problem);
    }
}

fn too(name: &str, takes: &str, given: usize) -> String {
    let verb = if given == 1 { "is" } else { "are" };
    let name = if name.contains(' ') {
        name.to_owned()
    } else {
        format!("`{name}`")
    };
    let given = if given == 0 {
        "none".to_owned()
    } else {
        given.to_string()
    };
    format!("{name} takes {takes}, but {given} {verb} given")
}

fn counted(count: usize) -> String {
    match count {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        _ => format!("{count} arguments"),
    }
}
