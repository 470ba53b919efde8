//! The store as a user sees it: what takes the room, and for how long.
//!
//! Read first: `support`; then `shown`, `chains`, `budget`, `overwritten`.

mod budget;
mod chains;
mod overwritten;
mod shown;
#[path = "../support/mod.rs"]
mod support;

use serde_json::Value;
use support::{Ended, Place};

/// Bytes of a mebibyte.
const MIB: u64 = 1 << 20;

/// What `--json` says at the end of a run.
fn ending(ended: &Ended) -> Value {
    let lines = ended
        .stderr
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let mut ends = lines.filter(|line: &Value| line["event"] == "ended");
    ends.next()
        .unwrap_or_else(|| panic!("no end: {}", ended.stderr))
}

/// What `ciel ps --store --json` says of the first run.
fn looked(place: &Place) -> Value {
    let ended = place.run(&["ps", "--store", "--json"]);
    let run: Value = serde_json::from_str(ended.stdout.lines().next().unwrap()).unwrap();
    run["store"].clone()
}

/// The numbers of a store agree with each other.
fn expect_balance(store: &Value) {
    let number = |name: &str| store[name].as_u64().unwrap();
    let made = number("made_bytes");
    assert_eq!(
        made - number("released_bytes"),
        number("present_bytes"),
        "{store}"
    );
    let kinds = store["kinds"].as_array().unwrap().iter();
    let of_kinds: u64 = kinds.map(|kind| kind["made_bytes"].as_u64().unwrap()).sum();
    assert_eq!(of_kinds, made, "{store}");
    assert!(number("peak_bytes") >= number("present_bytes"), "{store}");
}
