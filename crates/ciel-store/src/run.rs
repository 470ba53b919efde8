//! The folder of one run: held by a lock that dies with the process.
//!
//! It does not know what the run computes, and gives ids no meaning beyond their order. Read
//! next: `objects`, `scratch`, `spill`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use crate::budget::Budget;
use crate::directory::{Directory, check_name, failure};
use crate::error::StoreError;
use crate::folder::{LOCK_NAME, StateFolder};
use crate::limits::RUN_ID_BYTES_MAX;
use crate::objects::Objects;
use crate::scratch::Scratch;
use crate::spill::SpillFiles;

const HISTORY_NAME: &str = "history";

/// The folder of a run of this process. Dropping it ends the run; the folder stays for `why` and
/// `logs` until it is cleaned.
#[derive(Debug)]
pub struct RunFolder {
    id: String,
    directory: Directory,
    objects: Objects,
    scratch: Arc<Scratch>,
    spill: SpillFiles,
    budget: Arc<Budget>,
    /// Held, not read: the lock lives as long as this file is open. It is closed on exec, so no
    /// task can keep a dead run alive.
    _lock: File,
}

impl RunFolder {
    /// Makes the folder of a new run. The id should sort by time; it is one path component.
    /// `limit` is the budget of bytes on disk for objects and spilled output; `u64::MAX` for none.
    ///
    /// # Errors
    /// `RunTaken` if the id is in use, by a living or an ended run; `InvalidName`, `ReadOnly`,
    /// `DiskFull`, `System`.
    pub fn create(state: &StateFolder, id: &str, limit: u64) -> Result<RunFolder, StoreError> {
        check_name(id, RUN_ID_BYTES_MAX)?;
        let runs = state.runs_directory();
        let _not_while_cleaning = runs.lock(FlockOperation::LockShared)?;
        if !runs.make_inner(id)? {
            return Err(StoreError::RunTaken { run: id.to_owned() });
        }
        RunFolder::furnish(runs.inner_or_new(id)?, id, limit).inspect_err(|_| {
            // The folder was made just now and is ours; what cannot be removed is cleaned later.
            let _ = runs.remove_all(id);
        })
    }

    fn furnish(directory: Directory, id: &str, limit: u64) -> Result<RunFolder, StoreError> {
        let lock = take_lock(&directory)?;
        let budget = Arc::new(Budget::new(limit));
        let scratch = Arc::new(Scratch::new(directory.inner_or_new("scratch")?));
        let objects = directory.inner_or_new("objects")?;
        let spill = directory.inner_or_new("spill")?;
        Ok(RunFolder {
            id: id.to_owned(),
            directory,
            objects: Objects::new(objects, scratch.clone(), budget.clone()),
            spill: SpillFiles::new(spill, scratch.clone(), budget.clone()),
            scratch,
            budget,
            _lock: lock,
        })
    }

    /// The run's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The absolute path of the run's folder.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where the run's history for people belongs; the file is the caller's.
    pub fn history_path(&self) -> PathBuf {
        self.directory.path_of(HISTORY_NAME)
    }

    /// The run's objects.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Files that task attempts are writing.
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Output held back on disk.
    pub fn spill(&self) -> &SpillFiles {
        &self.spill
    }

    /// Bytes on disk.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}

fn take_lock(directory: &Directory) -> Result<File, StoreError> {
    let mut lock = directory.make_file(LOCK_NAME)?;
    // Somebody who lists the runs may hold it for an instant, so this waits.
    flock(&lock, FlockOperation::LockExclusive)
        .map_err(|errno| failure("lock", directory.path_of(LOCK_NAME), errno))?;
    writeln!(lock, "{}", std::process::id())
        .map_err(|source| directory.system("write", LOCK_NAME, source))?;
    Ok(lock)
}
