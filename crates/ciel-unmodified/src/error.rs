//! Why a command could not be supervised to its end. How the command itself ended is no error.

use std::io;
use std::path::PathBuf;

/// What stopped the supervision. All processes of the command have been ended then.
#[derive(Debug, thiserror::Error)]
pub enum UnmodifiedError {
    /// The command did not start.
    #[error("cannot start {program}: {error}")]
    Start {
        /// The program, as it was named.
        program: String,
        /// What the system said.
        error: io::Error,
    },
    /// The kernel refuses to stop calls, and nothing else was allowed.
    #[error("this system does not let calls of processes be intercepted (seccomp): {0}")]
    Refused(io::Error),
    /// Files cannot be ordered by this route.
    #[error("--file needs the route seccomp, which this system refuses: {0}")]
    FilesRefused(io::Error),
    /// The same, and that route was asked for.
    #[error("--file needs the route seccomp: the route pipes does not tell processes apart")]
    FilesByPipes,
    /// Not a pattern.
    #[error("not a pattern of paths: {pattern}: {reason}")]
    Pattern {
        /// As it was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An output takes no more.
    #[error(
        "cannot write {output}: {error}; it holds the first {bytes} bytes of the serial output"
    )]
    Output {
        /// Which one.
        output: String,
        /// What it has taken.
        bytes: u64,
        /// What the system said.
        error: io::Error,
    },
    /// What waits for its turn did not fit in memory, nor on disk.
    #[error(
        "cannot hold output that waits for its turn in {}: {error}; what was written is the start \
         of the serial output",
        folder.display()
    )]
    Spill {
        /// Where it was to be held.
        folder: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A call of the supervisor to the system failed.
    #[error("cannot {act}: {error}")]
    System {
        /// What was to be done.
        act: &'static str,
        /// Why it was not.
        error: io::Error,
    },
    /// The supervising process was killed from elsewhere.
    #[error("the supervising process was killed; all processes of the command were ended")]
    Killed,
}

impl UnmodifiedError {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            UnmodifiedError::Start { .. } => "ordered.start",
            UnmodifiedError::Refused(_) => "ordered.refused",
            UnmodifiedError::FilesRefused(_) => "ordered.files-refused",
            UnmodifiedError::FilesByPipes => "ordered.files-by-pipes",
            UnmodifiedError::Pattern { .. } => "ordered.pattern",
            UnmodifiedError::Output { .. } => "ordered.output",
            UnmodifiedError::Spill { .. } => "ordered.spill",
            UnmodifiedError::System { .. } => "ordered.system",
            UnmodifiedError::Killed => "ordered.killed",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            UnmodifiedError::Refused(_) => {
                Some("`--route pipes` runs the command without ordering its processes")
            }
            UnmodifiedError::FilesRefused(_) => Some("in a container, allow the call seccomp"),
            UnmodifiedError::FilesByPipes => Some("leave out `--route pipes`"),
            UnmodifiedError::Spill { .. } => {
                Some("free space there, or set TMPDIR to a folder with more")
            }
            UnmodifiedError::System { error, .. } if error.raw_os_error() == Some(libc::EMFILE) => {
                Some("each live process takes up to three descriptors; raise `ulimit -n`")
            }
            UnmodifiedError::Start { .. }
            | UnmodifiedError::Pattern { .. }
            | UnmodifiedError::Output { .. }
            | UnmodifiedError::System { .. }
            | UnmodifiedError::Killed => None,
        }
    }

    /// Whether the same command may succeed later: where space or descriptors ran out.
    pub fn is_retryable(&self) -> bool {
        match self {
            UnmodifiedError::Output { .. }
            | UnmodifiedError::Spill { .. }
            | UnmodifiedError::System { .. }
            | UnmodifiedError::Killed => true,
            UnmodifiedError::Start { .. }
            | UnmodifiedError::Refused(_)
            | UnmodifiedError::FilesRefused(_)
            | UnmodifiedError::FilesByPipes
            | UnmodifiedError::Pattern { .. } => false,
        }
    }
}

/// What is done when `/proc` is read.
pub(crate) const LOOKING: &str = "look at a process";

/// Names the act of a failed call to the system.
pub(crate) trait Naming<T> {
    /// The error as one of this crate.
    fn naming(self, act: &'static str) -> Result<T, UnmodifiedError>;
}

impl<T, E: Into<io::Error>> Naming<T> for Result<T, E> {
    fn naming(self, act: &'static str) -> Result<T, UnmodifiedError> {
        self.map_err(|error| UnmodifiedError::System {
            act,
            error: error.into(),
        })
    }
}
