//! Every bound of this crate, with its unit.
//!
//! It knows nothing but numbers. Next: `message`.

/// Largest message that travels inside a datagram; a larger one goes in a sealed memory file.
pub const DATAGRAM_BYTES_MAX: usize = 64 << 10;

/// Largest request. The kernel's own limit for arguments and environment is far lower.
pub const REQUEST_BYTES_MAX: usize = 64 << 20;

/// Most descriptors that one request may carry.
pub const DESCRIPTORS_MAX: usize = 64;

/// Bytes of reports that are gathered before a datagram is sent.
pub const REPORT_BATCH_BYTES: usize = 16 << 10;

/// How long the report that a process was started waits for others, to go with them.
pub const STARTED_MS_MAX: u64 = 2;

/// Requests taken in one round, so that a burst does not delay reports.
pub const REQUESTS_PER_ROUND: usize = 16;

/// Most processes named in one report of leftovers; the rest are only counted.
pub const LEFT_NAMED_MAX: usize = 32;

/// Length to which the command line of a leftover is cut.
pub const COMMAND_BYTES_MAX: usize = 200;

/// How long the report of a task's end is delayed while its remaining processes die.
pub const LEFTOVERS_MS_MAX: u64 = 2_000;

/// How long a spawner that ends waits for killed processes to be gone.
pub const END_MS_MAX: u64 = 5_000;

/// How long [`crate::sweep`] waits for each killed process to be gone.
pub const SWEEP_MS_MAX: u64 = 2_000;

/// Rounds of searching for processes that a killed tree was still starting.
pub const KILL_ROUNDS_MAX: usize = 32;

/// Attempts to read the environment of a process that is just starting a program.
pub const TRACE_ATTEMPTS_MAX: usize = 20;

/// Pause between two such attempts.
pub const TRACE_PAUSE_US: u64 = 100;

/// How long a template may take to fork a process, before that is started instead.
pub const FORK_MS_MAX: u64 = 5_000;

/// Stack of a child between its birth and its program.
pub const CHILD_STACK_BYTES: usize = 64 << 10;
