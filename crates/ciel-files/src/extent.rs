//! A row of bytes that were written before their turn.
//!
//! It does not know in which file they lie. Read next: `form`.

use ciel_cio::limits::EXTENT_BYTES_MAX;

/// Bytes that are kept at once at most.
pub(crate) const SPILLED_BYTES_MAX: usize = EXTENT_BYTES_MAX as usize;

/// Bytes that are kept until their turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    /// Only in a structured file; there, the log names it.
    pub(crate) checksum: Option<u32>,
}

impl Extent {
    /// A piece of a spill file.
    pub(crate) fn flat(offset: u64, length: u64) -> Extent {
        let checksum = None;
        Extent {
            offset,
            length,
            checksum,
        }
    }

    /// Takes in the next extent, if both are neighbours in a spill file. Those of a structured file
    /// are joined when its index is written.
    pub(crate) fn join(&mut self, next: Extent) -> bool {
        let is_one = self.checksum.is_none() && self.offset + self.length == next.offset;
        if is_one {
            self.length += next.length;
        }
        is_one
    }
}
