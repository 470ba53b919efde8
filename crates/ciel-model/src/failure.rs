//! Task failures: data that flows through the graph like any other object.
//!
//! They never mix with bugs (which assert) or with operating errors (typed per act). A failure is
//! described in terms of the user's program: which task, which line, why, what to do.

use std::fmt;
use std::sync::Arc;

use crate::name::Label;

/// What kind of failure, with a stable code for programs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub enum FailureKind {
    /// The task's own code failed.
    TaskError,
    /// The process that ran it died, more often than replay is allowed.
    WorkerLost,
    /// It was cancelled, or the job ended first.
    Cancelled,
    /// It ran longer than it may.
    Timeout,
    /// It took more memory than it may.
    OutOfMemory,
    /// A value of it cannot be written as bytes.
    NotSerializable,
    /// It acted differently in a replay.
    NonDeterministic,
    /// An object that it needs is lost and cannot be recomputed.
    ObjectLost,
    /// There is no room for what it writes.
    DiskFull,
    /// It requested something that is not available: an executor, a resource, an argument.
    Refused,
}

impl FailureKind {
    /// Every kind.
    pub const ALL: [FailureKind; 10] = [
        FailureKind::TaskError,
        FailureKind::WorkerLost,
        FailureKind::Cancelled,
        FailureKind::Timeout,
        FailureKind::OutOfMemory,
        FailureKind::NotSerializable,
        FailureKind::NonDeterministic,
        FailureKind::ObjectLost,
        FailureKind::DiskFull,
        FailureKind::Refused,
    ];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            FailureKind::TaskError => "TaskError",
            FailureKind::WorkerLost => "WorkerLost",
            FailureKind::Cancelled => "Cancelled",
            FailureKind::Timeout => "Timeout",
            FailureKind::OutOfMemory => "OutOfMemory",
            FailureKind::NotSerializable => "NotSerializable",
            FailureKind::NonDeterministic => "NonDeterministic",
            FailureKind::ObjectLost => "ObjectLost",
            FailureKind::DiskFull => "DiskFull",
            FailureKind::Refused => "Refused",
        }
    }

    /// The kind of that code.
    pub fn from_code(code: &str) -> Option<FailureKind> {
        FailureKind::ALL
            .into_iter()
            .find(|kind| kind.code() == code)
    }

    /// Whether a retry of the task may succeed.
    pub fn is_retryable(self) -> bool {
        match self {
            FailureKind::TaskError
            | FailureKind::WorkerLost
            | FailureKind::Timeout
            | FailureKind::OutOfMemory
            | FailureKind::DiskFull
            | FailureKind::ObjectLost => true,
            FailureKind::Cancelled
            | FailureKind::NotSerializable
            | FailureKind::NonDeterministic
            | FailureKind::Refused => false,
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// One step of the way from the failure to the root, innermost first.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Frame {
    /// The task whose code this is.
    pub task: Label,
    /// File and line in it, or the command; empty when unknown.
    pub place: String,
    /// What happened there, e.g. `in fib`, `dereferenced f@…`.
    pub note: String,
}

/// One call of a traceback, as the language of the code reports it.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Call {
    /// File of the code.
    pub file: String,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
    /// Name of the function; empty if unknown.
    pub function: String,
    /// The text of the line; may be empty.
    pub source: String,
}

/// The error itself, in a form that readers of the same language understand.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Exception {
    /// How to read the bytes.
    pub form: String,
    /// At most [`crate::limits::EXCEPTION_BYTES_MAX`].
    pub bytes: Vec<u8>,
}

/// The form of an exception by which a program ends itself: the bytes are the status, in digits.
pub const EXIT_STATUS: &str = "exit-status";

/// The failure in terms of the failed code's language. The engine reads only `retryable`; a task
/// that demands the failure receives the rest unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct FailureDetails {
    /// The language, for example `python`.
    pub language: String,
    /// Where, outermost call first; bounded by [`crate::limits::TRACEBACK_CALLS_MAX`].
    pub calls: Vec<Call>,
    /// The error itself, if it could be carried.
    pub exception: Option<Exception>,
    /// Whether another attempt may succeed, if the failed code declares it.
    pub retryable: Option<bool>,
}

/// Why a task failed.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Failure {
    /// What kind.
    pub kind: FailureKind,
    /// The user's own name for it (an exception type, a thrown kind); the code of `kind` if none.
    pub type_name: String,
    /// What happened, without task and place.
    pub message: String,
    /// The task in which it began.
    pub origin: Label,
    /// From where it began outwards; bounded by [`crate::limits::FAILURE_FRAMES_MAX`].
    pub frames: Vec<Frame>,
    /// An excerpt to show as it is: source lines with a caret, the last lines of standard error.
    pub excerpt: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The value thrown, as JSON text, if the language has such.
    pub value: Option<String>,
    /// The failure in terms of the failed code's language.
    #[serde(default)]
    pub told: Option<Arc<FailureDetails>>,
}

impl Failure {
    /// A failure that begins in `origin`.
    pub fn new(kind: FailureKind, origin: Label, message: impl Into<String>) -> Failure {
        Failure {
            kind,
            type_name: kind.code().to_string(),
            message: message.into(),
            origin,
            frames: Vec::new(),
            excerpt: String::new(),
            hint: None,
            value: None,
            told: None,
        }
    }

    /// The status with which a job's program has ended itself, if the failure is only that.
    pub fn exit_status(&self) -> Option<u8> {
        let exception = self.told.as_ref()?.exception.as_ref()?;
        let digits = (exception.form == EXIT_STATUS).then_some(&exception.bytes)?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// Whether another attempt may succeed: as the failed code declares, else by the kind.
    pub fn is_retryable(&self) -> bool {
        let said = self.told.as_ref().and_then(|details| details.retryable);
        said.unwrap_or_else(|| self.kind.is_retryable())
    }

    /// The same with a hint.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// The same as seen one task further out.
    pub fn through(mut self, frame: Frame) -> Failure {
        if self.frames.len() < crate::limits::FAILURE_FRAMES_MAX {
            self.frames.push(frame);
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.origin, self.type_name, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_reads_back() {
        for kind in FailureKind::ALL {
            assert_eq!(FailureKind::from_code(kind.code()), Some(kind));
        }
    }

    #[test]
    fn what_the_failed_code_says_of_another_attempt_counts_before_the_kind() {
        let origin = Label {
            what: "f".into(),
            name: crate::Name(1),
        };
        for kind in FailureKind::ALL {
            let mut failure = Failure::new(kind, origin.clone(), "no");
            assert_eq!(failure.is_retryable(), kind.is_retryable());
            for said in [None, Some(false), Some(true)] {
                let retryable = said;
                failure.told = Some(Arc::new(FailureDetails {
                    retryable,
                    ..FailureDetails::default()
                }));
                assert_eq!(failure.is_retryable(), said.unwrap_or(kind.is_retryable()));
            }
        }
    }

    /// The bytes of an exception were once left out of serialized failures, as of no use to a
    /// history. The journal serializes failures, too: after the run was resumed, a task that read
    /// one received a text instead of the user's own exception.
    #[test]
    fn failure_that_was_written_down_is_whole() {
        let label = Label {
            what: "f".into(),
            name: crate::Name(1),
        };
        let mut failure = Failure::new(FailureKind::TaskError, label, "no");
        failure.told = Some(Arc::new(FailureDetails {
            language: "python".to_string(),
            calls: vec![Call::default()],
            exception: Some(Exception {
                form: "pickle".to_string(),
                bytes: vec![0x80, 0x05, 0xff],
            }),
            retryable: Some(false),
        }));
        let written = postcard::to_stdvec(&failure).unwrap();
        assert_eq!(postcard::from_bytes::<Failure>(&written), Ok(failure));
    }

    #[test]
    fn frames_are_bounded() {
        let origin = Label {
            what: "f".into(),
            name: crate::Name(1),
        };
        let mut failure = Failure::new(FailureKind::TaskError, origin.clone(), "no");
        for _ in 0..10_000 {
            let frame = Frame {
                task: origin.clone(),
                place: String::new(),
                note: String::new(),
            };
            failure = failure.through(frame);
        }
        assert_eq!(failure.frames.len(), crate::limits::FAILURE_FRAMES_MAX);
    }
}
