//! Why a run could not be begun or carried on, with codes and hints.
//!
//! Failures of jobs are no errors: they are outcomes. It does not know which operation failed. Read
//! next: `blocked`, for errors after which a run can be resumed.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use ciel_coordinator::FoldError;
use ciel_journal::JournalError;
use ciel_store::StoreError;
use ciel_view::ViewError;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::blocked::Blocked;
pub use crate::flat_file::FlatFileError;

/// Open files with which a run has enough on any machine of up to 16 cores.
const OPEN_FILES_MIN: u64 = 256;

/// Threads and processes of a user with which a run of commands has enough on such a machine.
const THREADS_MIN: u64 = 256;

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
    /// The run stays as recorded until the user has acted.
    Hindered {
        /// Its id.
        run: String,
        /// About what.
        hindrance: Blocked,
    },
    /// The run to resume cannot be looked at.
    View(ViewError),
    /// The output cannot be written.
    Output(std::io::Error),
    /// An ordered file cannot be written, or is not what it was.
    File {
        /// Its path, and why.
        error: FlatFileError,
        /// The run, if it can be resumed.
        run: Option<String>,
    },
    /// Nothing can happen in the run any more, although its job has not ended: a bug of the engine.
    Stalled {
        /// Its id.
        run: String,
        /// What has not ended, in lines.
        report: String,
    },
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
            RunError::File { error, .. } => error.code(),
            RunError::Stalled { .. } => "run.stalled",
            RunError::System { .. } => "run.system",
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let mut refusals = causes(self).filter_map(of_system);
        match self {
            // A pipe may be full for a moment.
            RunError::Output(_) => None,
            _ => refusals.find_map(hint_of_limit).or_else(|| self.own_hint()),
        }
    }

    fn own_hint(&self) -> Option<String> {
        match self {
            RunError::State(error) => error.hint().map(str::to_string),
            RunError::OtherVersion { .. } => Some(
                "resume it with that version, or start a new run: ciel run --new …".to_string(),
            ),
            RunError::Changed { .. } => Some(
                "its finished tasks ran the old code; start a new run: ciel run --new …"
                    .to_string(),
            ),
            RunError::View(error) => error.hint(),
            RunError::Recovery(_) => {
                Some("the job can only start from the beginning: ciel run --new …".to_string())
            }
            RunError::Journal(error) => error.hint().map(str::to_string),
            RunError::Hindered { run, hindrance } => Some(hindrance.hint(run)),
            RunError::Stalled { run, .. } => Some(format!(
                "this is a bug of ciel; `ciel journal {run}` shows what led to it, and \
                 `ciel resume {run}` continues from what is recorded"
            )),
            RunError::File { error, run } => Some(error.hint(run.as_deref())),
            RunError::Output(_) | RunError::System { .. } => None,
        }
    }
}

/// An error and what caused it, outermost first.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        (*error).source()
    })
}

/// The system's answer, if an error is that.
fn of_system<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let shared = || cause.downcast_ref::<Arc<io::Error>>().map(|error| &**error);
    cause.downcast_ref::<io::Error>().or_else(shared)
}

/// What to do about the system's refusal to open a file, or to start a thread or process, for a
/// limit that is too low.
pub(crate) fn hint_of_limit(refusal: &io::Error) -> Option<String> {
    let (resource, who, what, option, enough) = match Errno::from_io_error(refusal)? {
        Errno::MFILE => (
            Resource::Nofile,
            "process may open",
            "files",
            'n',
            OPEN_FILES_MIN,
        ),
        Errno::AGAIN => (Resource::Nproc, "user may run", "threads", 'u', THREADS_MIN),
        _ => return None,
    };
    let may = getrlimit(resource).current.map_or(String::new(), |count| {
        format!("this {who} {count} {what}; ")
    });
    Some(format!("{may}raise the limit: ulimit -{option} {enough}"))
}

impl RunError {
    /// The journal's trouble as that of a run: a full disk hinders it.
    pub(crate) fn of_journal(run: &str, error: JournalError) -> RunError {
        match error {
            JournalError::DiskFull { path } => RunError::hindered(run, Blocked::disk_full(path)),
            error => RunError::Journal(error),
        }
    }

    /// The same for an error of the file of released output. Bytes that differ from the released
    /// ones are reported as `InvalidData`.
    pub(crate) fn of_released(run: &str, path: &Path, error: io::Error) -> RunError {
        if error.kind() == io::ErrorKind::InvalidData {
            return RecoveryError::Released(error).into();
        }
        RunError::of_store(run, StoreError::of_system("write", path, error))
    }

    /// The store's trouble in a run that is recorded, likewise.
    pub(crate) fn of_store(run: &str, error: StoreError) -> RunError {
        match error {
            StoreError::DiskFull { path } => RunError::hindered(run, Blocked::disk_full(path)),
            error => RunError::State(error),
        }
    }

    /// The error of an ordered file; `run` is the run if it can be resumed.
    pub(crate) fn of_file(run: Option<&str>, error: FlatFileError) -> RunError {
        let run = run.map(str::to_string);
        RunError::File { error, run }
    }

    pub(crate) fn hindered(run: &str, hindrance: Blocked) -> RunError {
        RunError::Hindered {
            run: run.to_string(),
            hindrance,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::State(error) => error.fmt(f),
            RunError::OtherVersion { run, version } => {
                write!(f, "run {run} was started by version {version} of ciel")
            }
            RunError::Changed { run } => {
                write!(f, "the code of the job has changed since run {run} began")
            }
            RunError::View(error) => error.fmt(f),
            RunError::Recovery(error) => error.fmt(f),
            RunError::Journal(error) => error.fmt(f),
            RunError::Hindered { hindrance, .. } => hindrance.fmt(f),
            RunError::File { error, .. } => error.fmt(f),
            RunError::Output(error) => write!(f, "cannot write the output: {error}"),
            RunError::Stalled { report, .. } => write!(f, "the run has stalled: {report}"),
            RunError::System { act, source } => write!(f, "cannot {act}: {source}"),
        }
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            RunError::State(error) => Some(error),
            RunError::Journal(error) => Some(error),
            RunError::View(error) => Some(error),
            RunError::Output(source) | RunError::System { source, .. } => Some(source),
            RunError::File { error, .. } => Some(error),
            RunError::Recovery(_)
            | RunError::OtherVersion { .. }
            | RunError::Changed { .. }
            | RunError::Hindered { .. }
            | RunError::Stalled { .. } => None,
        }
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        RunError::State(error)
    }
}

impl From<RecoveryError> for RunError {
    fn from(error: RecoveryError) -> RunError {
        RunError::Recovery(error)
    }
}

/// Why a run cannot be resumed.
#[derive(Debug)]
pub enum RecoveryError {
    /// The journal can be read, but it is not that of a run.
    Corrupt(FoldError),
    /// The records can be read, but are inconsistent.
    Absurd {
        /// The message of the machines.
        message: String,
    },
    /// Files of the run that nothing can make again.
    Lost {
        /// What they held, in words.
        what: &'static str,
    },
    /// The file of released output.
    Released(io::Error),
}

impl From<FoldError> for RecoveryError {
    fn from(corrupt: FoldError) -> RecoveryError {
        RecoveryError::Corrupt(corrupt)
    }
}

impl RecoveryError {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            RecoveryError::Corrupt(_) | RecoveryError::Absurd { .. } => "journal.corrupt",
            RecoveryError::Lost { .. } => "journal.lost",
            RecoveryError::Released(_) => "journal.released",
        }
    }
}

impl fmt::Display for RecoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoveryError::Corrupt(corrupt) => write!(f, "the journal is damaged: {corrupt}"),
            RecoveryError::Absurd { message } => {
                write!(f, "the journal is inconsistent: {message}")
            }
            RecoveryError::Lost { what } => {
                write!(f, "{what} is missing from the run's folder or has changed")
            }
            RecoveryError::Released(error) => {
                write!(f, "cannot continue the output of the run: {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

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
