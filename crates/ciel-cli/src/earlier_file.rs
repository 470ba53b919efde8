//! Whether a file that a command makes may take the place of what is there.
//!
//! It knows no form of file. Read next: `carry`, `look::report`.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Whether nothing is there, or an empty file, or one whose first `length` bytes at most say that
/// it is an earlier one of the same kind.
///
/// # Errors
/// The system's, if a file is there that cannot be read.
pub(crate) fn may_replace(
    path: &Path,
    length: u64,
    is_earlier: impl FnOnce(&[u8]) -> bool,
) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut beginning = Vec::new();
    file.take(length).read_to_end(&mut beginning)?;
    Ok(beginning.is_empty() || is_earlier(&beginning))
}
