//! Ten thousand inputs for each reader; `make soak` takes more.

#![allow(missing_docs)]

use ciel_fuzz::{TARGETS, fuzz};

const CASES: u64 = 10_000;

fn expect_no_finding(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.expect("a target has that name");
    let answers = fuzz(target, 1, CASES).unwrap_or_else(|finding| panic!("{finding}"));
    let count = answers.len();
    assert!(
        count >= target.answers_min,
        "only {count} answers: {answers:?}"
    );
}

#[test]
fn decoder_answers_whatever_it_is_sent() {
    expect_no_finding("decoder");
}

#[test]
fn journal_is_read_without_gaps_or_refused() {
    expect_no_finding("journal");
}

#[test]
fn structured_file_shows_only_what_has_its_checksum_or_is_refused() {
    expect_no_finding("structured file");
}

#[test]
fn archive_of_results_is_read_as_it_would_be_written_or_refused() {
    expect_no_finding("archive of results");
}

#[test]
fn saved_machine_is_loaded_whole_or_refused() {
    expect_no_finding("saved machine");
}

#[test]
fn front_end_answers_any_text() {
    expect_no_finding("front end");
}

#[test]
fn accepted_programs_end_wait_or_fail() {
    expect_no_finding("machine");
}

#[test]
fn reader_that_panics_is_found_with_its_input() {
    let weak = ciel_fuzz::Target {
        name: "weak",
        corpus: || vec![b"good".to_vec()],
        read: |input| {
            assert!(!input.contains(&b'!'), "an exclamation mark");
            input.len().to_string()
        },
        answers_min: 1,
    };
    let finding = fuzz(&weak, 1, CASES).expect_err("some input has that byte");
    assert!(finding.input.contains(&b'!'));
    assert_eq!(finding.message, "an exclamation mark");
    assert_eq!(
        fuzz(&weak, 1, CASES),
        Err(finding),
        "same seed, same finding"
    );
}
