//! Every bound of this crate, with its unit.

/// Bytes of the longest path that the kernel takes, without the closing zero.
pub const PATH_BYTES_MAX: usize = 4095;

/// Bytes of the longest path inside a state folder.
pub const PATH_BYTES_INSIDE_MAX: usize =
    "/runs/".len() + RUN_ID_BYTES_MAX + "/scratch/".len() + SCRATCH_NAME_BYTES_MAX;

/// Bytes of a run's id.
pub const RUN_ID_BYTES_MAX: usize = 64;

/// Bytes of the part of a scratch name that the caller gives.
pub const SCRATCH_PURPOSE_BYTES_MAX: usize = 48;

/// Bytes of a whole scratch name: task, attempt, purpose and two hyphens.
pub const SCRATCH_NAME_BYTES_MAX: usize = 32 + 10 + 2 + SCRATCH_PURPOSE_BYTES_MAX;

/// Bytes after which spilled output begins another file, so that room can be given back.
pub const SPILL_FILE_BYTES_MAX: u64 = 64 << 20;

/// Bytes of what a run's folder says about the run, when it is read.
pub const DESCRIPTION_BYTES_MAX: u64 = 16 << 20;

/// Bytes read at a time when an extent is copied out.
pub const COPY_BYTES_MAX: usize = 256 << 10;
