//! The door of the front end: from files to a checked program, or to messages about them.
//!
//! It knows how files are included, but not where they come from: a [`Loader`] brings them. Read
//! next: `parser` for one file, `resolve` for what names mean.

use std::fmt;

use crate::diagnostic::{Diagnostic, one_line, render};
use crate::hir::{Program, Source};
use crate::limits::PROBLEMS_MAX;

mod include;
mod known;
mod source;

/// Brings the files that a script includes.
pub trait Loader {
    /// The file that `from` includes under `name`: the name it is shown under, and its bytes. The
    /// shown name also identifies it, so one file must always have the same one, the root file
    /// included. An error says why there is none, without a full stop.
    fn load(&mut self, name: &str, from: &str) -> Result<(String, Vec<u8>), String>;
}

/// Why a program cannot run: at least one message, in the order of the files and places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The messages, at most [`PROBLEMS_MAX`].
    pub diagnostics: Vec<Diagnostic>,
    /// The files that they speak of.
    pub sources: Vec<Source>,
}

impl Problems {
    /// The messages as text; see [`render`].
    pub fn render(&self, colour: bool) -> String {
        render(&self.diagnostics, &self.sources, colour)
    }
}

impl fmt::Display for Problems {
    /// One line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self
            .diagnostics
            .iter()
            .map(|diagnostic| one_line(diagnostic, &self.sources))
            .collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Problems {}

/// Reads a script and all that it includes, and checks everything that can be checked before it
/// runs. Standard library files are served from within and never asked of the loader.
///
/// No block or expression of the program nests deeper than
/// [`NESTING_MAX`](crate::limits::NESTING_MAX) plus
/// [`EXPRESSION_HEIGHT_MAX`](crate::limits::EXPRESSION_HEIGHT_MAX), so that it can be walked by
/// recursion.
pub fn check(
    root_name: &str,
    root_bytes: &[u8],
    loader: &mut dyn Loader,
) -> Result<Program, Problems> {
    let gathered = include::gather(root_name, root_bytes, loader);
    let sources = gathered.sources;
    if !gathered.problems.is_empty() {
        return Err(problems(gathered.problems, sources));
    }
    match crate::resolve::resolve(gathered.body, &sources) {
        Ok(functions) => Ok(Program { functions, sources }),
        Err(diagnostics) => Err(problems(diagnostics, sources)),
    }
}

fn problems(mut diagnostics: Vec<Diagnostic>, sources: Vec<Source>) -> Problems {
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.source, diagnostic.span.start));
    diagnostics.truncate(PROBLEMS_MAX);
    Problems {
        diagnostics,
        sources,
    }
}
