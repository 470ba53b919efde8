//! The bounds of the data plane, each with its unit.

/// Bytes of a pipe of a stream; the most that a user who is not root may ask for.
pub const PIPE_BYTES: usize = 1 << 20;

/// Bytes that one system call moves at most.
pub(crate) const MOVE_BYTES: usize = 1 << 20;

/// Microseconds that a ring spins before it sleeps. More hurts when both ends share a core.
pub(crate) const RING_SPIN_US: u64 = 3;

/// Bytes of a ring at least.
pub(crate) const RING_BYTES_MIN: usize = 4096;

/// Bytes of a ring at most.
pub(crate) const RING_BYTES_MAX: usize = 1 << 30;

/// Bytes of an arena at least; sizes are powers of two.
pub(crate) const ARENA_BYTES_MIN: usize = 64 << 10;

/// Bytes of a frame's payload at most: what each connection holds in memory.
pub const FRAME_BYTES_MAX: usize = 256 << 10;

/// Bytes of the name of an object at most.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// Connections that a server serves at the same time; more are refused as busy.
pub const CONNECTIONS_MAX: usize = 256;

/// Milliseconds after which a server that has nothing to send says that it is there.
pub(crate) const BEAT_MS: u64 = 2_000;

/// Milliseconds without a frame after which a connection counts as broken.
pub const SILENCE_MS_MAX: u64 = 10_000;

/// Connections in a row without one new byte before a fetch fails.
pub const CONNECTS_MAX: u32 = 8;

/// Milliseconds before the second connection; doubled for each one after it.
pub(crate) const RECONNECT_MS: u64 = 5;
