//! The starts that one worker has received and not begun.
//!
//! It does not know which tasks those are. Read next: `prefetch`.

use std::collections::VecDeque;

use ciel_model::Micros;
use ciel_node::{AttemptKey, WorkerKey};

use crate::message::STARTS_MAX;

/// What a worker has received and has not begun.
#[derive(Debug)]
pub(super) struct Line {
    /// The worker agreed to it.
    pub(super) prefetches: bool,
    /// The worker gets no new task.
    pub(super) is_retired: bool,
    /// When the task that runs began.
    pub(super) since: Micros,
    /// The last task was quick.
    pub(super) was_quick: bool,
    /// Ready tasks about which the home was asked whether they may follow.
    pub(super) lent: Vec<AttemptKey>,
    /// Each follows the one before it, the first the task that runs.
    pub(super) starts: VecDeque<AttemptKey>,
}

impl Line {
    pub(super) fn new(prefetches: bool) -> Line {
        Line {
            prefetches,
            is_retired: false,
            since: 0,
            was_quick: false,
            lent: Vec::new(),
            starts: VecDeque::new(),
        }
    }

    pub(super) fn check(&self, worker: WorkerKey) {
        let count = self.starts.len();
        assert!(count <= STARTS_MAX, "{worker:?} has {count} starts");
        let mut attempts: Vec<AttemptKey> = self.starts.iter().copied().collect();
        attempts.sort_unstable();
        attempts.dedup();
        assert_eq!(attempts.len(), count, "{worker:?} has a start twice");
    }
}
