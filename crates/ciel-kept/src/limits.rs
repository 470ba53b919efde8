//! Every bound of this crate, with its unit.

use std::time::Duration;

/// How long a process waits for another one that writes to the index.
pub const BUSY_WAIT_MAX: Duration = Duration::from_secs(5);

/// KiB of pages of the index that a process keeps: what many short tasks change between two
/// transactions is read and written again less often.
pub const INDEX_CACHE_KIB: i64 = 8 << 10;

/// Pages of 4 KiB in the log of the index from which on they are written into the index: a page
/// that was changed several times by then is written once.
pub const INDEX_LOG_PAGES: i64 = 4 << 10;

/// Notes from which on a batch is of short tasks: it waits until somebody looks.
pub const PENDING_ENTRIES_MIN: usize = 64;

/// Entries that wait at most: to put them in takes part of a second.
pub const PENDING_ENTRIES_MAX: u64 = 128 << 10;

/// Notes without a result that count as one entry among those that wait: about as many as cost the
/// same to put in.
pub const PLACES_OF_ENTRY: usize = 8;

/// Bytes of a batch that waits; one that is longer is put in at once.
pub const PENDING_BYTES_MAX: usize = 4 << 20;

/// Bytes of batches that are put in together, and of the last of them.
pub const PENDING_BYTES_AT_ONCE: usize = 8 << 20;

/// Entries of the same, and of the last of them: a note without a result takes five times its bytes
/// meanwhile.
pub const PENDING_ENTRIES_AT_ONCE: u64 = 16 << 10;

/// Entries without a result that stay, so that a task can be told that its result was removed.
pub const EVICTED_ENTRIES_MAX: u64 = 100_000;

/// Positions of tasks that were not kept, after which those of earlier ones are forgotten; so many
/// more stay until then.
pub const BEGUN_KNOWN_MAX: u64 = 100_000;

/// Entries that are removed in one transaction.
pub const EVICTED_AT_ONCE: u64 = 1_000;

/// Seconds after which another use of an entry is written down.
pub const USE_NOTED_AFTER_S: u64 = 60;

/// Bytes read at a time when an object is compared with its digest.
pub const READ_BYTES: usize = 1 << 20;

/// Bytes of the identities of one run's tasks; those of later tasks are not written down.
pub const IDENTITIES_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a shared entry without its objects.
pub const SHARED_ENTRY_BYTES_MAX: u64 = 64 << 20;

/// Other users of a shared folder whose results are looked for.
pub const SHARED_USERS_MAX: usize = 64;

/// Bytes of what an archive says of itself.
pub const ARCHIVE_MANIFEST_BYTES_MAX: u64 = 64 << 10;

/// Bytes of the name of the user who made an archive.
pub const ARCHIVE_OWNER_BYTES_MAX: usize = 256;

/// Entries of an archive that are kept in one transaction.
pub const CARRIED_AT_ONCE: usize = 256;
