//! Files that were cut, flipped, or were never a journal: what the reader makes of them.
//!
//! Read next: `README.md`, whose rules these are.

mod support;

use std::sync::Arc;

use ciel_journal::frame::{
    Content, FORMAT, FileKind, HEADER_BYTES, Header, put_end, put_record, put_sync_mark,
};
use ciel_journal::reader::{FileEnd, Reader};
use ciel_journal::{Durability, Journal, JournalError, MemoryDisk, Sequence};
use proptest::prelude::*;
use support::{append_next, by_caller, last_of, payload, write_snapshot};

const LOG: &str = "log-0000000000";

/// A log of so many records; where each frame ends, the header first.
fn log(records: u64) -> (Vec<u8>, Vec<usize>) {
    let kind = FileKind::Log;
    let mut bytes = Vec::new();
    let header = Header {
        kind,
        generation: 0,
        base: Sequence(0),
    };
    header.put(&mut bytes);
    let mut ends = vec![bytes.len()];
    for number in 1..=records {
        let encode = |into: &mut Vec<u8>| into.extend_from_slice(&payload(number));
        put_record(&mut bytes, Sequence(number), encode).unwrap();
        ends.push(bytes.len());
    }
    (bytes, ends)
}

fn synced_log(records: u64) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut ends) = log(records);
    let synced = bytes.len() as u64;
    put_sync_mark(&mut bytes, Sequence(records), synced);
    ends.push(bytes.len());
    put_end(&mut bytes, Sequence(records));
    ends.push(bytes.len());
    (bytes, ends)
}

fn records_of(bytes: &[u8]) -> Vec<&[u8]> {
    let frames = Reader::new(bytes);
    frames
        .filter_map(|frame| match frame.content {
            Content::Record(payload) => Some(payload),
            _ => None,
        })
        .collect()
}

#[test]
fn log_cut_anywhere_is_torn_and_gives_the_whole_frames_before() {
    let (bytes, ends) = log(8);
    for length in 0..bytes.len() {
        let file = &bytes[..length];
        let whole = ends.iter().take_while(|end| **end <= length).count();
        let offset = if whole == 0 { 0 } else { ends[whole - 1] };
        let records = whole.saturating_sub(1);
        let expected: Vec<_> = (1..=records as u64).map(payload).collect();
        assert_eq!(records_of(file), expected);
        let is_boundary = whole > 0 && offset == length;
        let ending = if is_boundary {
            FileEnd::Clean { is_ended: false }
        } else {
            FileEnd::Torn {
                offset,
                bytes: length - offset,
                records: 0,
            }
        };
        assert_eq!(Reader::new(file).ending(), ending);
    }
}

#[test]
fn byte_flipped_in_a_synced_log_is_damage_and_never_another_payload() {
    let (bytes, ends) = synced_log(8);
    let mark = ends[8];
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut file = bytes.clone();
            file[at] ^= 1 << bit;
            let given = records_of(&file);
            let expected: Vec<_> = (1..=given.len() as u64).map(payload).collect();
            assert_eq!(given, expected);
            match Reader::new(&file).ending() {
                FileEnd::Damaged { offset, .. } => assert!(offset <= at && at < mark),
                FileEnd::OtherFormat { found } => {
                    assert!((8..12).contains(&at) && found != FORMAT);
                }
                FileEnd::Torn { offset, .. } => {
                    assert!(offset >= mark && offset <= at);
                    assert_eq!(given.len(), 8);
                }
                FileEnd::Clean { .. } => panic!("byte {at} was flipped and nothing found"),
            }
        }
    }
}

#[test]
fn hole_before_unsynced_records_is_torn_and_tells_what_is_lost() {
    let (mut bytes, ends) = log(6);
    bytes[ends[2]..ends[3]].fill(0);
    let torn = FileEnd::Torn {
        offset: ends[2],
        bytes: bytes.len() - ends[2],
        records: 3,
    };
    assert_eq!(Reader::new(&bytes).ending(), torn);
    put_sync_mark(&mut bytes, Sequence(2), ends[2] as u64);
    assert!(matches!(Reader::new(&bytes).ending(), FileEnd::Torn { .. }));
    put_sync_mark(&mut bytes, Sequence(3), ends[3] as u64);
    let damaged = FileEnd::Damaged {
        offset: ends[2],
        next_intact: Some(ends[3]),
    };
    assert_eq!(Reader::new(&bytes).ending(), damaged);
}

#[test]
fn record_out_of_order_is_not_taken() {
    let (mut bytes, ends) = log(2);
    put_record(&mut bytes, Sequence(4), |into| into.push(4)).unwrap();
    assert_eq!(records_of(&bytes).len(), 2);
    let offset = ends[2];
    assert!(
        matches!(Reader::new(&bytes).ending(), FileEnd::Torn { offset: at, .. } if at == offset)
    );
}

#[test]
fn markers_that_claim_long_frames_end_the_search() {
    let (mut bytes, _) = log(1);
    let start = bytes.len();
    for _ in 0..4000 {
        let mut frame = Vec::new();
        put_record(&mut frame, Sequence(2), |_| ()).unwrap();
        frame[12..16].copy_from_slice(&50_000u32.to_le_bytes());
        bytes.extend_from_slice(&frame);
    }
    let ending = Reader::new(&bytes).ending();
    let given_up = FileEnd::Damaged {
        offset: start,
        next_intact: None,
    };
    assert_eq!(ending, given_up);
}

fn opened(files: &[(&str, &[u8])]) -> Result<(u64, Option<u64>), JournalError> {
    let disk = MemoryDisk::new();
    for (name, bytes) in files {
        disk.put_file(name, bytes);
    }
    let (_, recorded) = Journal::open_on(Arc::new(disk), by_caller(Durability::Process))?;
    Ok((last_of(&recorded), recorded.cut.map(|cut| cut.bytes)))
}

#[test]
fn folder_with_another_format_is_refused_with_both_numbers() {
    let (mut bytes, _) = log(2);
    bytes[8] = 9;
    let error = opened(&[(LOG, &bytes)]).unwrap_err();
    assert_eq!(error.code(), "journal.other-format");
    let text = "memory/log-0000000000 is a journal of format 9; \
                this version of ciel reads format 1";
    assert_eq!(error.to_string(), text);
}

#[test]
fn torn_tail_is_cut_from_the_file_and_appending_goes_on() {
    let (bytes, ends) = log(4);
    let disk = MemoryDisk::new();
    disk.put_file(LOG, &bytes[..ends[4] - 1]);
    let open = || Journal::open_on(Arc::new(disk.clone()), by_caller(Durability::Process)).unwrap();
    let (journal, recorded) = open();
    let cut = recorded.cut.as_ref().unwrap();
    assert_eq!((cut.offset, cut.records), (ends[3] as u64, 0));
    assert_eq!(cut.bytes as usize, ends[4] - 1 - ends[3]);
    assert_eq!(last_of(&recorded), 3);
    append_next(&journal);
    journal.close().unwrap();
    let (_, recorded) = open();
    assert_eq!((last_of(&recorded), recorded.cut), (4, None));
    assert!(recorded.is_closed);
}

#[test]
fn torn_tail_is_read_past_and_left_in_the_file() {
    let (bytes, ends) = log(4);
    let disk = MemoryDisk::new();
    let torn = &bytes[..ends[4] - 1];
    disk.put_file(LOG, torn);
    let recorded = Journal::read_on(&disk).unwrap();
    assert_eq!(last_of(&recorded), 3);
    assert_eq!(recorded.cut.unwrap().offset, ends[3] as u64);
    assert_eq!(disk.file(LOG).as_deref(), Some(torn));
    assert_eq!(
        Journal::read_on(&MemoryDisk::new())
            .unwrap()
            .records
            .iter()
            .count(),
        0
    );
}

#[test]
fn log_whose_predecessor_is_gone_is_damage() {
    let mut bytes = Vec::new();
    let header = Header {
        kind: FileKind::Log,
        generation: 1,
        base: Sequence(5),
    };
    header.put(&mut bytes);
    let error = opened(&[("log-0000000001", &bytes)]).unwrap_err();
    assert!(matches!(error, JournalError::Damaged { offset: 0, .. }));
}

#[test]
fn synced_record_missing_before_a_later_log_is_damage_and_unsynced_is_cut() {
    let (first, ends) = log(3);
    let header = Header {
        kind: FileKind::Log,
        generation: 1,
        base: Sequence(3),
    };
    let mut second = Vec::new();
    header.put(&mut second);
    put_record(&mut second, Sequence(4), |into| {
        into.extend_from_slice(&payload(4))
    })
    .unwrap();
    let name = "log-0000000001";
    assert_eq!(
        opened(&[(LOG, &first), (name, &second)]).unwrap(),
        (4, None)
    );
    let short = &first[..ends[2]];
    let (last, cut) = opened(&[(LOG, short), (name, &second)]).unwrap();
    assert_eq!((last, cut), (2, Some(second.len() as u64)));
    put_sync_mark(&mut second, Sequence(3), 0);
    let error = opened(&[(LOG, short), (name, &second)]).unwrap_err();
    assert_eq!(error.code(), "journal.damaged");
}

#[test]
fn byte_flipped_in_a_snapshot_is_damage_or_another_format() {
    let disk = MemoryDisk::new();
    let journal =
        Journal::create_on(Arc::new(disk.clone()), by_caller(Durability::Process)).unwrap();
    append_next(&journal);
    write_snapshot(journal.begin_snapshot().unwrap()).unwrap();
    journal.close().unwrap();
    let (name, log) = ("snapshot-0000000001", "log-0000000001");
    let (bytes, log_bytes) = (disk.file(name).unwrap(), disk.file(log).unwrap());
    assert!(opened(&[(name, &bytes), (log, &log_bytes)]).is_ok());
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        let error = opened(&[(name, &flipped), (log, &log_bytes)]).unwrap_err();
        let is_format = (8..12).contains(&at);
        let code = ["journal.damaged", "journal.other-format"][usize::from(is_format)];
        assert_eq!(error.code(), code);
    }
    for length in 0..bytes.len() {
        let error = opened(&[(name, &bytes[..length])]).unwrap_err();
        assert_eq!(error.code(), "journal.damaged");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        has_header in any::<bool>(),
    ) {
        let mut file = if has_header { log(0).0 } else { Vec::new() };
        file.extend_from_slice(&bytes);
        let mut reader = Reader::new(&file);
        prop_assert_eq!(reader.by_ref().count(), 0);
        let is_whole = bytes.is_empty() && has_header;
        let is_clean = matches!(reader.ending(), FileEnd::Clean { .. });
        prop_assert_eq!(is_clean, is_whole);
    }

    #[test]
    fn log_overwritten_in_places_gives_a_beginning_or_an_error(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        is_synced in any::<bool>(),
    ) {
        let (mut file, _) = if is_synced { synced_log(9) } else { log(9) };
        for (at, byte) in &changes {
            let at = HEADER_BYTES + at.index(file.len() - HEADER_BYTES);
            file[at] = *byte;
        }
        match opened(&[(LOG, &file)]) {
            Ok((last, cut)) => prop_assert!(last == 9 || cut.is_some()),
            Err(error) => prop_assert_eq!(error.code(), "journal.damaged"),
        }
    }
}

/// Records of which the results are lost are given up, and others take their place.
#[test]
fn records_that_are_given_up_are_followed_by_others() {
    let disk = MemoryDisk::new();
    let options = || by_caller(Durability::Process);
    let journal = Journal::create_on(Arc::new(disk.clone()), options()).unwrap();
    for _ in 0..10 {
        append_next(&journal);
    }
    // Its draft is never written; what follows goes to another log.
    let draft = journal.begin_snapshot();
    for _ in 0..5 {
        append_next(&journal);
    }
    journal.wait_for(journal.appended()).unwrap();
    drop(draft);
    journal.close().unwrap();
    for first in 1..=15 {
        let disk = disk.clone().after_kill();
        let cut = Journal::give_up_on(&disk, Sequence(first)).unwrap();
        assert_eq!(cut.unwrap().records, 16 - first);
        assert_eq!(Journal::give_up_on(&disk, Sequence(first)).unwrap(), None);
        let (journal, recorded) = Journal::open_on(Arc::new(disk), options()).unwrap();
        assert_eq!((last_of(&recorded), recorded.cut), (first - 1, None));
        assert_eq!(append_next(&journal), Sequence(first));
        journal.close().unwrap();
    }
}
