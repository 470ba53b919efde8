//! The bounds and defaults of streams, each with its unit.

/// New bytes after which a consumer is woken unless it asks for another granularity
/// (ciel-programming-models §6.1).
pub const GRANULARITY_BYTES: u64 = 64 << 20;

/// Milliseconds for which a producer in direct mode waits for its consumer before the stream is
/// stored. The machine takes the passing of it as [`crate::Event::LimitPassed`].
pub const CONSUMER_WAIT_MS: u64 = 50;
