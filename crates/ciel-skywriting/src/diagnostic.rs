//! Messages about a script: what is wrong, where, and what to do about it.
//!
//! It knows neither the grammar nor the machine. Read next: `front` makes them before anything
//! runs, `machine` while it runs.

use std::ops::Range;

use crate::hir::{Source, Span};

/// A line of a script that is longer than this, in characters, is not shown with its message.
pub const SHOWN_LINE_CHARACTERS_MAX: usize = 240;

/// One message about one place of a script.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Diagnostic {
    /// Stable, for programs: `syntax`, `unknown-name`, `arguments`, ….
    pub code: String,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// The place.
    pub span: Span,
    /// The text beside the caret; may be empty.
    pub label: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Another place that belongs to it, such as the first of two declarations.
    pub also: Option<Box<Label>>,
}

/// A second place of a [`Diagnostic`].
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The text beside it.
    pub text: String,
}

impl Diagnostic {
    /// A message about a place, with nothing beside the caret and no hint.
    pub fn new(code: &str, message: impl Into<String>, span: Span) -> Self {
        Diagnostic {
            code: code.to_owned(),
            message: message.into(),
            span,
            label: String::new(),
            hint: None,
            also: None,
        }
    }

    /// The same with a text beside the caret.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// The same with advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with another place.
    #[must_use]
    pub fn with_also(mut self, span: Span, text: impl Into<String>) -> Self {
        let text = text.into();
        self.also = Some(Box::new(Label { span, text }));
        self
    }
}

/// Line and column of a byte offset: both from 1, the column in characters. An offset past the end
/// is the end, one inside a character is the start of it.
pub fn line_column(source: &Source, offset: u32) -> (u32, u32) {
    let before = prefix(&source.text, offset);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[line_start..].chars().count() + 1;
    (line as u32, column as u32)
}

/// `file:line:column: message`, on one line.
pub fn one_line(diagnostic: &Diagnostic, sources: &[Source]) -> String {
    let message = diagnostic.message.replace('\n', " ");
    match place(diagnostic.span, sources) {
        Some(place) => format!("{place}: {message}"),
        None => message,
    }
}

/// The messages as text, a blank line between two: `error:` and the message, the file, line and
/// column, the line itself with a caret and the label, and the hint. With `colour` the text carries
/// terminal colours. Ends with a newline unless there is nothing to show.
pub fn render(diagnostics: &[Diagnostic], sources: &[Source], colour: bool) -> String {
    let mut shown = ShownSources::new(sources);
    let texts: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| render_one(diagnostic, &mut shown, colour))
        .collect();
    texts.join("\n")
}

fn render_one(diagnostic: &Diagnostic, shown: &mut ShownSources<'_>, colour: bool) -> String {
    let error = painted("error", "\u{1b}[31m", colour);
    let body = match render_excerpt(diagnostic, shown, colour) {
        Some(excerpt) => excerpt,
        None => render_place(diagnostic, shown.sources),
    };
    let mut text = format!("{error}: {}\n{body}", diagnostic.message);
    if let Some(hint) = &diagnostic.hint {
        let word = painted("hint", "\u{1b}[36m", colour);
        text.push_str(&format!("{word}: {hint}\n"));
    }
    text
}

/// The place and label without the line, for places that cannot be shown.
fn render_place(diagnostic: &Diagnostic, sources: &[Source]) -> String {
    let place = place(diagnostic.span, sources);
    let mut text = place.map_or_else(String::new, |place| format!("  in {place}\n"));
    if !diagnostic.label.is_empty() {
        text.push_str(&format!("  {}\n", diagnostic.label));
    }
    text
}

/// The line with carets and labels, without the message.
fn render_excerpt(
    diagnostic: &Diagnostic,
    shown: &mut ShownSources<'_>,
    colour: bool,
) -> Option<String> {
    let span = diagnostic.span;
    let primary = shown.range(span)?;
    let mut labels = vec![(
        span,
        primary.clone(),
        &diagnostic.label,
        ariadne::Color::Red,
    )];
    if let Some(other) = &diagnostic.also {
        let range = shown.range(other.span)?;
        labels.push((other.span, range, &other.text, ariadne::Color::Blue));
    }
    labels.sort_by_key(|(place, ..)| (place.source != span.source, place.start));
    let config = ariadne::Config::default()
        .with_color(colour)
        .with_cross_gap(false);
    let report = ariadne::Report::build(ariadne::ReportKind::Error, (span.source, primary))
        .with_config(config)
        .with_labels(
            labels
                .into_iter()
                .map(|(place, range, text, colour)| label(place.source, range, text, colour)),
        )
        .finish();
    let mut bytes = Vec::new();
    report.write(&mut *shown, &mut bytes).ok()?;
    let drawn = String::from_utf8(bytes).ok()?;
    let lines = drawn
        .lines()
        .skip(1)
        .map(|line| format!("{}\n", line.trim_end()));
    Some(lines.collect())
}

fn label(
    source: u16,
    range: Range<usize>,
    text: &str,
    colour: ariadne::Color,
) -> ariadne::Label<(u16, Range<usize>)> {
    let text = if text.is_empty() { "here" } else { text };
    ariadne::Label::new((source, range))
        .with_color(colour)
        .with_message(text)
}

fn painted(word: &str, colour_code: &str, colour: bool) -> String {
    if colour {
        format!("{colour_code}{word}\u{1b}[0m")
    } else {
        word.to_owned()
    }
}

/// `file:line:column`, or only the file where there is no text.
fn place(span: Span, sources: &[Source]) -> Option<String> {
    let source = sources.get(usize::from(span.source))?;
    if source.text.is_empty() {
        return Some(source.name.clone());
    }
    let (line, column) = line_column(source, span.start);
    Some(format!("{}:{line}:{column}", source.name))
}

/// The text before a byte offset.
fn prefix(text: &str, offset: u32) -> &str {
    let mut end = (offset as usize).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The sources as the excerpts show them, each prepared at its first use.
struct ShownSources<'a> {
    sources: &'a [Source],
    prepared: Vec<Option<ariadne::Source<String>>>,
}

impl<'a> ShownSources<'a> {
    fn new(sources: &'a [Source]) -> Self {
        ShownSources {
            sources,
            prepared: sources.iter().map(|_| None).collect(),
        }
    }

    /// The part of a span that lies on its first line, in characters of the source. `None` when
    /// there is no text or the line is too long to be shown.
    fn range(&self, span: Span) -> Option<Range<usize>> {
        let text = &self.sources.get(usize::from(span.source))?.text;
        let before = prefix(text, span.start);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[line_start..].split('\n').next().unwrap_or("");
        if text.is_empty() || line.chars().count() > SHOWN_LINE_CHARACTERS_MAX {
            return None;
        }
        let start = before.chars().count();
        let until = prefix(text, span.end)
            .len()
            .clamp(before.len(), line_start + line.len());
        Some(start..start + text[before.len()..until].chars().count())
    }
}

impl ariadne::Cache<u16> for ShownSources<'_> {
    type Storage = String;

    fn fetch(&mut self, id: &u16) -> Result<&ariadne::Source<String>, impl std::fmt::Debug> {
        let index = usize::from(*id);
        let (Some(source), Some(slot)) = (self.sources.get(index), self.prepared.get_mut(index))
        else {
            return Err("no such source");
        };
        Ok(slot.get_or_insert_with(|| {
            ariadne::Source::from(source.text.chars().map(shown_character).collect::<String>())
        }))
    }

    fn display<'b>(&self, id: &'b u16) -> Option<impl std::fmt::Display + 'b> {
        self.sources
            .get(usize::from(*id))
            .map(|source| source.name.clone())
    }
}

/// Characters that would move the cursor, hide or turn the text are replaced, one for one.
fn shown_character(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        '\r' | '\u{2028}' | '\u{2029}' => ' ',
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => char::REPLACEMENT_CHARACTER,
        '\u{2066}'..='\u{2069}' | '\u{feff}' => char::REPLACEMENT_CHARACTER,
        _ if character.is_control() => char::REPLACEMENT_CHARACTER,
        _ => character,
    }
}
