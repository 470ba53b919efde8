//! Failures on their way out: where they happened, what `catch` binds, how a script fails.
//!
//! Read next: `failure`.

use super::failure::{Failure, Pause};
use super::json::{self, Style};
use super::{Frame, Machine, Step};
use crate::code::Location;
use crate::diagnostic::Diagnostic;
use crate::hir::Span;
use crate::host::{Host, Thrown};
use crate::value::{Dictionary, Index, KeyView, Value};

/// Lines of a trace that are kept at its two ends.
const INNERMOST_LINES: usize = 20;
const OUTERMOST_LINES: usize = 10;
/// A message longer than this is cut.
const MESSAGE_CHARACTERS_MAX: usize = 4096;
/// A thrown value whose JSON is longer does not leave the task.
const VALUE_BYTES_MAX: usize = 64 * 1024;

impl Machine {
    /// Goes to the innermost handler, or ends the script.
    pub(super) fn unwind(&mut self, mut failure: Failure, host: &mut dyn Host) -> Option<Step> {
        self.strand_mut().is_settling = false;
        let is_caught = self.handlers.len() > self.strand().handlers as usize;
        if !is_caught && self.is_in_place() && !self.strand().is_sealed {
            return Some(Step::NeedsHost);
        }
        if failure.rethrown.is_none() {
            let own = self.own_trace();
            failure.thrown.trace = bounded(std::mem::take(&mut failure.thrown.trace), own);
        }
        let Some(handler) = self.handlers.pop().filter(|_| is_caught) else {
            let place = Box::new(self.place(&failure.thrown));
            self.promote_oldest(host, usize::MAX);
            self.frames.clear();
            return Some(Step::Failed {
                thrown: Box::new(failure.thrown),
                place,
            });
        };
        let caught = match failure.rethrown {
            Some(value) => value,
            None => self.caught(&failure),
        };
        self.frames.truncate(handler.frame as usize + 1);
        self.stack.truncate(handler.height as usize);
        self.stack.push(caught);
        let frame = self
            .frames
            .last_mut()
            .expect("a handler belongs to a frame");
        frame.pc = handler.target;
        None
    }

    fn span(&self, frame: &Frame) -> Span {
        self.span_at(frame.function, frame.pc)
    }

    pub(super) fn span_at(&self, function: u32, pc: u32) -> Span {
        let spans = &self.code.functions[function as usize].spans;
        spans.get(pc as usize).copied().unwrap_or_default()
    }

    /// The place of the instruction that runs, or is next.
    pub fn location(&self) -> Location {
        self.code.locate(
            self.frames
                .last()
                .map(|frame| self.span(frame))
                .unwrap_or_default(),
        )
    }

    fn place(&self, thrown: &Thrown) -> Diagnostic {
        Diagnostic {
            code: kebab(&thrown.kind),
            message: thrown.message.clone(),
            span: self
                .frames
                .last()
                .map(|frame| self.span(frame))
                .unwrap_or_default(),
            label: thrown.kind.clone(),
            hint: thrown.hint.clone(),
            also: None,
        }
    }

    /// One line per activation, innermost first; `None` means lines that were left out.
    fn own_trace(&self) -> Lines {
        let frames = &self.frames[self.strand().frame as usize..];
        let depth = frames.len();
        let line = |frame: &Frame| {
            let name = match frame.function {
                0 => "the script".into(),
                number => self.code.functions[number as usize].shown_name(),
            };
            format!("{name} at {}", self.code.locate(self.span(frame)))
        };
        if depth <= INNERMOST_LINES + OUTERMOST_LINES {
            let inner = frames.iter().rev().map(line).collect();
            return Lines {
                inner,
                left_out: 0,
                outer: Vec::new(),
            };
        }
        Lines {
            inner: frames[depth - INNERMOST_LINES..]
                .iter()
                .rev()
                .map(line)
                .collect(),
            left_out: depth - INNERMOST_LINES - OUTERMOST_LINES,
            outer: frames[..OUTERMOST_LINES].iter().rev().map(line).collect(),
        }
    }

    /// The dictionary that `catch` binds.
    fn caught(&mut self, failure: &Failure) -> Value {
        let thrown = &failure.thrown;
        let mut dictionary = Dictionary::default();
        let mut put = |key: &str, value: Value| dictionary.insert(KeyView::Text(key), value);
        put("kind", self.heap.adopt_text(thrown.kind.clone()));
        put("message", self.heap.adopt_text(thrown.message.clone()));
        put("task", self.heap.adopt_text(thrown.task.clone()));
        let lines = thrown
            .trace
            .iter()
            .map(|line| self.heap.adopt_text(line.clone()))
            .collect();
        put("trace", self.heap.new_list(lines));
        if let Some(hint) = &thrown.hint {
            put("hint", self.heap.adopt_text(hint.clone()));
        }
        if let Some(value) = failure.value {
            put("value", value);
        } else if let Some(value) = &thrown.value {
            let value = json::read(&mut self.heap, value.to_string().as_bytes(), None);
            put("value", value.unwrap_or(Value::Null));
        }
        self.heap.new_dictionary(dictionary)
    }

    /// The failure of `throw operand`.
    pub(super) fn thrown_value(&mut self) -> Result<Failure, Pause> {
        self.force_deeply(&[self.top()], false)?;
        self.force_top(1, 0)?;
        let value = self.top();
        if let Value::Dictionary(index) = value
            && let (Some(kind), Some(message)) =
                (self.field(index, "kind"), self.field(index, "message"))
        {
            return Ok(self.rethrown(index, kind, message));
        }
        let text = json::shown(&self.heap, value)?;
        let mut failure = Failure::new("Thrown", cut(&text));
        let spelled = json::tree(&self.heap, value, Style::Shown)?;
        if text.len() <= VALUE_BYTES_MAX {
            failure.thrown.value = Some(spelled);
        }
        failure.value = Some(value);
        Ok(failure)
    }

    fn field(&self, dictionary: Index, name: &str) -> Option<String> {
        let value = self
            .heap
            .settled(self.heap.lookup(dictionary, KeyView::Text(name))?);
        value.is_text().then(|| cut(self.heap.text(value)))
    }

    fn rethrown(&self, index: Index, kind: String, message: String) -> Failure {
        let mut failure = Failure::new(&kind, message);
        failure.thrown.task = self.field(index, "task").unwrap_or_default();
        failure.thrown.hint = self.field(index, "hint");
        if let Some(value) = self.heap.lookup(index, KeyView::Text("value")) {
            let spelled = json::tree(&self.heap, value, Style::Shown).ok();
            failure.thrown.value =
                spelled.filter(|value| value.to_string().len() <= VALUE_BYTES_MAX);
        }
        let trace = self
            .heap
            .lookup(index, KeyView::Text("trace"))
            .unwrap_or(Value::Null);
        if let Value::List(lines) = self.heap.settled(trace) {
            let lines = self
                .heap
                .list(lines)
                .iter()
                .take(INNERMOST_LINES + OUTERMOST_LINES + 1);
            failure.thrown.trace = lines
                .map(|line| cut(self.heap.text(self.heap.settled(*line))))
                .collect();
        }
        failure.rethrown = Some(Value::Dictionary(index));
        failure
    }
}

struct Lines {
    inner: Vec<String>,
    left_out: usize,
    outer: Vec<String>,
}

/// `first` and then the machine's own lines, with the middle left out when they are many.
fn bounded(first: Vec<String>, own: Lines) -> Vec<String> {
    let mut lines: Vec<(usize, String)> = first
        .into_iter()
        .map(|line| (left_out(&line).unwrap_or(0), line))
        .collect();
    lines.extend(own.inner.into_iter().map(|line| (0, line)));
    if own.left_out > 0 {
        lines.push((own.left_out, String::new()));
    }
    lines.extend(own.outer.into_iter().map(|line| (0, line)));
    let excess = lines
        .len()
        .saturating_sub(INNERMOST_LINES + OUTERMOST_LINES + 1);
    if excess > 0 || own.left_out > 0 {
        let end = lines.len() - OUTERMOST_LINES;
        let middle = lines.drain(INNERMOST_LINES..end);
        let count: usize = middle.map(|(count, _)| count.max(1)).sum();
        lines.insert(
            INNERMOST_LINES,
            (count, format!("… {} more", grouped(count))),
        );
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

/// How many lines a line of [`bounded`] stands for.
fn left_out(line: &str) -> Option<usize> {
    line.strip_prefix("… ")?
        .strip_suffix(" more")?
        .replace(',', "")
        .parse()
        .ok()
}

/// Digits in groups of three.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `TypeError` becomes `type-error`.
fn kebab(kind: &str) -> String {
    let mut code = String::new();
    for (at, character) in kind.char_indices() {
        if character.is_ascii_uppercase() && at > 0 {
            code.push('-');
        }
        code.extend(character.to_lowercase());
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_trace_keeps_its_ends_and_counts_the_middle_once() {
        let line = |number: usize| format!("f at a.sw:{number}:1");
        let own = |inner: Vec<String>| Lines {
            inner,
            left_out: 0,
            outer: Vec::new(),
        };
        let once = bounded(Vec::new(), own((0..50).map(line).collect()));
        assert_eq!(once.len(), 31);
        assert_eq!(once[20], "… 20 more");
        let again = bounded(once, own((50..1060).map(line).collect()));
        assert_eq!(again.len(), 31);
        assert_eq!(again[20], "… 1,030 more");
        assert_eq!(again[30], line(1059));
    }

    #[test]
    fn a_kind_becomes_a_code() {
        assert_eq!(kebab("DivisionByZero"), "division-by-zero");
    }
}
