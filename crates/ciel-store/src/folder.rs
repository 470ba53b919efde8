//! The state folder: its format, its runs, and cleaning.
//!
//! It does not know what runs compute. Locks show which runs are live; the kernel releases them
//! with their process; nothing has to be cleared by hand. Read next: `run`.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, FlockOperation, flock};

use crate::directory::{Directory, check_name};
use crate::disk;
use crate::error::{StoreError, failure};
use crate::killed;
use crate::limits::{
    DESCRIPTION_BYTES_MAX, PATH_BYTES_INSIDE_MAX, PATH_BYTES_MAX, RUN_ID_BYTES_MAX,
};
use crate::memory_folder;

/// Permissions of a new state folder: all for its user, none for others.
const FOLDER_MODE: u32 = 0o700;

/// First words of the `format` file of every version.
const FORMAT_FAMILY: &str = "ciel-state ";
/// The `format` line of this version.
const FORMAT: &str = "ciel-state 1";
const FORMAT_NAME: &str = "format";
const DRAFT_PREFIX: &str = "format-";
const RUNS_NAME: &str = "runs";
const TRASH_NAME: &str = "trash";
pub(crate) const LOCK_NAME: &str = "lock";
pub(crate) const DESCRIPTION_NAME: &str = "run.json";
pub(crate) const ENDED_NAME: &str = "ended";
pub(crate) const HISTORY_NAME: &str = "history";
pub(crate) const OUTCOME_NAME: &str = "outcome";
pub(crate) const JOURNAL_NAME: &str = "journal";

/// An open state folder (`.ciel/` beside the program, unless the user says otherwise).
#[derive(Debug)]
pub struct StateFolder {
    directory: Directory,
    runs: Directory,
}

/// A run found in a state folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEntry {
    /// Its id.
    pub id: String,
    /// Its folder.
    pub path: PathBuf,
    /// Whether its process lives.
    pub state: RunState,
}

/// Whether the process of a run lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// Its lock is held.
    Alive {
        /// Its process; none in the instant before it is written.
        process: Option<u32>,
    },
    /// Its lock is free, and it can be resumed: it did not come to its end, and has its description
    /// and its journal; or it did, and its process died before it had shown all of it.
    Unended,
    /// Its lock is free and it cannot be resumed, however it ended.
    Ended,
}

/// Which runs of dead processes cleaning takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleaning {
    /// Those that have ended.
    Ended,
    /// Those that could be resumed too.
    All,
}

/// What cleaning did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Ids of the runs removed.
    pub removed: Vec<String>,
    /// Ids of the runs left because they live.
    pub alive: Vec<String>,
    /// Ids of the runs left because they can be resumed.
    pub unended: Vec<String>,
}

impl RunEntry {
    /// The description that the run wrote at its start; none if it wrote nothing.
    ///
    /// # Errors
    /// `System` if it cannot be read.
    pub fn description(&self) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(DESCRIPTION_NAME)
    }

    /// The record of the run's end; none if it has not ended.
    ///
    /// # Errors
    /// `System` if it cannot be read.
    pub fn ending(&self) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(ENDED_NAME)
    }

    /// Bytes that the run's folder takes on the disk; costs a look at every file in it.
    pub fn bytes_on_disk(&self) -> u64 {
        disk::bytes_below(&self.path, &[])
    }

    /// Bytes that the run has in memory, not on the disk; costs a look at every file there.
    pub fn bytes_in_memory(&self) -> u64 {
        memory_folder::bytes_of(&self.path)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Directory::open(&self.path)?.read_file(name, DESCRIPTION_BYTES_MAX)
    }
}

impl StateFolder {
    /// Opens the state folder at `path`, made if it is missing or empty.
    ///
    /// # Errors
    /// `ForeignFolder` for a folder of something else, `OtherOwner`, `WritableByOthers`,
    /// `OtherFormat`, `ReadOnly`, `PathTooLong`, `DiskFull`, `System`.
    pub fn open(path: &Path) -> Result<StateFolder, StoreError> {
        let path = absolute_within_bound(path)?;
        make_with_parents(&path)?;
        let directory = open_directory(&path)?;
        close_to_others(&directory)?;
        let format = match read_format(&directory)? {
            Some(line) => Some(line),
            None => write_format_if_unused(&directory)?,
        };
        match format {
            Some(line) if line == FORMAT => {}
            Some(line) => return Err(other_format(path, line)),
            None => return Err(StoreError::ForeignFolder { path }),
        }
        let runs = directory.inner_or_new(RUNS_NAME)?;
        Ok(StateFolder { directory, runs })
    }

    /// Opens the state folder at `path` for a look; none if there is none. Makes nothing, so it
    /// works where nothing can be written.
    pub fn open_existing(path: &Path) -> Result<Option<StateFolder>, StoreError> {
        let path = absolute_within_bound(path)?;
        if !path.exists() {
            return Ok(None);
        }
        let directory = open_directory(&path)?;
        directory.owner()?.expect_private(&path)?;
        match read_format(&directory)? {
            Some(line) if line == FORMAT => {}
            Some(line) => return Err(other_format(path, line)),
            None => return Ok(None),
        }
        let runs = directory.inner(RUNS_NAME)?;
        Ok(runs.map(|runs| StateFolder { directory, runs }))
    }

    /// Cleans a folder of whatever version and, if no run is left in it, makes it one of this
    /// version: the way out of `OtherFormat`.
    pub fn renew(path: &Path, cleaning: Cleaning) -> Result<Cleaned, StoreError> {
        let path = absolute_within_bound(path)?;
        let directory = open_directory(&path)?;
        directory.owner()?.expect_private(&path)?;
        let line = read_format(&directory)?;
        if !line.is_some_and(|line| line.starts_with(FORMAT_FAMILY)) {
            return Err(StoreError::ForeignFolder { path });
        }
        let runs = directory.inner_or_new(RUNS_NAME)?;
        let folder = StateFolder { directory, runs };
        let cleaned = folder.clean(cleaning)?;
        if cleaned.alive.is_empty() && cleaned.unended.is_empty() {
            write_format(&folder.directory)?;
        }
        Ok(cleaned)
    }

    /// The absolute path.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// All runs, by id.
    pub fn runs(&self) -> Result<Vec<RunEntry>, StoreError> {
        let mut entries = Vec::new();
        for id in self.run_ids()? {
            let Some(run) = self.runs.inner(&id)? else {
                continue;
            };
            if let Some(state) = state_of(&run)? {
                entries.push(RunEntry {
                    id,
                    path: run.path().to_path_buf(),
                    state,
                });
            }
        }
        Ok(entries)
    }

    /// Removes runs of dead processes, and nothing else. Runs may start and end meanwhile.
    pub fn clean(&self, cleaning: Cleaning) -> Result<Cleaned, StoreError> {
        self.remove_where(cleaning, |_| true)
    }

    /// Removes those of these runs that have ended, and returns them; others are not changed.
    pub fn remove(&self, ids: &[String]) -> Result<Cleaned, StoreError> {
        self.clean_these(Cleaning::Ended, ids)
    }

    /// Removes those of these runs whose processes are dead, as far as that cleaning takes them.
    pub fn clean_these(&self, cleaning: Cleaning, ids: &[String]) -> Result<Cleaned, StoreError> {
        self.remove_where(cleaning, |id| ids.iter().any(|other| other == id))
    }

    /// Removes the folders of processes that died before their run had begun: without an end, a
    /// history, and what a resume needs; and what a process that died was about to remove. Costs
    /// two looks for each run, and one.
    ///
    /// # Errors
    /// `OtherOwner`, `WritableByOthers`, `ReadOnly`, `System`.
    pub fn remove_unbegun(&self) -> Result<(), StoreError> {
        let mut unbegun = self.run_ids()?;
        let has = |id: &str, name: &str| self.path().join(RUNS_NAME).join(id).join(name).exists();
        unbegun.retain(|id| !has(id, ENDED_NAME) && !has(id, HISTORY_NAME));
        match unbegun.is_empty() && self.directory.entry(TRASH_NAME)?.is_none() {
            true => Ok(()),
            false => self.remove(&unbegun).map(drop),
        }
    }

    fn remove_where(
        &self,
        cleaning: Cleaning,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<Cleaned, StoreError> {
        let (cleaned, trash) = self.take_out(cleaning, is_meant)?;
        if let Some(trash) = trash {
            for name in trash.names()? {
                trash.remove_all(&name)?;
            }
            let _none_moves_there = self.runs.lock(FlockOperation::LockExclusive)?;
            self.directory.remove_if_empty(TRASH_NAME)?;
        }
        Ok(cleaned)
    }

    pub(crate) fn runs_directory(&self) -> &Directory {
        &self.runs
    }

    /// Under the exclusive lock no run is half made, and moving to the trash is quick. The trash,
    /// which is returned, is made and removed under the same lock: another process that cleans
    /// cannot take it away before a run is moved there.
    fn take_out(
        &self,
        cleaning: Cleaning,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<(Cleaned, Option<Directory>), StoreError> {
        let _no_run_begins = self.runs.lock(FlockOperation::LockExclusive)?;
        let trash = match self.directory.inner_or_new(TRASH_NAME) {
            // Cleaning is what makes room: without any, runs are removed where they are.
            Err(StoreError::DiskFull { .. }) => None,
            trash => Some(trash?),
        };
        let mut cleaned = Cleaned::default();
        for id in self.run_ids()?.into_iter().filter(|id| is_meant(id)) {
            let Some(run) = self.runs.inner(&id)? else {
                continue;
            };
            match state_of(&run)? {
                Some(RunState::Alive { .. }) => cleaned.alive.push(id),
                Some(RunState::Unended) if cleaning == Cleaning::Ended => cleaned.unended.push(id),
                Some(RunState::Unended | RunState::Ended) => {
                    if self.take_out_run(&id, trash.as_ref())? {
                        cleaned.removed.push(id);
                    }
                }
                None => {
                    self.runs.remove_if_empty(&id)?;
                }
            }
        }
        Ok((cleaned, trash))
    }

    /// Returns whether the run is gone from its folder.
    fn take_out_run(&self, id: &str, trash: Option<&Directory>) -> Result<bool, StoreError> {
        memory_folder::forget(&self.runs.path_of(id));
        let name = format!("{id}.{}", std::process::id());
        match trash.map(|trash| self.runs.move_to(id, trash, &name)) {
            None | Some(Err(StoreError::DiskFull { .. })) => {
                self.runs.remove_all(id).map(|()| true)
            }
            Some(moved) => moved,
        }
    }

    fn run_ids(&self) -> Result<Vec<String>, StoreError> {
        let mut ids = self.runs.names()?;
        ids.retain(|name| check_name(name, RUN_ID_BYTES_MAX).is_ok());
        let mut runs = Vec::new();
        for id in ids {
            let entry = self.runs.entry(&id)?;
            if entry.is_some_and(|entry| entry.kind == FileType::Directory) {
                runs.push(id);
            }
        }
        Ok(runs)
    }
}

/// State of a run's folder; none if it has no lock file, so that it is not (yet) a run.
fn state_of(run: &Directory) -> Result<Option<RunState>, StoreError> {
    let mut lock = match run.open_file(LOCK_NAME) {
        Ok(lock) => lock,
        Err(StoreError::NotAFile { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(match try_lock(run, &mut lock)? {
        Tried::Held { process } => RunState::Alive { process },
        Tried::Locked if is_resumable(run)? => RunState::Unended,
        Tried::Locked => RunState::Ended,
    }))
}

/// Whether a lock was taken.
pub(crate) enum Tried {
    /// It was.
    Locked,
    /// A process that lives has it.
    Held { process: Option<u32> },
}

/// Takes the lock of a run, shared, unless a process has it that lives: one that was killed is
/// awaited.
pub(crate) fn try_lock(run: &Directory, lock: &mut File) -> Result<Tried, StoreError> {
    let tried = try_once(run, lock)?;
    match tried {
        Tried::Held { process: Some(one) } if killed::has_ended(one) => {
            lock.rewind()
                .map_err(|source| run.system("read", LOCK_NAME, source))?;
            try_once(run, lock)
        }
        tried => Ok(tried),
    }
}

fn try_once(run: &Directory, lock: &mut File) -> Result<Tried, StoreError> {
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(Tried::Locked),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(Tried::Held {
            process: process_in(run, lock)?,
        }),
        Err(errno) => Err(failure("lock", run.path_of(LOCK_NAME), errno)),
    }
}

/// The process that a lock file names; none in the instant before it is written.
fn process_in(run: &Directory, lock: &mut File) -> Result<Option<u32>, StoreError> {
    let mut text = String::new();
    lock.read_to_string(&mut text)
        .map_err(|source| run.system("read", LOCK_NAME, source))?;
    Ok(text.trim().parse().ok())
}

/// Whether a run whose lock is free can be resumed, if only to show how it ended.
pub(crate) fn is_resumable(run: &Directory) -> Result<bool, StoreError> {
    match run.entry(ENDED_NAME)? {
        None => has_record(run),
        Some(_) => Ok(run.entry(OUTCOME_NAME)?.is_some()),
    }
}

/// Whether a run has what a resume needs: its description and its journal.
pub(crate) fn has_record(run: &Directory) -> Result<bool, StoreError> {
    let is = |name, kind| -> Result<bool, StoreError> {
        Ok(run.entry(name)?.is_some_and(|entry| entry.kind == kind))
    };
    Ok(is(DESCRIPTION_NAME, FileType::RegularFile)? && is(JOURNAL_NAME, FileType::Directory)?)
}

fn absolute_within_bound(path: &Path) -> Result<PathBuf, StoreError> {
    // A path that is not empty needs the current folder only.
    let sought = match path.as_os_str().is_empty() {
        true => path,
        false => Path::new("the current folder"),
    };
    let path = std::path::absolute(path).map_err(|source| StoreError::System {
        act: "find",
        path: sought.to_path_buf(),
        source,
    })?;
    let (length, length_max) = (
        path.as_os_str().len(),
        PATH_BYTES_MAX - PATH_BYTES_INSIDE_MAX,
    );
    match length <= length_max {
        true => Ok(path),
        false => Err(StoreError::PathTooLong { length, length_max }),
    }
}

fn make_with_parents(path: &Path) -> Result<(), StoreError> {
    let parent = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let made = parent.and_then(|()| {
        let mut builder = std::fs::DirBuilder::new();
        match builder.mode(FOLDER_MODE).create(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made,
        }
    });
    made.map_err(|source| match source.raw_os_error() {
        Some(code) => in_the_way(
            path,
            failure(
                "make",
                path.into(),
                rustix::io::Errno::from_raw_os_error(code),
            ),
        ),
        None => StoreError::System {
            act: "make",
            path: path.into(),
            source,
        },
    })
}

/// Makes sure that no other user can read or write a state folder from now on. One that others
/// could write to until now is taken only if nothing is in it.
fn close_to_others(directory: &Directory) -> Result<(), StoreError> {
    let owner = directory.owner()?;
    match owner.is_shared() && is_unused(directory)? {
        true => owner.expect_own(directory.path())?,
        false => owner.expect_private(directory.path())?,
    }
    directory.close_to_others()
}

fn open_directory(path: &Path) -> Result<Directory, StoreError> {
    Directory::open(path).map_err(|error| in_the_way(path, error))
}

/// A file where the folder should be belongs to something else.
fn in_the_way(path: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::System { source, .. }
            if matches!(
                source.kind(),
                std::io::ErrorKind::NotADirectory | std::io::ErrorKind::AlreadyExists
            ) =>
        {
            StoreError::ForeignFolder {
                path: path.to_path_buf(),
            }
        }
        other => other,
    }
}

fn other_format(path: PathBuf, found: String) -> StoreError {
    match found.starts_with(FORMAT_FAMILY) {
        true => StoreError::OtherFormat {
            path,
            found,
            expected: FORMAT,
        },
        false => StoreError::ForeignFolder { path },
    }
}

/// The first line of the `format` file; none without such a file.
fn read_format(directory: &Directory) -> Result<Option<String>, StoreError> {
    if directory.entry(FORMAT_NAME)?.is_none() {
        return Ok(None);
    }
    let file = match directory.open_file(FORMAT_NAME) {
        Ok(file) => file,
        Err(StoreError::NotAFile { .. }) => return Ok(Some(String::new())),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(100)
        .read_to_end(&mut bytes)
        .map_err(|source| directory.system("read", FORMAT_NAME, source))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
}

/// Whether a file has the name of a format that is being written.
fn is_draft(name: &str) -> bool {
    let process = name.strip_prefix(DRAFT_PREFIX);
    process.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Nothing is in the folder but formats that were being written when a process died.
fn is_unused(directory: &Directory) -> Result<bool, StoreError> {
    Ok(directory.names()?.iter().all(|name| is_draft(name)))
}

/// The format of a folder that had none a moment ago, written now if the folder is unused; none if
/// it is not. One opener at a time: what is in the folder may be of one that was faster. Formats
/// that were being written when their process died are removed.
fn write_format_if_unused(directory: &Directory) -> Result<Option<String>, StoreError> {
    let _alone = directory.lock(FlockOperation::LockExclusive)?;
    let format = read_format(directory)?;
    if format.is_some() || !is_unused(directory)? {
        return Ok(format);
    }
    for draft in directory.names()? {
        directory.remove_file(&draft)?;
    }
    write_format(directory)?;
    read_format(directory)
}

fn write_format(directory: &Directory) -> Result<(), StoreError> {
    let draft = format!("{DRAFT_PREFIX}{}", std::process::id());
    directory.write_file(&draft, format!("{FORMAT}\n").as_bytes())?;
    directory.replace(&draft, FORMAT_NAME)
}
