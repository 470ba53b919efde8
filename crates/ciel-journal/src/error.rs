//! What can go wrong with a journal: fields, not sentences, and a stable code each.
//!
//! All waiting threads receive the first failure of writing, so errors can be cloned. It does not
//! know whose journal it is. Read next: `disk`, whose answers become these.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::frame::FORMAT;

/// A refused or failed act of a journal.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JournalError {
    /// The file was written in another format.
    #[error("{path} is a journal of format {found}; this version of ciel reads format {expected}")]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The format found in it.
        found: u32,
        /// The format of this version.
        expected: u32,
    },
    /// Bytes that were synced have changed or are missing.
    #[error("{path} is damaged at byte {offset}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damage begins.
        offset: u64,
        /// The first intact frame behind it in this file, if there is one.
        next_intact: Option<u64>,
    },
    /// A new journal was to be made where there is one already.
    #[error("{path} has a journal already")]
    Taken {
        /// The folder.
        path: PathBuf,
    },
    /// The disk, or the user's share of it, is full.
    #[error("no space is left on the disk for {path}")]
    DiskFull {
        /// What was being written.
        path: PathBuf,
    },
    /// The folder or file may not be written.
    #[error("{path} cannot be written")]
    ReadOnly {
        /// What was to be written.
        path: PathBuf,
    },
    /// A record is longer than a frame may be. It was not written, nor anything after it.
    #[error("a record of {bytes} bytes is too long; the maximum is {bytes_max}")]
    RecordTooLong {
        /// Its bytes.
        bytes: usize,
        /// The most that work.
        bytes_max: usize,
    },
    /// The record was appended to a journal that is closed, and is not written.
    #[error("the journal in {path} is closed")]
    Closed {
        /// The folder.
        path: PathBuf,
    },
    /// The system refused in a way that has no name of its own here.
    #[error("cannot {act} {path}: {source}")]
    System {
        /// What was tried.
        act: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: Arc<io::Error>,
    },
}

impl JournalError {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            JournalError::OtherFormat { .. } => "journal.other-format",
            JournalError::Damaged { .. } => "journal.damaged",
            JournalError::Taken { .. } => "journal.taken",
            JournalError::DiskFull { .. } => "journal.disk-full",
            JournalError::ReadOnly { .. } => "journal.read-only",
            JournalError::RecordTooLong { .. } => "journal.record-too-long",
            JournalError::Closed { .. } => "journal.closed",
            JournalError::System { .. } => "journal.system",
        }
    }

    /// Whether the run can resume later from what was written, when the disk has space.
    pub fn is_retryable(&self) -> bool {
        match self {
            JournalError::DiskFull { .. } => true,
            JournalError::System { source, .. } => source.kind() == io::ErrorKind::Interrupted,
            _ => false,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            JournalError::OtherFormat { .. } => {
                Some("resume the run with the version that began it, or start a new run with --new")
            }
            JournalError::Damaged { .. } => Some(
                "the disk may be failing; the run cannot be resumed: start a new run with --new",
            ),
            JournalError::DiskFull { .. } => {
                Some("free some space, run `ciel clean`, or use another disk with --state")
            }
            JournalError::ReadOnly { .. } => Some("choose a folder you can write with --state"),
            JournalError::System { .. } => {
                Some("fix that and resume the run, or start a new run with --new")
            }
            _ => None,
        }
    }

    pub(crate) fn system(act: &'static str, path: &Path, source: io::Error) -> JournalError {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => JournalError::DiskFull { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                JournalError::ReadOnly { path }
            }
            _ => JournalError::System {
                act,
                path,
                source: Arc::new(source),
            },
        }
    }

    pub(crate) fn other_format(path: PathBuf, found: u32) -> JournalError {
        JournalError::OtherFormat {
            path,
            found,
            expected: FORMAT,
        }
    }
}
