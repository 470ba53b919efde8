//! A rule about the events of the graph: production makes each of them.
//!
//! An event that only tests make is a path that the simulator takes and production does not. The
//! rule reads names: a variant that is followed by `=>`, `|` or `=`, or whose fields end in `..`,
//! is a pattern; any other mention makes a value. Read next: [`super::text`].

use super::Finding;
use super::text::{is_word, line_of, mask_rust, without_tests, words};
use super::tree::Source;

/// Where the enumerations stand.
const EVENTS: &str = "crates/ciel-graph/src/event.rs";

/// The enumerations whose variants need a producer.
const ENUMERATIONS: &[&str] = &["Event", "Step"];

/// Crates whose mentions do not count: the graph handles events, the simulator is a test.
const NO_PRODUCERS: &[&str] = &["crates/ciel-graph/", "crates/ciel-sim/", "crates/xtask/"];

/// Variants that no production code makes.
pub fn events_without_producer(sources: &[Source]) -> Vec<Finding> {
    let Some(events) = sources.iter().find(|one| one.path == EVENTS) else {
        return vec![Finding::new(EVENTS, 0, "is missing")];
    };
    let codes: Vec<String> = sources
        .iter()
        .filter(|one| one.path.ends_with(".rs") && one.is_production())
        .filter(|one| {
            !NO_PRODUCERS
                .iter()
                .any(|crate_| one.path.starts_with(crate_))
        })
        .map(|one| without_tests(&mask_rust(&one.text)))
        .collect();
    let mut found = Vec::new();
    for enumeration in ENUMERATIONS {
        for (line, variant) in variants(&events.text, enumeration) {
            let name = format!("{enumeration}::{variant}");
            if !codes.iter().any(|code| makes(code, &name)) {
                let message = format!("no production code makes `{name}`");
                found.push(Finding::new(EVENTS, line, message));
            }
        }
    }
    found
}

/// The variants of a public enumeration, each with its line.
fn variants(text: &str, enumeration: &str) -> Vec<(usize, String)> {
    let code = mask_rust(text);
    let Some(start) = code.find(&format!("pub enum {enumeration} ")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut depth = 0;
    for (index, line) in code[start..].lines().enumerate() {
        let name = line.trim_start();
        let length = name.bytes().take_while(|byte| is_word(*byte)).count();
        if depth == 1 && name.starts_with(|first: char| first.is_ascii_uppercase()) {
            found.push((line_of(&code, start) + index, name[..length].to_owned()));
        }
        depth += line.matches(['{', '(']).count();
        depth -= line.matches(['}', ')']).count();
        if depth == 0 {
            break;
        }
    }
    found
}

/// Whether the code makes a value of the variant, rather than matching one.
fn makes(code: &str, name: &str) -> bool {
    words(code, name).any(|at| {
        let rest = code[at + name.len()..].trim_start();
        let (fields, rest) = fields_and_rest(rest);
        let rest = rest.trim_start();
        let is_binding = rest.starts_with('=') && !rest.starts_with("==");
        let is_pattern = is_binding || rest.starts_with('|') || rest.starts_with("if ");
        !is_pattern && !fields.trim_end().ends_with("..") && fields.trim() != "_"
    })
}

/// What stands in the brackets with which the text begins, and what follows them.
fn fields_and_rest(text: &str) -> (&str, &str) {
    if !text.starts_with(['{', '(']) {
        return ("", text);
    }
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '{' | '(' => depth += 1,
            '}' | ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (&text[1..at], &text[at + 1..]);
        }
    }
    ("", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(code: &str) -> Vec<String> {
        let events = "pub enum Event {\n    Made {\n        a: u8,\n    },\n}\n";
        let source = |path: &str, text: &str| Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let tree = [source(EVENTS, events), source("crates/a/src/a.rs", code)];
        let found = events_without_producer(&tree);
        found.into_iter().map(|one| one.to_string()).collect()
    }

    #[test]
    fn event_that_is_only_matched_is_found() {
        let expected = format!("{EVENTS}:2: no production code makes `Event::Made`");
        for code in [
            "match event { Event::Made { a } => a }",
            "matches!(event, Event::Made { .. })",
            "let Event::Made { a } = event else { return };",
            "#[cfg(test)]\nmod tests { fn b() { tell(Event::Made { a: 1 }) } }",
        ] {
            assert_eq!(messages(code), [expected.as_str()], "{code}");
        }
    }

    #[test]
    fn event_that_is_made_is_well() {
        assert_eq!(messages("tell(now, Event::Made { a: f(1) });"), [""; 0]);
    }
}
