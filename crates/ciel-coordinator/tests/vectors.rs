//! Records that were written once stay readable under one number of the format, and are still
//! written so.
//!
//! `vectors/records.txt` holds that number, and then one record a line: its bytes, and what they
//! mean. With `CIEL_ACCEPT=1` it is rewritten, which is refused if an existing line would change
//! under the same number.

#![allow(missing_docs)]

mod conversation;

use std::collections::BTreeSet;
use std::path::PathBuf;

use ciel_coordinator::{Coordinator, FoldError, RECORD_FORMAT, Record};
use ciel_graph::{Event, Step};
use conversation::Conversation;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/records.txt")
}

fn line(record: &[u8]) -> String {
    let bytes: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
    let meaning = Record::read(record).expect("it has just been written");
    format!("{bytes} {meaning:?}\n")
}

fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

/// The kept records with what they are to mean.
fn kept() -> Vec<(Vec<u8>, String)> {
    let text = std::fs::read_to_string(path()).unwrap();
    let read = |line: &str| {
        let (digits, meaning) = line.split_once(' ').unwrap();
        (bytes_of(digits), meaning.to_string())
    };
    text.lines().skip(1).map(read).collect()
}

/// Rewrites the file.
fn accept(written: &str) {
    let before = std::fs::read_to_string(path()).unwrap();
    let mut lines = before.lines();
    let same_format = lines.next() == written.lines().next();
    let gone = lines.find(|line| !written.lines().any(|now| now == *line));
    assert!(
        !same_format || gone.is_none(),
        "raise RECORD_FORMAT: no longer written so: {gone:?}"
    );
    std::fs::write(path(), written).unwrap();
}

#[test]
fn kept_records_are_written_as_before() {
    let records = Conversation::hold().records;
    let lines = records.all().into_iter().map(|record| line(&record));
    let format = format!("format {RECORD_FORMAT}\n");
    let written: String = std::iter::once(format).chain(lines).collect();
    if std::env::var_os("CIEL_ACCEPT").is_some() {
        accept(&written);
    }
    assert_eq!(written, std::fs::read_to_string(path()).unwrap());
}

#[test]
fn kept_records_are_read_as_before_and_can_be_folded() {
    let kept = kept();
    for (bytes, meaning) in &kept {
        let record = Record::read(bytes).unwrap_or_else(|| panic!("not read: {meaning}"));
        assert_eq!(format!("{record:?}"), *meaning);
    }
    let records = kept.iter().map(|(bytes, _)| bytes.as_slice());
    let folded = Coordinator::fold(None, records, |_, _| Ok::<(), FoldError>(())).unwrap();
    let original = Conversation::hold().coordinator;
    assert_eq!(folded.snapshot(), original.snapshot());
}

#[test]
fn kept_records_are_of_every_kind() {
    let kept = kept();
    let met: BTreeSet<&str> = kept
        .iter()
        .map(|(bytes, _)| kind(&Record::read(bytes).unwrap()))
        .collect();
    assert_eq!(met.len(), KINDS, "{met:?}");
}

/// How many answers `kind` has.
const KINDS: usize = 5 + 20 + 7;

/// FailureDetails without a wildcard, so that a new kind is not forgotten here.
fn kind(record: &Record) -> &'static str {
    match record {
        Record::Began { .. } => "began",
        Record::Wrote { .. } => "wrote",
        Record::WroteError { .. } => "wrote error",
        Record::Opened { .. } => "opened",
        Record::WroteFile { .. } => "wrote a file",
        Record::Event { event, .. } => match event {
            Event::RootSubmitted { .. } => "root submitted",
            Event::TaskPlaced { .. } => "placed",
            Event::TaskStepped { step, .. } => match step {
                Step::Spawn { .. } => "spawned",
                Step::Construct { .. } => "constructed",
                Step::Publish { .. } => "published",
                Step::Input { .. } => "told an input",
                Step::Release { .. } => "released",
                Step::OpenOutput { .. } => "opened an output",
                Step::ReadWhole => "opened a stream again",
            },
            Event::TaskBlocked { .. } => "blocked",
            Event::TaskWatched { .. } => "watched",
            Event::TaskFinished { .. } => "finished",
            Event::TaskTailSpawned { .. } => "tail-spawned",
            Event::TaskFailed { .. } => "failed",
            Event::TaskLost { .. } => "lost",
            Event::TaskRolledBack { .. } => "rolled back",
            Event::TaskRecalled { .. } => "recalled",
            Event::EngineLost { .. } => "engine lost",
            Event::FilesLost { .. } => "files lost",
            Event::ContinuationLost { .. } => "continuation lost",
            Event::CancelRequested { .. } => "cancel requested",
            Event::JobCancelled { .. } => "job cancelled",
            Event::Ticked => "ticked",
            Event::TaskRefused { .. } => "refused",
            Event::ResultFound { .. } => "found",
            Event::ResultKnown { .. } => "known",
            Event::ResultMissing { .. } => "missing",
        },
    }
}
