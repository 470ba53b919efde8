//! What can go wrong with a file, in words for the user of the library.
//!
//! All of it reaches callers as [`std::io::Error`], from which a [`FileError`] can be had again by
//! `downcast`. It does not know who reports it.

use std::io;
use std::path::PathBuf;

/// Why a call on a file failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// A serial-append file is written only.
    #[error("{path:?} is open for serial append: it cannot be read, and has no pointer to move")]
    AppendOnly {
        /// The file.
        path: PathBuf,
    },
    /// The caller is no strand of the program that opened the file: a closure of another pool, or a
    /// thread that was not forked.
    #[error("{path:?} is used outside of the strands of the thread that opened it")]
    NotAStrand {
        /// The file.
        path: PathBuf,
    },
    /// Strands that come before the caller still run, so the file cannot be complete.
    #[error("{path:?} is closed while strands run that come before this one")]
    StrandsRun {
        /// The file.
        path: PathBuf,
    },
    /// It is open for serial append already, here or in another process.
    #[error("{path:?} is open for serial append already")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// It was closed.
    #[error("{path:?} is closed")]
    Closed {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else has written to it, or cut it.
    #[error("{path:?} was changed from outside: it has {found} bytes instead of {expected}")]
    Changed {
        /// The file.
        path: PathBuf,
        /// Bytes that it has.
        found: u64,
        /// Bytes that it should have.
        expected: u64,
    },
    /// What is appended to a structured file that exists would belong to nothing.
    #[error("{path:?} is a structured file, which cannot be continued: truncate or flatten it")]
    NotContinued {
        /// The file.
        path: PathBuf,
    },
    /// A structured file is written from its start.
    #[error("{path:?} has contents already: truncate it, or write it flat")]
    NotEmpty {
        /// The file.
        path: PathBuf,
    },
    /// A structured file is written only by serial append.
    #[error("{path:?} is a structured file: it is read only")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// A structured file cannot be read.
    #[error("{path:?} cannot be read: {cause}")]
    Structured {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A write failed. What precedes that byte is what the serial program would have written.
    #[error("cannot write {path:?} from byte {valid} on: {cause}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Bytes of the file that are valid.
        valid: u64,
        /// What the system said.
        cause: String,
        /// Its kind.
        kind: io::ErrorKind,
    },
}

impl FileError {
    fn kind(&self) -> io::ErrorKind {
        match self {
            FileError::AppendOnly { .. } => io::ErrorKind::Unsupported,
            FileError::NotAStrand { .. } | FileError::Closed { .. } => io::ErrorKind::InvalidInput,
            FileError::StrandsRun { .. } | FileError::Busy { .. } => io::ErrorKind::ResourceBusy,
            FileError::NotContinued { .. } | FileError::NotEmpty { .. } => {
                io::ErrorKind::AlreadyExists
            }
            FileError::ReadOnly { .. } => io::ErrorKind::Unsupported,
            FileError::Changed { .. } | FileError::Structured { .. } => io::ErrorKind::InvalidData,
            FileError::Write { kind, .. } => *kind,
        }
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> io::Error {
        io::Error::new(error.kind(), error)
    }
}
