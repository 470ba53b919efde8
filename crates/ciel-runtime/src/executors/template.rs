//! The command of `shell` with its placeholders: from a template to a script and its variables.
//!
//! It follows the quotes and here-documents of the shell as far as it must to know whether the
//! shell would see a variable in a place, and whether quotes around it would be part of the text.
//! It does not know what becomes of the script. Read next: `words`.

use std::collections::BTreeSet;
use std::ffi::OsString;

use ciel_model::Refused;
use serde_json::{Map, Value};

use super::command::Workspace;
use super::words;
use crate::references::reference;

/// How the text around a placeholder is quoted.
#[derive(Clone, Copy, PartialEq)]
enum Quotes {
    None,
    Single,
    Double,
    /// Arithmetic, with that many parentheses open in it: quotes would be part of its text.
    Arithmetic(usize),
    /// A here-document.
    Document,
    /// A here-document in which the shell replaces nothing.
    PlainDocument,
}

/// A brace that is open: a doubled one is closed by a doubled one.
#[derive(Clone, Copy, PartialEq)]
enum Brace {
    Single,
    Doubled,
}

/// A here-document that begins after the line.
struct Document {
    /// The line that ends it.
    end: String,
    /// Whether tabs may stand before that.
    may_be_indented: bool,
    quotes: Quotes,
}

/// A command on its way from template to script.
pub(super) struct Template<'a> {
    inputs: Map<String, Value>,
    names: &'a [String],
    desk: &'a mut dyn Workspace,
    /// The variables that the script needs, with their values.
    pub(super) variables: Vec<(String, OsString)>,
    quotes: Quotes,
    documents: Vec<Document>,
    /// The braces around what comes next, the outermost first, but for those of placeholders.
    braces: Vec<Brace>,
    /// The inputs that stand in the command so far.
    used: BTreeSet<String>,
}

impl<'a> Template<'a> {
    pub(super) fn new(
        arguments: &Value,
        names: &'a [String],
        desk: &'a mut dyn Workspace,
    ) -> Result<Template<'a>, Refused> {
        let inputs = match arguments.get("inputs") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(inputs)) => inputs.clone(),
            Some(other) => return Err(words::wrong("inputs", "a dictionary by name", other)),
        };
        let quotes = Quotes::None;
        Ok(Template {
            inputs,
            names,
            desk,
            variables: Vec::new(),
            quotes,
            documents: Vec::new(),
            braces: Vec::new(),
            used: BTreeSet::new(),
        })
    }

    /// The script that a command becomes.
    pub(super) fn expand(&mut self, command: &str) -> Result<String, Refused> {
        let mut script = String::with_capacity(command.len() + 64);
        let mut rest = command;
        while let Some(c) = rest.chars().next() {
            let line_start = script.rfind('\n').map_or(0, |at| at + 1);
            let (taken, made) = match (c, self.quotes) {
                ('<', Quotes::None) => self.redirection(&script[line_start..], rest),
                ('\n', Quotes::None) => self.documents_after(rest)?,
                _ => self.piece(c, rest)?,
            };
            script.push_str(&made);
            rest = &rest[taken..];
        }
        Ok(script)
    }

    /// Refuses an input that does not stand in the command. A reference need not: the command
    /// waits for it all the same.
    pub(super) fn expect_used(&self) -> Result<(), Refused> {
        let unused = self
            .inputs
            .iter()
            .filter(|(name, _)| !self.used.contains(*name));
        for (name, value) in unused {
            if !is_name(name) {
                let message = format!("no placeholder can name its input {name:?}");
                let hint = "names of inputs are ASCII letters, digits, `_` and `.`";
                return Err(Refused::new(message).hint(hint));
            }
            if !elements(value)
                .iter()
                .any(|element| reference(element).is_some())
            {
                return Err(
                    Refused::new(format!("its command does not use the input {name:?}")).hint(
                        format!("write {{in.{name}}} in the command, or leave the input out"),
                    ),
                );
            }
        }
        Ok(())
    }

    /// What comes next, and what it becomes.
    fn piece(&mut self, c: char, rest: &str) -> Result<(usize, String), Refused> {
        let is_plain = matches!(self.quotes, Quotes::Single | Quotes::PlainDocument);
        Ok(match c {
            '$' if self.quotes == Quotes::None && begins_arithmetic(rest) => {
                self.quotes = Quotes::Arithmetic(0);
                (3, "$((".to_string())
            }
            '$' if rest[1..].starts_with("{{") => (3, self.opened("${", Brace::Doubled)),
            '$' if rest[1..].starts_with('{') => (2, self.opened("${", Brace::Single)),
            '{' if rest[1..].starts_with('{') => (2, self.opened("{", Brace::Doubled)),
            '{' => match self.placeholder(rest)? {
                Some(found) => found,
                None => (1, self.opened("{", Brace::Single)),
            },
            '}' => (self.closed(rest), "}".to_string()),
            '\\' if !is_plain => {
                let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                (length, rest[..length].to_string())
            }
            _ => (c.len_utf8(), self.plain(c)),
        })
    }

    /// A brace of the shell's own, as it stands in the script.
    fn opened(&mut self, script: &str, brace: Brace) -> String {
        self.braces.push(brace);
        script.to_string()
    }

    /// How many bytes of `rest`, which begins with `}`, are the one brace that is closed.
    fn closed(&mut self, rest: &str) -> usize {
        match self.braces.pop() {
            Some(Brace::Doubled) if rest[1..].starts_with('}') => 2,
            _ => 1,
        }
    }

    /// A `<` outside quotes; `<<` announces a here-document, unless it stands in arithmetic.
    fn redirection(&mut self, line: &str, rest: &str) -> (usize, String) {
        let is_arithmetic = line.matches("((").count() > line.matches("))").count();
        let announced = match is_arithmetic || rest.starts_with("<<<") {
            true => None,
            false => rest.strip_prefix("<<").and_then(announced),
        };
        let taken = match announced {
            Some((document, after)) => {
                self.documents.push(document);
                rest.len() - after.len()
            }
            None => rest.len() - rest.trim_start_matches('<').len(),
        };
        (taken, rest[..taken].to_string())
    }

    /// The end of a line, with the here-documents that it announced. One that never ends is none.
    fn documents_after(&mut self, rest: &str) -> Result<(usize, String), Refused> {
        let (mut taken, mut made) = (1, "\n".to_string());
        for document in std::mem::take(&mut self.documents) {
            let Some((body, length)) = document.found_in(&rest[taken..]) else {
                break;
            };
            self.quotes = document.quotes;
            let mut inside = &rest[taken..taken + body];
            while let Some(c) = inside.chars().next() {
                let (length, piece) = self.piece(c, inside)?;
                made.push_str(&piece);
                inside = &inside[length..];
            }
            self.quotes = Quotes::None;
            made.push_str(&rest[taken + body..taken + length]);
            taken += length;
        }
        Ok((taken, made))
    }

    /// An ordinary character; quotes are kept count of.
    fn plain(&mut self, c: char) -> String {
        self.quotes = match (self.quotes, c) {
            (Quotes::None, '\'') => Quotes::Single,
            (Quotes::None, '"') => Quotes::Double,
            (Quotes::Single, '\'') | (Quotes::Double, '"') => Quotes::None,
            (Quotes::Arithmetic(open), '(') => Quotes::Arithmetic(open + 1),
            (Quotes::Arithmetic(0), ')') => Quotes::None,
            (Quotes::Arithmetic(open), ')') => Quotes::Arithmetic(open - 1),
            (quotes, _) => quotes,
        };
        c.to_string()
    }

    /// `{in.NAME}`, `{out.NAME}` or `{NAME}` at the start of `rest`; none for a brace of the
    /// shell's own.
    fn placeholder(&mut self, rest: &str) -> Result<Option<(usize, String)>, Refused> {
        let Some(end) = rest.find('}').filter(|end| *end > 1) else {
            return Ok(None);
        };
        let written = &rest[1..end];
        let (name, is_folder) = match written.strip_suffix('/') {
            Some(name) => (name, true),
            None => (written, false),
        };
        if !is_name(name) {
            return Ok(None);
        }
        match self.quotes {
            Quotes::None | Quotes::Double | Quotes::Arithmetic(_) | Quotes::Document => {}
            Quotes::Single => {
                return Err(Refused::new(format!("{{{name}}} is inside single quotes"))
                    .hint("remove the quotes: Ciel quotes it"));
            }
            Quotes::PlainDocument => {
                return Err(Refused::new(format!(
                    "{{{name}}} is inside a here-document with a quoted delimiter"
                ))
                .hint("remove the quotes: write <<EOF instead of <<'EOF'"));
            }
        }
        let values = self.values_of(name, is_folder)?;
        let made: Vec<String> = values
            .into_iter()
            .map(|value| self.variable(value))
            .collect();
        Ok(Some((end + 1, made.join(" "))))
    }

    /// A new variable with that value, as it stands in the script.
    fn variable(&mut self, value: OsString) -> String {
        let variable = format!("ciel_{}", self.variables.len());
        let made = match self.quotes {
            Quotes::None => format!("\"${{{variable}}}\""),
            _ => format!("${{{variable}}}"),
        };
        self.variables.push((variable, value));
        made
    }

    /// What a placeholder stands for: one value, or those of a list.
    fn values_of(&mut self, name: &str, is_folder: bool) -> Result<Vec<OsString>, Refused> {
        let bare = name.strip_prefix("in.").unwrap_or(name);
        let (inputs, outputs) = match name.split_once('.') {
            Some(("in", _)) => (self.inputs.get(bare).cloned(), None),
            Some(("out", name)) => (None, self.output(name)),
            _ => (self.inputs.get(name).cloned(), self.output(name)),
        };
        if inputs.is_some() {
            self.used.insert(bare.to_string());
        }
        match (inputs, outputs) {
            (Some(Value::Array(list)), None) => {
                let each = list.iter();
                each.map(|value| self.input(name, value, is_folder))
                    .collect()
            }
            (Some(value), None) => Ok(vec![self.input(name, &value, is_folder)?]),
            (None, Some((index, name))) if is_folder => {
                Ok(vec![self.desk.output_folder(index, name)?.into()])
            }
            (None, Some((index, name))) => Ok(vec![self.desk.output(index, Some(name)).into()]),
            (Some(_), Some(_)) => Err(Refused::new(format!(
                "{{{name}}} names both an input and an output"
            ))
            .hint(format!("write {{in.{name}}} or {{out.{name}}}"))),
            (None, None) => Err(self.unknown(name)),
        }
    }

    /// An input, or an element of one: a path for a reference, else its text.
    fn input(&mut self, name: &str, value: &Value, is_folder: bool) -> Result<OsString, Refused> {
        let value = match words::streamed(value) {
            Some(_) if is_folder => {
                let message = format!("{{{name}/}} is a folder, which cannot be a stream");
                return Err(Refused::new(message).hint("pass the archive itself"));
            }
            streamed => streamed.unwrap_or(value),
        };
        match (reference(value), value) {
            (Some(index), _) if is_folder => Ok(self.desk.input_folder(index)?.into()),
            (None, _) if is_folder => Err(Refused::new(format!(
                "{{{name}/}} is the folder of a reference, not of {value}"
            ))),
            (Some(index), _) => Ok(self.desk.input(index)?.into()),
            (None, Value::Array(_) | Value::Object(_) | Value::Null) => Err(words::wrong(
                name,
                "references, text, numbers or a list of them",
                value,
            )),
            (None, value) => words::spelt(value, self.desk).map(OsString::from),
        }
    }

    /// The output of a name: its index, and the name again.
    fn output(&self, name: &str) -> Option<(u32, &'a str)> {
        let index = self.names.iter().position(|known| known == name)?;
        Some((index as u32, &self.names[index]))
    }

    fn unknown(&self, name: &str) -> Refused {
        let inputs = self.inputs.keys().map(|name| format!("{{in.{name}}}"));
        let outputs = self.names.iter().map(|name| format!("{{out.{name}}}"));
        let known: Vec<String> = inputs.chain(outputs).collect();
        Refused::new(format!("its command uses {{{name}}}, which is not defined")).hint(format!(
            "available: {}; for a brace of the shell itself write {{{{ or }}}}",
            if known.is_empty() {
                "none".to_string()
            } else {
                known.join(", ")
            }
        ))
    }
}

/// The elements of a list, or the one value.
fn elements(value: &Value) -> &[Value] {
    value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice)
}

/// Whether `$((…))` stands at the start of `rest`, and in it neither quotes nor commands, whose
/// placeholders need quotes of their own. `$((a) | b)` is a command.
fn begins_arithmetic(rest: &str) -> bool {
    let Some(inside) = rest.strip_prefix("$((") else {
        return false;
    };
    let (mut open, mut before) = (0, ' ');
    for (at, c) in inside.char_indices() {
        match c {
            '\'' | '"' | '`' | '\\' => return false,
            '(' if before == '$' => return false,
            '(' => open += 1,
            ')' if open == 0 => return inside[at + 1..].starts_with(')'),
            ')' => open -= 1,
            _ => {}
        }
        before = c;
    }
    false
}

/// Whether a placeholder may have that name.
pub(super) fn is_name(name: &str) -> bool {
    let name_like = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    name.chars().all(name_like) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// The here-document that comes after `<<`, and the rest of the line.
fn announced(after: &str) -> Option<(Document, &str)> {
    let indented = after.strip_prefix('-');
    let mut rest = indented.unwrap_or(after).trim_start_matches([' ', '\t']);
    let (mut end, mut quotes) = (String::new(), Quotes::Document);
    while let Some(c) = rest.chars().next() {
        if c.is_whitespace() || ";&|<>()".contains(c) {
            break;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '\'' | '"' => {
                let (inside, after) = rest.split_once(c)?;
                end.push_str(inside);
                rest = after;
                quotes = Quotes::PlainDocument;
            }
            '\\' => quotes = Quotes::PlainDocument,
            _ => end.push(c),
        }
    }
    let document = Document {
        end,
        may_be_indented: indented.is_some(),
        quotes,
    };
    (!document.end.is_empty()).then_some((document, rest))
}

impl Document {
    /// The bytes of the document at the start of a text, without and with the line that ends it.
    fn found_in(&self, text: &str) -> Option<(usize, usize)> {
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let content = line.strip_suffix('\n').unwrap_or(line);
            let content = match self.may_be_indented {
                true => content.trim_start_matches('\t'),
                false => content,
            };
            if content == self.end {
                return Some((at, at + line.len()));
            }
            at += line.len();
        }
        None
    }
}
