//! Starts of processes that wait until another process has ended.
//!
//! Random choices decide whether the first of them begins where one has exited well. It does not
//! know what is sent: the engine decides. Read next: `ahead`, for workers.

use std::collections::{BTreeMap, VecDeque};

use ciel_graph::{self as graph, Ahead, Assignment};
use ciel_node::AttemptKey;

/// What was sent, as whoever starts processes has it.
#[derive(Debug, Default)]
pub(crate) struct Line {
    waiting: VecDeque<Assignment>,
    /// What has begun, with the attempt that ended there, before the engine has replied.
    begun: BTreeMap<AttemptKey, Assignment>,
}

impl Line {
    pub(crate) fn push(&mut self, assignment: Assignment) {
        let attempt = attempt_of(&assignment);
        let waits = self.waiting.iter().any(|sent| attempt_of(sent) == attempt);
        assert!(!waits, "{attempt:?} was sent twice");
        self.waiting.push_back(assignment);
    }

    /// What was sent does not wait any more; false if it did not.
    pub(crate) fn take(&mut self, attempt: AttemptKey) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|sent| attempt_of(sent) != attempt);
        self.waiting.len() < before
    }

    /// A process ends, and the first that waits begins there.
    pub(crate) fn follow(&mut self, before: AttemptKey) -> Option<AttemptKey> {
        let next = self.waiting.pop_front()?;
        let attempt = attempt_of(&next);
        self.begun.insert(before, next);
        Some(attempt)
    }

    /// What has begun behind `before` is not to run on.
    pub(crate) fn stop(&mut self, before: AttemptKey) -> bool {
        self.begun.remove(&before).is_some()
    }

    /// What has begun runs on, as the assignment that it has now; what was sent of it.
    pub(crate) fn confirm(&mut self, now: &Assignment) -> Ahead {
        let is_this = |(_, sent): &(&AttemptKey, &Assignment)| attempt_of(sent) == attempt_of(now);
        let before = self.begun.iter().find(is_this);
        let (before, _) = before.expect("it has begun");
        let before = *before;
        let sent = self.begun.remove(&before).expect("just found");
        Ahead {
            assignment: Box::new(sent),
            awaited: Vec::new(),
        }
    }

    /// Whoever starts processes is gone, and nothing waits any more; what did.
    pub(crate) fn lose(&mut self) -> Vec<AttemptKey> {
        assert!(self.begun.is_empty(), "the engine has replied to each");
        let waiting = self.waiting.drain(..);
        waiting.map(|sent| attempt_of(&sent)).collect()
    }
}

/// Whether whoever starts processes sees an end from which another one may follow.
pub(crate) fn exits_well(event: &graph::Event) -> bool {
    matches!(event, graph::Event::TaskFinished { .. })
}

fn attempt_of(assignment: &Assignment) -> AttemptKey {
    AttemptKey {
        task: assignment.task,
        number: assignment.attempt,
    }
}
