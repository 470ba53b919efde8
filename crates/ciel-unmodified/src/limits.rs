//! Every bound of this crate, with its unit. Bytes in memory are bounded for each stream by the
//! limits of `ciel-ordered`. Read next: `supervisor`, which obeys them.

/// Bytes that one read takes from the pipe of a process, and one write gives to an output.
pub const TRANSFER_BYTES_MAX: usize = 256 << 10;

/// Bytes that are given at once to an output which can only be asked whether it has room: a pipe
/// that has room takes a page without waiting.
pub const POLLED_BYTES_MAX: usize = 4096;

/// Events that one wait returns.
pub const EVENTS_MAX: usize = 256;

/// Bytes of the longest path that a call can name.
pub const PATH_BYTES_MAX: usize = 4096;
