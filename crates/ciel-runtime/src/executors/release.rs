//! Executors whose tasks change the environment, each when the serial order has reached it.
//!
//! It does not know when that is. Read next: `export`, then `exports`.

use std::path::PathBuf;

use ciel_model::Refused;
use serde_json::Value;

/// A file of the user's that takes an object.
#[derive(Debug, PartialEq)]
pub(crate) struct FileExport {
    /// The input of the task that the file takes.
    pub(crate) input: usize,
    /// The file as the user named it.
    pub(crate) path: PathBuf,
    /// Whether a file that has other contents is replaced.
    pub(crate) overwrite: bool,
}

/// How calls of one executor become such a change.
pub(crate) trait Release {
    /// The change that a call asks for.
    ///
    /// # Errors
    /// The arguments are not those of the executor.
    fn plan(&self, arguments: &Value) -> Result<FileExport, Refused>;
}
