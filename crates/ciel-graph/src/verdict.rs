//! The job's failure and the job's end.
//!
//! The job's failure is the failure that leaves the root; if the root ends well, the earliest
//! failed task in serial order whose error no task demanded. Once it is known, work that comes
//! after it in serial order and has not started is cancelled, so that the output is a prefix that
//! holds everything before it.

use std::sync::Arc;

use ciel_model::{Failure, FailureKind, Mark, Micros, Name, ObjectKey, TaskKey};
use rustc_hash::FxHashMap;

use crate::event::{Action, JobOutcome};
use crate::graph::Graph;
use crate::objects::{ObjectState, Released};
use crate::task::Rest;

/// What is known of the job's outcome.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Verdict {
    /// The root task while it lives, and its outputs, which the verdict holds.
    pub(crate) root: Option<(TaskKey, Vec<ObjectKey>)>,
    /// Tasks that failed, in time order.
    failed: Vec<Failed>,
    /// Where each failed task stood.
    marks: FxHashMap<Name, Mark>,
    /// Work that comes at or after this mark is not begun any more.
    pub(crate) cut: Option<Mark>,
    /// The job's failure, once it is decided.
    decided: Option<Arc<Failure>>,
    /// Everything is to end, running or not.
    ending: bool,
    /// Strands that ended since failures were last looked through.
    ends: u64,
    told: bool,
}

/// A failed task; its failed outputs are held, which shows whether a task demands them.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Failed {
    mark: Mark,
    /// A task had demanded it and continued.
    wanted: bool,
    outputs: Vec<ObjectKey>,
    failure: Arc<Failure>,
}

impl Verdict {
    /// Whether the job is being taken down as a whole.
    pub(crate) fn is_over(&self) -> bool {
        self.ending
    }

    /// Whether that task is the root.
    pub(crate) fn is_root(&self, key: TaskKey) -> bool {
        self.root.as_ref().is_some_and(|(root, _)| *root == key)
    }

    /// Whether the failure of the job is known.
    pub(crate) fn is_decided(&self) -> bool {
        self.decided.is_some() || self.ending
    }

    /// Outputs of failed tasks, each held once.
    pub(crate) fn held(&self) -> impl Iterator<Item = ObjectKey> {
        let roots = self.root.iter().flat_map(|(_, outputs)| outputs);
        roots
            .chain(self.failed.iter().flat_map(|failed| &failed.outputs))
            .copied()
    }
}

impl Graph {
    /// Takes note of a task that failed for good; its outputs are not settled yet.
    pub(crate) fn note_failure(&mut self, key: TaskKey, failure: &Arc<Failure>) {
        if failure.kind == FailureKind::Cancelled {
            return;
        }
        let task = &self.tasks[&key];
        let (name, mark) = (task.name, task.strand.end);
        let wanted = !task.course.wanted.is_empty();
        let outputs = task.outputs.clone();
        let fails = |key: &ObjectKey| self.objects.get(*key).is_some() && self.is_future(*key);
        let outputs: Vec<ObjectKey> = outputs.into_iter().filter(fails).collect();
        for output in &outputs {
            self.objects.hold(*output);
        }
        self.verdict.marks.insert(name, mark);
        // A worker may invent an origin; then the failure originates in the task that reported it
        // first.
        self.verdict
            .marks
            .entry(failure.origin.name)
            .or_insert(mark);
        self.verdict.failed.push(Failed {
            mark,
            wanted,
            outputs,
            failure: failure.clone(),
        });
        if self.policy.fail_fast && self.verdict.decided.is_none() {
            self.verdict.decided = Some(failure.clone());
        }
    }

    /// Failures of rolled-back tasks do not count any more.
    pub(crate) fn forgive_between(&mut self, begin: Mark, end: Mark, actions: &mut Vec<Action>) {
        let order = &self.order;
        let between = |failed: &mut Failed| {
            order.precedes(begin, failed.mark) && order.precedes(failed.mark, end)
        };
        let forgiven: Vec<Failed> = self.verdict.failed.extract_if(.., between).collect();
        let mut released = Released::default();
        for failed in forgiven {
            self.release_all(failed.outputs, &mut released);
        }
        self.clear(released, actions);
    }

    /// Called whenever a strand has ended: decides what can be decided.
    pub(crate) fn judge(&mut self, now: Micros, actions: &mut Vec<Action>) {
        self.verdict.ends += 1;
        if self.verdict.told || self.verdict.ending && self.live > 0 {
            return;
        }
        if self.policy.fail_fast && self.verdict.decided.is_some() && !self.verdict.ending {
            self.end_everything(now, actions);
        }
        let Some(root) = self.root_result() else {
            return;
        };
        if self.verdict.decided.is_none() {
            self.decide(now, &root, actions);
        }
        if self.live == 0 && !self.verdict.told {
            self.verdict.told = true;
            actions.push(Action::JobEnded(Box::new(self.ending(root))));
        }
    }

    /// Repeats the end of the job, for a process that resumed the run after it.
    pub(crate) fn judge_again(&mut self, actions: &mut Vec<Action>) {
        if let Some(root) = self.root_result().filter(|_| self.verdict.told) {
            actions.push(Action::JobEnded(Box::new(self.ending(root))));
        }
    }

    /// Whether the end of the job has been reported.
    pub fn has_ended(&self) -> bool {
        self.verdict.told
    }

    /// What the root's first output has become, once it is settled.
    fn root_result(&self) -> Option<ObjectState> {
        let (_, outputs) = self.verdict.root.as_ref()?;
        match self.objects.settled_state(*outputs.first()?) {
            ObjectState::Future { .. } => None,
            settled => Some(settled.clone()),
        }
    }

    fn decide(&mut self, now: Micros, root: &ObjectState, actions: &mut Vec<Action>) {
        let (failure, mark) = match root {
            ObjectState::Failed { failure, .. } => (
                failure.clone(),
                self.verdict.marks.get(&failure.origin.name).copied(),
            ),
            _ => match self.earliest_unhandled() {
                Some((failure, mark)) => (failure, Some(mark)),
                None => return,
            },
        };
        self.verdict.decided = Some(failure);
        if let Some(mark) = mark
            && !self.policy.keep_going
        {
            self.verdict.cut = Some(mark);
            self.cancel_unstarted_after(now, mark, actions);
        }
    }

    /// The job's failure when the root succeeded: the earliest failure that no task demanded, if no
    /// task that still runs can fail before it or demand it. Computed rarely enough that it costs
    /// each ending strand a constant.
    fn earliest_unhandled(&mut self) -> Option<(Arc<Failure>, Mark)> {
        let work = self.verdict.failed.len() as u64 + self.live;
        if self.verdict.failed.is_empty() || (self.live > 0 && self.verdict.ends < work / 8) {
            return None;
        }
        self.verdict.ends = 0;
        let (index, askable) = self.unhandled().into_iter().next()?;
        let failed = &self.verdict.failed[index];
        let mark = failed.mark;
        let earlier = |task: &crate::task::Task| self.order.precedes(task.strand.end, mark);
        if self.live > 0 && (askable || self.tasks.values().any(|task| earlier(task))) {
            return None;
        }
        Some((failed.failure.clone(), mark))
    }

    /// Failures that no task demanded, by index, in serial order, each with whether a task still
    /// can demand it.
    fn unhandled(&self) -> Vec<(usize, bool)> {
        let mut found: Vec<(usize, bool)> = Vec::new();
        for (index, failed) in self.verdict.failed.iter().enumerate() {
            let objects = || {
                failed
                    .outputs
                    .iter()
                    .filter_map(|key| self.objects.get(*key))
            };
            if !failed.wanted && !objects().any(|object| object.asked) {
                found.push((index, objects().any(|object| object.holders > 1)));
            }
        }
        let mark = |index: usize| self.verdict.failed[index].mark;
        found.sort_by(|a, b| self.order.compare(mark(a.0), mark(b.0)));
        found
    }

    fn ending(&mut self, root: ObjectState) -> JobOutcome {
        let failures: Vec<Arc<Failure>> = self
            .unhandled()
            .into_iter()
            .map(|(index, _)| self.verdict.failed[index].failure.clone())
            .collect();
        let failure = self
            .verdict
            .decided
            .clone()
            .or_else(|| failures.first().cloned());
        let result = match (failure, root) {
            (Some(failure), _) | (None, ObjectState::Failed { failure, .. }) => Err(failure),
            (None, ObjectState::Ready(stored)) => Ok((stored.name, stored.value.clone())),
            (None, ObjectState::Future { .. } | ObjectState::Alias(_) | ObjectState::Dropped) => {
                unreachable!("the root's result is settled")
            }
        };
        JobOutcome { result, failures }
    }

    /// Ends all work at once, whatever its state.
    pub(crate) fn end_everything(&mut self, now: Micros, actions: &mut Vec<Action>) {
        self.verdict.ending = true;
        let all: Vec<TaskKey> = self.tasks.keys().collect();
        for key in all {
            self.cancel_task(now, key, ("the job ended", Rest::Stopped), actions);
        }
    }

    pub(crate) fn on_job_cancelled(
        &mut self,
        now: Micros,
        failure: Failure,
        actions: &mut Vec<Action>,
    ) {
        if self.verdict.told || self.verdict.ending {
            return;
        }
        self.verdict.decided = Some(Arc::new(failure));
        self.end_everything(now, actions);
    }
}
