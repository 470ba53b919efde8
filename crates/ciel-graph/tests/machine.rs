//! One event, exact actions: each file in `tests/machine/` is a conversation with the graph.
//!
//! Lines with `>` are events, the lines under them the actions, all of them and in order; `#` is
//! for the reader. With `CIEL_ACCEPT=1` the files are rewritten: read the difference. Read next:
//! `conversation`, which reads the events and prints the actions.

#![allow(missing_docs)]

mod conversation;

use std::path::PathBuf;

use conversation::Conversation;

/// Conversations that there are at least: a folder that is not found must not pass for a success.
const CONVERSATIONS_MIN: usize = 30;

#[test]
fn graph_answers_each_event_with_exactly_these_actions() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/machine");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(paths.len() >= CONVERSATIONS_MIN, "only {}", paths.len());
    let mut different = Vec::new();
    for path in paths {
        let expected = std::fs::read_to_string(&path).unwrap();
        let shown = Conversation::hold(&expected);
        if std::env::var_os("CIEL_ACCEPT").is_some() {
            std::fs::write(&path, shown).unwrap();
        } else if shown != expected {
            let path = path.display();
            different.push(format!("{path}:\n{shown}\ninstead of\n{expected}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
