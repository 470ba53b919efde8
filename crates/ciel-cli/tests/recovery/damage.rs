//! Journals that were damaged, cut, or written by another version: a clear error with a way on,
//! or the right output, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use crate::broken_off::{BrokenOff, at_the_gate, only_run, run_folder};
use crate::support::{Ended, Place, until, until_true};
use crate::{PARTS, expect_told, expect_well, output, times_run};

const LOG: &str = "journal/log-0000000000";

/// The run resumed with the right output, or was refused with a hint that works.
fn expect_whole_or_refused(broken: &BrokenOff, ended: &Ended, what: &str) -> bool {
    if ended.code == Some(0) {
        expect_well(ended, &output());
        return true;
    }
    let words = ["error: ", "hint: ", "--new"];
    assert!(output().starts_with(&ended.stdout), "{what}");
    assert!(ended.stderr.contains("damaged"), "{what}: {}", ended.stderr);
    expect_told(ended, 1, &words);
    assert!(
        broken.path(LOG).is_file(),
        "{what}: what is damaged is kept"
    );
    false
}

#[test]
fn flipped_byte_anywhere_in_the_log_is_refused_or_costs_the_end_only() {
    // Only what was synced is known to have been whole.
    let broken = BrokenOff::with(Place::new(), ".ciel", "power");
    let log = fs::read(broken.path(LOG)).unwrap();
    let mut refused = 0;
    for part in 0..24 {
        let at = part * (log.len() - 1) / 23;
        broken.restore();
        let mut bytes = log.clone();
        bytes[at] ^= 0x10;
        fs::write(broken.path(LOG), bytes).unwrap();
        let ended = broken.ciel(&["resume"]);
        let whole = expect_whole_or_refused(&broken, &ended, &format!("byte {at} flipped"));
        refused += usize::from(!whole);
        assert!(whole || !broken.ran_again());
    }
    assert!(refused > 12, "{refused} of 24 were refused");
    // The hint works.
    let fresh = broken.ciel(&["run", "--new", "job.sw"]);
    expect_well(&fresh, &output());
}

#[test]
fn log_cut_anywhere_goes_on_from_what_is_whole_and_says_what_was_cut() {
    let broken = BrokenOff::new();
    let log = fs::read(broken.path(LOG)).unwrap();
    let mut noticed = 0;
    for part in 0..20 {
        let length = part * log.len() / 20;
        broken.restore();
        fs::write(broken.path(LOG), &log[..length]).unwrap();
        let ended = broken.ciel(&["resume"]);
        if expect_whole_or_refused(&broken, &ended, &format!("cut to {length} bytes")) {
            noticed += usize::from(ended.stderr.contains(" bytes of "));
        }
    }
    assert!(noticed > 5, "{noticed} cuts were told of");
}

#[test]
fn log_of_another_format_is_told_with_both_numbers() {
    let broken = BrokenOff::new();
    let mut log = fs::read(broken.path(LOG)).unwrap();
    log[8] += 1;
    fs::write(broken.path(LOG), log).unwrap();
    for words in [&["resume"][..], &["run", "job.sw"]] {
        let ended = broken.ciel(words);
        let words = ["journal of format 2", "reads format 1", "--new"];
        expect_told(&ended, 1, &words);
    }
    assert!(!broken.ran_again());
}

/// The run is refused with these words, and the same job starts afresh.
fn expect_other_version(broken: &BrokenOff, described: &str, words: &str) {
    fs::remove_file(broken.path("run.json")).unwrap();
    fs::write(broken.path("run.json"), described).unwrap();
    let ended = broken.ciel(&["resume"]);
    expect_told(&ended, 2, &[words, "hint: ", "--new"]);
    let fresh = broken.ciel(&["run", "job.sw"]);
    expect_well(&fresh, &output());
    assert!(
        fresh.stderr.contains("a new run starts"),
        "{}",
        fresh.stderr
    );
}

#[test]
fn run_of_another_version_is_not_taken_up() {
    let broken = BrokenOff::new();
    let described = fs::read_to_string(broken.path("run.json")).unwrap();
    let other = described.replacen("\"version\": \"", "\"version\": \"99.", 1);
    expect_other_version(&broken, &other, "was started by version 99.");
}

/// Two builds of one version once spelled records differently: the journal of the older one was
/// called damaged.
#[test]
fn run_with_records_of_another_format_is_not_taken_up() {
    let broken = BrokenOff::new();
    let described = fs::read_to_string(broken.path("run.json")).unwrap();
    let lines = described.lines();
    let older: String = lines
        .filter(|line| !line.contains("record_format"))
        .collect();
    assert_ne!(older.len(), described.len());
    expect_other_version(&broken, &older, "(journal format 0)");
}

#[test]
fn things_that_are_no_log_are_told_or_passed_over() {
    let broken = BrokenOff::new();
    fs::write(broken.path("journal/notes.txt"), "mine").unwrap();
    fs::write(broken.path("journal/draft-0000000007"), "half").unwrap();
    expect_well(&broken.ciel(&["resume"]), &output());
    assert!(!broken.ran_again());

    broken.restore();
    fs::remove_file(broken.path(LOG)).unwrap();
    fs::create_dir(broken.path(LOG)).unwrap();
    let ended = broken.ciel(&["resume"]);
    expect_told(&ended, 1, &["log-0000000000", "hint: ", "--new"]);

    broken.restore();
    fs::write(broken.path("journal/log-0000000003"), "not a log").unwrap();
    let ended = broken.ciel(&["resume"]);
    expect_whole_or_refused(&broken, &ended, "a log too many");

    broken.restore();
    fs::remove_file(broken.path("run.json")).unwrap();
    fs::write(broken.path("run.json"), "{").unwrap();
    expect_told(
        &broken.ciel(&["resume"]),
        2,
        &["has no description", "hint: "],
    );
    expect_well(&broken.ciel(&["run", "job.sw"]), &output());
}

/// Enough lines that the log is replaced by a snapshot.
const MANY_LINES: &str = "line = \"x\"; for (i in range(12)) { line = line + line; } \
    for (i in range(8000)) { print(line); }";

/// Bytes that these lines make.
const MANY_BYTES: u64 = 8000 * 4097;

#[cfg(debug_assertions)]
#[test]
fn run_with_a_snapshot_goes_on_from_it_or_says_that_it_is_damaged() {
    let place = Place::new();
    let (gate, live) = at_the_gate(&place, &[], MANY_LINES);
    let run = only_run(&place, ".ciel");
    let journal = run_folder(&place, ".ciel", &run).join("journal");
    let snapshot = || {
        let names = fs::read_dir(&journal).unwrap().flatten();
        let mut paths = names.map(|entry| entry.path());
        paths.find(|path| path.to_string_lossy().contains("/snapshot-"))
    };
    let snapshot = until("a snapshot", snapshot);
    let first_log = journal.join("log-0000000000");
    until_true("the log before it is gone", || !first_log.exists());
    live.signal("KILL");
    live.end();
    place.await_nobody();
    let whole = fs::read(&snapshot).unwrap();
    for at in [0, 9, 50, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&snapshot, bytes).unwrap();
        let ended = place.run(&["resume"]);
        expect_told(&ended, 1, &["snapshot-", "hint: ", "--new"]);
    }
    fs::remove_file(&snapshot).unwrap();
    expect_told(&place.run(&["resume"]), 1, &["damaged", "hint: ", "--new"]);
    fs::write(&snapshot, whole).unwrap();
    gate.release(1);
    let ended = place.run(&["resume"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout_bytes, output().len() as u64 + MANY_BYTES);
    assert!(output().ends_with(&ended.stdout_end[ended.stdout_end.len() - 500..]));
}

/// The files of objects that a killed run has left, in order.
fn objects_of(broken: &BrokenOff) -> Vec<PathBuf> {
    let listed = fs::read_dir(broken.path("objects")).unwrap();
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Flips one bit of a file, whose length stays.
pub fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = at % bytes.len();
    bytes[at] ^= 1 << (at % 8);
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Each of 205 flipped bits in files of results once gave a wrong result, with exit status 0.
#[test]
fn flipped_bit_in_a_result_is_found_and_the_result_is_recomputed() {
    let broken = BrokenOff::new();
    let all = objects_of(&broken);
    let count = all.len();
    assert!(count >= PARTS / 2, "{count} files");
    let singles = (0..count).step_by(5).map(|n| n..n + 1);
    for flipped in singles.chain(std::iter::once(0..count)) {
        broken.restore();
        for path in &all[flipped.clone()] {
            flip(path, 12_345 + flipped.start);
        }
        let ended = broken.ciel(&["resume"]);
        expect_well(&ended, &output());
        let times = times_run(&broken.place);
        let again = times.iter().filter(|times| **times > 1).count();
        assert_eq!(again, flipped.len(), "{flipped:?}: {times:?}");
        assert!(broken.ran_again());
    }
}
