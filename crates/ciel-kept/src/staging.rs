//! A folder for files on their way into or out of kept results, which is empty at the beginning.
//!
//! One process has it at a time; what a killed one left is removed by the next. It does not know
//! what the files are.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ciel_model::Digest;
use rustix::fs::{FlockOperation, flock};

use crate::error::KeptError;

/// The folder, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Staging {
    folder: PathBuf,
    /// Locked until it is closed.
    _lock: File,
}

/// Removes the folder in `parent` that a killed process left, if there is one.
pub(crate) fn clear(parent: &Path) {
    if !parent.join(FOLDER).exists() {
        return;
    }
    let Ok(lock) = File::open(parent.join(LOCK)) else {
        return;
    };
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
        // What cannot be removed now stays for the next one.
        let _ = remove(&parent.join(FOLDER));
    }
}

/// The name of the folder.
const FOLDER: &str = "carried";

/// The name of the file that is locked as long as a process has the folder.
const LOCK: &str = "carried.lock";

impl Staging {
    /// Makes the folder in `parent`; waits for another process that has it.
    ///
    /// # Errors
    /// Those of the files.
    pub(crate) fn open(parent: &Path) -> Result<Staging, KeptError> {
        let path = parent.join(LOCK);
        let failed = |source| KeptError::file("lock", &path, source);
        let mut options = OpenOptions::new();
        let lock = options.create(true).append(true).open(&path);
        let lock = lock.map_err(failed)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let folder = parent.join(FOLDER);
        let made = remove(&folder).and_then(|()| fs::create_dir(&folder));
        made.map_err(|source| KeptError::file("create", &folder, source))?;
        Ok(Staging {
            folder,
            _lock: lock,
        })
    }

    /// Where the file of an object is or goes.
    pub(crate) fn path(&self, digest: Digest) -> PathBuf {
        self.folder.join(digest.to_string())
    }

    /// A file for entries.
    pub(crate) fn entries(&self) -> PathBuf {
        self.folder.join("entries")
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What stays is removed by the next one.
        let _ = remove(&self.folder);
    }
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
