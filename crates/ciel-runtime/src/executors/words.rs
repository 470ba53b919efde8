//! Arguments that executors share: command lines and lists of inputs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::command::Workspace;
use crate::references::reference;
use crate::refused::Refused;

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

/// The words of a command line, references replaced by their texts.
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
    words
        .iter()
        .map(|word| spelt(word, desk).map(OsString::from))
        .collect()
}

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
    match text.contains('\0') {
        true => Err(Refused::new(
            "a word of its command line contains a zero byte",
        )),
        false => Ok(text),
    }
}

/// The variables under `environment`, by name; none if the key is absent.
pub(super) fn variables(
    arguments: &Value,
    desk: &mut dyn Workspace,
) -> Result<Vec<(String, OsString)>, Refused> {
    let given = match arguments.get("environment") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(given)) => given,
        Some(other) => return Err(wrong("environment", "a dictionary by name", other)),
    };
    let mut variables = Vec::with_capacity(given.len());
    for (name, value) in given {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.chars().all(plain)
            || name.starts_with(|c: char| c.is_ascii_digit())
            || name.is_empty()
        {
            return Err(Refused::new(format!("there can be no variable {name:?}"))
                .hint("names of variables are made of letters, digits and underscores"));
        }
        variables.push((name.clone(), spelt(value, desk)?.into()));
    }
    Ok(variables)
}

/// The folder under `folder`, if it is there.
pub(super) fn folder(
    arguments: &Value,
    desk: &mut dyn Workspace,
) -> Result<Option<PathBuf>, Refused> {
    match arguments.get("folder") {
        None | Some(Value::Null) => Ok(None),
        Some(given) => Ok(Some(spelt(given, desk)?.into())),
    }
}

/// The name of the program of a command line, for people.
pub(super) fn program_name(arguments: &Value) -> Option<String> {
    let first = arguments.get("command_line")?.get(0)?.as_str()?;
    let name = Path::new(first).file_name()?.to_str()?;
    Some(name.to_string())
}

/// An argument of the wrong kind.
pub(super) fn wrong(key: &str, wanted: &str, given: &Value) -> Refused {
    let mut shown = given.to_string();
    if shown.len() > 60 {
        let cut = (0..=60)
            .rev()
            .find(|at| shown.is_char_boundary(*at))
            .unwrap_or(0);
        shown.truncate(cut);
        shown.push('…');
    }
    Refused::new(format!(
        "its argument {key:?} must hold {wanted}, but holds {shown}"
    ))
}
