//! The bytes of a `.cio` file: a header, blocks of records, an index, a trailer.
//!
//! All numbers are little-endian and all offsets count from the start of the file, whatever machine
//! writes or reads them. Pure: it does not know files, nor in which order segments follow one
//! another. The page `docs/reference/cio.md` has the same tables. Read next: `order`.

use crate::limits::{EXTENT_BYTES_MAX, LOG_BLOCK_BYTES_MAX, RECORD_ITEMS_MAX};

/// What every `.cio` file begins with, in all formats. The first byte is no text.
pub const MAGIC: [u8; 8] = *b"\x8fcielcio";
/// What every closed `.cio` file ends with.
pub const END_MAGIC: [u8; 8] = *b"cioends\n";
/// The number of this format.
pub const FORMAT: u32 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// Where the first block of the log ends; it begins behind the header.
pub const FIRST_BLOCK_END: u64 = 4096;
/// Bytes of a record before its items.
pub const RECORD_HEAD_BYTES: usize = 16;
/// Bytes of an item of a record.
pub const ITEM_BYTES: usize = 16;
/// Bytes that a link to the next block takes: a record of one item.
pub const LINK_BYTES: usize = RECORD_HEAD_BYTES + ITEM_BYTES;
/// Bytes of an entry of the index.
pub const ENTRY_BYTES: usize = 20;
/// Bytes of the trailer.
pub const TRAILER_BYTES: usize = 40;

const KIND_COMMIT: u8 = 1;
const KIND_LINK: u8 = 2;
const FLAG_ENDED: u8 = 1;

/// The number of a segment: all that one strand writes to the file. The writer gives the numbers;
/// their order has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment(pub u64);

/// The segment at which the flat file begins.
pub const ROOT: Segment = Segment(0);

/// A piece of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Bytes of the strand itself.
    Data(Data),
    /// All that a child has written, at the place where the child was spawned.
    Child(Segment),
}

/// Bytes that lie in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Where they begin.
    pub offset: u64,
    /// How many; from 1 to [`EXTENT_BYTES_MAX`].
    pub length: u32,
    /// Their CRC-32, as in gzip and zip.
    pub checksum: u32,
}

/// An intact record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A segment continues with these items.
    Commit {
        /// Which segment.
        segment: Segment,
        /// What it continues with.
        items: Vec<Item>,
        /// Whether that is all of it.
        is_ended: bool,
    },
    /// The log continues in another block.
    Link {
        /// Where the block begins.
        offset: u64,
        /// Its bytes.
        length: u32,
    },
}

/// What stands at an offset of a block of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A record, and where the next one begins.
    Record(Record, usize),
    /// Nothing has been written here.
    Nothing,
    /// A record that was not written as a whole, or was changed.
    Torn,
}

/// The trailer of a closed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Where the index begins. It ends where the trailer begins.
    pub index_offset: u64,
    /// Entries of the index.
    pub extents: u64,
    /// Bytes of the flat file.
    pub flat_bytes: u64,
    /// CRC-32 of the index.
    pub index_checksum: u32,
}

/// Why a file has no header of this format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFault {
    /// It is no `.cio` file.
    Foreign,
    /// It is a `.cio` file of another format.
    OtherFormat(u32),
    /// The header is not as it was written.
    NotIntact,
}

/// The header.
pub fn header() -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Checks the first bytes of a file.
///
/// # Errors
/// If they are no header of this format.
pub fn check_header(bytes: &[u8]) -> Result<(), HeaderFault> {
    if !bytes.starts_with(&MAGIC) {
        return Err(HeaderFault::Foreign);
    }
    let is_intact = |bytes: &[u8]| Some(crc32fast::hash(&bytes[..12])) == short(bytes, 12);
    match short(bytes, 8) {
        Some(FORMAT) if is_intact(bytes) => Ok(()),
        Some(other) if other != FORMAT && is_intact(bytes) => Err(HeaderFault::OtherFormat(other)),
        Some(_) | None => Err(HeaderFault::NotIntact),
    }
}

/// Appends a record.
///
/// # Panics
/// If it has more than [`RECORD_ITEMS_MAX`] items.
pub fn put_record(buffer: &mut Vec<u8>, record: &Record) {
    let start = buffer.len();
    buffer.extend([0; 4]);
    match record {
        Record::Commit {
            segment,
            items,
            is_ended,
        } => {
            assert!(items.len() <= RECORD_ITEMS_MAX, "a record is too long");
            let flags = if *is_ended { FLAG_ENDED } else { 0 };
            put_head(buffer, KIND_COMMIT, flags, items.len() as u16, segment.0);
            items.iter().for_each(|item| put_item(buffer, item));
        }
        Record::Link { offset, length } => {
            put_head(buffer, KIND_LINK, 0, 1, 0);
            put_numbers(buffer, *offset, *length, 0);
        }
    }
    let checksum = crc32fast::hash(&buffer[start + 4..]);
    buffer[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
}

fn put_head(buffer: &mut Vec<u8>, kind: u8, flags: u8, items: u16, segment: u64) {
    buffer.extend([kind, flags]);
    buffer.extend(items.to_le_bytes());
    buffer.extend(segment.to_le_bytes());
}

fn put_item(buffer: &mut Vec<u8>, item: &Item) {
    match item {
        Item::Data(data) => put_numbers(buffer, data.offset, data.length, data.checksum),
        Item::Child(segment) => put_numbers(buffer, segment.0, 0, 0),
    }
}

fn put_numbers(buffer: &mut Vec<u8>, long: u64, first: u32, second: u32) {
    buffer.extend(long.to_le_bytes());
    buffer.extend(first.to_le_bytes());
    buffer.extend(second.to_le_bytes());
}

/// What stands at this offset of a block.
pub fn record_at(block: &[u8], at: usize) -> Found {
    let rest = block.get(at..).unwrap_or_default();
    // The checksum of a record is never that of zeros.
    if rest.iter().all(|byte| *byte == 0) {
        return Found::Nothing;
    }
    match intact_record(rest) {
        Some((record, length)) => Found::Record(record, at + length),
        None => Found::Torn,
    }
}

fn intact_record(rest: &[u8]) -> Option<(Record, usize)> {
    let head = rest.get(..RECORD_HEAD_BYTES)?;
    let count = usize::from(u16::from_le_bytes([head[6], head[7]]));
    let length = RECORD_HEAD_BYTES + count * ITEM_BYTES;
    let record = rest.get(..length)?;
    if count > RECORD_ITEMS_MAX || short(record, 0)? != crc32fast::hash(&record[4..]) {
        return None;
    }
    let items = &record[RECORD_HEAD_BYTES..];
    let record = match (head[4], head[5]) {
        (KIND_COMMIT, flags @ (0 | FLAG_ENDED)) => Record::Commit {
            segment: Segment(long(head, 8)?),
            items: items.chunks(ITEM_BYTES).map(item).collect::<Option<_>>()?,
            is_ended: flags == FLAG_ENDED,
        },
        (KIND_LINK, 0) if count == 1 && short(items, 8)? <= LOG_BLOCK_BYTES_MAX => Record::Link {
            offset: long(items, 0)?,
            length: short(items, 8)?,
        },
        _ => return None,
    };
    Some((record, length))
}

fn item(bytes: &[u8]) -> Option<Item> {
    let (offset, length) = (long(bytes, 0)?, short(bytes, 8)?);
    let data = Data {
        offset,
        length,
        checksum: short(bytes, 12)?,
    };
    match length {
        0 => Some(Item::Child(Segment(offset))),
        length if length > EXTENT_BYTES_MAX => None,
        length => offset
            .checked_add(u64::from(length))
            .map(|_| Item::Data(data)),
    }
}

impl Trailer {
    /// Appends the trailer's bytes.
    pub fn put(&self, buffer: &mut Vec<u8>) {
        let start = buffer.len();
        buffer.extend(self.index_offset.to_le_bytes());
        buffer.extend(self.extents.to_le_bytes());
        buffer.extend(self.flat_bytes.to_le_bytes());
        buffer.extend(self.index_checksum.to_le_bytes());
        let checksum = crc32fast::hash(&buffer[start..]);
        buffer.extend(checksum.to_le_bytes());
        buffer.extend(END_MAGIC);
    }

    /// The trailer of a file of so many bytes that ends with these; none if it has none, or one
    /// that is not intact.
    pub fn read(last: &[u8], file_bytes: u64) -> Option<Trailer> {
        if last.len() != TRAILER_BYTES || !last.ends_with(&END_MAGIC) {
            return None;
        }
        if short(last, 28)? != crc32fast::hash(&last[..28]) {
            return None;
        }
        let trailer = Trailer {
            index_offset: long(last, 0)?,
            extents: long(last, 8)?,
            flat_bytes: long(last, 16)?,
            index_checksum: short(last, 24)?,
        };
        let index_bytes = trailer.extents.checked_mul(ENTRY_BYTES as u64)?;
        let end = trailer.index_offset.checked_add(index_bytes)?;
        (end.checked_add(TRAILER_BYTES as u64)? == file_bytes).then_some(trailer)
    }
}

pub(crate) fn short(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*four))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*eight))
}
