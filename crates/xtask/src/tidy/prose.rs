//! Rules about wording: phrases that a reader would not search for, with the term to use instead.
//!
//! They hold in pages, outside code, in the string literals of the crates whose messages users
//! read, and in comments of Rust and Python, docstrings included. It knows phrases, not grammar.
//! Read next: `words`, for words that must not appear at all.

use super::Finding;
use super::text::{mask_python, mask_rust, without_tests, words};
use super::tree::{Language, Source};

/// A phrase of everyday English, and the term to use instead.
const PLAIN: &[(&str, &str)] = &[
    ("anew", "again, or the act: rebuilds, rewrites, reencodes"),
    ("goes on", "continues or resumes"),
    ("got a place", "got a slot"),
    ("held back", "buffered or delayed"),
    ("holds something else", "differs"),
    ("let out", "released"),
    ("made again", "recomputed"),
    ("makes it again", "recomputes it"),
    ("put aside", "parked, suspended or saved"),
    ("puts aside", "parks, suspends or saves"),
    ("run again", "rerun or replayed"),
    ("so often", "up to N times"),
    ("start afresh", "start a new run"),
    ("taken back", "rolled back or withdrawn"),
    ("taken up", "resumed or recovered"),
    ("takes up", "resumes, recovers or starts"),
    ("the outside", "the environment"),
    ("walk over", "iterate over"),
    ("told ahead", "prefetched"),
    ("tried again", "retried"),
    ("went on", "continued or resumed"),
    ("what it is told", "what it receives"),
    ("who asks", "the caller"),
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
    "crates/ciel-workers/",
];

/// Phrases of the lists in the prose of a page, in the messages of a crate, and in comments.
pub fn vague_phrases(source: &Source) -> Vec<Finding> {
    if source.is_generated() {
        return Vec::new();
    }
    let speaks = SPEAKING.iter().any(|one| source.path.starts_with(one)) && source.is_production();
    let lines = match source.language() {
        Language::Markdown => prose(&source.text),
        Language::Rust if speaks => [messages(&source.text), rust_comments(&source.text)].concat(),
        Language::Rust => rust_comments(&source.text),
        Language::Python => python_comments(&source.text),
        Language::Other => return Vec::new(),
    };
    let mut found = Vec::new();
    for (number, line) in lines {
        let line = line.to_lowercase();
        for (phrase, term) in PLAIN {
            if words(&line, phrase).next().is_some() {
                let message = format!("`{phrase}`: write {term}");
                found.push(Finding::new(&source.path, number, message));
            }
        }
    }
    found
}

/// A line with its number.
type Line = (usize, String);

/// The lines of a page outside code, with their numbers and without the code inside them.
pub(super) fn prose(text: &str) -> Vec<Line> {
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
fn messages(text: &str) -> Vec<Line> {
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

/// The comments of Rust, with those behind code.
fn rust_comments(text: &str) -> Vec<Line> {
    let masked = mask_rust(text);
    let comments = behind_code(text, &masked).filter(|(_, rest)| rest.starts_with("//"));
    joined(comments.map(|(number, rest)| (number, rest.trim_start_matches(['/', '!']))))
}

/// The comments of Python and the lines of its strings that have no code: docstrings are among
/// them.
fn python_comments(text: &str) -> Vec<Line> {
    let masked = mask_python(text);
    let whole: Vec<bool> = masked.lines().map(|line| line.trim().is_empty()).collect();
    let comments = behind_code(text, &masked)
        .filter(|(number, rest)| whole[number - 1] || rest.starts_with('#'));
    joined(comments)
}

/// What each line has behind its last code, if it has anything there.
fn behind_code<'a>(text: &'a str, masked: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let rests = text
        .lines()
        .zip(masked.lines())
        .map(|(line, code)| line[code.trim_end().len()..].trim());
    rests
        .enumerate()
        .map(|(index, rest)| (index + 1, rest))
        .filter(|(_, rest)| !rest.is_empty())
}

/// Lines without the code inside them, each with the first word of the next, so that a phrase is
/// also found across a line break.
fn joined<'a>(comments: impl Iterator<Item = (usize, &'a str)>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (number, text) in comments {
        let outside: Vec<&str> = text.split('`').step_by(2).collect();
        let text = outside.join("`");
        if let Some((last, before)) = lines.last_mut()
            && *last + 1 == number
        {
            before.push(' ');
            before.push_str(text.split_whitespace().next().unwrap_or_default());
        }
        lines.push((number, text));
    }
    lines
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
    }

    #[test]
    fn phrases_of_messages_are_found_and_those_of_tests_are_not() {
        let code = "let c = 1;\nlet a = \"it goes on\";\n\
                    #[cfg(test)]\nmod tests {\n let b = \"goes on\";\n}\n";
        assert_eq!(lines("crates/ciel-cli/src/a.rs", code), [2]);
        assert_eq!(lines("crates/ciel-sim/src/a.rs", code), [0; 0]);
    }

    #[test]
    fn phrases_of_comments_are_found_also_behind_code_and_across_lines() {
        let code = "//! Held back.\nlet a = 1; // made again\n/// Output is let\n/// out here.\n\
                    let b = \"// anew\"; // `anew` is code\n";
        assert_eq!(lines("crates/ciel-sim/src/a.rs", code), [1, 2, 3]);
        assert_eq!(lines("crates/ciel-sim/tests/a.rs", code), [1, 2, 3]);
        let generated = "crates/ciel-protocol/src/generated/a.rs";
        assert_eq!(lines(generated, code), [0; 0]);
    }

    #[test]
    fn phrases_of_docstrings_are_found_and_those_of_other_strings_are_not() {
        let code = "def f():\n    \"\"\"It is run\n    again.\n    \"\"\"\n    \
                    return f('run again')  # taken up\n";
        assert_eq!(lines("sdk/python/ciel/a.py", code), [2, 5]);
    }
}
