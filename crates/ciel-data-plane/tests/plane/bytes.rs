//! The bytes of a test stream, and what a reader of them has seen. Each byte follows from its
//! offset, so neither side keeps the stream.

use std::io::{self, Read, Write};

const PERIOD: usize = 65_521;

/// Numbers that look random and follow from a seed.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)) % bound.max(1)
    }
}

/// Two periods, so that a piece of up to one period from any offset is one slice.
pub fn table() -> Vec<u8> {
    let byte = |at: usize| ((at % PERIOD).wrapping_mul(2_654_435_761) >> 7) as u8;
    (0..2 * PERIOD).map(byte).collect()
}

/// The bytes from an offset, at most so many.
pub fn piece(table: &[u8], at: u64, bytes: u64) -> &[u8] {
    let start = (at % PERIOD as u64) as usize;
    &table[start..start + bytes.min(PERIOD as u64) as usize]
}

/// Writes the bytes up to `length`, in pieces of at most `piece_bytes`.
pub fn write(
    to: &mut dyn Write,
    length: u64,
    mut piece_bytes: impl FnMut() -> u64,
) -> io::Result<()> {
    let table = table();
    let mut at = 0;
    while at < length {
        let bytes = piece(&table, at, (length - at).min(piece_bytes().max(1)));
        to.write_all(bytes)?;
        at += bytes.len() as u64;
    }
    Ok(())
}

/// Reads until the end, a fault, or `most` bytes, in pieces of at most `piece_bytes`; every byte
/// must be the right one. Returns the bytes and how it ended.
pub fn read(
    from: &mut dyn Read,
    start: u64,
    most: u64,
    piece_bytes: usize,
) -> (u64, io::Result<()>) {
    let table = table();
    let mut buffer = vec![0; piece_bytes];
    let mut at = start;
    while at - start < most {
        match from.read(&mut buffer) {
            Ok(0) => return (at - start, Ok(())),
            Ok(count) => {
                let mut seen = &buffer[..count];
                while !seen.is_empty() {
                    let expected = piece(&table, at, seen.len() as u64);
                    assert!(seen.starts_with(expected), "wrong bytes near {at}");
                    at += expected.len() as u64;
                    seen = &seen[expected.len()..];
                }
            }
            Err(error) => return (at - start, Err(error)),
        }
    }
    (at - start, Ok(()))
}
