//! Rules of form: what each file must have.
//!
//! Modules say what they are, crates inherit the lints, tests are named after situation and
//! outcome, the house has its papers. It reads text only.

use super::Finding;
use super::text::{is_word, line_of, mask_rust};
use super::tree::{Language, Source};

/// The fewest words in a test's name: a situation and an outcome.
const TEST_WORDS_MIN: usize = 3;

/// Rust files that do not open with what they are.
pub fn modules_without_opening(source: &Source) -> Vec<Finding> {
    if source.language() != Language::Rust || source.is_generated() {
        return Vec::new();
    }
    if source.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![Finding::new(
        &source.path,
        1,
        "does not open with what it is: `//! …`",
    )]
}

/// Tests whose name does not state a situation and an outcome.
pub fn short_test_names(source: &Source) -> Vec<Finding> {
    if source.language() != Language::Rust {
        return Vec::new();
    }
    let code = mask_rust(&source.text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("#[test]") {
        let Some(offset) = code[at..].find("fn ") else {
            continue;
        };
        let rest = &code[at + offset + "fn ".len()..];
        let name = &rest[..rest.bytes().take_while(|byte| is_word(*byte)).count()];
        let few = name.split('_').count() < TEST_WORDS_MIN || name.starts_with("test_");
        if few {
            let message = format!("`{name}` does not name a situation and its outcome");
            found.push(Finding::new(&source.path, line_of(&code, at), message));
        }
    }
    found
}

/// Crates that do not inherit the lints of the workspace, and places where missing documentation
/// is allowed in the production code that no tool has written.
pub fn lints_not_inherited(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_manifest = source.path.starts_with("crates/") && source.path.ends_with("/Cargo.toml");
    if is_manifest && !source.text.contains("[lints]\nworkspace = true\n") {
        found.push(Finding::new(
            &source.path,
            0,
            "does not inherit the workspace's lints",
        ));
    }
    if source.language() == Language::Rust && source.is_production() {
        let code = mask_rust(&source.text);
        for (at, _) in code.match_indices("missing_docs") {
            let next = code[at..].lines().nth(1).unwrap_or_default();
            let includes = source
                .text
                .lines()
                .nth(line_of(&code, at))
                .unwrap_or_default();
            if !includes.contains("include!(\"generated/") {
                let message = format!("allows missing documentation of {}", next.trim());
                found.push(Finding::new(&source.path, line_of(&code, at), message));
            }
        }
    }
    found
}

/// What is missing of the papers of the house: licence, open section of the change log, lints.
pub fn missing_papers(sources: &[Source]) -> Vec<Finding> {
    let required = [
        ("LICENSE", "Apache License"),
        ("CHANGELOG.md", "\n## Unreleased\n"),
        ("CONTRIBUTING.md", "# "),
        ("README.md", "make demo"),
        ("README.md", "make test"),
        ("ARCHITECTURE.md", "# "),
        ("Cargo.toml", "missing_docs = \"deny\""),
        (".ci/run", "make test"),
    ];
    required
        .into_iter()
        .filter(|(path, text)| {
            !sources
                .iter()
                .any(|source| source.path == *path && source.text.contains(text))
        })
        .map(|(path, text)| Finding::new(path, 0, format!("`{}` is missing", text.trim())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        let (path, text) = (path.to_owned(), text.to_owned());
        Source { path, text }
    }

    #[test]
    fn module_without_opening_is_found() {
        assert_eq!(
            modules_without_opening(&source("a.rs", "use b;\n")).len(),
            1
        );
        assert!(modules_without_opening(&source("a.rs", "//! What it is.\n")).is_empty());
    }

    #[test]
    fn name_without_outcome_is_found() {
        let text = "#[test]\nfn parses() {}\n#[test]\nfn test_a_b() {}\n#[test]\nfn a_gives_b() {}";
        let lines: Vec<_> = short_test_names(&source("a.rs", text))
            .iter()
            .map(|one| one.line)
            .collect();
        assert_eq!(lines, [1, 3]);
    }

    #[test]
    fn crate_without_lints_and_allowed_gaps_are_found() {
        let manifest = "crates/a/Cargo.toml";
        assert_eq!(
            lints_not_inherited(&source(manifest, "[package]\n")).len(),
            1
        );
        let text = "[package]\n\n[lints]\nworkspace = true\n";
        assert!(lints_not_inherited(&source(manifest, text)).is_empty());
        let allowed = "#![allow(missing_docs)]\nmod a;\n";
        assert_eq!(
            lints_not_inherited(&source("crates/a/src/a.rs", allowed)).len(),
            1
        );
        let included = "#![allow(missing_docs)]\ninclude!(\"generated/a.rs\");\n";
        assert!(lints_not_inherited(&source("crates/a/src/a.rs", included)).is_empty());
    }

    #[test]
    fn missing_paper_is_found() {
        let found = missing_papers(&[source("CHANGELOG.md", "# Changes\n\n## 1.0\n")]);
        assert!(found.iter().any(|one| one.path == "CHANGELOG.md"));
        assert!(found.iter().any(|one| one.path == "LICENSE"));
    }
}
