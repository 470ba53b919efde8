//! Rules about words that must not stand in the tree.
//!
//! Unfinished work, ignored tests, sleeping tests, `unwrap` outside tests, names with versions,
//! paths of one machine and hosts of registries. It knows words, not their meaning; read
//! [`super::text`] for what counts as code.

use super::Finding;
use super::text::{is_word, line_of, mask_python, mask_rust, without_tests, words};
use super::tree::{Language, Source};

/// Notes to oneself; put together so that this file holds none.
const NOTES: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
];

/// Code that says that code or a test is missing.
const MISSING: &[&str] = &["unimplemented!", "todo!", "#[ignore"];

/// Folders at the root of a machine that only this machine has.
const MACHINE_FOLDERS: &[&str] = &[concat!("/", "work"), concat!("/", "root")];

/// Hosts of package registries.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("docker", ".io"),
    concat!("ghcr", ".io"),
    concat!("npmjs", ".org"),
    concat!("maven", ".org"),
];

/// The lock file names the source of each package by its host.
const LOCK_FILE: &str = "Cargo.lock";

/// Notes to oneself, macros that stand for missing code, and ignored tests.
pub fn unfinished_work(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for note in NOTES {
        for at in words(&source.text, note) {
            found.push(Finding::new(&source.path, line_of(&source.text, at), *note));
        }
    }
    if source.language() == Language::Rust {
        let code = mask_rust(&source.text);
        for word in MISSING {
            for (at, _) in code.match_indices(word) {
                found.push(Finding::new(&source.path, line_of(&code, at), *word));
            }
        }
    }
    found
}

/// Tests that sleep instead of waiting for a condition.
pub fn sleeping_tests(source: &Source) -> Vec<Finding> {
    let code = match source.language() {
        Language::Rust => mask_rust(&source.text),
        Language::Python if source.is_test() => mask_python(&source.text),
        _ => return Vec::new(),
    };
    let production = if source.is_test() {
        String::new()
    } else {
        without_tests(&code)
    };
    words(&code, "sleep")
        .filter(|&at| code[at + "sleep".len()..].trim_start().starts_with('('))
        .filter(|&at| !production[at.min(production.len())..].starts_with("sleep"))
        .filter(|_| source.is_test() || source.is_production())
        .map(|at| Finding::new(&source.path, line_of(&code, at), "a test sleeps"))
        .collect()
}

/// `unwrap` outside tests.
pub fn unwraps(source: &Source) -> Vec<Finding> {
    if source.language() != Language::Rust || !source.is_production() || source.is_generated() {
        return Vec::new();
    }
    let code = without_tests(&mask_rust(&source.text));
    code.match_indices(".unwrap()")
        .map(|(at, _)| line_of(&code, at))
        .map(|line| Finding::new(&source.path, line, "`unwrap` outside tests"))
        .collect()
}

/// Items whose name ends in a version, such as a trailing V and a digit.
pub fn versions_in_names(source: &Source) -> Vec<Finding> {
    if source.language() != Language::Rust || source.is_generated() {
        return Vec::new();
    }
    let code = mask_rust(&source.text);
    let mut found = Vec::new();
    for keyword in [
        "fn", "struct", "enum", "trait", "mod", "type", "const", "static",
    ] {
        for at in words(&code, keyword) {
            let rest = code[at + keyword.len()..].trim_start();
            let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
            if ends_in_version(&rest[..length]) {
                let message = format!("`{}` names a version", &rest[..length]);
                found.push(Finding::new(&source.path, line_of(&code, at), message));
            }
        }
    }
    found
}

fn ends_in_version(name: &str) -> bool {
    let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
    stem.len() < name.len() && (stem.ends_with('V') || stem.ends_with("_v"))
}

/// Paths that exist on one machine only.
pub fn machine_paths(source: &Source) -> Vec<Finding> {
    let text = &source.text;
    let mut found = Vec::new();
    for folder in MACHINE_FOLDERS {
        for (at, _) in text.match_indices(folder) {
            let before = text[..at].bytes().next_back();
            let after = text[at + folder.len()..].bytes().next();
            let joins = |byte: u8| is_word(byte) || b"-.}$)~*".contains(&byte);
            if !before.is_some_and(joins)
                && !after.is_some_and(|byte| is_word(byte) || byte == b'-')
            {
                let message = format!("a path of one machine: {folder}");
                found.push(Finding::new(&source.path, line_of(text, at), message));
            }
        }
    }
    found
}

/// Hosts of package registries.
pub fn registry_hosts(source: &Source) -> Vec<Finding> {
    if source.path == LOCK_FILE {
        return Vec::new();
    }
    let mut found = Vec::new();
    for host in REGISTRIES {
        for (at, _) in source.text.match_indices(host) {
            let message = format!("a registry's host: {host}");
            found.push(Finding::new(
                &source.path,
                line_of(&source.text, at),
                message,
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: impl Into<String>) -> Source {
        let (path, text) = (path.to_owned(), text.into());
        Source { path, text }
    }

    #[test]
    fn unfinished_work_is_found_in_comments_and_code() {
        for note in NOTES {
            assert_eq!(
                unfinished_work(&source("a.md", format!("\n{note}: x"))).len(),
                1
            );
        }
        for word in MISSING {
            assert_eq!(
                unfinished_work(&source("a.rs", format!("{word}(); // {word}"))).len(),
                1
            );
        }
        assert!(unfinished_work(&source("a.sh", "mktemp a.XXXXXX")).is_empty());
    }

    #[test]
    fn sleep_is_found_in_tests_only() {
        let text = "fn a() { sleep(b) }\n#[cfg(test)]\nmod tests { fn c() { thread::sleep (d) } }";
        let line = |found: Vec<Finding>| found.iter().map(|one| one.line).collect::<Vec<_>>();
        assert_eq!(
            line(sleeping_tests(&source("crates/a/src/a.rs", text))),
            [3]
        );
        assert_eq!(
            line(sleeping_tests(&source("crates/a/tests/a.rs", text))),
            [1, 3]
        );
        assert_eq!(
            line(sleeping_tests(&source(
                "examples/tests/a.py",
                "time.sleep(1)"
            ))),
            [1]
        );
        assert!(sleeping_tests(&source("crates/a/tests/a.rs", "\"sleep(1)\"; sleep;")).is_empty());
    }

    #[test]
    fn unwrap_is_found_outside_tests_only() {
        let text = "fn a() { b.unwrap() }\n#[cfg(test)]\nmod tests { fn c() { d.unwrap() } }";
        assert_eq!(unwraps(&source("crates/a/src/a.rs", text)).len(), 1);
        assert!(unwraps(&source("crates/a/tests/a.rs", text)).is_empty());
    }

    #[test]
    fn version_in_a_name_is_found_and_a_width_is_not() {
        assert_eq!(
            versions_in_names(&source("a.rs", "struct FrameV2; fn read_v1() {}")).len(),
            2
        );
        assert!(versions_in_names(&source("a.rs", "fn sha256() {} const IPV: u8 = 4;")).is_empty());
    }

    #[test]
    fn paths_of_one_machine_are_found_and_longer_names_are_not() {
        for folder in MACHINE_FOLDERS {
            assert_eq!(
                machine_paths(&source("a", format!("see {folder}/b"))).len(),
                1
            );
            assert_eq!(
                machine_paths(&source("a", format!("\"{folder}\""))).len(),
                1
            );
            assert!(machine_paths(&source("a", format!("texts{folder}shop"))).is_empty());
            assert!(machine_paths(&source("a", format!("a{folder}/b"))).is_empty());
        }
    }

    #[test]
    fn hosts_are_found_everywhere_but_in_the_lock_file() {
        for host in REGISTRIES {
            assert_eq!(registry_hosts(&source("a.toml", *host)).len(), 1);
            assert!(registry_hosts(&source(LOCK_FILE, *host)).is_empty());
        }
    }
}
