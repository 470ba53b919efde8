//! Rules of absence: what the pure crates must not name.
//!
//! A pure crate is a function of its events: no file, socket, process, thread, clock, environment
//! or randomness. The rule reads names only; [`super::dependencies`] has the crates that may be
//! linked.

use super::Finding;
use super::text::{is_word, line_of, mask_rust, without_tests, words};
use super::tree::Source;

/// The crates that decide, and do nothing else.
pub const PURE: &[&str] = &[
    "ciel-coordinator",
    "ciel-engine",
    "ciel-graph",
    "ciel-model",
    "ciel-node",
    "ciel-ordered",
    "ciel-protocol",
    "ciel-sim",
    "ciel-skywriting",
    "ciel-streams",
    "ciel-workers",
];

/// Paths that lead outside; what lies below them is outside too.
const OUTSIDE: &[&str] = &[
    "std::env",
    "std::fs",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "libc",
    "rand",
    "rustix",
    "tokio",
];

/// The one name that is allowed in one file: it gives the standard map a hasher of its own, and so
/// the same order in every run.
const KEYED_MAP: (&str, &str) = ("crates/ciel-model/src/key_map.rs", "HashMap");

/// Names that are outside wherever they stand: clocks, and maps whose order changes from run to
/// run. (The maps of `rustc-hash` and of [`KEYED_MAP`] keep theirs.)
const OUTSIDE_NAMES: &[&str] = &["Instant", "SystemTime", "RandomState", "HashMap", "HashSet"];

/// Places in the production code of a pure crate that name something outside.
pub fn outside_names(source: &Source) -> Vec<Finding> {
    let krate = source.path.split('/').nth(1).unwrap_or_default();
    if !PURE.contains(&krate) || !source.is_production() || !source.path.ends_with(".rs") {
        return Vec::new();
    }
    let code = without_tests(&mask_rust(&source.text));
    let mut found = Vec::new();
    for (at, path) in used_paths(&code).into_iter().chain(written_paths(&code)) {
        if OUTSIDE.iter().any(|outside| lies_below(&path, outside)) {
            found.push((at, path));
        }
    }
    for name in OUTSIDE_NAMES {
        found.extend(words(&code, name).map(|at| (at, (*name).to_owned())));
    }
    found.retain(|(_, name)| (source.path.as_str(), name.as_str()) != KEYED_MAP);
    let to_finding = |(at, name)| {
        let message = format!("`{name}` in a pure crate");
        Finding::new(&source.path, line_of(&code, at), message)
    };
    let mut findings: Vec<_> = found.into_iter().map(to_finding).collect();
    findings.sort();
    findings.dedup();
    findings
}

fn lies_below(path: &str, outside: &str) -> bool {
    path.strip_prefix(outside)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The paths of all `use` items, one for each leaf of their trees.
fn used_paths(code: &str) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    for at in words(code, "use") {
        let item = &code[at + "use".len()..];
        let tree: String = item[..item.find(';').unwrap_or(item.len())]
            .replace(" as ", "=")
            .split_whitespace()
            .collect();
        let mut leaves = Vec::new();
        expand(tree.trim_start_matches("::"), "", &mut leaves);
        paths.extend(leaves.into_iter().map(|leaf| (at, leaf)));
    }
    paths
}

/// Adds the leaves of a `use` tree without blanks, each with `prefix` before it.
fn expand(tree: &str, prefix: &str, leaves: &mut Vec<String>) {
    for branch in branches(tree) {
        match branch.split_once('{') {
            Some((stem, inner)) => {
                let inner = inner.strip_suffix('}').unwrap_or(inner);
                expand(inner, &format!("{prefix}{stem}"), leaves);
            }
            None => {
                let name = branch.split('=').next().unwrap_or_default();
                let path = format!("{prefix}{name}");
                leaves.push(path.trim_end_matches("::self").to_owned());
            }
        }
    }
}

/// The parts between the commas that stand in no bracket.
fn branches(tree: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0, 0);
    let mut parts = Vec::new();
    for (at, character) in tree.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&tree[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[start..]);
    parts
}

/// The paths that stand in the code itself.
fn written_paths(code: &str) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    let mut start = None;
    for (at, byte) in code.bytes().chain([b' ']).enumerate() {
        let inside = is_word(byte) || byte == b':';
        match start {
            None if inside => start = Some(at),
            Some(first) if !inside => {
                let path = code[first..at].trim_matches(':');
                if path.contains("::") {
                    paths.push((first, path.to_owned()));
                }
                start = None;
            }
            _ => {}
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let (path, text) = (path.to_owned(), text.to_owned());
        let findings = outside_names(&Source { path, text });
        findings.into_iter().map(|one| one.to_string()).collect()
    }

    const GRAPH: &str = "crates/ciel-graph/src/lib.rs";

    #[test]
    fn outside_names_are_found_in_every_way_of_writing_them() {
        for (text, name) in [
            ("use std::fs;", "std::fs"),
            (
                "use std::{fmt, net::{TcpStream as S}};",
                "std::net::TcpStream",
            ),
            ("pub use ::std::{thread::self};", "std::thread"),
            ("fn a() { std::process::exit(1) }", "std::process::exit"),
            ("use std::time::{Duration, Instant};", "Instant"),
            ("fn a() { tokio::spawn(b) }", "tokio::spawn"),
            ("fn a(b: rand::Rng) {}", "rand::Rng"),
        ] {
            let expected = format!("{GRAPH}:1: `{name}` in a pure crate");
            assert_eq!(found(GRAPH, text), [expected], "{text}");
        }
    }

    #[test]
    fn comments_strings_tests_and_other_names_are_left_alone() {
        let text = "//! std::fs\nuse std::{fmt, time::Duration};\n\
                    let a = \"std::net\"; my::rand();\n\
                    use rustc_hash::FxHashMap;\n#[cfg(test)]\nmod tests { use std::fs; }";
        assert_eq!(found(GRAPH, text), [""; 0]);
    }

    #[test]
    fn map_with_a_hasher_of_its_own_is_made_in_one_place() {
        let text = "use std::collections::HashMap;";
        assert_eq!(found(KEYED_MAP.0, text), [""; 0]);
        assert_eq!(found(GRAPH, text).len(), 1);
        let others = "use std::collections::HashSet; use std::time::Instant; use std::fs;";
        assert_eq!(found(KEYED_MAP.0, others).len(), 3);
    }

    #[test]
    fn shells_and_integration_tests_may_go_outside() {
        assert_eq!(
            found("crates/ciel-runtime/src/lib.rs", "use std::fs;"),
            [""; 0]
        );
        assert_eq!(
            found("crates/ciel-graph/tests/a.rs", "use std::fs;"),
            [""; 0]
        );
    }
}
