//! The values of the interface: keys, sinks, pieces, extents, chunks.
//!
//! It does not know the order of anything. Read next: `stream`.

use ciel_model::CountedKey;

/// Names one strand. The engine maps its own ids to it, which are counted up; the machine only
/// compares keys.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct StrandKey(pub u64);

impl CountedKey for StrandKey {
    fn of_number(number: u64) -> StrandKey {
        StrandKey(number)
    }

    fn number(self) -> u64 {
        self.0
    }
}

impl std::fmt::Display for StrandKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "strand {:016x}", self.0)
    }
}

/// Where a piece goes to: the caller's number of a file. All sinks have one order together.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Sink(pub u32);

impl Sink {
    /// The sink of [`crate::OrderedStream::write`]: standard output.
    pub const OUTPUT: Sink = Sink(0);
}

/// Bytes outside of this machine, in a blob of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Extent {
    /// Which blob; its meaning is the caller's.
    pub blob: u64,
    /// First byte within the blob.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl Extent {
    /// The part of this extent that begins `start` bytes in and is at most `length` long.
    pub fn part(self, start: u64, length: u64) -> Extent {
        let start = start.min(self.length);
        Extent {
            blob: self.blob,
            offset: self.offset + start,
            length: length.min(self.length - start),
        }
    }
}

/// Some output of a strand.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Piece {
    /// Bytes in memory.
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    /// Bytes in a blob of the caller. Their content is unknown here, so a replay is compared with
    /// them in length only.
    Extent(Extent),
}

impl Piece {
    /// Number of bytes.
    pub fn length(&self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Extent(extent) => extent.length,
        }
    }

    /// What is left without the first `known` bytes.
    pub fn after(self, known: u64) -> Piece {
        match self {
            piece if known == 0 => piece,
            Piece::Bytes(mut bytes) => {
                bytes.drain(..known as usize);
                Piece::Bytes(bytes)
            }
            Piece::Extent(extent) => Piece::Extent(extent.part(known, u64::MAX)),
        }
    }
}

impl From<Vec<u8>> for Piece {
    fn from(bytes: Vec<u8>) -> Piece {
        Piece::Bytes(bytes)
    }
}

/// The next bytes of the serial order. It may leave through the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The root whose output this is.
    pub root: StrandKey,
    /// The strand that wrote it.
    pub strand: StrandKey,
    /// Where to.
    pub sink: Sink,
    /// The bytes; never empty.
    pub piece: Piece,
}
