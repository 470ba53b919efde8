//! The failures of other tasks that an attempt has received.
//!
//! A language hands a failure on as an exception of its own, which names the task and repeats the
//! message: by these the failure is found again when the exception leaves the attempt.

use std::sync::Arc;

use ciel_model::Failure;
use ciel_model::limits::RECEIVED_FAILURES_MAX;

/// The newest failures that an attempt has received.
#[derive(Clone, Debug, Default)]
pub struct ReceivedFailures(Vec<Arc<Failure>>);

impl ReceivedFailures {
    /// One more; of too many the oldest is forgotten.
    pub fn add(&mut self, failure: Arc<Failure>) {
        self.0.truncate(RECEIVED_FAILURES_MAX - 1);
        self.0.insert(0, failure);
    }

    /// The newest one with that message, of the task that is printed so.
    pub fn find(&self, task: &str, message: &str) -> Option<&Arc<Failure>> {
        let is_meant = |failure: &&Arc<Failure>| {
            failure.message == message && failure.origin.to_string() == task
        };
        self.0.iter().find(is_meant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciel_model::{FailureKind, Label, Name};

    fn failure(number: usize) -> Failure {
        let origin = Label {
            what: "f".into(),
            name: Name(7 << 96),
        };
        Failure::new(FailureKind::TaskError, origin, format!("no {number}"))
    }

    #[test]
    fn failure_is_found_by_task_and_message_together() {
        let mut received = ReceivedFailures::default();
        let (one, other) = (Arc::new(failure(1)), Arc::new(failure(2)));
        let task = one.origin.to_string();
        received.add(one.clone());
        received.add(other);
        assert_eq!(received.find(&task, "no 1"), Some(&one));
        assert_eq!(received.find(&task, "no"), None);
        assert_eq!(received.find("g@00000007", "no 1"), None);
    }

    /// A worker's attempt once kept each failure that it had ever received.
    #[test]
    fn newest_failures_are_kept_in_bounded_number() {
        let mut received = ReceivedFailures::default();
        for number in 0..2 * RECEIVED_FAILURES_MAX {
            received.add(Arc::new(failure(number)));
        }
        let task = failure(0).origin.to_string();
        assert_eq!(received.0.len(), RECEIVED_FAILURES_MAX);
        let first_kept = RECEIVED_FAILURES_MAX;
        assert_eq!(
            received.find(&task, &format!("no {}", first_kept - 1)),
            None
        );
        assert!(received.find(&task, &format!("no {first_kept}")).is_some());
    }
}
