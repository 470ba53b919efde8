//! What keeps this process from going on with a run, while another could later: no room on the
//! disk, or a file of the run that is gone.
//!
//! Such an error is not a failure of the task that meets it: in a recorded run it ends the work of
//! this process and leaves the run as recorded. It does not know what tasks do. Read next: `engine`
//! for how work ends, `recovery` for how it resumes.

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

/// With less room than this on the disk a task that fails is taken for one that had no room.
pub(crate) const ROOM_BYTES_MIN: u64 = 1 << 20;

/// Why a run waits for an action of the user.
#[derive(Debug)]
pub enum Blocked {
    /// The disk, or the user's share of it, is full.
    DiskFull {
        /// What was being written.
        path: PathBuf,
        /// Bytes that the user may still write there; none if the system does not report it.
        free_bytes: Option<u64>,
        /// Bytes that a file of this process may have; none if there is no such limit.
        file_bytes_max: Option<u64>,
    },
    /// A task failed where there was next to no room for what it writes.
    NoRoomFor {
        /// The task and its message, as text.
        failure: String,
        /// Where there is no room.
        path: PathBuf,
        /// As in `DiskFull`.
        free_bytes: Option<u64>,
    },
    /// A folder of the run is gone.
    Removed {
        /// Path of the folder.
        path: PathBuf,
        /// An input that is needed to continue is gone, too.
        for_good: bool,
    },
    /// The folder of the run is elsewhere.
    Moved {
        /// Where it was.
        path: PathBuf,
    },
    /// A file of the run is gone, or is not what it was.
    ObjectLost {
        /// Which and how, in words.
        what: String,
    },
}

impl Blocked {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Blocked::DiskFull { .. } | Blocked::NoRoomFor { .. } => "run.disk-full",
            Blocked::Removed { .. } | Blocked::Moved { .. } => "run.removed",
            Blocked::ObjectLost { .. } => "run.object-lost",
        }
    }

    /// What the user can do about it.
    pub(crate) fn hint(&self, run: &str) -> String {
        match self {
            Blocked::DiskFull {
                free_bytes: Some(ROOM_BYTES_MIN..),
                file_bytes_max: Some(_),
                ..
            } => format!("raise the limit, `ulimit -f`, then continue with `ciel resume {run}`"),
            Blocked::DiskFull { .. } | Blocked::NoRoomFor { .. } => {
                format!("free disk space, then continue with `ciel resume {run}`")
            }
            Blocked::Removed { for_good: true, .. } => {
                "`ciel run` with its script reruns the job".to_string()
            }
            Blocked::Removed { .. } => format!("continue with `ciel resume {run}`"),
            // No command, to which the former state folder would be added.
            Blocked::Moved { .. } => {
                format!("move it back, or resume run {run} where it is now, with `--state DIR`")
            }
            Blocked::ObjectLost { .. } => {
                format!("`ciel resume {run}` recomputes it and continues")
            }
        }
    }

    pub(crate) fn disk_full(path: PathBuf) -> Blocked {
        let free_bytes = free_bytes(&path);
        let file_bytes_max = getrlimit(Resource::Fsize).current;
        Blocked::DiskFull {
            path,
            free_bytes,
            file_bytes_max,
        }
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocked::DiskFull {
                path,
                free_bytes,
                file_bytes_max,
            } => {
                let path = path.display();
                write!(f, "no space is left on the disk for {path}")?;
                write_room(f, *free_bytes, *file_bytes_max)
            }
            Blocked::NoRoomFor {
                failure,
                path,
                free_bytes,
            } => {
                let path = path.display();
                write!(f, "{failure}; no space is left on the disk for {path}")?;
                write_room(f, *free_bytes, None)
            }
            Blocked::Removed { path, .. } => {
                write!(f, "{} is missing: it was removed", path.display())
            }
            Blocked::Moved { path } => {
                write!(f, "{} is missing: it was moved", path.display())
            }
            Blocked::ObjectLost { what } => {
                write!(f, "a file of the run is missing or has changed: {what}")
            }
        }
    }
}

fn write_room(
    f: &mut fmt::Formatter<'_>,
    free_bytes: Option<u64>,
    file_bytes_max: Option<u64>,
) -> fmt::Result {
    match (free_bytes, file_bytes_max) {
        (None, _) => Ok(()),
        (Some(free @ ..ROOM_BYTES_MIN), _) => write!(f, " ({} KiB are free)", free >> 10),
        (Some(free), None) => write!(f, " ({} MiB are free: a quota is reached)", free >> 20),
        (Some(free), Some(most)) => write!(
            f,
            " ({} MiB are free: the limit of a file, {most} bytes, or a quota is reached)",
            free >> 20
        ),
    }
}

/// Bytes that the user may still write where a path lies, or where its folder does.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let there = path.ancestors().find(|ancestor| ancestor.exists())?;
    let found = rustix::fs::statvfs(there).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_is_told_with_file_room_and_way_on() {
        let full = |free_bytes, file_bytes_max| Blocked::DiskFull {
            path: "/state/runs/1/journal/log".into(),
            free_bytes,
            file_bytes_max,
        };
        let expected = "no space is left on the disk for /state/runs/1/journal/log";
        for (free_bytes, file_bytes_max, room) in [
            (None, None, ""),
            (Some(5000), Some(1024), " (4 KiB are free)"),
            (Some(3 << 20), None, " (3 MiB are free: a quota is reached)"),
            (
                Some(3 << 20),
                Some(1024),
                " (3 MiB are free: the limit of a file, 1024 bytes, or a quota is reached)",
            ),
        ] {
            let told = full(free_bytes, file_bytes_max).to_string();
            assert_eq!(told, format!("{expected}{room}"));
        }
        let hint = full(Some(5000), Some(1024)).hint("17");
        assert_eq!(hint, "free disk space, then continue with `ciel resume 17`");
        let hint = full(Some(3 << 20), Some(1024)).hint("17");
        let expected = "raise the limit, `ulimit -f`, then continue with `ciel resume 17`";
        assert_eq!(hint, expected);
    }

    #[test]
    fn room_is_found_for_a_path_that_is_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("not/made/yet");
        assert!(free_bytes(&inside).is_some_and(|bytes| bytes > 0));
    }
}
