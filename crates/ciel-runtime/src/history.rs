//! What the history of a run is to receive: a bounded ring between the machines, which append under
//! the lock, and the input/output thread, which spells it as records and writes them.
//!
//! It does not know files or JSON. Read next: `ciel_view::records`.

use std::collections::VecDeque;

use ciel_graph::TaskSummary;
use ciel_model::{Label, limits};

/// Ended tasks after which the input/output thread is asked to write.
const GATHERED_TASKS: usize = 256;

/// Ended tasks that may wait to be written; beyond it the oldest gives way.
const WAITING_TASKS_MAX: usize = 16 << 10;

/// Bytes of the tasks' own output that a run keeps in all.
const LOGS_BYTES_MAX: usize = 64 * limits::LOG_BYTES_MAX;

/// A piece of a task's own output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Log {
    pub(crate) task: Label,
    pub(crate) stream: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// What waits to be written.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Oldest first.
    pub(crate) tasks: VecDeque<Box<TaskSummary>>,
    pub(crate) logs: Vec<Log>,
}

/// What happened and is not written yet.
#[derive(Debug, Default)]
pub(crate) struct History {
    gathered: Gathered,
    log_bytes: usize,
}

impl History {
    /// A task has ended. True if the input/output thread has to be asked to write now.
    pub(crate) fn task_ended(&mut self, summary: Box<TaskSummary>) -> bool {
        let tasks = &mut self.gathered.tasks;
        if tasks.len() == WAITING_TASKS_MAX {
            tasks.pop_front();
        }
        tasks.push_back(summary);
        tasks.len() == GATHERED_TASKS
    }

    /// Keeps a task's own output, as far as all of it together is bounded.
    pub(crate) fn log(&mut self, task: &Label, stream: &'static str, bytes: &[u8]) {
        if self.log_bytes > LOGS_BYTES_MAX {
            return;
        }
        self.log_bytes += bytes.len();
        self.gathered.logs.push(Log {
            task: task.clone(),
            stream,
            bytes: bytes.to_vec(),
        });
    }

    /// Whether enough has gathered to be written now.
    pub(crate) fn is_full(&self) -> bool {
        self.gathered.tasks.len() >= GATHERED_TASKS
    }

    /// What has gathered since the last time.
    pub(crate) fn take(&mut self) -> Gathered {
        std::mem::take(&mut self.gathered)
    }
}
