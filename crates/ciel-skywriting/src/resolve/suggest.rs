//! Suggestions for unknown names.
//!
//! Read next: `scope`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Resolver;
use crate::builtins::Builtin;
use crate::diagnostic::Diagnostic;
use crate::hir::Span;
use crate::stdlib::library_with;

/// Longer names, in bytes, are not compared.
const COMPARED_BYTES_MAX: usize = 64;

/// Names of other languages.
const FOREIGN: &[(&str, &str)] = &[
    ("None", "null"),
    ("nil", "null"),
    ("undefined", "null"),
    ("length", "len"),
    ("size", "len"),
    ("string", "str"),
    ("console", "print"),
    ("echo", "print"),
    ("println", "print"),
    ("typeof", "type"),
];

impl Resolver<'_> {
    /// Reports a name the first time it is met.
    pub(super) fn report_unknown(&mut self, name: &Arc<str>, problem: Diagnostic) {
        if self.reported.insert(name.clone()) {
            self.report(problem);
        }
    }

    pub(super) fn unknown_name(&self, name: &Arc<str>, span: Span) -> Diagnostic {
        let problem = Diagnostic::new("unknown-name", format!("unknown name `{name}`"), span);
        if let Some(library) = library_with(name) {
            let hint = format!("write `include {:?};` at the top of the file", library.name);
            return problem
                .with_label("defined in the standard library")
                .with_hint(hint);
        }
        match self.similar(name) {
            Some(similar) => problem.with_hint(format!("did you mean `{similar}`?")),
            None => problem,
        }
        .with_label("never assigned")
    }

    /// The nearest visible name, if one is near.
    fn similar(&self, name: &str) -> Option<String> {
        if let Some((_, ours)) = FOREIGN.iter().find(|(theirs, _)| *theirs == name) {
            return Some((*ours).to_owned());
        }
        let variables = self.scopes.iter().flat_map(|scope| scope.names());
        let mut known: BTreeSet<&str> = variables.map(|name| &**name).collect();
        known.extend(Builtin::ALL.iter().map(|builtin| builtin.name()));
        known.extend(["true", "false", "null"]);
        let near = known
            .into_iter()
            .filter_map(|other| Some((distance(name, other)?, other)));
        near.min().map(|(_, other)| other.to_owned())
    }
}

/// How many letters differ, if few enough do; 0 when only the case differs.
fn distance(name: &str, other: &str) -> Option<usize> {
    if name.eq_ignore_ascii_case(other) {
        return Some(0);
    }
    let longest = name.len().max(other.len());
    if !(3..=COMPARED_BYTES_MAX).contains(&longest) {
        return None;
    }
    Some(edits(name.as_bytes(), other.as_bytes())).filter(|edits| *edits <= longest / 3)
}

/// Letters to insert, take out, replace, or swap with their neighbour.
fn edits(from: &[u8], to: &[u8]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (i, letter) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in to.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(letter != other);
            let mut best = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == to[j - 1] && from[i - 1] == *other {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}
