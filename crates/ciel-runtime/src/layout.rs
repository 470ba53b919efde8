//! Where things lie: folders inside a run's folder, the folder of the script, and the names of
//! environment variables that every task receives.
//!
//! Names only; it does not know what the folders hold. Read next: `ciel-store`, which lays out the
//! rest of the state folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::settings::Settings;

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

/// The folder of kept results in a state folder.
pub(crate) const KEPT: &str = "kept";

/// The file of a run's history with what its tasks were given and gave.
pub(crate) const IDENTITIES: &str = "identities";

/// The folder below which the code of a Python job is found: that of its file, or the one that has
/// the outermost package of its module.
pub(crate) fn code_folder(settings: &Settings) -> PathBuf {
    let mut folder = script_folder(&settings.script);
    if let Some(module) = &settings.given.module {
        let last = module.rsplit('.').next();
        // A package is run by its file `__main__.py`.
        let is_package = settings.script.file_stem() != last.map(OsStr::new);
        let packages = module.matches('.').count() + usize::from(is_package);
        for _ in 0..packages {
            folder.pop();
        }
    }
    folder
}

/// The folder of a script, absolute if it can be determined.
pub(crate) fn script_folder(script: &Path) -> PathBuf {
    let folder = script
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf())
}
