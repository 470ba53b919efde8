//! Arguments that executors share: command lines and lists of inputs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ciel_model::Refused;
use serde_json::{Map, Value};

use super::command::Workspace;
use crate::references::reference;

/// The key under which a word has the reference that is read as a stream.
pub(super) const STREAM: &str = "stream";

/// The inputs under `key`, in order; none if the key is absent.
pub(super) fn inputs(arguments: &Value, key: &str) -> Result<Vec<usize>, Refused> {
    let given = match arguments.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(given)) => given,
        Some(other) => return Err(wrong(key, "a list of references", other)),
    };
    let index = |value: &Value| reference(value).ok_or_else(|| wrong(key, "a reference", value));
    given.iter().map(index).collect()
}

/// The inputs under `key` that a command reads one behind the other, in order, as references or as
/// `{"stream": reference}`; none if the key is absent.
pub(super) fn joined(arguments: &Value, key: &str) -> Result<Vec<usize>, Refused> {
    let given = match arguments.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(given)) => given,
        Some(other) => return Err(wrong(key, "a list of references", other)),
    };
    let index = |value: &Value| {
        reference(read_as_file(value)).ok_or_else(|| wrong(key, "a reference", value))
    };
    given.iter().map(index).collect()
}

/// The inputs of a call with their names; those of a list by their places.
pub(crate) fn named_inputs(arguments: &Value) -> Vec<(String, &Value)> {
    let under = |key: &'static str| match arguments.get(key) {
        Some(Value::Object(named)) => {
            let each = named.iter().flat_map(|(name, value)| match value {
                Value::Array(listed) => numbered(name, listed),
                value => vec![(name.clone(), read_as_file(value))],
            });
            each.collect()
        }
        Some(Value::Array(listed)) if listed.len() == 1 => {
            vec![(key.to_string(), read_as_file(&listed[0]))]
        }
        Some(Value::Array(listed)) => numbered(key, listed),
        _ => Vec::new(),
    };
    ["inputs", "stdin"].into_iter().flat_map(under).collect()
}

fn numbered<'a>(name: &str, listed: &'a [Value]) -> Vec<(String, &'a Value)> {
    let each = listed.iter().enumerate();
    each.map(|(at, value)| (format!("{name}[{at}]"), read_as_file(value)))
        .collect()
}

/// The words of a command line. A reference is the path of its file, which may be run if it comes
/// first; `{"text": reference}` is the text of its object, `{"stream": reference}` a path from
/// which it can be read once.
pub(super) fn command_line(
    arguments: &Value,
    desk: &mut dyn Workspace,
) -> Result<Vec<OsString>, Refused> {
    let words = match arguments.get("command_line") {
        Some(Value::Array(words)) if !words.is_empty() => words,
        Some(other) => return Err(wrong("command_line", "a list of words", other)),
        None => {
            return Err(Refused::new("its arguments have no \"command_line\"")
                .hint("give a list of words: {\"command_line\": [\"sort\", \"-n\"]}"));
        }
    };
    let word = |(at, word): (usize, &Value)| match (reference(read_as_file(word)), at) {
        (Some(index), 0) => desk.program(index).map(OsString::from),
        (Some(index), _) => desk.input(index).map(OsString::from),
        (None, _) => spelt(text_asked(word).unwrap_or(word), desk).map(OsString::from),
    };
    words.iter().enumerate().map(word).collect()
}

/// What stands under `stream` in the word `{"stream": reference, …}`.
pub(super) fn streamed(word: &Value) -> Option<&Value> {
    word.as_object()?.get(STREAM)
}

/// A word, or what is read as a stream in its place: a file, too.
fn read_as_file(word: &Value) -> &Value {
    streamed(word).unwrap_or(word)
}

/// The reference whose text a word requests.
fn text_asked(word: &Value) -> Option<&Value> {
    let entries = word.as_object().filter(|entries| entries.len() == 1)?;
    let asked = entries.get("text")?;
    reference(asked).map(|_| asked)
}

/// What the kernel passes to a process as one word, its end not counted.
const WORD_BYTES_MAX: usize = 128 * 1024 - 1;

/// A word as text.
pub(super) fn spelt(word: &Value, desk: &mut dyn Workspace) -> Result<String, Refused> {
    let text = match word {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        other => match reference(other) {
            Some(index) => desk.text(index)?,
            None => return Err(wrong("command_line", "words, numbers or references", other)),
        },
    };
    if text.contains('\0') {
        return Err(Refused::new(
            "an argument of its command line contains a zero byte",
        ));
    }
    match text.len() > WORD_BYTES_MAX {
        true => Err(Refused::new(format!(
            "an argument of its command line has {} bytes; at most {WORD_BYTES_MAX} reach a \
             process",
            text.len()
        ))
        .hint("pass the object by reference, as a file")),
        false => Ok(text),
    }
}

/// The variables under `environment` and `env`, by name; none if the keys are absent.
pub(super) fn variables(
    arguments: &Value,
    desk: &mut dyn Workspace,
) -> Result<Vec<(String, OsString)>, Refused> {
    let mut variables = Vec::new();
    for key in ["env", "environment"] {
        match arguments.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::Object(given)) => add_variables(given, desk, &mut variables)?,
            Some(other) => return Err(wrong(key, "a dictionary with names as keys", other)),
        }
    }
    Ok(variables)
}

fn add_variables(
    given: &Map<String, Value>,
    desk: &mut dyn Workspace,
    variables: &mut Vec<(String, OsString)>,
) -> Result<(), Refused> {
    for (name, value) in given {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.chars().all(plain)
            || name.starts_with(|c: char| c.is_ascii_digit())
            || name.is_empty()
        {
            return Err(
                Refused::new(format!("{name:?} cannot be the name of a variable"))
                    .hint("names of variables are made of letters, digits and underscores"),
            );
        }
        variables.push((name.clone(), spelt(value, desk)?.into()));
    }
    Ok(())
}

/// The folder under `folder`, if it exists.
pub(super) fn folder(
    arguments: &Value,
    desk: &mut dyn Workspace,
) -> Result<Option<PathBuf>, Refused> {
    match arguments.get("folder") {
        None | Some(Value::Null) => Ok(None),
        Some(given) => Ok(Some(spelt(given, desk)?.into())),
    }
}

/// The name of the program of a command line, for messages.
pub(super) fn program_name(arguments: &Value) -> Option<String> {
    let first = arguments.get("command_line")?.get(0)?.as_str()?;
    let name = Path::new(first).file_name()?.to_str()?;
    Some(name.to_string())
}

/// An argument of the wrong kind.
pub(super) fn wrong(key: &str, wanted: &str, given: &Value) -> Refused {
    let mut shown = readable(given).to_string();
    if shown.len() > 60 {
        let cut = (0..=60)
            .rev()
            .find(|at| shown.is_char_boundary(*at))
            .unwrap_or(0);
        shown.truncate(cut);
        shown.push('…');
    }
    let refused = Refused::new(format!(
        "its argument {key:?} must be {wanted}, not {shown}"
    ));
    match lists_references(given) {
        true => refused.hint("spawn_exec gives a list of references: take one of them with [0]"),
        false => refused,
    }
}

/// The value as a user thinks of it, with a word in the place of each reference.
fn readable(value: &Value) -> Value {
    match value {
        _ if reference(value).is_some() => "<reference>".into(),
        Value::Array(list) => list.iter().map(readable).collect(),
        Value::Object(entries) => {
            let entries = entries.iter();
            entries
                .map(|(name, value)| (name.clone(), readable(value)))
                .collect()
        }
        other => other.clone(),
    }
}

/// Whether it is a list with a reference, or has one in it.
fn lists_references(value: &Value) -> bool {
    let Value::Array(list) = value else {
        return false;
    };
    list.iter()
        .any(|element| reference(element).is_some() || lists_references(element))
}
