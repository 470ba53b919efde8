//! The bounded history of a run, collected in memory until somebody writes it down.
//!
//! It does not know files; the input/output thread takes what has gathered.

use ciel_graph::{Moment, TaskSummary};
use ciel_model::{FailureKind, Label, limits};

use crate::records::{LogRecord, Record, TaskRecord, TaskState};

/// Bytes of records that may gather before somebody must write them down.
const GATHERED_BYTES_MAX: usize = 64 << 10;

/// Records that are not written down yet.
#[derive(Debug, Default)]
pub(crate) struct History {
    gathered: Vec<u8>,
    log_bytes: usize,
}

impl History {
    pub(crate) fn add(&mut self, record: &Record) {
        let written = serde_json::to_writer(&mut self.gathered, record);
        written.expect("records have only string keys and finite numbers");
        self.gathered.push(b'\n');
    }

    pub(crate) fn task_ended(&mut self, summary: &TaskSummary) {
        self.add(&Record::Task(Box::new(task_record(summary))));
    }

    /// Keeps a task's own output, as far as all of it together is bounded.
    pub(crate) fn log(&mut self, task: &Label, stream: &str, bytes: &[u8]) {
        if self.log_bytes > 64 * limits::LOG_BYTES_MAX {
            return;
        }
        self.log_bytes += bytes.len();
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.add(&Record::Log(LogRecord {
            task: task.to_string(),
            stream: stream.to_string(),
            text,
        }));
    }

    /// Whether enough has gathered to be written down now.
    pub(crate) fn is_full(&self) -> bool {
        self.gathered.len() >= GATHERED_BYTES_MAX
    }

    /// What has gathered since the last time.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.gathered)
    }
}

fn task_record(summary: &TaskSummary) -> TaskRecord {
    let state = match &summary.failure {
        None => TaskState::Finished,
        Some(failure) if failure.kind == FailureKind::Cancelled => TaskState::Cancelled,
        Some(_) => TaskState::Failed,
    };
    TaskRecord {
        name: summary.label.name.to_string(),
        what: summary.label.what.to_string(),
        executor: summary.executor.to_string(),
        place: summary.place.clone(),
        parent: summary.parent.as_ref().map(Label::to_string),
        state,
        reasons: Vec::new(),
        story: words_of(&summary.story),
        attempts: summary.attempts,
        ran_us: summary.ran_us,
        failure: summary.failure.as_ref().map(|failure| failure.to_string()),
    }
}

pub(crate) fn words_of(story: &[(u64, Moment)]) -> Vec<(u64, String)> {
    story
        .iter()
        .map(|(at, moment)| (*at, moment.words().to_string()))
        .collect()
}
