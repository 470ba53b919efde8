//! Every bound of this crate, with its unit.

/// Bytes of the longest path that the kernel takes, without the closing zero.
pub const PATH_BYTES_MAX: usize = 4095;

/// Bytes of the longest path inside a state folder.
pub const PATH_BYTES_INSIDE_MAX: usize =
    "/runs/".len() + RUN_ID_BYTES_MAX + "/scratch/".len() + SCRATCH_NAME_BYTES_MAX;

/// Seconds for which the end of a process is awaited that was killed and holds a run.
pub const KILLED_WAIT_S: i64 = 10;

/// Bytes of a run's id.
pub const RUN_ID_BYTES_MAX: usize = 64;

/// Bytes of the part of a scratch name that the caller gives.
pub const SCRATCH_PURPOSE_BYTES_MAX: usize = 128;

/// Bytes of a whole scratch name: task, attempt, purpose and two hyphens.
pub const SCRATCH_NAME_BYTES_MAX: usize = 32 + 10 + 2 + SCRATCH_PURPOSE_BYTES_MAX;

/// Bytes after which spilled output begins another file, so that room can be given back.
pub const SPILL_FILE_BYTES_MAX: u64 = 64 << 20;

/// Bytes of a run's description that are read from its folder.
pub const DESCRIPTION_BYTES_MAX: u64 = 16 << 20;

/// Bytes of how a run ended, as they are kept until that is shown.
pub const OUTCOME_BYTES_MAX: u64 = 64 << 20;

/// Bytes of a file up to which its digest is made when it is committed; reading a longer one would
/// delay its commit.
pub const DIGEST_AT_COMMIT_BYTES_MAX: u64 = 4 << 20;

/// Bytes of objects that are compared with their digests before a run is resumed, the small ones
/// first, so that damaged ones are recomputed at once; others are compared at their first use.
pub const VERIFIED_AT_RESUME_BYTES_MAX: u64 = 1 << 30;

/// Groups of watches that are kept while nobody uses them.
pub const WATCH_GROUPS_IDLE_MAX: usize = 16;

/// Bytes read at a time when a file is read from its beginning to its end.
pub const COPY_BYTES_MAX: usize = 256 << 10;

/// Bytes of the file of a dead object in memory that is kept for a next one, at least: fewer fresh
/// pages cost about as much as finding such a file.
pub const RECYCLED_BYTES_MIN: u64 = 1 << 20;

/// Files that are kept so, at most.
pub const RECYCLED_FILES_MAX: usize = 64;

/// Of the bytes that may be in memory, files that are kept so take at most one in so many.
pub const RECYCLED_SHARE: u64 = 2;

/// Milliseconds for which such a file waits for a next object, at most.
pub const RECYCLED_MS_MAX: u64 = 2000;

/// Pieces of memory that streams share which may be there at once: each takes a descriptor.
pub const STREAM_PIECES_MAX: usize = 256;
