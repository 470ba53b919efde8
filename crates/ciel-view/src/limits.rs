//! The limits of what a run stores for queries.

/// Bytes of a run's history on disk, whatever the run does.
pub const HISTORY_BYTES_MAX: u64 = 64 << 20;

/// Bytes of why a task failed that a record keeps.
pub const FAILURE_BYTES_MAX: usize = 64 << 10;

/// Live tasks that a run lists at most.
pub const LIVE_TASKS_MAX: usize = 10_000;
