//! What keeps this process from going on with a run, while another could later: no room on the
//! disk, or a file of the run that is gone.
//!
//! Such trouble is no failure of the task that meets it: of a run that is recorded it ends the
//! work of this process and leaves the run as it is recorded. It does not know what tasks do.
//! Read next: `engine` for how work ends, `recovery` for how it goes on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use ciel_journal::JournalError;
use ciel_model::Failure;
use ciel_store::StoreError;

use crate::engine::Engine;
use crate::error::RunError;
use crate::recovery::RecoveryError;
use crate::run::SCRATCH;

/// With less room than this on the disk a task that fails is taken for one that had no room.
const ROOM_BYTES_MIN: u64 = 1 << 20;

/// Why a run waits for somebody to do something.
#[derive(Debug)]
pub enum Hindrance {
    /// The disk, or the user's share of it, is full.
    DiskFull {
        /// What was being written.
        path: PathBuf,
        /// Bytes that the user may still write there; none if the system does not tell.
        free_bytes: Option<u64>,
    },
    /// A task failed where there was next to no room for what it writes.
    NoRoomFor {
        /// The task and what it says, in words.
        failure: String,
        /// Where there is no room.
        path: PathBuf,
        /// As in `DiskFull`.
        free_bytes: Option<u64>,
    },
    /// A folder of the run is gone.
    Removed {
        /// Which.
        path: PathBuf,
        /// What is needed to go on is gone too.
        for_good: bool,
    },
    /// A file of the run is gone, or is not what it was.
    ObjectLost {
        /// Which and how, in words.
        what: String,
    },
}

impl Hindrance {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Hindrance::DiskFull { .. } | Hindrance::NoRoomFor { .. } => "run.disk-full",
            Hindrance::Removed { .. } => "run.removed",
            Hindrance::ObjectLost { .. } => "run.object-lost",
        }
    }

    /// What the user can do about it.
    pub(crate) fn hint(&self, run: &str) -> String {
        match self {
            Hindrance::DiskFull { .. } | Hindrance::NoRoomFor { .. } => {
                format!("make room, then `ciel resume {run}` goes on from here")
            }
            Hindrance::Removed { for_good: true, .. } => {
                "`ciel run` with its script runs the job once more".to_string()
            }
            Hindrance::Removed { .. } => format!("`ciel resume {run}` goes on from here"),
            Hindrance::ObjectLost { .. } => {
                format!("`ciel resume {run}` makes it again and goes on from here")
            }
        }
    }

    fn disk_full(path: PathBuf) -> Hindrance {
        let free_bytes = free_bytes(&path);
        Hindrance::DiskFull { path, free_bytes }
    }
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hindrance::DiskFull { path, free_bytes } => {
                let path = path.display();
                write!(f, "no space is left on the disk for {path}")?;
                write_room(f, *free_bytes)
            }
            Hindrance::NoRoomFor {
                failure,
                path,
                free_bytes,
            } => {
                let path = path.display();
                write!(f, "{failure}; no space is left on the disk for {path}")?;
                write_room(f, *free_bytes)
            }
            Hindrance::Removed { path, .. } => {
                write!(f, "{} is gone: somebody has removed it", path.display())
            }
            Hindrance::ObjectLost { what } => write!(f, "a file of the run is gone: {what}"),
        }
    }
}

fn write_room(f: &mut fmt::Formatter<'_>, free_bytes: Option<u64>) -> fmt::Result {
    match free_bytes {
        None => Ok(()),
        Some(free) if free < ROOM_BYTES_MIN => write!(f, " ({} KiB are free)", free >> 10),
        Some(free) => write!(
            f,
            " ({} MiB are free: a quota or a bound on the length of files is reached)",
            free >> 20
        ),
    }
}

/// Bytes that the user may still write where a path lies, or where its folder does.
fn free_bytes(path: &Path) -> Option<u64> {
    let there = path.ancestors().find(|ancestor| ancestor.exists())?;
    let found = rustix::fs::statvfs(there).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

impl RunError {
    /// The journal's trouble as that of a run: a full disk hinders it.
    pub(crate) fn of_journal(run: &str, error: JournalError) -> RunError {
        match error {
            JournalError::DiskFull { path } => RunError::hindered(run, Hindrance::disk_full(path)),
            error => RunError::Journal(error),
        }
    }

    /// The trouble of the file of released output, likewise. Other bytes than were let out are
    /// told as `InvalidData`.
    pub(crate) fn of_released(run: &str, path: &Path, error: io::Error) -> RunError {
        if error.kind() == io::ErrorKind::InvalidData {
            return RecoveryError::Released(error).into();
        }
        RunError::of_store(run, StoreError::of_system("write", path, error))
    }

    /// The store's trouble in a run that is recorded, likewise.
    pub(crate) fn of_store(run: &str, error: StoreError) -> RunError {
        match error {
            StoreError::DiskFull { path } => RunError::hindered(run, Hindrance::disk_full(path)),
            error => RunError::State(error),
        }
    }

    fn hindered(run: &str, hindrance: Hindrance) -> RunError {
        RunError::Hindered {
            run: run.to_string(),
            hindrance,
        }
    }
}

impl Engine {
    /// Ends the work of this process if the store's trouble hinders a run that is recorded; what
    /// is told of the task after that is not recorded. Called without the machines.
    pub(crate) fn heed(&self, error: &StoreError) {
        let hindrance = match error {
            StoreError::DiskFull { path } => Hindrance::disk_full(path.clone()),
            StoreError::UnknownObject { .. } | StoreError::DamagedObject { .. } => {
                Hindrance::ObjectLost {
                    what: error.to_string(),
                }
            }
            _ => return,
        };
        self.hinder(hindrance);
    }

    /// The same for a task that has failed by itself, if its folder is gone or there is next to no
    /// room on the disk: it may do better when there is.
    pub(crate) fn heed_surroundings(&self, failure: &Failure) {
        if self.journal.is_none() {
            return;
        }
        let path = self.folder.path().join(SCRATCH);
        if !path.exists() {
            let for_good = !self.folder.is_resumable().unwrap_or(false);
            return self.hinder(Hindrance::Removed { path, for_good });
        }
        let free_bytes = free_bytes(&path);
        if free_bytes.is_some_and(|free| free < ROOM_BYTES_MIN) {
            self.hinder(Hindrance::NoRoomFor {
                failure: failure.to_string(),
                path,
                free_bytes,
            });
        }
    }

    fn hinder(&self, hindrance: Hindrance) {
        if self.journal.is_some() {
            self.abandon(RunError::hindered(self.folder.id(), hindrance));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_is_told_with_file_room_and_way_on() {
        let full = |free_bytes| Hindrance::DiskFull {
            path: "/state/runs/1/journal/log".into(),
            free_bytes,
        };
        let told = full(Some(5000)).to_string();
        let expected = "no space is left on the disk for /state/runs/1/journal/log";
        assert_eq!(told, format!("{expected} (4 KiB are free)"));
        assert_eq!(full(None).to_string(), expected);
        assert!(
            full(Some(3 << 20))
                .to_string()
                .contains("3 MiB are free: a quota")
        );
        let hint = full(None).hint("17");
        assert_eq!(hint, "make room, then `ciel resume 17` goes on from here");
    }

    #[test]
    fn room_is_found_for_a_path_that_is_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("not/made/yet");
        assert!(free_bytes(&inside).is_some_and(|bytes| bytes > 0));
    }

    #[test]
    fn full_disk_hinders_wherever_it_is_met() {
        let path = PathBuf::from("/nowhere/stdout");
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let of_file = |error| RunError::of_released("17", &path, error).code();
        assert_eq!(of_file(rustix::io::Errno::NOSPC.into()), "run.disk-full");
        assert_eq!(of_file(rustix::io::Errno::FBIG.into()), "run.disk-full");
        assert_eq!(of_file(full()), "run.disk-full");
        assert_eq!(of_file(rustix::io::Errno::ROFS.into()), "store.read-only");
        assert_eq!(
            of_file(io::ErrorKind::InvalidData.into()),
            "journal.released"
        );
        let journal = JournalError::DiskFull { path: path.clone() };
        assert_eq!(RunError::of_journal("17", journal).code(), "run.disk-full");
    }
}
