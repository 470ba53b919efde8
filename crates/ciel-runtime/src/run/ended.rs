//! The end of a run, kept until its process has shown all of it.
//!
//! A process may be killed after its job has ended and before it has shown the end. The next start
//! then shows the output, the result and the failures, and runs nothing. It does not know how they
//! are shown. Read next: `finish`, which keeps the end.

use std::sync::Arc;

use ciel_graph::Counts;
use ciel_model::Failure;
use ciel_store::RunFolder;
use ciel_view::records::StoreRecord;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::Outcome;
use crate::cleanup::clear_folder;
use crate::death;
use crate::engine::Engine;
use crate::error::{RecoveryError, RunError};
use crate::observer::{Observer, Report, keep_sinks};
use crate::recovery::{open_released, verify};

/// How a run ended.
#[derive(Serialize, Deserialize)]
pub(super) struct EndedRun {
    pub(super) result: Result<Json, Failure>,
    pub(super) failures: Vec<Failure>,
    pub(super) counts: Counts,
    pub(super) elapsed_us: u64,
    pub(super) processor_us: u64,
    pub(super) store: StoreRecord,
}

impl EndedRun {
    /// How it ended, without any numbers.
    pub(super) fn new(result: &Result<Json, Arc<Failure>>, failures: &[Arc<Failure>]) -> EndedRun {
        let failure = |failure: &Arc<Failure>| Failure::clone(failure);
        EndedRun {
            result: result.clone().map_err(|why| failure(&why)),
            failures: failures.iter().map(failure).collect(),
            counts: Counts::default(),
            elapsed_us: 0,
            processor_us: 0,
            store: StoreRecord::default(),
        }
    }

    /// Keeps it until [`Leaving::leave`]; false if there is no room for it.
    pub(super) fn keep(&self, engine: &Engine) -> bool {
        let bytes = serde_json::to_vec(self).expect("numbers, texts and JSON make JSON");
        engine.folder.keep_outcome(&bytes).unwrap_or(false)
    }

    /// The end that this folder keeps; none if its run has not ended.
    ///
    /// # Errors
    /// What the folder refuses, and an outcome that cannot be understood.
    pub(super) fn of(folder: &RunFolder) -> Result<Option<EndedRun>, RunError> {
        let Some(bytes) = folder.outcome()? else {
            return Ok(None);
        };
        let read = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("its outcome cannot be read: {error}");
            RunError::from(RecoveryError::Absurd { message })
        });
        read.map(Some)
    }

    /// Shows all of it once more.
    ///
    /// # Errors
    /// What the folder refuses, and those of the output.
    pub(super) fn show(
        self,
        folder: Arc<RunFolder>,
        observer: &dyn Observer,
    ) -> Result<Outcome, RunError> {
        let (run, committed) = (folder.id().to_string(), self.counts.finished);
        observer.report(Report::Resumed {
            run: &run,
            committed,
        });
        keep_sinks(&folder, observer)?;
        let mut released = open_released(&folder)?;
        verify(&mut released)?;
        let shown = released.tell(|bytes| observer.output(bytes));
        let shown = shown.and_then(|()| match &self.result {
            Ok(result) => observer.result(result),
            Err(_) => Ok(()),
        });
        let output_closed = match shown.and_then(|()| observer.settle()) {
            Ok(()) => false,
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => true,
            Err(error) => return Err(RunError::Output(error)),
        };
        Ok(Outcome {
            run,
            result: self.result.map_err(Arc::new),
            failures: self.failures.into_iter().map(Arc::new).collect(),
            counts: self.counts,
            reruns: Vec::new(),
            elapsed_us: self.elapsed_us,
            processor_us: self.processor_us,
            store: self.store,
            interrupted: false,
            output_closed,
            resumable: false,
            leaving: Leaving::of(folder),
        })
    }
}

/// The folder of a run whose end is being shown.
#[derive(Clone, Debug)]
pub struct Leaving(Arc<RunFolder>);

impl Leaving {
    pub(super) fn of(folder: Arc<RunFolder>) -> Leaving {
        Leaving(folder)
    }

    /// Records that the end was shown completely; the last step of a run. Without it the next start
    /// of the job shows the same end instead of a new run.
    pub fn leave(self) {
        death::at_the_end();
        // A mark that cannot be removed costs another look at the same end.
        let left = self.0.leave();
        death::at_the_end();
        // A run that was killed once it was marked as ended may still have its records.
        let is_over = || {
            let has_ended = matches!(self.0.has_ended(), Ok(true));
            has_ended || matches!(self.0.is_resumable(), Ok(false))
        };
        if left.is_ok() && is_over() {
            clear_folder(self.0.path());
        }
    }
}
