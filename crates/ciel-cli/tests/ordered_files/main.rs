//! Ordered files: what tasks append is what the serial program would have written there, live and
//! once, whatever is killed.
//!
//! Read first: `support`. Read next: `programs`, random programs with their files; `following`, who
//! reads along; `held`, when too much waits; `rules`, for files that hold something already;
//! `sizes`, the large and the empty ones.

mod following;
mod held;
mod programs;
mod rules;
mod sizes;
#[path = "../support/mod.rs"]
mod support;

use support::Ended;

/// A run has ended well and shown that.
fn expect_well(ended: &Ended, shown: &str) {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, shown, "{}", ended.stderr);
}

/// A run was refused or failed, in these words.
fn expect_told(ended: &Ended, words: &[&str]) {
    assert_ne!(ended.code, Some(0), "{}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
}

/// A command that appends a line to the file `log` when the gate lets it.
fn held_append(gate: &str, line: &str) -> String {
    format!(
        "spawn_exec(\"shell\", {{\"command\": \"read x < {gate}; echo {line} >&{{log}}\", \
         \"appends\": {{\"log\": \"log\"}}}}, 1, {{\"pure\": false}})[0]"
    )
}
