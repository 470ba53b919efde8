//! The bounds and defaults of streams, each with its unit.

/// New bytes after which a consumer is woken unless it asks for another granularity
/// (ciel-programming-models §6.1).
pub const GRANULARITY_BYTES: u64 = 64 << 20;

/// Milliseconds for which a producer in direct mode waits for its consumer before the stream is
/// stored. The machine takes the passing of it as [`crate::Event::LimitPassed`].
pub const CONSUMER_WAIT_MS: u64 = 50;

/// Bytes of the memory that both ends of a direct stream share, at most: four values of 16 MiB with
/// what pickle puts around them. Pages of it that are not used are not there.
pub const SHARED_BYTES: u64 = 66 << 20;

/// Bytes of the least such memory: less does not save what it costs to set it up.
pub const SHARED_BYTES_MIN: u64 = 1 << 20;

/// Bytes of a unit of that memory. A region is whole units.
pub const SHARED_UNIT_BYTES: u64 = 64 << 10;

/// Units of that memory, at most.
pub const SHARED_UNITS: usize = (SHARED_BYTES / SHARED_UNIT_BYTES) as usize;

/// Shorter values go through the pipe, which costs little then.
pub const SHARED_VALUE_BYTES_MIN: u64 = 64 << 10;

/// Longer values than one in so many parts of the memory go through the pipe, so that several of
/// the others have room.
pub const SHARED_VALUE_PARTS: u64 = 4;

/// Of that memory one in so many parts is taken into use without a look at what is released: some
/// values on their way, and pages that stay in the caches of a processor.
pub const SHARED_AT_ONCE_PARTS: u64 = 4;

/// Microseconds that fresh pages of one MiB cost both ends, as measured: what a producer may wait
/// for others.
pub const FRESH_MIB_US: u64 = 300;

/// Milliseconds for which a reader keeps the memory of an ended stream for the next one.
pub const SHARED_KEPT_MS: u64 = 2_000;

/// Values of a reader may keep one in so many parts of that memory. It copies further ones, so that
/// there is room for new ones.
pub const SHARED_HELD_PARTS: u64 = 2;

/// The producer may have told of values in one of so many parts without the reader having taken
/// them. The next one holds the producer until it is taken.
pub const SHARED_UNTAKEN_PARTS: u64 = 4;
