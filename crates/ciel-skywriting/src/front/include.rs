//! Puts included files in their place.
//!
//! Each file is read once; a second `include` of it is nothing, which also ends cycles. It knows
//! no names. Read next: `source`, `parser`.

use super::known::Known;
use super::{Loader, source};
use crate::diagnostic::Diagnostic;
use crate::hir::{Source, Span};
use crate::limits::SOURCES_MAX;
use crate::parser::parse;
use crate::stdlib::{LIBRARIES, library};
use crate::syntax::{Expr, Stmt, StmtKind};

/// What comes before the path in the URL of a file.
const FILE_URL: &str = "file://";

/// A program with everything it includes.
pub struct Gathered {
    /// No `include` left.
    pub body: Vec<Stmt>,
    /// The root first, the others in the order of their reading.
    pub sources: Vec<Source>,
    /// What is wrong with their text.
    pub problems: Vec<Diagnostic>,
}

/// Reads the root file and what it includes.
pub fn gather(root_name: &str, root_bytes: &[u8], loader: &mut dyn Loader) -> Gathered {
    let mut includer = Includer {
        loader,
        sources: Vec::new(),
        problems: Vec::new(),
        known: Known::default(),
    };
    let body = includer.file(root_name.to_owned(), root_bytes, 0);
    let empty = includer.sources[0]
        .text
        .trim_start_matches('\u{feff}')
        .trim()
        .is_empty();
    if empty && includer.problems.is_empty() {
        includer.sources[0].text.clear();
        includer.problems.push(source::nothing_in_it(root_name, 0));
    }
    Gathered {
        body,
        sources: includer.sources,
        problems: includer.problems,
    }
}

struct Includer<'a> {
    loader: &'a mut dyn Loader,
    sources: Vec<Source>,
    problems: Vec<Diagnostic>,
    /// Variables whose strings are known at this point of the program.
    known: Known,
}

impl Includer<'_> {
    /// Reads a file, `nesting` levels deep.
    fn file(&mut self, name: String, bytes: &[u8], nesting: u32) -> Vec<Stmt> {
        let index = self.sources.len() as u16;
        let (text, unreadable) = source::decode(&name, bytes, index);
        self.sources.push(Source { name, text });
        if let Some(problem) = unreadable {
            self.problems.push(problem);
            return Vec::new();
        }
        let (body, problems) = parse(&self.sources[usize::from(index)].text, index, nesting);
        self.problems.extend(problems);
        self.expand(body, nesting)
    }

    /// The statements with files in the place of `include`s; functions have none.
    fn expand(&mut self, body: Vec<Stmt>, nesting: u32) -> Vec<Stmt> {
        let mut expanded = Vec::with_capacity(body.len());
        for Stmt { kind, span } in body {
            self.known.note(&kind);
            match kind {
                StmtKind::Include(what) => expanded.extend(self.include(&what, nesting + 1)),
                kind => {
                    let kind = self.expand_blocks(kind, nesting + 1);
                    self.known.forget_blocks(&kind);
                    expanded.push(Stmt { kind, span });
                }
            }
        }
        expanded
    }

    fn expand_blocks(&mut self, kind: StmtKind, nesting: u32) -> StmtKind {
        match kind {
            StmtKind::If {
                mut branches,
                otherwise,
            } => {
                for branch in &mut branches {
                    branch.body = self.expand(std::mem::take(&mut branch.body), nesting);
                }
                StmtKind::If {
                    branches,
                    otherwise: self.expand(otherwise, nesting),
                }
            }
            StmtKind::While { condition, body } => StmtKind::While {
                condition,
                body: self.expand(body, nesting),
            },
            StmtKind::DoWhile { condition, body } => StmtKind::DoWhile {
                condition,
                body: self.expand(body, nesting),
            },
            StmtKind::For {
                variable,
                iterable,
                body,
            } => StmtKind::For {
                variable,
                iterable,
                body: self.expand(body, nesting),
            },
            StmtKind::Try {
                body,
                variable,
                handler,
            } => {
                let body = self.expand(body, nesting);
                StmtKind::Try {
                    body,
                    variable,
                    handler: self.expand(handler, nesting),
                }
            }
            plain => plain,
        }
    }

    fn include(&mut self, what: &Expr, nesting: u32) -> Vec<Stmt> {
        let Some(name) = self.known.text_of(what) else {
            self.problems.push(
                Diagnostic::new(
                    "include",
                    "`include` takes a string that is known before the program runs",
                    what.span,
                )
                .with_label("not known before the program runs")
                .with_hint("write the name of the file: `include \"tools.sw\";`"),
            );
            return Vec::new();
        };
        match self.find(&name, what.span) {
            Ok((shown, _)) if self.sources.iter().any(|source| source.name == shown) => Vec::new(),
            Ok((shown, bytes)) => self.file(shown, &bytes, nesting),
            Err(problem) => {
                self.problems.push(problem);
                Vec::new()
            }
        }
    }

    /// The shown name and the bytes of a file.
    fn find(&mut self, name: &str, span: Span) -> Result<(String, Vec<u8>), Diagnostic> {
        if let Some(library) = library(name) {
            return Ok((library.shown.to_owned(), library.text.as_bytes().to_vec()));
        }
        if let Some(problem) = not_yet(name, span) {
            return Err(problem);
        }
        if self.sources.len() >= SOURCES_MAX {
            let message = format!("the program includes more than {SOURCES_MAX} files");
            return Err(Diagnostic::new("include", message, span)
                .with_hint("join some of them into one file"));
        }
        let from = &self.sources[usize::from(span.source)].name;
        self.loader
            .load(name.strip_prefix(FILE_URL).unwrap_or(name), from)
            .map_err(|why| cannot_load(name, &why, span))
    }
}

/// Includes of old programs that are not supported.
fn not_yet(name: &str, span: Span) -> Option<Diagnostic> {
    if name.contains("://") && !name.starts_with("file:///") {
        let problem = Diagnostic::new("include", "a URL cannot be included", span);
        return Some(problem.with_hint("download the file and include it by its path"));
    }
    if name.strip_suffix(".sw").unwrap_or(name) == "java" {
        let problem = Diagnostic::new("include", "Ciel has no Java executor", span);
        return Some(problem.with_hint(
            "run the program as a command: \
             include \"environ\"; environ([input], [\"java\", \"-cp\", \"job.jar\", \"Main\"], 1)",
        ));
    }
    None
}

fn cannot_load(name: &str, why: &str, span: Span) -> Diagnostic {
    let names: Vec<String> = LIBRARIES
        .iter()
        .map(|library| format!("{:?}", library.name))
        .collect();
    Diagnostic::new("include", format!("cannot include {name:?}: {why}"), span).with_hint(format!(
        "the standard library contains {}",
        names.join(", ")
    ))
}
