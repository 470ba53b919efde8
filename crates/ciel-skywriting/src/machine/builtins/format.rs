//! `format`: values in the places of a template.
//!
//! `{}` takes the next value, `{2}` the value of that number, `{name}` an entry of the first value;
//! after a colon come an alignment (`<`, `^`, `>`), `0` to fill numbers with zeros, a width in
//! characters, and `.n` for n digits after the point. Read next: `strings`.

use num_traits::ToPrimitive;

use crate::builtins::Builtin;
use crate::machine::Machine;
use crate::machine::failure::{Failure, Pause, fail};
use crate::machine::json::{brief, shown};
use crate::value::{KeyView, Value};

/// Larger widths and numbers of digits are refused.
const WIDTH_MAX: usize = 10_000;

/// What stands behind the colon of a place.
#[derive(Debug, Default, PartialEq, Eq)]
struct Layout {
    align: Option<char>,
    zeros: bool,
    width: usize,
    digits: Option<usize>,
}

/// A part of a template.
#[derive(Debug, PartialEq, Eq)]
enum Part<'t> {
    Text(&'t str),
    /// Name and layout of a value.
    Place(&'t str, Layout),
}

impl Machine {
    /// `format(template, x, …)`
    pub(super) fn format(&mut self, first: usize) -> Result<Value, Pause> {
        let template = self.stack[first];
        if !template.is_text() {
            return self.wrong_argument(Builtin::Format, "a string as first argument", template);
        }
        let mut rest = self.heap.text(template);
        let mut out = String::new();
        let mut next = 0;
        while let Some(part) = take_part(&mut rest)? {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Place(name, layout) => {
                    let value = self.placed(first + 1, name, &mut next)?;
                    out.push_str(&self.laid_out(value, &layout)?);
                }
            }
            self.heap.room(out.len())?;
        }
        Ok(self.heap.adopt_text(out))
    }

    /// The value of a place; `next` counts the places without a name.
    fn placed(&self, values: usize, name: &str, next: &mut usize) -> Result<Value, Pause> {
        let number = match name {
            "" => {
                *next += 1;
                Some(*next - 1)
            }
            _ => name.parse().ok(),
        };
        let given = self.stack.len() - values;
        match number {
            Some(number) if number < given => Ok(self.stack[values + number]),
            Some(number) => {
                let message = format!("the template has a place for value {number}");
                Err(Failure::new("ValueError", message)
                    .hint(format!("`format` got {given}, which are counted from 0"))
                    .into())
            }
            None => self.entry_for(values, name),
        }
    }

    fn entry_for(&self, values: usize, name: &str) -> Result<Value, Pause> {
        let Some(Value::Dictionary(index)) = self.stack.get(values) else {
            let message = format!("the template has a place for {name:?}");
            return Err(Failure::new("ValueError", message)
                .hint("names are looked up in the first value, which must be a dictionary")
                .into());
        };
        match self.heap.lookup(*index, KeyView::Text(name)) {
            Some(value) => Ok(self.heap.settled(value)),
            None => Err(self.missing_key(*index, KeyView::Text(name)).into()),
        }
    }

    fn laid_out(&self, value: Value, layout: &Layout) -> Result<String, Pause> {
        let is_number = matches!(value, Value::Int(_) | Value::Float(_) | Value::Big(_));
        let text = match layout.digits {
            None => shown(&self.heap, value)?,
            Some(digits) => self.rounded(value, digits)?,
        };
        Ok(padded(text, is_number, layout))
    }

    /// A number with so many digits after the point.
    fn rounded(&self, value: Value, digits: usize) -> Result<String, Pause> {
        match (value, self.heap.integer(value)) {
            (Value::Float(number), _) => Ok(format!("{number:.digits$}")),
            (_, Some(integer)) => {
                let whole = match integer.to_i64() {
                    Some(small) => small.to_string(),
                    None => shown(&self.heap, value)?,
                };
                Ok(match digits {
                    0 => whole,
                    _ => format!("{whole}.{}", "0".repeat(digits)),
                })
            }
            _ => {
                let shown = brief(&self.heap, value);
                let message = format!("only numbers have digits after the point, not {shown}");
                fail("TypeError", message)
            }
        }
    }
}

fn padded(text: String, is_number: bool, layout: &Layout) -> String {
    let missing = layout.width.saturating_sub(text.chars().count());
    if missing == 0 {
        return text;
    }
    if layout.zeros && is_number {
        let (sign, digits) = text.split_at(usize::from(text.starts_with('-')));
        return format!("{sign}{}{digits}", "0".repeat(missing));
    }
    let before = match layout.align {
        Some('<') => 0,
        Some('^') => missing / 2,
        None if !is_number => 0,
        _ => missing,
    };
    format!(
        "{}{text}{}",
        " ".repeat(before),
        " ".repeat(missing - before)
    )
}

/// Takes the next part off a template.
fn take_part<'t>(rest: &mut &'t str) -> Result<Option<Part<'t>>, Pause> {
    let text = *rest;
    let taken = |length: usize, rest: &mut &'t str| {
        *rest = &text[length..];
    };
    match text.find(['{', '}']) {
        None if text.is_empty() => Ok(None),
        None => {
            taken(text.len(), rest);
            Ok(Some(Part::Text(text)))
        }
        Some(0) if text.starts_with("{{") || text.starts_with("}}") => {
            taken(2, rest);
            Ok(Some(Part::Text(&text[..1])))
        }
        Some(0) if text.starts_with('{') => {
            let end = text.find('}').ok_or_else(|| unmatched('{'))?;
            taken(end + 1, rest);
            place(&text[1..end]).map(Some)
        }
        Some(0) => Err(unmatched('}')),
        Some(at) => {
            taken(at, rest);
            Ok(Some(Part::Text(&text[..at])))
        }
    }
}

fn unmatched(brace: char) -> Pause {
    Failure::new(
        "ValueError",
        format!("a `{brace}` without a partner in the template"),
    )
    .hint(format!("write {brace}{brace} for the character itself"))
    .into()
}

/// What stands between the braces of a place.
fn place(inside: &str) -> Result<Part<'_>, Pause> {
    let (name, layout) = inside.split_once(':').unwrap_or((inside, ""));
    match read_layout(layout) {
        Some(layout) => Ok(Part::Place(name, layout)),
        None => Err(
            Failure::new("ValueError", format!("a layout cannot be {layout:?}"))
                .hint("for instance {:>8}, {:05}, {:.2} or {name:<20}")
                .into(),
        ),
    }
}

fn read_layout(text: &str) -> Option<Layout> {
    let mut layout = Layout::default();
    let mut rest = text;
    if let Some(align) = rest.chars().next().filter(|first| "<^>".contains(*first)) {
        layout.align = Some(align);
        rest = &rest[1..];
    }
    if let Some(after) = rest.strip_prefix('0') {
        layout.zeros = true;
        rest = after;
    }
    let (width, digits) = match rest.split_once('.') {
        Some((width, digits)) => (width, Some(digits)),
        None => (rest, None),
    };
    let number = |text: &str| text.parse().ok().filter(|number| *number <= WIDTH_MAX);
    if !width.is_empty() {
        layout.width = number(width)?;
    }
    if let Some(digits) = digits {
        layout.digits = Some(number(digits)?);
    }
    Some(layout)
}
