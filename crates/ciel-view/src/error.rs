//! Why a run cannot be looked at, with codes and hints.

use std::fmt;

use ciel_coordinator::FoldError;
use ciel_journal::JournalError;
use ciel_store::StoreError;

/// Why a run cannot be looked at.
#[derive(Debug)]
pub enum ViewError {
    /// The state folder cannot be read.
    State(StoreError),
    /// The run has no description that this version understands.
    Undescribed {
        /// Its id.
        run: String,
    },
    /// The journal cannot be read.
    Journal(JournalError),
    /// The journal can be read, but it is not that of a run.
    Corrupt(FoldError),
}

impl ViewError {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            ViewError::State(error) => error.code(),
            ViewError::Undescribed { .. } => "run.undescribed",
            ViewError::Journal(error) => error.code(),
            ViewError::Corrupt(_) => "journal.corrupt",
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            ViewError::State(error) => error.hint().map(str::to_string),
            ViewError::Undescribed { .. } => {
                Some("`ciel run` with its script reruns the job".to_string())
            }
            ViewError::Journal(error) => error.hint().map(str::to_string),
            ViewError::Corrupt(_) => {
                Some("the job can only start from the beginning: ciel run --new …".to_string())
            }
        }
    }
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewError::State(error) => error.fmt(f),
            ViewError::Undescribed { run } => write!(f, "run {run} has no description"),
            ViewError::Journal(error) => error.fmt(f),
            ViewError::Corrupt(corrupt) => write!(f, "the journal is damaged: {corrupt}"),
        }
    }
}

impl std::error::Error for ViewError {}

impl From<StoreError> for ViewError {
    fn from(error: StoreError) -> Self {
        ViewError::State(error)
    }
}
