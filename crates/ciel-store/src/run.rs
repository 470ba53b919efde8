//! The folder of one run: held by a lock that dies with the process.
//!
//! It does not know what the run computes, and gives ids no meaning beyond their order. Read
//! next: `objects`, `scratch`, `spill`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use crate::budget::Budget;
use crate::counts::Kind;
use crate::digests::{Digests, Part};
use crate::directory::{Directory, check_name};
use crate::disk;
use crate::error::{StoreError, failure};
use crate::folder::{
    DESCRIPTION_NAME, ENDED_NAME, HISTORY_NAME, JOURNAL_NAME, LOCK_NAME, OUTCOME_NAME, StateFolder,
    Tried, has_record, is_resumable, try_lock,
};
use crate::limits::{DESCRIPTION_BYTES_MAX, OUTCOME_BYTES_MAX, RUN_ID_BYTES_MAX};
use crate::memory_folder::{self, MemoryFolder};
use crate::objects::FileObjects;
use crate::partial::PartialStreams;
use crate::scratch::Scratch;
use crate::spill::SpillFiles;
use crate::store::ObjectStore;

const OBJECTS_NAME: &str = "objects";
const DIGESTS_NAME: &str = "digests";
const OUTPUT_NAME: &str = "stdout";
const SINKS_NAME: &str = "sinks";
const SCRATCH_NAME: &str = "scratch";

/// The folder of a run of this process. Dropping it lets the run go: one that was marked as ended
/// stays for `why` and `logs` until it is cleaned, another can be resumed.
#[derive(Debug)]
pub struct RunFolder {
    id: String,
    directory: Directory,
    objects: Arc<FileObjects>,
    scratch: Arc<Scratch>,
    spill: SpillFiles,
    budget: Arc<Budget>,
    digests: Arc<Digests>,
    partial: PartialStreams,
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
        let made = || {
            let directory = runs.inner_or_new(id)?;
            let lock = make_lock(&directory)?;
            RunFolder::furnish(directory, lock, id, limit)
        };
        made().inspect_err(|_| {
            // The folder was made just now and is ours; what cannot be removed is cleaned later.
            let _ = runs.remove_all(id);
        })
    }

    /// Opens a run that has not ended, to resume it: takes its lock without waiting, and empties
    /// its scratch. Its objects and spilled bytes exist but are not known until `retain` and
    /// `restore` have named them. Of several that try at once exactly one gets it.
    ///
    /// # Errors
    /// `RunAlive`, `RunEnded`, `RunUnrecorded`, `RunUnknown`, `InvalidName`, `ReadOnly`, `System`.
    pub fn reopen(state: &StateFolder, id: &str, limit: u64) -> Result<RunFolder, StoreError> {
        HeldRun::take(state, id)?.open(limit)
    }

    fn furnish(
        directory: Directory,
        lock: File,
        id: &str,
        limit: u64,
    ) -> Result<RunFolder, StoreError> {
        let budget = Arc::new(Budget::new(limit));
        let scratch = Arc::new(Scratch::new(directory.inner_or_new(SCRATCH_NAME)?));
        let objects = directory.inner_or_new(OBJECTS_NAME)?;
        let spill = directory.inner_or_new("spill")?;
        let digests = Arc::new(Digests::new(directory.path_of(DIGESTS_NAME)));
        let partial = PartialStreams::of(directory.path());
        let (shared, limited) = (|| scratch.clone(), || budget.clone());
        Ok(RunFolder {
            id: id.to_owned(),
            directory,
            objects: Arc::new(FileObjects::new(
                objects,
                shared(),
                limited(),
                digests.clone(),
            )),
            spill: SpillFiles::new(spill, shared(), limited(), digests.clone()),
            scratch,
            budget,
            digests,
            partial,
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

    /// The folder of the run's history; the caller creates it.
    pub fn history_path(&self) -> PathBuf {
        self.directory.path_of(HISTORY_NAME)
    }

    /// Makes the folder of the run's journal if it is missing; its files are the caller's. A run
    /// that has it, and a description, can be resumed.
    ///
    /// # Errors
    /// `OtherOwner`, `WritableByOthers`, `ReadOnly`, `DiskFull`, `System`.
    pub fn journal_folder(&self) -> Result<PathBuf, StoreError> {
        let journal = self.directory.inner_or_new(JOURNAL_NAME)?;
        for name in journal.names()? {
            match journal.open_file(&name) {
                // The journal itself reports files that are not its own.
                Ok(_) | Err(StoreError::NotAFile { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(journal.path().to_path_buf())
    }

    /// The path for the released ordered output; the caller owns the file.
    pub fn output_path(&self) -> PathBuf {
        self.directory.path_of(OUTPUT_NAME)
    }

    /// Writes the description by which the run is found again, whole or not at all; the bytes are
    /// the caller's.
    ///
    /// # Errors
    /// `ReadOnly`, `DiskFull`, `System`.
    pub fn describe(&self, description: &[u8]) -> Result<(), StoreError> {
        self.directory.write_whole(DESCRIPTION_NAME, description)
    }

    /// What was given to [`RunFolder::describe`], perhaps by a former process of this run.
    ///
    /// # Errors
    /// `System` if it cannot be read.
    pub fn description(&self) -> Result<Option<Vec<u8>>, StoreError> {
        self.directory
            .read_file(DESCRIPTION_NAME, DESCRIPTION_BYTES_MAX)
    }

    /// Writes the description of where the output went, whole or not at all; the bytes are the
    /// caller's.
    ///
    /// # Errors
    /// `ReadOnly`, `DiskFull`, `System`.
    pub fn keep_sinks(&self, sinks: &[u8]) -> Result<(), StoreError> {
        self.directory.write_whole(SINKS_NAME, sinks)
    }

    /// What was given to [`RunFolder::keep_sinks`], perhaps by a former process of this run.
    ///
    /// # Errors
    /// `System` if it cannot be read.
    pub fn sinks(&self) -> Result<Option<Vec<u8>>, StoreError> {
        self.directory.read_file(SINKS_NAME, DESCRIPTION_BYTES_MAX)
    }

    /// Whether the run could be resumed if it was interrupted now: it has a description and a
    /// journal.
    ///
    /// # Errors
    /// `System` if the folder cannot be looked at.
    pub fn is_resumable(&self) -> Result<bool, StoreError> {
        has_record(&self.directory)
    }

    /// Whether there is a folder for objects: somebody may have removed it.
    pub fn has_objects(&self) -> bool {
        self.directory.path_of(OBJECTS_NAME).is_dir()
    }

    /// Keeps how the run ended, whole or not at all, for a process that must show it once more
    /// because this one died before [`RunFolder::leave`]. The bytes are the caller's; false if they
    /// are more than [`OUTCOME_BYTES_MAX`], which are not kept.
    ///
    /// # Errors
    /// `ReadOnly`, `DiskFull`, `System`.
    pub fn keep_outcome(&self, outcome: &[u8]) -> Result<bool, StoreError> {
        if outcome.len() as u64 > OUTCOME_BYTES_MAX {
            return Ok(false);
        }
        let kept = self.directory.write_whole(OUTCOME_NAME, outcome);
        kept.map(|()| true)
    }

    /// How a run ended whose process died before it had shown that; none if the run has not ended.
    ///
    /// # Errors
    /// `System` if it cannot be read.
    pub fn outcome(&self) -> Result<Option<Vec<u8>>, StoreError> {
        match self.directory.entry(ENDED_NAME)? {
            None => Ok(None),
            Some(_) => self.directory.read_file(OUTCOME_NAME, OUTCOME_BYTES_MAX),
        }
    }

    /// Whether the run is marked as ended.
    ///
    /// # Errors
    /// `System` if the folder cannot be looked at.
    pub fn has_ended(&self) -> Result<bool, StoreError> {
        Ok(self.directory.entry(ENDED_NAME)?.is_some())
    }

    /// Records that the end of the run was shown completely: from now on the run cannot be resumed.
    ///
    /// # Errors
    /// `ReadOnly`, `System`.
    pub fn leave(&self) -> Result<(), StoreError> {
        self.directory.remove_all(OUTCOME_NAME)
    }

    /// Records the end of the run, whole or not at all; it cannot be resumed then, unless
    /// [`RunFolder::keep_outcome`] came before. The bytes are the caller's.
    ///
    /// # Errors
    /// `ReadOnly`, `DiskFull`, `System`.
    pub fn mark_ended(&self, ending: &[u8]) -> Result<(), StoreError> {
        self.directory.write_whole(ENDED_NAME, ending)
    }

    /// Makes sure that the names in the folder survive a power failure; waits for the disk.
    ///
    /// # Errors
    /// `DiskFull`, `System`.
    pub fn sync_names(&self) -> Result<(), StoreError> {
        self.directory.sync_names()
    }

    /// Bytes that the folder takes on the disk, without these names in it; costs a look at every
    /// other file.
    pub fn bytes_on_disk(&self, without: &[&str]) -> u64 {
        disk::bytes_below(self.directory.path(), without)
    }

    /// From now on objects are written for a later process of the run, with digests to verify them;
    /// if they must survive a power failure, they are synced before they are recorded. To be called
    /// after the objects of an earlier process were recovered.
    pub fn record(&self, survives_power_failure: bool) {
        if survives_power_failure {
            self.objects.survive_power_failures();
        }
        self.digests.keep(|part| match part {
            Part::Object(name) => self.objects.location(*name).is_some(),
            Part::Spilled(extent) => self.spill.has_blob(extent.blob),
            Part::Released { .. } => true,
        });
    }

    /// The run's objects.
    pub fn objects(&self) -> &Arc<FileObjects> {
        &self.objects
    }

    /// The folders of their files, which nobody but this store writes to.
    pub fn objects_paths(&self) -> Vec<PathBuf> {
        let memory = self.objects.memory().map(|memory| memory.objects.path());
        let memory = memory.map(Path::to_path_buf);
        std::iter::once(self.directory.path_of(OBJECTS_NAME))
            .chain(memory)
            .collect()
    }

    /// From now on objects whose length is known before they are written are in memory, as far as
    /// `limit` bytes go; so are those that an earlier process of the run has left there. Streams
    /// share these bytes with them, or have `streams` bytes if there are none for objects. To be
    /// called before the objects of an earlier process are recovered.
    ///
    /// # Errors
    /// `ReadOnly`, `System` if what was being written by an earlier process cannot be removed.
    pub fn use_memory(&self, limit: u64, streams: u64) -> Result<(), StoreError> {
        memory_folder::sweep(LOCK_NAME);
        self.objects.streams.allow(streams);
        let streams = self.objects.streams.clone();
        let Some(memory) = MemoryFolder::open(self.path(), limit, streams).map(Arc::new) else {
            return Ok(());
        };
        self.objects.use_memory(memory.clone());
        self.scratch.use_memory(memory.clone());
        memory.clear()
    }

    /// Bytes that the run takes on the disk: objects without those in memory and those that are
    /// other names of kept results, spilled output, and partial streams.
    pub fn disk_bytes(&self) -> u64 {
        let counts = self.budget.counts();
        let elsewhere = self.objects.memory_use().present + counts.of(Kind::Kept).present();
        counts.present().saturating_sub(elsewhere) + self.partial.bytes()
    }

    /// Files that task attempts are writing.
    pub fn scratch(&self) -> &Arc<Scratch> {
        &self.scratch
    }

    /// Output spilled to disk.
    pub fn spill(&self) -> &SpillFiles {
        &self.spill
    }

    /// What failed tasks have written of streams.
    pub fn partial(&self) -> &PartialStreams {
        &self.partial
    }

    /// Digests of objects and output.
    pub fn digests(&self) -> &Arc<Digests> {
        &self.digests
    }

    /// Bytes of objects, in memory and on the disk, and of spilled output.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}

/// A run that can be resumed, locked by this process so that no other resumes it meanwhile.
#[derive(Debug)]
pub struct HeldRun {
    id: String,
    directory: Directory,
    lock: File,
}

impl HeldRun {
    /// Takes the free lock of a run, without waiting.
    ///
    /// # Errors
    /// `RunAlive`, `RunEnded`, `RunUnrecorded`, `RunUnknown`, `InvalidName`, `ReadOnly`, `System`.
    pub fn take(state: &StateFolder, id: &str) -> Result<HeldRun, StoreError> {
        check_name(id, RUN_ID_BYTES_MAX)?;
        let unknown = || StoreError::RunUnknown { run: id.to_owned() };
        let runs = state.runs_directory();
        // Under this lock no other process resumes a run or moves one away.
        let _alone = runs.lock(FlockOperation::LockExclusive)?;
        let directory = match runs.inner(id) {
            Err(StoreError::ForeignFolder { .. }) => return Err(unknown()),
            found => found?.ok_or_else(unknown)?,
        };
        let lock = directory.open_to_write(LOCK_NAME)?.ok_or_else(unknown)?;
        let lock = take_free_lock(&directory, lock, id)?;
        if !is_resumable(&directory)? {
            let run = id.to_owned();
            return Err(match directory.entry(ENDED_NAME)? {
                Some(_) => StoreError::RunEnded { run },
                None => StoreError::RunUnrecorded { run },
            });
        }
        write_process(&directory, &lock)?;
        Ok(HeldRun {
            id: id.to_owned(),
            directory,
            lock,
        })
    }

    /// Removes the folder of scratch files, which only a run has that was not left in order.
    ///
    /// # Errors
    /// `ReadOnly`, `System`.
    pub fn remove_scratch(&self) -> Result<(), StoreError> {
        self.directory.remove_all(SCRATCH_NAME)
    }

    /// The resumed run, its scratch empty. `limit` is as in [`RunFolder::create`].
    ///
    /// # Errors
    /// `ReadOnly`, `DiskFull`, `System`.
    pub fn open(self, limit: u64) -> Result<RunFolder, StoreError> {
        let folder = RunFolder::furnish(self.directory, self.lock, &self.id, limit)?;
        folder.scratch.clear_all()?;
        Ok(folder)
    }
}

fn make_lock(directory: &Directory) -> Result<File, StoreError> {
    let lock = directory.make_file(LOCK_NAME)?;
    lock_waiting(directory, &lock)?;
    write_process(directory, &lock)?;
    Ok(lock)
}

/// A process that lists the runs may hold it for an instant, so this waits.
fn lock_waiting(directory: &Directory, lock: &File) -> Result<(), StoreError> {
    flock(lock, FlockOperation::LockExclusive)
        .map_err(|errno| failure("lock", directory.path_of(LOCK_NAME), errno))
}

/// Takes the lock unless a run has it. A shared lock can be had beside those who list the runs, but
/// not beside a run.
fn take_free_lock(directory: &Directory, mut lock: File, id: &str) -> Result<File, StoreError> {
    match try_lock(directory, &mut lock)? {
        Tried::Locked => {
            lock_waiting(directory, &lock)?;
            Ok(lock)
        }
        Tried::Held { process } => Err(StoreError::RunAlive {
            run: id.to_owned(),
            process,
        }),
    }
}

/// Writes the number of this process over the content of a lock.
fn write_process(directory: &Directory, lock: &File) -> Result<(), StoreError> {
    let text = format!("{}\n", std::process::id());
    lock.set_len(0)
        .and_then(|()| lock.write_all_at(text.as_bytes(), 0))
        .map_err(|source| directory.system("write", LOCK_NAME, source))
}
