//! `glob`: `{"pattern": …}`, the sorted paths of the files and folders that match.
//!
//! What a task of it finds is its result, recorded as any other: a replay gets it again and looks
//! at no file. Read next: `pattern`.

use std::io;
use std::path::Path;

use ciel_graph::{Assignment, Output};
use ciel_model::{Failure, FailureKind, Refused};
use serde_json::Value;

use super::coroutine::Host;
use super::first_step::{FirstStep, Stepped};
use super::names::GLOB;

mod pattern;

use pattern::Part;

pub(super) fn executor() -> FirstStep {
    FirstStep::new(GLOB, glob)
}

fn glob(host: &dyn Host, assignment: &Assignment) -> Result<Stepped, Box<Failure>> {
    let payload = &assignment.descriptor.payload;
    let arguments: Value = serde_json::from_slice(payload).unwrap_or(Value::Null);
    let Some(pattern) = arguments.get("pattern").and_then(Value::as_str) else {
        let refused = Refused::new("glob needs {\"pattern\": \"data/*.csv\"}");
        return Err(Box::new(refused.failure(&assignment.label)));
    };
    let found = matching(pattern).map_err(|error| {
        let message = format!("cannot look for {pattern:?}: {error}");
        let label = assignment.label.clone();
        Box::new(Failure::new(FailureKind::TaskError, label, message))
    })?;
    let value = host.value(assignment, &Value::from(found), 0)?;
    Ok((Output::Value(value), None))
}

/// The paths that match, in the order of their bytes. Relative ones begin at the working folder.
///
/// # Errors
/// A folder on the way cannot be read, or a name that matches is not UTF-8. What does not exist
/// matches nothing.
fn matching(pattern: &str) -> io::Result<Vec<String>> {
    let relative = pattern.trim_start_matches('/');
    let root = &pattern[..pattern.len().min(1).min(pattern.len() - relative.len())];
    let parts: Vec<Part<'_>> = relative
        .split('/')
        .filter(|part| !part.is_empty())
        .map(Part::of)
        .collect();
    let mut found = Vec::new();
    if !parts.is_empty() {
        walk(root, &parts, &mut found)?;
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Adds what the parts match beneath `folder`, which is empty or ends in a slash.
fn walk(folder: &str, parts: &[Part<'_>], found: &mut Vec<String>) -> io::Result<()> {
    let Some((part, rest)) = parts.split_first() else {
        return Ok(());
    };
    let reach = |path: String, found: &mut Vec<String>| match rest.is_empty() {
        true => {
            found.push(path);
            Ok(())
        }
        false => walk(&format!("{path}/"), rest, found),
    };
    match part {
        Part::Name(name) => {
            let path = format!("{folder}{name}");
            match Path::new(&path).symlink_metadata() {
                Ok(_) => reach(path, found),
                Err(error) => absent(error),
            }
        }
        Part::Pattern(pattern) => {
            for entry in entries(folder)? {
                if pattern.matches(&entry.name) {
                    reach(format!("{folder}{}", entry.text()?), found)?;
                }
            }
            Ok(())
        }
        Part::Folders => walk_folders(folder, parts, rest, found),
    }
}

/// `**`: the rest of the pattern here and in all folders beneath, links to folders excepted.
fn walk_folders(
    folder: &str,
    parts: &[Part<'_>],
    rest: &[Part<'_>],
    found: &mut Vec<String>,
) -> io::Result<()> {
    walk(folder, rest, found)?;
    for entry in entries(folder)? {
        let is_hidden = entry.name.starts_with('.');
        if rest.is_empty() && !is_hidden {
            found.push(format!("{folder}{}", entry.text()?));
        }
        if entry.is_folder && !is_hidden {
            walk(&format!("{folder}{}/", entry.text()?), parts, found)?;
        }
    }
    Ok(())
}

struct Entry {
    /// Its name; bytes that are not UTF-8 are replaced, which patterns match as any character.
    name: String,
    /// The name is not UTF-8.
    is_changed: bool,
    /// A folder, not a link to one.
    is_folder: bool,
}

impl Entry {
    /// The name as a part of a path.
    ///
    /// # Errors
    /// It is not UTF-8.
    fn text(&self) -> io::Result<&str> {
        if self.is_changed {
            let message = format!("the name {:?} is not UTF-8", self.name);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(&self.name)
    }
}

fn entries(folder: &str) -> io::Result<Vec<Entry>> {
    let listed = std::fs::read_dir(if folder.is_empty() { "." } else { folder });
    let listed = match listed {
        Ok(listed) => listed,
        Err(error) => return absent(error).map(|()| Vec::new()),
    };
    let mut entries = Vec::new();
    for entry in listed {
        let entry = entry?;
        let is_folder = entry.file_type()?.is_dir();
        let name = entry.file_name();
        entries.push(Entry {
            name: name.to_string_lossy().into_owned(),
            is_changed: name.to_str().is_none(),
            is_folder,
        });
    }
    Ok(entries)
}

/// What is absent, or no folder, holds nothing.
fn absent(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn matching_paths_are_sorted_and_each_comes_once() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "b.csv",
            "a.csv",
            ".hidden.csv",
            "a.txt",
            "x/c.csv",
            "x/y/d.csv",
            "x/y/.z/e.csv",
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), folder.path().join("x/loop")).unwrap();
        let root = folder.path().to_str().unwrap();
        let look = |pattern: &str| -> String {
            let found = matching(&format!("{root}/{pattern}")).unwrap();
            let inside = found.iter().map(|path| &path[root.len() + 1..]);
            inside.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(look("*.csv"), "a.csv b.csv");
        assert_eq!(look(".*.csv"), ".hidden.csv");
        assert_eq!(look("*/*.csv"), "x/c.csv");
        assert_eq!(look("**/*.csv"), "a.csv b.csv x/c.csv x/y/d.csv");
        assert_eq!(look("**/**/d.csv"), "x/y/d.csv");
        assert_eq!(look("x/**"), "x/c.csv x/loop x/y x/y/d.csv");
        assert_eq!(look("x/y/d.csv"), "x/y/d.csv");
        assert_eq!(look("a.*/nothing"), "");
        assert_eq!(look("nowhere/*"), "");
        assert_eq!(matching("").unwrap(), Vec::<String>::new());
        assert_eq!(matching("/").unwrap(), Vec::<String>::new());
    }

    /// One file with such a name failed every search of its folder, whatever it looked for.
    #[test]
    fn name_that_is_not_utf8_is_an_error_only_if_it_matches() {
        let folder = tempfile::tempdir().unwrap();
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
        std::fs::write(folder.path().join(name), "").unwrap();
        std::fs::write(folder.path().join("a.csv"), "").unwrap();
        let root = folder.path().to_str().unwrap();
        for (pattern, found) in [("*.csv", 1), ("**/*.csv", 1), ("*.tex", 0)] {
            let paths = matching(&format!("{root}/{pattern}"));
            assert_eq!(paths.unwrap().len(), found, "{pattern}");
        }
        for pattern in ["*.txt", "**", "c*"] {
            let error = matching(&format!("{root}/{pattern}")).unwrap_err();
            assert!(
                error.to_string().contains("is not UTF-8"),
                "{pattern} {error}"
            );
        }
    }
}
