//! Every bound of this crate, with its unit.
//!
//! It does not know who obeys them: `strand` coalesces, `spill` keeps the memory bounds, `history`
//! spaces the checkpoints.

/// Bytes held in memory behind the frontier above which [`crate::OrderedStream::excess_bytes`]
/// requests a spill.
pub const HELD_BYTES_MAX: u64 = 16 << 20;

/// Bytes that stay in memory when the excess has been spilled. The distance to
/// [`HELD_BYTES_MAX`] pays for the walk that finds the pieces.
pub const HELD_BYTES_AFTER_SPILL: u64 = 8 << 20;

/// Pieces shorter than this, in bytes, are never spilled: an extent would cost as much memory.
pub const SPILL_PIECE_BYTES_MIN: usize = 128;

/// Small writes of one strand are joined up to this many bytes.
pub const COALESCED_BYTES_MAX: usize = 64 << 10;

/// A checkpoint follows the write with which a stretch reaches this many bytes.
pub const CHECKPOINT_BYTES_MAX: u64 = 64 << 10;

/// Children spawned without a write between them that share one checkpoint.
pub const CHECKPOINT_POINTS_MAX: u64 = 64;
