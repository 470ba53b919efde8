//! Rules about wording: phrases that a reader would not search for, with the term to use instead.
//!
//! They hold in pages, outside code, and in the string literals of the crates whose messages users
//! read. It knows phrases, not grammar. Read next: `words`, for words that must not appear at all.

use super::Finding;
use super::text::{mask_rust, without_tests, words};
use super::tree::{Language, Source};

/// A phrase of everyday English, and the term to use instead.
const PLAIN: &[(&str, &str)] = &[
    ("goes on", "continues or resumes"),
    ("made again", "recomputed"),
    ("makes it again", "recomputes it"),
    ("run again", "rerun or replayed"),
    ("told ahead", "prefetched"),
    ("the outside", "the environment"),
    ("who asks", "the caller"),
    ("what it is told", "what it receives"),
    ("so often", "up to N times"),
    ("start afresh", "start a new run"),
    ("tried again", "retried"),
    ("got a place", "got a slot"),
    ("walk over", "iterate over"),
    ("holds something else", "differs"),
];

/// Pages that are held to other texts: to doc comments by a test, to the wire protocol, to the code
/// map. Their wording follows those.
const HELD_TO_OTHER_TEXTS: &[&str] = &[
    "ARCHITECTURE.md",
    "docs/reference/journal.md",
    "protocol/PROTOCOL.md",
    "protocol/vectors/README.md",
];

/// Crates whose string literals are messages to users.
const SPEAKING: &[&str] = &[
    "crates/ciel-cli/",
    "crates/ciel-coordinator/",
    "crates/ciel-graph/",
    "crates/ciel-journal/",
    "crates/ciel-model/",
    "crates/ciel-ordered/",
    "crates/ciel-runtime/",
    "crates/ciel-skywriting/",
    "crates/ciel-spawner/",
    "crates/ciel-store/",
    "crates/ciel-view/",
];

/// Phrases of the list in the prose of a page or in the messages of a crate.
pub fn vague_phrases(source: &Source) -> Vec<Finding> {
    if HELD_TO_OTHER_TEXTS.contains(&source.path.as_str()) {
        return Vec::new();
    }
    let speaks = SPEAKING.iter().any(|one| source.path.starts_with(one)) && source.is_production();
    let lines = match source.language() {
        Language::Markdown => prose(&source.text),
        Language::Rust if speaks => messages(&source.text),
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    for (number, line) in lines {
        for (phrase, term) in PLAIN {
            if words(&line, phrase).next().is_some() {
                let message = format!("`{phrase}`: write {term}");
                found.push(Finding::new(&source.path, number, message));
            }
        }
    }
    found
}

/// The lines of a page outside code, with their numbers and without the code inside them.
pub(super) fn prose(text: &str) -> Vec<(usize, String)> {
    let mut inside_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        inside_code ^= is_fence;
        if !inside_code && !is_fence {
            let outside: Vec<&str> = line.split('`').step_by(2).collect();
            lines.push((index + 1, outside.join("`")));
        }
    }
    lines
}

/// The lines of production code that hold string literals.
fn messages(text: &str) -> Vec<(usize, String)> {
    let code = mask_rust(text);
    let production = without_tests(&code);
    let lines = text.lines().zip(code.lines()).zip(production.lines());
    let spoken = lines.enumerate().filter(|(_, ((line, code), production))| {
        let is_comment = line.trim_start().starts_with("//");
        line != code && code == production && !is_comment
    });
    spoken
        .map(|(index, ((line, _), _))| (index + 1, line.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let (path, text) = (path.to_owned(), text.to_owned());
        let found = vague_phrases(&Source { path, text });
        found.into_iter().map(|one| one.line).collect()
    }

    #[test]
    fn phrases_of_prose_are_found_and_those_of_code_are_not() {
        let page = "It goes on.\n`goes on`\n```\ngoes on\n```\nIt is made again.\n";
        assert_eq!(lines("docs/a.md", page), [1, 6]);
        assert_eq!(lines("protocol/PROTOCOL.md", page), [0; 0]);
    }

    #[test]
    fn phrases_of_messages_are_found_and_those_of_comments_and_tests_are_not() {
        let code = "// goes on\nlet a = \"it goes on\";\n\
                    #[cfg(test)]\nmod tests {\n let b = \"goes on\";\n}\n";
        assert_eq!(lines("crates/ciel-cli/src/a.rs", code), [2]);
        assert_eq!(lines("crates/ciel-sim/src/a.rs", code), [0; 0]);
    }
}
