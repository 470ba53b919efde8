//! Every bound of the engine, with its unit, in one place.

/// Bytes: a value below this travels inside messages and records; a larger one is a file.
pub const INLINE_BYTES_MAX: usize = 1024;

/// Times a task is replayed because its worker died before that is its failure.
pub const LOSSES_MAX: u32 = 3;

/// Times a task begins again because the file of an object was lost before that is its failure.
pub const MISSES_MAX: u32 = 16;

/// Times in a row that files are lost while others are recomputed before the job fails.
pub const RECONSTRUCTIONS_MAX: u32 = 16;

/// Actions that a strand may number.
pub const ACTIONS_MAX: u64 = 1 << 62;

/// Outputs of one task.
pub const OUTPUTS_MAX: u32 = 10_000;

/// Retries that a task may request.
pub const RETRIES_MAX: u32 = 1_000;

/// Frames that a failure keeps on its way to the root.
pub const FAILURE_FRAMES_MAX: usize = 32;

/// Calls of a traceback, as a worker reported them, that a failure keeps: the innermost.
pub const TRACEBACK_CALLS_MAX: usize = 256;

/// Bytes of an exception that a failure carries; a longer one is left out.
pub const EXCEPTION_BYTES_MAX: usize = 256 << 10;

/// Transitions that a task's story keeps; older ones are dropped from the middle.
pub const STORY_ENTRIES_MAX: usize = 16;

/// Microseconds for which a task runs at least before it is a straggler.
pub const STRAGGLER_US_MIN: u64 = 1_000_000;

/// Times the median of its function for which a straggler has run.
pub const STRAGGLER_MEDIANS: u64 = 3;

/// Tasks of a function that must have ended before another one is a straggler.
pub const STRAGGLER_TIMES_MIN: usize = 5;

/// Tasks of a function of which it is remembered how long they ran: the latest.
pub const STRAGGLER_TIMES_MAX: usize = 31;

/// Looks for stragglers within the least time of one, at most.
pub const STRAGGLER_LOOKS: u64 = 4;

/// Second runs of stragglers at a time.
pub const DUPLICATES_MAX: usize = 16;

/// Ready tasks that a scheduling round looks at before it gives up finding one that fits.
pub const BACKFILL_SCAN_MAX: usize = 64;

/// Microseconds that a strand of a pure task waits for the worker that keeps it, beyond those that
/// its replay would run, before it resumes in another one.
pub const RESUME_PATIENCE_US: u64 = 5_000;

/// Microseconds that the root, once what it waits for is resolved, lets ready tasks keep the cores
/// to themselves: it then finds many results, and is not switched to for each.
pub const ROOT_PATIENCE_US: u64 = 1_000;

/// Inputs of one task of which a worker may keep something, so that the task goes there.
pub const NEAR_MAX: usize = 8;

/// Locality weight of an input in percent: a million times the usual one.
pub const WEIGHT_PERCENT_MAX: u32 = 100_000_000;

/// Objects of which one worker may keep something, as far as its node heeds that.
pub const CACHES_MAX: usize = 256;

/// Times a ready task may be overtaken, by later ones that fit or by strands that have run before,
/// before nothing may overtake it.
pub const OVERTAKEN_MAX: u32 = 200;

/// Pooled workers that there may be at least beyond the number of slots; where there are more slots
/// than these, as many as slots.
pub const SPARE_WORKERS_MIN: usize = 2;

/// Strands that may be parked in one pooled worker.
pub const PARKED_STRANDS_MAX: usize = 1_000_000;

/// Milliseconds for which the producer of a stream may be held before it has a reader; then the
/// stream is stored.
pub const STREAM_READER_WAIT_MS: u64 = 50;

/// Milliseconds for which it may be held by a reader that has a slot, whose process or worker is
/// about to start.
pub const STREAM_READER_START_MS: u64 = 10_000;

/// Microseconds for which a ready producer with a single consumer is expected to have a reader that
/// was not spawned yet: so long it begins only where two slots are free.
pub const STREAM_READER_EXPECTED_US: u64 = 50_000;

/// Microseconds for which a slot is kept for the reader of a direct stream that waits for nothing
/// but the beginning of it.
pub const STREAM_SLOT_KEPT_US: u64 = 1_000_000;

/// Microseconds for which a producer with a reader leaves a slot free that it could have for itself
/// alone, because another direct stream has the second one.
pub const STREAM_PRODUCER_HELD_US: u64 = 250_000;

/// Milliseconds after which it is looked whether a command reads an output that is a stream, which
/// it has opened for reading and writing; each further look comes after twice the time.
pub const STREAM_MISREAD_MS_MIN: u64 = 50;

/// Milliseconds between two of those looks at most.
pub const STREAM_MISREAD_MS_MAX: u64 = 60_000;

/// Streams that a command reads; further ones it reads when they are whole.
pub const STREAM_INPUTS_MAX: usize = 48;

/// The number of the descriptor by which a command reads its first stream that has a name: above
/// those that shells give to scripts.
pub const STREAM_DESCRIPTOR_FIRST: i32 = 100;

/// Bytes that the pipe of a stream holds: few enough to stay in the cache of a core.
pub const STREAM_PIPE_BYTES: usize = 256 << 10;

/// New bytes for which the reader of a stream can wait at once.
pub const STREAM_GRANULARITY_BYTES_MAX: u64 = 1 << 48;

/// Bytes of a stream that are copied before others get a turn.
pub const STREAM_COPY_BYTES_MAX: usize = 1 << 20;

/// Bytes of one piece handed to the output at once.
pub const OUTPUT_PIECE_BYTES_MAX: usize = 1 << 20;

/// Bytes of an object that a script may load as a value.
pub const SCRIPT_LOAD_BYTES_MAX: u64 = 16 << 20;

/// Instructions a script runs before others get a turn.
pub const SCRIPT_FUEL: u64 = 50_000;

/// Inputs of a command that its failure shows.
pub const FAILURE_INPUTS_MAX: usize = 8;

/// Bytes of standard output and of standard error, each, kept for the failure of a command.
pub const ERROR_TAIL_BYTES_MAX: usize = 4096;

/// Lines of standard error shown in a failure message.
pub const ERROR_TAIL_LINES_MAX: usize = 20;

/// Bytes of a failed command's standard output kept for `ciel logs` if they were to be an output.
pub const OUTPUT_LOG_BYTES_MAX: usize = 64 << 10;

/// Bytes of standard error of one task kept for `ciel logs`.
pub const LOG_BYTES_MAX: usize = 1 << 20;

/// Ended tasks that a run's history records one by one; beyond it, it samples the newest, and keeps
/// all failures.
pub const HISTORY_TASKS_MAX: usize = 10_000;

/// Functions whose tasks are counted apart.
pub const FUNCTIONS_COUNTED_MAX: usize = 1_000;

/// Milliseconds between asking a process to end and killing it.
pub const KILL_GRACE_MS: u64 = 1_000;

/// Milliseconds a worker has from the start of its process until its hello is complete.
pub const HELLO_MS_MAX: u64 = 30_000;

/// Milliseconds between two samples of a limited task's memory.
pub const MEMORY_SAMPLE_MS: u64 = 50;

/// Per cent by which a task may exceed its declared memory.
pub const MEMORY_EXCESS_PERCENT: u64 = 20;

/// Tasks that are rerun, one after the other, at most to recompute a lost file.
pub const LINEAGE_DEPTH_MAX: u32 = 8;

/// Things a task was given that are remembered at most with a file that it made.
pub const LINEAGE_INGREDIENTS_MAX: usize = 1024;

/// Failures of other tasks that one attempt keeps, to find the one that ends it.
pub const RECEIVED_FAILURES_MAX: usize = 256;

/// Children of a strand that have not ended from which on it pauses, until half as many are left.
/// Few enough that what waits takes a dozen megabytes, and so many that the half that is left keeps
/// any number of cores busy until the strand has its turn again.
pub const CHILDREN_MAX: u32 = 10_000;

/// Tasks that a script may spawn before it looks whether it has to pause.
pub const ASKED_AFTER_SPAWNS: u32 = 1_000;

/// Bytes that a task may write, in a run with a bound of output that waits, before it asks whether
/// it may go on.
pub const ASKED_AFTER_BYTES: usize = 64 << 10;
