//! The starts that one worker has received and not begun.
//!
//! It does not know which tasks those are. Read next: `prefetch`.

use std::collections::VecDeque;

use ciel_model::Micros;
use ciel_node::{AttemptKey, WorkerKey};

/// Starts that a worker has received and not begun, at most.
pub(crate) const STARTS_MAX: usize = 32;

/// What a worker has received and has not begun.
#[derive(Debug)]
pub(crate) struct Line {
    /// The worker agreed to it.
    pub(crate) prefetches: bool,
    /// The worker gets no new task.
    pub(crate) is_retired: bool,
    /// When the task that runs began.
    pub(crate) since: Micros,
    /// The last task was quick.
    pub(crate) was_quick: bool,
    /// Each follows the one before it, the first the task that runs.
    pub(crate) starts: VecDeque<AttemptKey>,
}

impl Line {
    pub(crate) fn new(prefetches: bool) -> Line {
        Line {
            prefetches,
            is_retired: false,
            since: 0,
            was_quick: false,
            starts: VecDeque::new(),
        }
    }

    pub(crate) fn check(&self, worker: WorkerKey) {
        let count = self.starts.len();
        assert!(count <= STARTS_MAX, "{worker:?} has {count} starts");
        let mut runs: Vec<AttemptKey> = self.starts.iter().copied().collect();
        runs.sort_unstable();
        runs.dedup();
        assert_eq!(runs.len(), count, "{worker:?} has a start twice");
    }
}
