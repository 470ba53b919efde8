//! What the engine shows, and to whom: the seam between engine and command line.
//!
//! It does not know terminals or formats; the caller of a job provides an [`Observer`].

use std::io;
use std::sync::Arc;

use ciel_graph::Counts;
use ciel_model::{Failure, Label, Micros};
use ciel_store::RunFolder;
use serde_json::Value as Json;

use crate::error::RunError;

/// Lets the face know again where the output of the run went, before any of it goes there.
///
/// # Errors
/// What the run's folder refuses.
pub(crate) fn keep_sinks(folder: &RunFolder, observer: &dyn Observer) -> Result<(), RunError> {
    let kept = folder.sinks()?;
    let sinks = observer.sinks(kept.clone());
    match sinks {
        Some(sinks) if kept.as_ref() != Some(&sinks) => Ok(folder.keep_sinks(&sinks)?),
        Some(_) | None => Ok(()),
    }
}

/// The environment of a job. Methods are called from several threads, each in program order.
pub trait Observer: Send + Sync {
    /// Where the output is about to go, for one who shows it in a place that outlives this process.
    ///
    /// `kept` is the value that an earlier process of this run returned here, if any; the returned
    /// value is kept for later ones. Called once, immediately before the first output, and only for
    /// runs that can be resumed.
    fn sinks(&self, kept: Option<Vec<u8>>) -> Option<Vec<u8>> {
        kept
    }

    /// The next bytes of the ordered standard output: all of them, from the first one of the run.
    ///
    /// Errors end the job: its output has no reader.
    fn output(&self, bytes: &[u8]) -> io::Result<()>;

    /// The job's result, when it has ended well and all output is out.
    ///
    /// Errors leave the run to be resumed, unless its output has no reader any more.
    fn result(&self, result: &Json) -> io::Result<()>;

    /// The job has come to its end, well or not, and all has been shown; in a moment the run is
    /// marked as ended. What must not be lost then is to be in its place now.
    ///
    /// Errors leave the run to be resumed.
    fn settle(&self) -> io::Result<()> {
        Ok(())
    }

    /// Bytes of standard error: whole lines, or a part where a task never ends its line. `task` is
    /// absent when they come in serial order.
    fn error_output(&self, task: Option<&Label>, bytes: &[u8]);

    /// Whether reports of progress are shown. If not, none come while nothing happens.
    fn shows_progress(&self) -> bool {
        true
    }

    /// A report that may interest users.
    fn report(&self, report: Report<'_>);
}

/// What happened, for progress lines and programs that read along.
#[derive(Clone, Debug)]
pub enum Report<'a> {
    /// The run has begun.
    Started {
        /// Its id.
        run: &'a str,
    },
    /// The run resumes where an earlier process of it was interrupted.
    Resumed {
        /// Its id.
        run: &'a str,
        /// Tasks that had finished before and are not rerun.
        committed: u64,
    },
    /// Where the job stands; ten times a second, or less often.
    Progress(&'a Progress),
    /// An attempt failed and is retried.
    AttemptFailed {
        /// The task that failed.
        task: &'a Label,
        /// The failure of this attempt.
        failure: &'a Arc<Failure>,
        /// Retries left.
        left: u32,
    },
    /// A task failed for good.
    TaskFailed {
        /// The task that failed.
        task: &'a Label,
        /// The failure of this attempt.
        failure: &'a Arc<Failure>,
    },
    /// Something odd that did no harm.
    Warning {
        /// About whom.
        task: Option<&'a Label>,
        /// The warning, without the name of the task.
        message: &'a str,
    },
}

/// Where a job stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Tasks so far.
    pub counts: Counts,
    /// Tasks that have not ended; it grows as tasks spawn tasks.
    pub pending: u64,
    /// Tasks in their places now.
    pub running: u64,
    /// Of the tasks that run, the one that began first.
    pub oldest: Option<String>,
    /// Since the run began.
    pub elapsed_us: Micros,
}
