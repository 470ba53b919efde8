//! Every bound of this crate, with its unit.

use std::time::Duration;

/// Bytes of the payload of one frame.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// Bytes of a snapshot's payload that go into one frame.
pub const SNAPSHOT_CHUNK_BYTES_MAX: usize = 1 << 20;

/// Bytes that are checked at most for each byte behind the first one that is not intact, when
/// intact frames are looked for there. Bytes made to look like many long frames end it.
pub const SURVEY_FACTOR_MAX: usize = 64;

/// Bytes of the gathering buffer that are kept for the next round; more is given back.
pub const BUFFER_BYTES_KEPT_MAX: usize = 4 << 20;

/// The pause of the writer thread between two writes.
pub const WRITE_PAUSE: Duration = Duration::from_millis(1);

/// Pauses without work after which the writer thread sleeps until it is woken.
pub const IDLE_PAUSES_MAX: u32 = 16;

/// The time from a write to the sync that follows it in the background.
pub const SYNC_PAUSE: Duration = Duration::from_secs(1);
