//! The readers of `.cio` files: files that a disk has changed, or that somebody has forged.
//!
//! What is recovered has the checksums of its records, what is read at once is what is read byte by
//! byte, and the index shows what the log shows unless a checksum was forged.

use std::io::Read;

use ciel_cio::format::{ENTRY_BYTES, FIRST_BLOCK_END, HEADER_BYTES, ITEM_BYTES, TRAILER_BYTES};
use ciel_cio::{Ending, Reader, recover};

use super::in_repository;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "structured file",
    corpus,
    read,
    answers_min: 20,
};

/// An input with this first byte, or one of its multiples, keeps the checksums that it has.
const UNREPAIRED: u8 = 3;

/// Bytes of a record before its items.
const RECORD_HEAD_BYTES: usize = ciel_cio::format::RECORD_HEAD_BYTES;

/// Zeros of the first block that an input leaves out, so that changes hit what has a meaning.
const LEFT_OUT: std::ops::Range<usize> = 256..FIRST_BLOCK_END as usize;

/// The golden files.
fn corpus() -> Vec<Vec<u8>> {
    let names = ["complete", "partial", "without_index", "torn", "link"];
    let vector = |name: &str| {
        let path = in_repository("crates/ciel-cio/vectors").join(format!("{name}.txt"));
        file_of(&std::fs::read_to_string(path).expect("a vector can be read"))
    };
    let input = |file: Vec<u8>| [&[1], &file[..LEFT_OUT.start], &file[LEFT_OUT.end..]].concat();
    names.into_iter().map(vector).map(input).collect()
}

/// The bytes of a vector.
fn file_of(text: &str) -> Vec<u8> {
    let mut file = Vec::new();
    for line in text.lines() {
        let (first, rest) = line.split_once(' ').expect("two words at least");
        match first {
            "#" | "flat" | "is" => {}
            "zeros" => {
                let count = rest.split(' ').next().map(str::parse::<usize>);
                let count = count.expect("a word").expect("a number");
                file.resize(file.len() + count, 0);
            }
            _ => {
                let bytes = line.split("  ").next().expect("bytes").split(' ');
                file.extend(bytes.map(|byte| u8::from_str_radix(byte, 16).expect("a byte")));
            }
        }
    }
    file
}

fn read(input: &[u8]) -> String {
    let file = given(input);
    let found = match recover(&&file[..]) {
        Ok(found) => found,
        Err(error) => return error.to_string(),
    };
    for extent in found.extents.iter() {
        let data = extent.data;
        let bytes = &file[data.offset as usize..][..data.length as usize];
        assert_eq!(checksum(bytes), data.checksum, "data are not as written");
    }
    let mut reader = Reader::open(&file[..]).expect("what can be recovered can be opened");
    let mut whole = Vec::new();
    let ended = reader.read_to_end(&mut whole);
    let last = whole.len().saturating_sub(1);
    for at in [0, last / 2, last] {
        let mut byte = [0];
        if let Ok(count) = reader.read_at(&mut byte, at as u64) {
            assert_eq!(whole.get(at..at + count), Some(&byte[..count]));
        }
    }
    let rest = found.rest.len();
    let ending = match found.ending {
        Ending::Complete => "complete",
        Ending::Open(_) => "open",
        Ending::Damaged(_) => "damaged",
        Ending::Repeated(_) => "repeated",
    };
    let (extents, torn) = (found.extents.len(), found.torn_record.is_some());
    let indexed = (ended.is_ok(), whole.len() as u64 == found.extents.bytes());
    format!("{ending}, {extents} extents, {rest} behind, torn {torn}, indexed {indexed:?}")
}

/// The first byte says whether checksums are repaired.
fn given(input: &[u8]) -> Vec<u8> {
    let [flags, rest @ ..] = input else {
        return Vec::new();
    };
    let (log, data) = rest.split_at(rest.len().min(LEFT_OUT.start));
    let mut file = log.to_vec();
    if !data.is_empty() {
        file.resize(FIRST_BLOCK_END as usize, 0);
    }
    file.extend(data);
    if flags % UNREPAIRED != 0 {
        repair(&mut file);
    }
    file
}

/// Makes the checksums right, so that what is behind them is read.
fn repair(file: &mut [u8]) {
    put_checksum(file, 0..12, 12);
    let mut at = HEADER_BYTES;
    while let Some(count) = file.get(at + 6..at + 8) {
        let count = usize::from(u16::from_le_bytes([count[0], count[1]]));
        let end = at + RECORD_HEAD_BYTES + count * ITEM_BYTES;
        if file[at..]
            .iter()
            .take(RECORD_HEAD_BYTES)
            .all(|byte| *byte == 0)
        {
            break;
        }
        put_checksum(file, at + 4..end, at);
        at = end;
    }
    let trailer = file.len().saturating_sub(TRAILER_BYTES);
    let extents = file.get(trailer + 8).copied().unwrap_or(0);
    let index = trailer.saturating_sub(usize::from(extents) * ENTRY_BYTES);
    put_checksum(file, index..trailer, trailer + 24);
    put_checksum(file, trailer..trailer + 28, trailer + 28);
}

fn put_checksum(file: &mut [u8], of: std::ops::Range<usize>, at: usize) {
    let Some(sum) = file.get(of).map(checksum) else {
        return;
    };
    if let Some(place) = file.get_mut(at..at + 4) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
