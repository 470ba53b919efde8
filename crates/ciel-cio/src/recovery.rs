//! What a file holds by its log alone, whatever has become of its end.
//!
//! The log is a chain of blocks; it is read up to the first record that is not intact. Data count
//! only with their checksum, since after a power failure a record may be on the disk without them.
//! What is recovered is the longest prefix of the flat file that is committed and undamaged.
//! It does not know the index. Read next: `reader`.

use std::io;

use crate::error::CioError;
use crate::extents::{Extent, Extents};
use crate::format::{
    Data, FIRST_BLOCK_END, Found, HEADER_BYTES, ITEM_BYTES, RECORD_HEAD_BYTES, Record, Segment,
    check_header, record_at,
};
use crate::order::{Frontier, Order, Unreached, Walk};
use crate::source::{Source, read_most};

/// Why a flat view ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is the whole file.
    Complete,
    /// What follows is not committed: this segment has not ended.
    Open(Segment),
    /// What follows is damaged.
    Damaged(Extent),
    /// This segment stands at two places, which no writer does.
    Repeated(Segment),
}

/// What a log gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The prefix of the flat file.
    pub extents: Extents,
    /// Why it ends there.
    pub ending: Ending,
    /// Segments that are committed behind the frontier, by their numbers.
    pub rest: Vec<Unreached>,
    /// Bytes that are in the prefix by their order, but follow damaged ones.
    pub behind_damage_bytes: u64,
    /// Where the record stands at which the log ends, if it is not intact.
    pub torn_record: Option<u64>,
}

/// Reads the log and checks the data.
///
/// # Errors
/// If there is no header of this format, or the system cannot read.
pub fn recover(source: &impl Source) -> Result<Recovered, CioError> {
    let mut head = [0; HEADER_BYTES];
    let count = read_most(source, &mut head, 0)?;
    check_header(&head[..count])?;
    let log = read_log(source)?;
    let Walk {
        data,
        frontier,
        rest,
    } = log.order.walk();
    let checked = check_all(source, &data)?;
    let ending = match (checked.damaged, frontier) {
        (Some(extent), _) => Ending::Damaged(extent),
        (None, Frontier::Complete) => Ending::Complete,
        (None, Frontier::Open(segment)) => Ending::Open(segment),
        (None, Frontier::Repeated(segment)) => Ending::Repeated(segment),
    };
    Ok(Recovered {
        extents: checked.extents,
        ending,
        rest,
        behind_damage_bytes: checked.behind_bytes,
        torn_record: log.torn,
    })
}

#[derive(Default)]
struct Log {
    order: Order,
    torn: Option<u64>,
}

fn read_log(source: &impl Source) -> io::Result<Log> {
    let mut log = Log::default();
    let mut block = HEADER_BYTES as u64..FIRST_BLOCK_END;
    // Blocks follow one another in the file, so there is an end.
    loop {
        let mut bytes = vec![0; (block.end - block.start) as usize];
        let count = read_most(source, &mut bytes, block.start)?;
        match read_block(&mut log, &bytes[..count], block.start) {
            Some(next) if next.start >= block.end => block = next,
            Some(_) => {
                log.torn = Some(block.start);
                return Ok(log);
            }
            None => return Ok(log),
        }
    }
}

/// Takes the records of a block; gives the next block.
fn read_block(log: &mut Log, block: &[u8], offset: u64) -> Option<std::ops::Range<u64>> {
    let mut at = 0;
    loop {
        let torn = Some(offset + at as u64);
        match record_at(block, at) {
            Found::Nothing => return None,
            Found::Torn => {
                log.torn = torn;
                return None;
            }
            Found::Record(Record::Link { offset, length }, _) => {
                let end = offset.checked_add(u64::from(length));
                if end.is_none() {
                    log.torn = torn;
                }
                return end.map(|end| offset..end);
            }
            Found::Record(
                Record::Commit {
                    segment,
                    items,
                    is_ended,
                },
                next,
            ) => {
                if log.order.commit(segment, &items, is_ended).is_err() {
                    log.torn = torn;
                    return None;
                }
                at = next;
            }
        }
    }
}

struct Checked {
    extents: Extents,
    damaged: Option<Extent>,
    behind_bytes: u64,
}

fn check_all(source: &impl Source, data: &[Data]) -> io::Result<Checked> {
    let mut extents = Extents::default();
    let mut buffer = Vec::new();
    for (place, piece) in data.iter().enumerate() {
        if !is_intact(source, *piece, &mut buffer)? {
            let at = extents.bytes();
            let behind = data[place + 1..].iter();
            return Ok(Checked {
                extents,
                damaged: Some(Extent { at, data: *piece }),
                behind_bytes: behind.map(|piece| u64::from(piece.length)).sum(),
            });
        }
        extents.push(*piece);
    }
    Ok(Checked {
        extents,
        damaged: None,
        behind_bytes: 0,
    })
}

/// Reads data into the buffer; says whether they have their checksum.
pub(crate) fn is_intact(
    source: &impl Source,
    data: Data,
    buffer: &mut Vec<u8>,
) -> io::Result<bool> {
    buffer.resize(data.length as usize, 0);
    let count = read_most(source, buffer, data.offset)?;
    Ok(count == buffer.len() && crc32fast::hash(buffer) == data.checksum)
}

/// Bytes of a record with so many items.
pub(crate) fn record_bytes(items: usize) -> u64 {
    (RECORD_HEAD_BYTES + items * ITEM_BYTES) as u64
}
