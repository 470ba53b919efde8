//! Commands that were ended at their time limits, in words for the report of the job.
//!
//! The graph decides that a time is over and knows no commands, so its failure names neither the
//! command nor its inputs, as those of other failed commands do. They are added when the job
//! reports; a task that catches the failure does not see them. Read next: `command_failure`.

use std::collections::VecDeque;
use std::sync::Arc;

use ciel_graph::JobOutcome;
use ciel_model::{Failure, FailureKind, Label, Name};

/// Commands that are kept; a job that catches time limits may stop any number of them.
const KEPT_MAX: usize = 64;

/// The latest commands with a time limit that were stopped, each with its description.
#[derive(Default)]
pub(crate) struct StoppedCommands(VecDeque<(Name, String)>);

impl StoppedCommands {
    /// A command was stopped, because of its limit or for another reason.
    pub(crate) fn note(&mut self, label: &Label, words: String) {
        if self.0.len() == KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back((label.name, words));
    }

    /// The outcome, with the commands of those of its failures that are time limits.
    pub(crate) fn described(&self, mut outcome: JobOutcome) -> JobOutcome {
        outcome.result = outcome.result.map_err(|failure| self.complete(failure));
        for failure in &mut outcome.failures {
            *failure = self.complete(failure.clone());
        }
        outcome
    }

    fn complete(&self, failure: Arc<Failure>) -> Arc<Failure> {
        let of_it = |(name, _): &&(Name, String)| *name == failure.origin.name;
        let found = self.0.iter().rev().find(of_it);
        match (failure.kind, found) {
            (FailureKind::Timeout, Some((_, words))) => Arc::new(Failure {
                excerpt: words.clone(),
                ..(*failure).clone()
            }),
            _ => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(number: u128) -> Label {
        Label {
            what: "sh".into(),
            name: Name(number),
        }
    }

    fn excerpt_of(stopped: &StoppedCommands, kind: FailureKind, number: u128) -> String {
        let failure = Failure::new(kind, label(number), "no");
        stopped.complete(Arc::new(failure)).excerpt.clone()
    }

    #[test]
    fn time_limit_shows_the_last_attempt_of_its_own_command_only() {
        let mut stopped = StoppedCommands::default();
        for (number, words) in [(1, "first"), (2, "other"), (1, "second")] {
            stopped.note(&label(number), words.to_string());
        }
        assert_eq!(excerpt_of(&stopped, FailureKind::Timeout, 1), "second");
        assert_eq!(excerpt_of(&stopped, FailureKind::Timeout, 3), "");
        assert_eq!(excerpt_of(&stopped, FailureKind::Cancelled, 1), "");
    }

    #[test]
    fn commands_that_are_kept_are_bounded() {
        let mut stopped = StoppedCommands::default();
        for number in 0..=KEPT_MAX as u128 {
            stopped.note(&label(number), "x".to_string());
        }
        assert_eq!(stopped.0.len(), KEPT_MAX);
        assert_eq!(excerpt_of(&stopped, FailureKind::Timeout, 0), "");
    }
}
