//! Why a run could not be begun or carried on, with codes and hints.
//!
//! Failures of jobs are no errors: they are outcomes. It does not know what was tried. Read next:
//! `hindrance`, for trouble after which a run can go on.

use std::fmt;

use ciel_journal::JournalError;
use ciel_store::StoreError;
use ciel_view::ViewError;

use crate::hindrance::Hindrance;
use crate::recovery::RecoveryError;

/// Why a run could not be begun or carried on.
#[derive(Debug)]
pub enum RunError {
    /// The state folder cannot be used.
    State(StoreError),
    /// The run to resume was begun by another version.
    OtherVersion {
        /// Its id.
        run: String,
        /// That version.
        version: String,
    },
    /// The run to resume was begun with other code, or for another job.
    Changed {
        /// Its id.
        run: String,
    },
    /// What the run to resume has recorded cannot be folded.
    Recovery(RecoveryError),
    /// What happens cannot be recorded any more.
    Journal(JournalError),
    /// The run stays as it is recorded until somebody has done something.
    Hindered {
        /// Its id.
        run: String,
        /// About what.
        hindrance: Hindrance,
    },
    /// The run to resume cannot be looked at.
    View(ViewError),
    /// The output cannot be written.
    Output(std::io::Error),
    /// The system refused something the engine needs.
    System {
        /// What was tried.
        act: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl RunError {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            RunError::State(error) => error.code(),
            RunError::OtherVersion { .. } => "run.other-version",
            RunError::Changed { .. } => "run.changed",
            RunError::View(error) => error.code(),
            RunError::Recovery(error) => error.code(),
            RunError::Journal(error) => error.code(),
            RunError::Hindered { hindrance, .. } => hindrance.code(),
            RunError::Output(_) => "run.output",
            RunError::System { .. } => "run.system",
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            RunError::State(error) => error.hint().map(str::to_string),
            RunError::OtherVersion { .. } => {
                Some("resume it with that version, or start afresh: ciel run --new …".to_string())
            }
            RunError::Changed { .. } => Some(
                "its tasks were run by the code as it was; start afresh: ciel run --new …"
                    .to_string(),
            ),
            RunError::View(error) => error.hint(),
            RunError::Recovery(_) => {
                Some("the job can only start afresh: ciel run --new …".to_string())
            }
            RunError::Journal(error) => error.hint().map(str::to_string),
            RunError::Hindered { run, hindrance } => Some(hindrance.hint(run)),
            RunError::Output(_) | RunError::System { .. } => None,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::State(error) => error.fmt(f),
            RunError::OtherVersion { run, version } => {
                write!(f, "run {run} was begun by version {version} of ciel")
            }
            RunError::Changed { run } => {
                write!(f, "the code of the job has changed since run {run} began")
            }
            RunError::View(error) => error.fmt(f),
            RunError::Recovery(error) => error.fmt(f),
            RunError::Journal(error) => error.fmt(f),
            RunError::Hindered { hindrance, .. } => hindrance.fmt(f),
            RunError::Output(error) => write!(f, "cannot write the output: {error}"),
            RunError::System { act, source } => write!(f, "cannot {act}: {source}"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        RunError::State(error)
    }
}
