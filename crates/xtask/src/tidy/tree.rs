//! The text files of the source tree.
//!
//! Folders that tools fill are passed over, and so are files that are not text. It does not know
//! the rules; read [`super::text`] next.

use std::fs;
use std::io;
use std::path::Path;

/// What holds no source: tools make these folders, and version control ignores them. In a linked
/// work tree `.git` is a file.
const PASSED_OVER: &[&str] = &[
    "target",
    ".git",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".venv",
    ".ciel",
    "__pycache__",
    "palette-output",
];

/// Folders whose files a tool has written; rules of form do not hold there.
const GENERATED: &[&str] = &["crates/ciel-protocol/src/generated/"];

/// One text file.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it lies, from the root of the tree, with `/` between the folders.
    pub path: String,
    /// All of its text.
    pub text: String,
}

/// In which language a file is written, as far as the rules care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust, by its suffix.
    Rust,
    /// Python, by its suffix or by its first line.
    Python,
    /// Markdown, by its suffix.
    Markdown,
    /// Anything else.
    Other,
}

impl Source {
    /// The language of the file.
    pub fn language(&self) -> Language {
        let suffix = Path::new(&self.path).extension().and_then(|s| s.to_str());
        let first = self.text.lines().next().unwrap_or_default();
        match suffix {
            Some("rs") => Language::Rust,
            Some("py") => Language::Python,
            Some("md") => Language::Markdown,
            None if first.starts_with("#!") && first.contains("python") => Language::Python,
            _ => Language::Other,
        }
    }

    /// Whether a tool has written the file.
    pub fn is_generated(&self) -> bool {
        GENERATED.iter().any(|folder| self.path.starts_with(folder))
    }

    /// Whether all of the file is a test: it lies in a folder `tests`, or is named so.
    pub fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| part == "tests" || part == "tests.rs")
    }

    /// Whether the file is part of a library or program: below `crates/NAME/src`, and no test.
    pub fn is_production(&self) -> bool {
        let mut parts = self.path.split('/');
        let place = (parts.next(), parts.nth(1));
        place == (Some("crates"), Some("src")) && !self.is_test()
    }
}

/// All text files below `root`, in the order of their paths. Folders and files that others remove
/// meanwhile are none of them.
///
/// # Panics
/// If a folder cannot be read.
pub fn sources(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    gather(root, "", &mut found);
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn gather(folder: &Path, prefix: &str, found: &mut Vec<Source>) {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !prefix.is_empty() => return,
        entries => entries.expect("the source tree can be read"),
    };
    for entry in entries {
        let entry = entry.expect("the source tree can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        if PASSED_OVER.contains(&name.as_str()) {
            continue;
        }
        let kind = entry.file_type().expect("an entry has a type");
        if kind.is_dir() {
            gather(&entry.path(), &format!("{prefix}{name}/"), found);
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(entry.path())
        {
            let path = format!("{prefix}{name}");
            found.push(Source { path, text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        let (path, text) = (path.to_owned(), text.to_owned());
        Source { path, text }
    }

    /// Programs that run in the tree make folders there and remove them: the tests of the rules
    /// failed now and then while one ran.
    #[test]
    fn folder_that_is_removed_before_it_is_read_has_no_files() {
        let mut found = Vec::new();
        gather(Path::new("/removed/meanwhile"), "meanwhile/", &mut found);
        assert!(found.is_empty());
    }

    #[test]
    fn program_without_suffix_is_known_by_its_first_line() {
        let program = source("examples/tool", "#!/usr/bin/env python3\n");
        assert_eq!(program.language(), Language::Python);
        assert_eq!(
            source("examples/tool", "#!/bin/sh\n").language(),
            Language::Other
        );
    }

    #[test]
    fn files_below_src_are_production_unless_they_are_tests() {
        assert!(source("crates/one/src/deep/lib.rs", "").is_production());
        assert!(!source("crates/one/src/deep/tests.rs", "").is_production());
        assert!(!source("crates/one/tests/lib.rs", "").is_production());
        assert!(!source("examples/src/lib.rs", "").is_production());
    }

    #[test]
    fn own_source_is_found_in_the_tree() {
        let found = sources(&crate::source_root());
        assert!(
            found
                .iter()
                .any(|one| one.path == "crates/xtask/src/tidy/tree.rs")
        );
        assert!(found.iter().all(|one| !one.path.starts_with("target/")));
    }
}
