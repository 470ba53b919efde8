//! What a file of the user's was like at a moment, to notice that it has changed since.
//!
//! It asks the system and reads no byte, so it does not know what the file holds.

use std::fs::{Metadata, metadata};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustc_hash::FxHashMap;

use crate::settings::Package;

/// The states of the files of packages; a file that there is not has none.
pub(crate) fn stamps<'a>(
    packages: impl Iterator<Item = &'a Package>,
) -> FxHashMap<PathBuf, FileStamp> {
    let stamp = |path: &PathBuf| Some((path.clone(), FileStamp::of(&metadata(path).ok()?)));
    packages
        .flat_map(Package::files)
        .filter_map(stamp)
        .collect()
}

/// The state of a file; after a change another one, as far as the system's clock is fine enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    length: u64,
    /// Seconds and nanoseconds of the last change of the bytes.
    modified: (i64, i64),
    /// Those of the last change of anything else about it.
    changed: (i64, i64),
    device: u64,
    inode: u64,
}

impl FileStamp {
    /// Of a file with these properties.
    pub(crate) fn of(found: &Metadata) -> FileStamp {
        FileStamp {
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
            device: found.dev(),
            inode: found.ino(),
        }
    }

    /// What of it is the same after a restart of the machine.
    pub(crate) fn lasting(&self) -> [u8; 24] {
        let (seconds, nanoseconds) = self.modified;
        let parts = [self.length as i64, seconds, nanoseconds].map(i64::to_be_bytes);
        let mut bytes = [0; 24];
        bytes.copy_from_slice(parts.as_flattened());
        bytes
    }
}
