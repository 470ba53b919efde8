//! The bytes of a file of the journal: one header, then frames, each with its checksum.
//!
//! It does not know files, nor which frame may follow which. Pure. Read next: [`crate::reader`],
//! which judges whole files; the table of bytes is in `README.md`.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use crate::limits::PAYLOAD_BYTES_MAX;

/// What every file of a journal begins with, in all formats.
pub const MAGIC: [u8; 8] = *b"cieljrnl";
/// The number of this format.
pub const FORMAT: u32 = 1;
/// Bytes of the header of a file.
pub const HEADER_BYTES: usize = 40;
/// Bytes of a frame before its payload.
pub const FRAME_HEAD_BYTES: usize = 25;
/// What every frame begins with. No byte of it repeats and none is zero or a letter, so it is
/// rare in other data and cannot overlap itself.
pub const MARKER: [u8; 4] = [0xC1, 0xE1, 0xF7, 0x9A];

const CHECKED_HEADER_BYTES: usize = HEADER_BYTES - 8;
const CHECKED_FROM: usize = 12;

/// The number of a record in its journal: the first is 1, and 0 means before all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The number after this one.
    pub fn next(self) -> Sequence {
        Sequence(self.0 + 1)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Records in the order of their numbers.
    Log,
    /// The state that all records up to a number lead to.
    Snapshot,
}

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the file is.
    pub kind: FileKind,
    /// The generation of the file, as in its name.
    pub generation: u64,
    /// The last record before this log, or the last one that this snapshot covers.
    pub base: Sequence,
}

/// Why there is no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    /// A journal of another format.
    OtherFormat {
        /// Its number.
        found: u32,
    },
    /// Not a whole header.
    NotIntact,
}

impl Header {
    /// Appends the header's bytes.
    pub fn put(&self, buffer: &mut Vec<u8>) {
        let start = buffer.len();
        let kind: u32 = match self.kind {
            FileKind::Log => 1,
            FileKind::Snapshot => 2,
        };
        buffer.extend_from_slice(&MAGIC);
        buffer.extend_from_slice(&FORMAT.to_le_bytes());
        buffer.extend_from_slice(&kind.to_le_bytes());
        buffer.extend_from_slice(&self.generation.to_le_bytes());
        buffer.extend_from_slice(&self.base.0.to_le_bytes());
        let checksum = xxh3_64(&buffer[start..]);
        buffer.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Reads the header at the beginning of a file.
    ///
    /// # Errors
    /// If there is none, or one of another format.
    pub fn read(bytes: &[u8]) -> Result<Header, HeaderFault> {
        if !bytes.starts_with(&MAGIC) {
            return Err(HeaderFault::NotIntact);
        }
        let format = number_at(bytes, 8).ok_or(HeaderFault::NotIntact)?;
        if format != FORMAT {
            return Err(HeaderFault::OtherFormat { found: format });
        }
        Header::read_checked(bytes).ok_or(HeaderFault::NotIntact)
    }

    fn read_checked(bytes: &[u8]) -> Option<Header> {
        let checked = bytes.get(..CHECKED_HEADER_BYTES)?;
        if long_number_at(bytes, CHECKED_HEADER_BYTES)? != xxh3_64(checked) {
            return None;
        }
        let kind = match number_at(bytes, 12)? {
            1 => FileKind::Log,
            2 => FileKind::Snapshot,
            _ => return None,
        };
        Some(Header {
            kind,
            generation: long_number_at(bytes, 16)?,
            base: Sequence(long_number_at(bytes, 24)?),
        })
    }
}

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// A payload of the caller's, or a piece of a snapshot.
    Record(&'a [u8]),
    /// A promise: all records up to the frame's number were synced, and in the file where the
    /// frame stands all bytes before this offset. Written after the sync.
    SyncMark {
        /// The offset.
        synced_bytes: u64,
    },
    /// The writer had no more to say: a snapshot is whole, or a journal was closed.
    End,
}

/// An intact frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Where it begins in the file.
    pub offset: usize,
    /// Where the next one begins.
    pub end: usize,
    /// The number of the record; of a mark or end, the number of the last record it speaks of.
    pub sequence: Sequence,
    /// What it holds.
    pub content: Content<'a>,
}

/// A payload that is longer than a frame may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadTooLong {
    /// Its bytes.
    pub bytes: usize,
}

const RECORD: u8 = 1;
const SYNC_MARK: u8 = 2;
const END: u8 = 3;

/// Appends a record whose payload is encoded in place. If `encode` panics, nothing is appended.
///
/// # Errors
/// If the payload is longer than [`PAYLOAD_BYTES_MAX`]; nothing is appended.
///
/// # Panics
/// If `encode` takes away bytes that it did not append.
#[inline]
pub fn put_record(
    buffer: &mut Vec<u8>,
    sequence: Sequence,
    encode: impl FnOnce(&mut Vec<u8>),
) -> Result<(), PayloadTooLong> {
    put(buffer, sequence, RECORD, encode)
}

/// Appends a sync mark: see [`Content::SyncMark`].
pub fn put_sync_mark(buffer: &mut Vec<u8>, sequence: Sequence, synced_bytes: u64) {
    let encode = |buffer: &mut Vec<u8>| buffer.extend_from_slice(&synced_bytes.to_le_bytes());
    put(buffer, sequence, SYNC_MARK, encode).expect("eight bytes are not too long");
}

/// Appends an end: see [`Content::End`].
pub fn put_end(buffer: &mut Vec<u8>, sequence: Sequence) {
    put(buffer, sequence, END, |_| ()).expect("no bytes are not too long");
}

#[inline]
fn put(
    buffer: &mut Vec<u8>,
    sequence: Sequence,
    kind: u8,
    encode: impl FnOnce(&mut Vec<u8>),
) -> Result<(), PayloadTooLong> {
    let start = buffer.len();
    let unfinished = Unfinished { buffer, start };
    let mut head = [0; FRAME_HEAD_BYTES];
    head[..4].copy_from_slice(&MARKER);
    head[16..24].copy_from_slice(&sequence.0.to_le_bytes());
    head[24] = kind;
    unfinished.buffer.extend_from_slice(&head);
    encode(unfinished.buffer);
    let frame_bytes = unfinished.buffer.len().checked_sub(start);
    let payload_bytes = frame_bytes.and_then(|bytes| bytes.checked_sub(FRAME_HEAD_BYTES));
    let bytes = payload_bytes.expect("an encoder only appends");
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(PayloadTooLong { bytes });
    }
    let frame = &mut unfinished.buffer[start..];
    frame[12..16].copy_from_slice(&(bytes as u32).to_le_bytes());
    let checksum = xxh3_64(&frame[CHECKED_FROM..]);
    frame[4..12].copy_from_slice(&checksum.to_le_bytes());
    std::mem::forget(unfinished);
    Ok(())
}

/// Takes a frame out of the buffer again unless it was completed.
struct Unfinished<'a> {
    buffer: &'a mut Vec<u8>,
    start: usize,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.buffer.truncate(self.start);
    }
}

/// Bytes of the payload that a frame at this offset claims, if there may be one that ends in the
/// file; nothing of it is checked yet.
pub(crate) fn claimed_bytes(file: &[u8], offset: usize) -> Option<usize> {
    let rest = file.get(offset..)?;
    if rest.len() < FRAME_HEAD_BYTES || !rest.starts_with(&MARKER) {
        return None;
    }
    let bytes = number_at(rest, 12)? as usize;
    (bytes <= PAYLOAD_BYTES_MAX && bytes <= rest.len() - FRAME_HEAD_BYTES).then_some(bytes)
}

/// The intact frame at this offset of a file.
pub fn frame_at(file: &[u8], offset: usize) -> Option<Frame<'_>> {
    let end = offset + FRAME_HEAD_BYTES + claimed_bytes(file, offset)?;
    let frame = &file[offset..end];
    if long_number_at(frame, 4)? != xxh3_64(&frame[CHECKED_FROM..]) {
        return None;
    }
    let payload = &frame[FRAME_HEAD_BYTES..];
    let content = match (frame[24], payload.len()) {
        (RECORD, _) => Content::Record(payload),
        (SYNC_MARK, 8) => Content::SyncMark {
            synced_bytes: long_number_at(payload, 0)?,
        },
        (END, 0) => Content::End,
        _ => return None,
    };
    Some(Frame {
        offset,
        end,
        sequence: Sequence(long_number_at(frame, 16)?),
        content,
    })
}

fn number_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let four = bytes.get(offset..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*four))
}

fn long_number_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let eight = bytes.get(offset..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*eight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoder_that_panics_leaves_the_buffer_as_it_was() {
        let mut buffer = b"before".to_vec();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            put_record(&mut buffer, Sequence(1), |into| {
                into.extend_from_slice(b"half");
                panic!("in the middle");
            })
        }));
        assert!(outcome.is_err());
        assert_eq!(buffer, b"before");
    }

    #[test]
    fn payload_over_the_bound_is_refused_and_leaves_nothing() {
        let mut buffer = Vec::new();
        let long = |into: &mut Vec<u8>| into.resize(into.len() + PAYLOAD_BYTES_MAX + 1, 0);
        let bytes = PAYLOAD_BYTES_MAX + 1;
        assert_eq!(
            put_record(&mut buffer, Sequence(1), long),
            Err(PayloadTooLong { bytes })
        );
        assert!(buffer.is_empty());
    }

    #[test]
    fn header_of_another_format_is_told_from_one_that_is_torn() {
        let mut bytes = Vec::new();
        let kind = FileKind::Log;
        let header = Header {
            kind,
            generation: 3,
            base: Sequence(9),
        };
        header.put(&mut bytes);
        assert_eq!(bytes.len(), HEADER_BYTES);
        assert_eq!(Header::read(&bytes), Ok(header));
        assert_eq!(Header::read(&bytes[..39]), Err(HeaderFault::NotIntact));
        bytes[8] = 7;
        let other = HeaderFault::OtherFormat { found: 7 };
        assert_eq!(Header::read(&bytes), Err(other));
    }
}
