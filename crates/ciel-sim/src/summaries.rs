//! The graph's reports about tasks: each summary is checked, the moments of a task must be its
//! story, and all summaries together must agree with the graph's counters.
//!
//! It does not know what they are for. Read next: `ciel_graph::TaskSummary`.

use std::collections::{BTreeMap, VecDeque};

use ciel_graph::{Action, Counts, Happening, Moment, TaskSummary};
use ciel_model::{FailureKind, Label, Name, limits};

type Story = Vec<(u64, Moment)>;

/// The ends of tasks so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summaries {
    /// Finished, or given the result of an equal call.
    well: u64,
    /// Handed over to a successor.
    handed_over: u64,
    failed: u64,
    cancelled: u64,
    /// The moments of tasks whose last one was not reported yet.
    moments: BTreeMap<Name, Story>,
    /// The stories of tasks whose last moment comes after their summary. A name comes twice if a
    /// retry spawns the same again.
    told: BTreeMap<Name, VecDeque<Story>>,
}

impl Summaries {
    pub(crate) fn see(&mut self, action: &Action) {
        match action {
            Action::Happened(happening) => self.on_happened(happening),
            Action::Ended(summary) => self.on_ended(summary),
            _ => {}
        }
    }

    pub(crate) fn on_happened(&mut self, happening: &Happening) {
        let name = happening.label.name;
        let moments = self.moments.entry(name).or_default();
        if happening.moment == Moment::Spawned {
            // A lazy task without demand is dropped silently; a replayed strand spawns it again.
            assert!(matches!(moments[..], [] | [(_, Moment::Spawned)]));
            moments.clear();
        }
        moments.push((happening.at, happening.moment));
        let is_last = matches!(
            happening.moment,
            Moment::Finished | Moment::TailSpawned | Moment::Failed | Moment::Cancelled
        );
        if !is_last {
            return;
        }
        let moments = self.moments.remove(&name).expect("just added");
        let told = self.told.get_mut(&name).and_then(VecDeque::pop_front);
        let told = told.expect("a task that ends has a summary");
        // The reports of a lost engine are lost; long stories are cut.
        let is_whole = moments[0].1 == Moment::Spawned && told.len() < limits::STORY_ENTRIES_MAX;
        if is_whole {
            assert_eq!(moments, told, "{}", happening.label);
        }
    }

    pub(crate) fn on_ended(&mut self, summary: &TaskSummary) {
        check_times(summary);
        let told = self.told.entry(summary.label.name).or_default();
        told.push_back(summary.story.clone());
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

    /// Reports about single tasks of an engine without an observer are not compared.
    pub(crate) fn forget_stories(&mut self) {
        self.moments.clear();
        self.told.clear();
    }

    /// How many tasks handed over to a successor.
    pub(crate) fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// Compares the ends with the counters of the graph.
    pub(crate) fn check(&self, counts: &Counts) {
        // Who was known by a digest, and ran after all, ends twice.
        let well = counts.finished + counts.shared + counts.recomputed;
        assert_eq!(self.well, well, "{self:?}");
        assert_eq!(self.failed, counts.failed, "{self:?}");
        assert_eq!(self.cancelled, counts.cancelled, "{self:?}");
    }
}

/// Whether the task ended because another one cancelled it, and not because of a failure that it
/// received.
pub(crate) fn is_cut(summary: &TaskSummary) -> bool {
    let failure = summary.failure.as_ref();
    failure.is_some_and(|failure| {
        let own = failure.origin == summary.label && failure.message == "it was cancelled";
        own && failure.kind == FailureKind::Cancelled
    })
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
