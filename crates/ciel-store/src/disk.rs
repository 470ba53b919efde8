//! How much of the disk a folder takes. It does not know what the files are.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes in a block, as the kernel counts blocks of files.
const BLOCK_BYTES: u64 = 512;

/// Bytes on the disk of a folder and all below it; links are not followed. What goes away meanwhile
/// or cannot be looked at counts nothing. Names directly in the folder that are in `without` are
/// skipped.
pub(crate) fn bytes_below(path: &Path, without: &[&str]) -> u64 {
    let own = |path: &Path| {
        fs::symlink_metadata(path).map_or(0, |found| found.blocks().saturating_mul(BLOCK_BYTES))
    };
    let mut bytes = own(path);
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let is_top = folder == path;
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if is_top && without.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            bytes += own(&entry.path());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    bytes
}
