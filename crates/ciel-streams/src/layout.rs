//! Where what lies in the memory that both ends of a direct stream share: words, then the values.
//!
//! A word is 64 bits, and its number counts from the beginning of the memory. The first ones are
//! those of the units. What one side writes while the other one reads is on lines of its own. It
//! does not know who maps the memory. Read next: `regions`, for where a value lies.

use crate::limits::{SHARED_BYTES, SHARED_UNIT_BYTES, SHARED_UNITS};

/// Words of a line of the cache.
const LINE_WORDS: usize = 8;

/// The word with the number of the newest region that the reader has taken.
pub const TAKEN: usize = SHARED_UNITS.next_multiple_of(LINE_WORDS);

/// The word that counts releases in its lower half. The upper one says whether the producer waits.
pub const RELEASES: usize = TAKEN + LINE_WORDS;

/// The word with the number of bytes from the beginning of the values whose pages are there.
pub const WARM: usize = RELEASES + LINE_WORDS;

/// The word that says whose the memory is: one of the three below.
pub const OWNER: usize = WARM + LINE_WORDS;

/// A stream has the memory, or somebody has taken it who will not pass it on.
pub const IN_USE: u64 = 0;

/// No stream has it: who changes that to [`IN_USE`] has it alone.
pub const FREE: u64 = 1;

/// No stream will have it again, and some values in it are still read.
pub const OVER: u64 = 2;

/// Bytes before the values, which begin on a page of their own.
pub const WORD_BYTES: usize =
    ((OWNER + LINE_WORDS) * size_of::<u64>()).next_multiple_of(SHARED_UNIT_BYTES as usize);

/// Bytes for values in memory of that length; none if no stream has such memory.
pub fn value_bytes(length: u64) -> Option<u64> {
    let bytes = length.checked_sub(WORD_BYTES as u64)?;
    let is_whole = bytes.is_multiple_of(SHARED_UNIT_BYTES);
    (is_whole && (1..=SHARED_BYTES).contains(&bytes)).then_some(bytes)
}
