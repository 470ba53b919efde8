//! What can go wrong with the state folder: fields, not sentences, and a stable code each.
//!
//! It does not know what the caller was trying to do for the user. Read next: `directory`, which
//! asks the kernel.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::values::{Extent, ObjectName};

/// A refused or failed act of the store. Nothing half-done is left behind.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder is not a state folder; nothing in it was touched.
    #[error("{path} is not a state folder of ciel")]
    ForeignFolder {
        /// The folder.
        path: PathBuf,
    },
    /// Another user owns it; nothing in it was read.
    #[error("{path} belongs to user {owner}, and this is user {user}")]
    OtherOwner {
        /// The file or folder.
        path: PathBuf,
        /// The number of the user who owns it.
        owner: u32,
        /// The number of the user whose process this is.
        user: u32,
        /// Its owner may look foreign only because it is mounted from elsewhere.
        is_mounted: bool,
    },
    /// Others may write to it, so what it holds may be theirs; nothing in it was read.
    #[error("{path} can be written by other users (mode {mode:o})")]
    WritableByOthers {
        /// The file or folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The folder was made by another version.
    #[error("{path} holds state of another version of ciel: {found:?} instead of {expected:?}")]
    OtherFormat {
        /// The folder.
        path: PathBuf,
        /// The line found in it.
        found: String,
        /// The line of this version.
        expected: &'static str,
    },
    /// The folder may not be written.
    #[error("{path} cannot be written")]
    ReadOnly {
        /// What was to be written.
        path: PathBuf,
    },
    /// Paths inside the folder would be longer than the kernel takes.
    #[error("the path of the state folder is {length} bytes long; the maximum is {length_max}")]
    PathTooLong {
        /// Bytes of the folder's absolute path.
        length: usize,
        /// The most that leaves room for the files inside.
        length_max: usize,
    },
    /// A name that would not be one safe component of a path.
    #[error("{name:?} is not a name of letters, digits, '.', '_' and '-' of at most {length_max}")]
    InvalidName {
        /// The name.
        name: String,
        /// Its most bytes.
        length_max: usize,
    },
    /// Another run has this id.
    #[error("run {run} already exists")]
    RunTaken {
        /// The id.
        run: String,
    },
    /// The run is held by a process that lives.
    #[error("run {run} is live{}", in_process(*process))]
    RunAlive {
        /// The id.
        run: String,
        /// Its process; none in the instant before it is written.
        process: Option<u32>,
    },
    /// The run has ended, and cannot be resumed.
    #[error("run {run} has ended")]
    RunEnded {
        /// The id.
        run: String,
    },
    /// The run was interrupted and left no journal from which it can be resumed.
    #[error("run {run} left no journal to resume from")]
    RunUnrecorded {
        /// The id.
        run: String,
    },
    /// There is no run of this id.
    #[error("run {run} does not exist")]
    RunUnknown {
        /// The id.
        run: String,
    },
    /// The budget of the run is used up.
    #[error("{wanted} bytes do not fit: {used} of {limit} are used")]
    Full {
        /// Bytes requested.
        wanted: u64,
        /// Bytes in use.
        used: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The disk, or the user's share of it, is full.
    #[error("no space is left on the disk for {path}")]
    DiskFull {
        /// What was being written.
        path: PathBuf,
    },
    /// No object of this name was committed in this run.
    #[error("object {name} does not exist")]
    UnknownObject {
        /// The name.
        name: ObjectName,
    },
    /// The file of an object is not what was committed.
    #[error("object {name} was {expected} bytes long and {} now", of_length(*found))]
    DamagedObject {
        /// The name.
        name: ObjectName,
        /// Bytes committed.
        expected: u64,
        /// Bytes found; none if there is no such file.
        found: Option<u64>,
    },
    /// The file of an object is as long as it was, but its bytes are others.
    #[error("the bytes of object {name} have changed since they were written")]
    ChangedObject {
        /// The name.
        name: ObjectName,
    },
    /// An object was committed again with another length.
    #[error("object {name} was {held} bytes long and was written again with {offered}")]
    ObjectDiffers {
        /// The name.
        name: ObjectName,
        /// Bytes of the one that stays.
        held: u64,
        /// Bytes of the one refused.
        offered: u64,
    },
    /// Only a file of this run's scratch folder can be taken over.
    #[error("{path} is not in the scratch folder of this run")]
    ForeignScratch {
        /// The path offered.
        path: PathBuf,
    },
    /// A link, a folder, a device or nothing is where a file was expected.
    #[error("{path} is not a regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// No such spilled bytes are held.
    #[error("no spilled bytes are at {extent:?}")]
    UnknownExtent {
        /// The extent.
        extent: Extent,
    },
    /// The system refused in a way that has no name of its own here.
    #[error("cannot {act} {path}: {source}")]
    System {
        /// What was tried.
        act: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// The kernel's answer as an error of the store.
pub(crate) fn failure(act: &'static str, path: PathBuf, errno: Errno) -> StoreError {
    match errno {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => StoreError::DiskFull { path },
        Errno::ROFS | Errno::ACCESS | Errno::PERM => StoreError::ReadOnly { path },
        _ => StoreError::System {
            act,
            path,
            source: errno.into(),
        },
    }
}

fn in_process(process: Option<u32>) -> String {
    process.map_or(String::new(), |process| format!(" in process {process}"))
}

/// What a file is like that should be an object, in words.
fn of_length(found: Option<u64>) -> String {
    found.map_or("is gone".to_string(), |bytes| format!("has {bytes}"))
}

impl StoreError {
    /// What the system refused about a path, by the name it has here if it has one. `act` is what
    /// was tried, as in `System`.
    pub fn of_system(act: &'static str, path: &Path, error: io::Error) -> StoreError {
        use io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded};
        let path = path.to_path_buf();
        match error.kind() {
            io::ErrorKind::StorageFull | QuotaExceeded | FileTooLarge => {
                StoreError::DiskFull { path }
            }
            io::ErrorKind::ReadOnlyFilesystem | PermissionDenied => StoreError::ReadOnly { path },
            _ => StoreError::System {
                act,
                path,
                source: error,
            },
        }
    }

    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            StoreError::ForeignFolder { .. } => "store.foreign-folder",
            StoreError::OtherOwner { .. } => "store.other-owner",
            StoreError::WritableByOthers { .. } => "store.writable-by-others",
            StoreError::OtherFormat { .. } => "store.other-format",
            StoreError::ReadOnly { .. } => "store.read-only",
            StoreError::PathTooLong { .. } => "store.path-too-long",
            StoreError::InvalidName { .. } => "store.invalid-name",
            StoreError::RunTaken { .. } => "store.run-taken",
            StoreError::RunAlive { .. } => "store.run-alive",
            StoreError::RunEnded { .. } => "store.run-ended",
            StoreError::RunUnrecorded { .. } => "store.run-unrecorded",
            StoreError::RunUnknown { .. } => "store.run-unknown",
            StoreError::Full { .. } => "store.full",
            StoreError::DiskFull { .. } => "store.disk-full",
            StoreError::UnknownObject { .. } => "store.unknown-object",
            StoreError::DamagedObject { .. } => "store.damaged-object",
            StoreError::ChangedObject { .. } => "store.changed-object",
            StoreError::ObjectDiffers { .. } => "store.object-differs",
            StoreError::ForeignScratch { .. } => "store.foreign-scratch",
            StoreError::NotAFile { .. } => "store.not-a-file",
            StoreError::UnknownExtent { .. } => "store.unknown-extent",
            StoreError::System { .. } => "store.system",
        }
    }

    /// Whether the same act may succeed when others have given room back, or by itself.
    pub fn is_retryable(&self) -> bool {
        match self {
            StoreError::Full { .. } | StoreError::DiskFull { .. } => true,
            StoreError::System { source, .. } => source.kind() == io::ErrorKind::Interrupted,
            _ => false,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            StoreError::ForeignFolder { .. } => {
                Some("choose another folder with --state; this one was not changed")
            }
            StoreError::OtherFormat { .. } => {
                Some("run `ciel clean` to remove the old state, or choose another with --state")
            }
            StoreError::OtherOwner {
                is_mounted: true, ..
            } => Some(
                "owners may differ in mounted folders and containers: choose a folder on a disk \
                 of this machine with --state",
            ),
            StoreError::OtherOwner { .. } => Some(
                "state of another user could run commands as you: choose a folder of your own \
                 with --state",
            ),
            StoreError::WritableByOthers { .. } => Some(
                "if you trust everything in the state folder, `chmod -R go-w` it; else remove it, \
                 or choose another with --state",
            ),
            StoreError::ReadOnly { .. } => Some("choose a folder you can write with --state"),
            StoreError::PathTooLong { .. } => {
                Some("run in a folder with a shorter path, or choose one with --state")
            }
            StoreError::RunAlive { .. } => {
                Some("`ciel ps` shows what it does; kill its process, or wait for its end")
            }
            StoreError::RunEnded { .. } | StoreError::RunUnrecorded { .. } => {
                Some("`ciel run` with its script reruns the job")
            }
            StoreError::RunUnknown { .. } => Some("`ciel runs` lists the runs"),
            StoreError::DiskFull { .. } => {
                Some("free some space, run `ciel clean`, or use another disk with --state")
            }
            _ => None,
        }
    }
}
