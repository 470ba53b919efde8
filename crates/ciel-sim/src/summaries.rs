//! What the graph says of tasks that ended: each summary is checked, and all of them together must
//! agree with the graph's counters.
//!
//! It does not know what summaries are for. Read next: `ciel_graph::TaskSummary`.

use ciel_graph::{Action, Counts, Moment, TaskSummary};
use ciel_model::{FailureKind, Label};

/// The ends of tasks so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summaries {
    /// Finished, or given the result of an equal call.
    well: u64,
    /// Handed over to a successor.
    handed_over: u64,
    failed: u64,
    cancelled: u64,
}

impl Summaries {
    pub(crate) fn see(&mut self, action: &Action) {
        let Action::Ended(summary) = action else {
            return;
        };
        check_times(summary);
        let last = summary.story.last().expect("a task has a story").1;
        let failure = summary.failure.as_ref().map(|failure| failure.kind);
        match (last, failure) {
            (Moment::Finished, None) => self.well += 1,
            (Moment::TailSpawned, None) => self.handed_over += 1,
            (Moment::Cancelled, Some(FailureKind::Cancelled)) => self.cancelled += 1,
            (Moment::Failed, Some(kind)) if kind != FailureKind::Cancelled => self.failed += 1,
            _ => panic!("ended with {last:?} and {failure:?}: {summary:?}"),
        }
    }

    /// How many tasks handed over to a successor.
    pub(crate) fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// Compares the ends with the counters of the graph.
    pub(crate) fn check(&self, counts: &Counts) {
        assert_eq!(self.well, counts.finished + counts.shared, "{self:?}");
        assert_eq!(self.failed, counts.failed, "{self:?}");
        assert_eq!(self.cancelled, counts.cancelled, "{self:?}");
    }
}

fn check_times(summary: &TaskSummary) {
    let TaskSummary { label, story, .. } = summary;
    assert_eq!(story[0].1, Moment::Spawned, "{label}");
    let is_ordered = story.windows(2).all(|pair| pair[0].0 <= pair[1].0);
    assert!(is_ordered, "{label}: {story:?}");
    let started = story
        .iter()
        .find(|(_, moment)| *moment == Moment::Started)
        .map(|(at, _)| *at);
    let end = story[story.len() - 1].0;
    let most = started.map_or(0, |started| end - started);
    assert!(summary.ran_us <= most, "{label} ran longer than it lived");
    assert!(summary.attempts >= 1, "{label}");
    let is_root = summary.parent.is_none();
    assert_eq!(is_root, is_first(label), "{label}: {:?}", summary.parent);
}

/// The root of every scenario has its name from the same words.
fn is_first(label: &Label) -> bool {
    label.name == ciel_model::Name::of_root(b"sim")
}
