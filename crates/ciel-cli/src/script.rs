//! From the name of a file to a checked program, or to a complaint that helps.
//!
//! It reads files and recognises kinds of programs; the language defines what scripts mean.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use ciel_runtime::{ScriptError, Scripts};
use ciel_skywriting::diagnostic::line_column;
use ciel_skywriting::front::{Loader, Problems, check};
use ciel_skywriting::hir::{Program, Source, Span};
use ciel_skywriting::limits::SOURCE_BYTES_MAX;

use crate::cli_error::CliError;
use crate::nearest::nearest;

/// Bytes of a first line that are looked at.
const FIRST_LINE_BYTES_MAX: usize = 256;

/// Names listed in a hint.
const LISTED_MAX: usize = 5;

/// What a file holds.
pub enum Opened {
    /// A checked script.
    Skywriting(Program),
    /// A Python program; its interpreter checks it.
    Python,
}

/// Reads the file at `path`; a script is checked with all that it includes.
pub fn open(path: &Path) -> Result<Opened, CliError> {
    let bytes = read(path).map_err(|error| unreadable(path, &error))?;
    if is_python(path, &bytes) {
        return named_in_text(path).map(|()| Opened::Python);
    }
    Ok(Opened::Skywriting(checked(path, &bytes)?))
}

/// Workers get the path of a Python program as text.
fn named_in_text(path: &Path) -> Result<(), CliError> {
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if whole.to_str().is_some() {
        return Ok(());
    }
    let message = format!("the path of the Python program, {whole:?}, is not UTF-8");
    Err(CliError::usage("script.name", message).with_hint("rename the file or its folder"))
}

fn checked(path: &Path, bytes: &[u8]) -> Result<Program, CliError> {
    if !is_skywriting(path, bytes) {
        return Err(other_kind(path, bytes));
    }
    let shown = path.display().to_string();
    let mut files = Files::new(path, &shown);
    check(&shown, bytes, &mut files).map_err(CliError::Script)
}

/// How the engine reads scripts that tasks call.
pub fn called() -> Scripts {
    Scripts::new(|path| open_called(path).map_err(trouble))
}

fn open_called(path: &Path) -> Result<Program, CliError> {
    // What is no file, such as a pipe, might keep the thread for ever.
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let message = format!("{} is not a file", path.display());
        return Err(CliError::usage("script.kind", message));
    }
    let bytes = read(path).map_err(|error| unreadable(path, &error))?;
    if is_python(path, &bytes) {
        let message = format!("{} is a Python program, not a script", path.display());
        return Err(CliError::usage("script.kind", message)
            .with_hint("the executor python calls functions of Python modules"));
    }
    checked(path, &bytes)
}

/// A complaint as the failure of the task that called the script.
fn trouble(complaint: CliError) -> ScriptError {
    let (place, excerpt) = (String::new(), String::new());
    match complaint {
        CliError::Plain { message, hint, .. } => ScriptError {
            message,
            place,
            excerpt,
            hint,
        },
        CliError::Script(problems) => mistakes(problems),
        CliError::Unread => unreachable!("it is about output"),
    }
}

/// One mistake in full; of several their number, and each of them in the excerpt.
fn mistakes(mut problems: Problems) -> ScriptError {
    let first = &problems.diagnostics[0];
    let (message, hint) = (first.message.clone(), first.hint.clone());
    let place = place(first.span, &problems.sources);
    let count = problems.diagnostics.len();
    if count > 1 {
        return ScriptError {
            message: format!("the script has {count} errors"),
            place,
            excerpt: problems.render(false).trim_end().to_string(),
            hint: None,
        };
    }
    // Message and hint have places of their own.
    problems.diagnostics[0].hint = None;
    let drawn = problems.render(false);
    let lines = drawn.split_once('\n').map_or("", |(_, lines)| lines);
    ScriptError {
        message,
        place,
        excerpt: lines.trim_end().to_string(),
        hint,
    }
}

/// `file:line:column`.
fn place(span: Span, sources: &[Source]) -> String {
    let source = &sources[usize::from(span.source)];
    let (line, column) = line_column(source, span.start);
    format!("{}:{line}:{column}", source.name)
}

/// All bytes of a file, or one more than a script may have.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = SOURCE_BYTES_MAX as u64 + 1;
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_skywriting(path: &Path, bytes: &[u8]) -> bool {
    suffix(path) == "sw" || interpreter(bytes) == Some("ciel")
}

fn is_python(path: &Path, bytes: &[u8]) -> bool {
    suffix(path) == "py" || interpreter(bytes).is_some_and(|it| it.starts_with("python"))
}

fn suffix(path: &Path) -> &str {
    path.extension()
        .and_then(|suffix| suffix.to_str())
        .unwrap_or_default()
}

/// The name of the program in a first line `#!/usr/bin/env ciel` or `#!/opt/bin/ciel run`.
fn interpreter(bytes: &[u8]) -> Option<&str> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(&line[..line.len().min(FIRST_LINE_BYTES_MAX)]).ok()?;
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let name = |word: &'_ str| word.rsplit('/').next().unwrap_or_default().len();
    let first = words.next()?;
    let program = &first[first.len() - name(first)..];
    if program != "env" {
        return Some(program);
    }
    let named = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    Some(&named[named.len() - name(named)..])
}

fn other_kind(path: &Path, bytes: &[u8]) -> CliError {
    let shown = path.display();
    let message = match bytes {
        [] => format!("{shown} contains no program"),
        _ if bytes.contains(&0) => format!("{shown} is a binary file, not a script"),
        _ => format!("{shown} is not recognized as a script"),
    };
    CliError::usage("script.kind", message).with_hint(
        "Python programs (.py) and Skywriting scripts can be run: names of scripts end in .sw, or \
         their first line is #!/usr/bin/env ciel",
    )
}

fn unreadable(path: &Path, error: &std::io::Error) -> CliError {
    let shown = path.display();
    match error.kind() {
        ErrorKind::NotFound => missing(path),
        ErrorKind::NotADirectory => missing(path),
        ErrorKind::IsADirectory => {
            let complaint = CliError::usage("script.folder", format!("{shown} is a folder"));
            match scripts_in(path) {
                Some(names) => complaint.with_hint(format!("it contains {names}")),
                None => complaint.with_hint("name the script to run"),
            }
        }
        ErrorKind::PermissionDenied => {
            let message = format!("{shown} cannot be read: permission denied");
            let hint = format!("check its owner and mode: ls -l {shown}");
            CliError::usage("script.unreadable", message).with_hint(hint)
        }
        _ => CliError::usage("script.unreadable", format!("cannot read {shown}: {error}")),
    }
}

fn missing(path: &Path) -> CliError {
    let complaint = CliError::usage(
        "script.missing",
        format!("the file {} does not exist", path.display()),
    );
    let folder = folder_of(path);
    if !folder.is_dir() {
        return complaint.with_hint(format!(
            "the folder {} does not exist either",
            folder.display()
        ));
    }
    let names = names_in(&folder);
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let with_suffix = format!("{wanted}.sw");
    let exact = names
        .iter()
        .map(String::as_str)
        .find(|name| *name == with_suffix);
    let likely = exact.or_else(|| nearest(&wanted, names.iter().map(String::as_str)));
    match likely {
        Some(name) => complaint.with_hint(format!(
            "did you mean {}?",
            path.with_file_name(name).display()
        )),
        None => complaint,
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Names in a folder, sorted.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The first scripts of a folder, in words.
fn scripts_in(folder: &Path) -> Option<String> {
    let mut names = names_in(folder);
    names.retain(|name| name.ends_with(".sw"));
    let paths: Vec<String> = names
        .iter()
        .take(LISTED_MAX)
        .map(|name| folder.join(name).display().to_string())
        .collect();
    (!paths.is_empty()).then(|| paths.join(", "))
}

/// Brings included files: a name is looked up beside the file that includes it.
struct Files {
    /// The name under which each file was first shown; links and detours lead to the same one.
    shown: HashMap<PathBuf, String>,
}

impl Files {
    fn new(root: &Path, shown: &str) -> Files {
        let identity = fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
        Files {
            shown: HashMap::from([(identity, shown.to_string())]),
        }
    }
}

impl Loader for Files {
    fn load(&mut self, name: &str, from: &str) -> Result<(String, Vec<u8>), String> {
        let folder = Path::new(from).parent().unwrap_or(Path::new(""));
        let mut path = folder.join(name);
        if !path.exists() && !name.ends_with(".sw") {
            path = folder.join(format!("{name}.sw"));
        }
        let bytes = read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                format!("the file {} does not exist", folder.join(name).display())
            }
            ErrorKind::IsADirectory => format!("{} is a folder", path.display()),
            ErrorKind::PermissionDenied => {
                format!("{} cannot be read: permission denied", path.display())
            }
            _ => error.to_string(),
        })?;
        let identity = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let shown = self
            .shown
            .entry(identity)
            .or_insert_with(|| path.display().to_string());
        Ok((shown.clone(), bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_names_its_program() {
        let cases = [
            ("#!/usr/bin/env ciel\nreturn 1;", Some("ciel")),
            ("#!/usr/bin/env -S ciel run\n", Some("ciel")),
            ("#! /opt/bin/ciel run", Some("ciel")),
            ("#!/usr/bin/python3\n", Some("python3")),
            ("return 1;", None),
            ("#!", None),
        ];
        for (text, program) in cases {
            assert_eq!(interpreter(text.as_bytes()), program, "{text}");
        }
    }
}
