//! The bounds of the format and of what works on it, each with its unit.

/// Bytes of one extent at most, so that a reader can check one before it passes it on.
pub const EXTENT_BYTES_MAX: u32 = 1 << 20;

/// Items of one record at most. A record of that many fits the first block beside a link.
pub const RECORD_ITEMS_MAX: usize = 128;

/// Bytes of a block of the log that this writer reserves.
pub const LOG_BLOCK_BYTES: u32 = 64 << 10;

/// Bytes of a block of the log at most.
pub const LOG_BLOCK_BYTES_MAX: u32 = 16 << 20;

/// Bytes that one thread flattens before it asks for more.
pub(crate) const FLATTENED_BYTES: u64 = 16 << 20;
