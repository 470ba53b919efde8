//! The reader of journals: files that a disk has changed, or that somebody has forged.
//!
//! What is read is a row of records without a gap, a journal that is opened holds what reading it
//! gives, and it can be continued.

use std::sync::Arc;

use ciel_journal::frame::{FRAME_HEAD_BYTES, HEADER_BYTES, MAGIC, MARKER};
use ciel_journal::{Durability, Journal, MemoryDisk, Options, Recorded, Sequence, Upkeep};
use xxhash_rust::xxh3::xxh3_64;

use super::in_repository;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "journal",
    corpus,
    read,
    answers_min: 20,
};

/// The files of a folder, in the order in which an input has them.
const NAMES: [&str; 4] = [
    "log-0000000001",
    "snapshot-0000000001",
    "log-0000000000",
    "log-0000000002",
];

/// An input with this first byte, or one of its multiples, keeps the checksums that it has.
const UNREPAIRED: u8 = 3;

/// The golden files, alone and together, and a journal of one log.
fn corpus() -> Vec<Vec<u8>> {
    let vector = |name: &str| {
        let path = in_repository("crates/ciel-journal/tests/vectors").join(name);
        std::fs::read(path).expect("a vector can be read")
    };
    let [log, snapshot] = [NAMES[0], NAMES[1]].map(vector);
    let first = written();
    let rows = [
        vec![&log],
        vec![&log, &snapshot],
        vec![&log, &snapshot, &first],
    ];
    let rows = rows.iter().map(|files| files.iter().copied());
    let inputs = rows.map(|files| files.fold(vec![1], |input, file| [&input, &**file].concat()));
    inputs.collect()
}

/// The log of a journal that was synced once and closed.
fn written() -> Vec<u8> {
    let disk = MemoryDisk::new();
    let journal = Journal::create_on(Arc::new(disk.clone()), options()).expect("it is empty");
    for record in 0..8_u8 {
        journal.append(|payload| payload.extend([record; 12]));
        if record == 4 {
            journal.sync().expect("memory does not fail");
        }
    }
    journal.close().expect("memory does not fail");
    disk.file(NAMES[2]).expect("the first log")
}

fn options() -> Options {
    Options {
        durability: Durability::Process,
        upkeep: Upkeep::Caller,
        on_failure: None,
    }
}

fn read(input: &[u8]) -> String {
    let disk = disk_of(input);
    let recorded = match Journal::read_on(&disk) {
        Ok(recorded) => recorded,
        Err(error) => return error.code().to_string(),
    };
    let records = records_of(&recorded);
    let mut numbers = recorded.snapshot_until;
    for (number, _) in &records {
        numbers = numbers.next();
        assert_eq!(*number, numbers, "a record is missing");
    }
    expect_continued(disk, &records);
    let (cut, closed) = (recorded.cut.is_some(), recorded.is_closed);
    let count = records.len();
    format!(
        "{count} after {}, cut {cut}, closed {closed}",
        recorded.snapshot_until
    )
}

fn records_of(recorded: &Recorded) -> Vec<(Sequence, Vec<u8>)> {
    let records = recorded.records.iter();
    records
        .map(|(number, payload)| (number, payload.to_vec()))
        .collect()
}

/// A journal that can be read can be opened, gives the same records, and takes one more.
fn expect_continued(disk: MemoryDisk, records: &[(Sequence, Vec<u8>)]) {
    let opened = Journal::open_on(Arc::new(disk.clone()), options());
    let (journal, recorded) = opened.expect("what can be read can be opened");
    assert_eq!(records_of(&recorded), records);
    let number = journal.append(|payload| payload.extend(b"one more"));
    journal.close().expect("memory does not fail");
    let again = Journal::read_on(&disk).expect("it was continued");
    let last = records_of(&again).pop();
    assert_eq!(last, Some((number, b"one more".to_vec())));
}

/// The first byte says whether checksums are repaired, each file begins with the magic word.
fn disk_of(input: &[u8]) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let [flags, rest @ ..] = input else {
        return disk;
    };
    let starts = rest.windows(MAGIC.len()).enumerate();
    let starts = starts.filter(|(_, window)| *window == MAGIC);
    let mut starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    starts.push(rest.len());
    for (bounds, name) in starts.windows(2).zip(NAMES) {
        let mut file = rest[bounds[0]..bounds[1]].to_vec();
        if flags % UNREPAIRED != 0 {
            repair(&mut file);
        }
        disk.put_file(name, &file);
    }
    disk
}

/// Makes the checksums right, so that what is behind them is read.
fn repair(file: &mut [u8]) {
    let sum_at = HEADER_BYTES - size_of::<u64>();
    if let Some((checked, sum)) = file.split_at_mut_checked(sum_at)
        && let Some(sum) = sum.first_chunk_mut()
    {
        *sum = xxh3_64(checked).to_le_bytes();
    }
    let mut at = HEADER_BYTES;
    while let Some(frame) = file
        .get_mut(at..)
        .filter(|rest| rest.len() >= FRAME_HEAD_BYTES)
    {
        if frame.starts_with(&MARKER) {
            repair_frame(frame);
        }
        at += 1;
    }
}

/// A frame has its checksum after the marker, then its length, which counts the payload alone.
fn repair_frame(frame: &mut [u8]) {
    let length: [u8; 4] = frame[12..16].try_into().expect("four bytes");
    let end = FRAME_HEAD_BYTES.saturating_add(u32::from_le_bytes(length) as usize);
    if let Some(checked) = frame.get(12..end) {
        let sum = xxh3_64(checked);
        frame[4..12].copy_from_slice(&sum.to_le_bytes());
    }
}
