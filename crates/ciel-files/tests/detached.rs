//! Detached strands, and strands that are entered without a closure.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};

use ciel_files::{File, Mode, Place, Strand, fork, here};
use proptest::prelude::*;
use tempfile::TempDir;

fn log() -> (TempDir, File) {
    let folder = tempfile::tempdir().unwrap();
    let log = File::create(folder.path().join("log"), Mode::SerialAppend).unwrap();
    (folder, log)
}

fn text(folder: &TempDir) -> String {
    fs::read_to_string(folder.path().join("log")).unwrap()
}

fn writes(strand: &mut Strand, log: &File, text: &str) {
    strand.within(|| (&*log).write_all(text.as_bytes()).unwrap());
}

#[test]
fn entered_strand_writes_in_its_place_until_it_is_left() {
    let (folder, log) = log();
    let strand = fork();
    (&log).write_all(b"third ").unwrap();
    let entered = strand.enter();
    (&log).write_all(b"first ").unwrap();
    let strand = entered.leave();
    (&log).write_all(b"fourth").unwrap();
    let entered = strand.enter();
    (&log).write_all(b"second ").unwrap();
    drop(entered);
    log.close().unwrap();
    assert_eq!(text(&folder), "first second third fourth");
}

#[test]
fn detached_strand_that_is_dropped_leaves_no_byte() {
    let (folder, log) = log();
    let mut strand = here().unwrap().detached();
    writes(&mut strand, &log, "lost");
    drop(strand);
    (&log).write_all(b"kept").unwrap();
    log.close().unwrap();
    assert_eq!(text(&folder), "kept");
}

#[test]
fn strand_with_a_place_is_neither_appended_nor_reduced() {
    let (folder, log) = log();
    let mut forked = fork();
    writes(&mut forked, &log, "first ");
    let forked = forked.append().unwrap_err();
    let mut left = here().unwrap().detached();
    let forked = left.reduce(forked).unwrap_err();
    drop(forked);
    let foreign = std::thread::spawn(|| here().unwrap().detached());
    assert!(left.reduce(foreign.join().unwrap()).is_err());
    writes(&mut left, &log, "second");
    left.append().unwrap();
    log.close().unwrap();
    assert_eq!(text(&folder), "first second");
}

#[test]
fn strand_forked_in_a_detached_one_keeps_its_place() {
    let (folder, log) = log();
    let mut detached = here().unwrap().detached();
    let mut forked = detached.within(fork);
    writes(&mut detached, &log, "third ");
    (&log).write_all(b"first ").unwrap();
    detached.append().unwrap();
    (&log).write_all(b"fourth").unwrap();
    writes(&mut forked, &log, "second ");
    drop(forked);
    log.close().unwrap();
    assert_eq!(text(&folder), "first second third fourth");
}

#[test]
fn pointers_of_a_detached_strand_begin_at_its_place() {
    let (folder, log) = log();
    drop(log);
    fs::write(folder.path().join("log"), "abcdef").unwrap();
    let file = File::open(folder.path().join("log"), Mode::Local).unwrap();
    (&file).seek(SeekFrom::Start(2)).unwrap();
    let place = here().unwrap();
    assert!(!place.has_no_pointers());
    (&file).seek(SeekFrom::Start(5)).unwrap();
    let byte = || {
        let mut byte = [0];
        (&file).read_exact(&mut byte).unwrap();
        byte[0]
    };
    assert_eq!(place.detached().run(byte), b'c');
    assert_eq!(byte(), b'f');
    place.rewind();
    assert_eq!(byte(), b'c');
    assert!(Place::among_writers_of(&file).is_none());
}

proptest! {
    /// Reduction is associative: wherever neighbours are reduced first, the bytes are the same.
    #[test]
    fn detached_strands_reduced_in_any_grouping_follow_one_another(
        lengths in prop::collection::vec(0_usize..200_000, 1..8),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 8),
    ) {
        let (folder, log) = log();
        let place = here().unwrap();
        let mut strands: Vec<Strand> = Vec::new();
        let mut expected = String::new();
        for (number, length) in lengths.into_iter().enumerate() {
            let part = char::from(b'a' + number as u8).to_string().repeat(length);
            let mut strand = place.detached();
            writes(&mut strand, &log, &part);
            strands.push(strand);
            expected += &part;
        }
        for pick in picks {
            if strands.len() > 1 {
                let left = pick.index(strands.len() - 1);
                let right = strands.remove(left + 1);
                strands[left].reduce(right).unwrap();
            }
        }
        prop_assert_eq!(strands.len(), 1);
        strands.remove(0).append().unwrap();
        log.close().unwrap();
        prop_assert_eq!(text(&folder), expected);
    }
}
