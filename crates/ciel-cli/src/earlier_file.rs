//! Files that a command makes, whole or not at all: whether one may take the place of what is
//! there, and the draft that does.
//!
//! It knows no form of file. Read next: `carry`, `look::report`.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

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

/// An empty file beside a path, to be written and then given that name.
///
/// # Errors
/// The system's, without the name of the draft; that of a folder which is missing.
pub(crate) fn draft_of(path: &Path) -> io::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if !folder.exists() {
        let message = format!("there is no folder {}", folder.display());
        return Err(io::Error::new(ErrorKind::NotFound, message));
    }
    let draft = tempfile::Builder::new()
        .permissions(PermissionsExt::from_mode(0o644))
        .tempfile_in(folder);
    draft.map_err(|error| error.kind().into())
}
