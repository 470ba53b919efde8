//! The file of `--trace`: created, or an earlier trace replaced; no other file is changed.
//!
//! It does not know the format of a trace. Read next: `ciel_view::trace`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use ciel_view::trace::BEGINNING;

use crate::cli_error::CliError;

/// Opens the file for a trace, and empties it if it holds an earlier one.
pub fn open(path: &Path) -> Result<Arc<File>, CliError> {
    let refused = |error: io::Error| {
        let message = format!("cannot write the trace to {}: {error}", path.display());
        CliError::usage("trace.open", message)
    };
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    let file = opened.map_err(refused)?;
    if !file.metadata().map_err(refused)?.is_file() || !may_replace(&file).map_err(refused)? {
        let message = format!("{} is not a trace", path.display());
        return Err(CliError::usage("trace.other", message).with_hint("name another file"));
    }
    if file.try_lock().is_err() {
        let message = format!("{} is being written by another run", path.display());
        return Err(CliError::usage("trace.busy", message).with_hint("name another file"));
    }
    file.set_len(0).map_err(refused)?;
    // What was read to know the file has moved to its end.
    io::Seek::rewind(&mut &file).map_err(refused)?;
    Ok(Arc::new(file))
}

/// Whether a file is empty, or holds a trace.
fn may_replace(file: &File) -> io::Result<bool> {
    let mut beginning = Vec::new();
    file.take(BEGINNING.len() as u64)
        .read_to_end(&mut beginning)?;
    Ok(beginning.is_empty() || beginning == BEGINNING.as_bytes())
}
