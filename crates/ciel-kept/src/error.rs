//! What can go wrong with the folder of kept results.

use std::io;
use std::path::PathBuf;

/// Why kept results cannot be used. A run is complete without them.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The index cannot be used.
    #[error("the index of kept results: {0}")]
    Index(#[from] rusqlite::Error),
    /// A file or folder cannot be used.
    #[error("cannot {act} {}: {source}", path.display())]
    File {
        /// What was tried.
        act: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl KeptError {
    /// The error of an act on a file.
    pub(crate) fn file(act: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        KeptError::File { act, path, source }
    }
}
