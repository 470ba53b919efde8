//! Where things lie: folders inside a run's folder, the folder of the script, and the names of
//! environment variables that every task receives.
//!
//! Names only; it does not know what the folders hold. Read next: `ciel-store`, which lays out the
//! rest of the state folder.

use std::path::{Path, PathBuf};

/// The environment variable with the folder of the script.
pub(crate) const SCRIPT_FOLDER: &str = "CIEL_SCRIPT_FOLDER";

/// Variables with the number of threads that numeric libraries use.
pub(crate) const THREAD_VARIABLES: [&str; 5] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
];

/// The folder of a run in which its tasks work.
pub(crate) const SCRATCH: &str = "scratch";

/// The folder of a script, absolute if it can be determined.
pub(crate) fn script_folder(script: &Path) -> PathBuf {
    let folder = script
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf())
}
