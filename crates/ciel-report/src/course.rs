//! The records of tasks as phases of time: when each ran, was queued, or waited.
//!
//! It does not know what the phases are used for. Read next: `path`.

use std::collections::HashMap;

use ciel_graph::Moment;
use ciel_view::records::{TaskRecord, TaskState};

/// What a task did during a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It ran.
    Run,
    /// All that it needed was resolved, and it waited for a slot.
    Queue,
    /// It waited for references.
    Wait,
}

/// A span of time of a task, in microseconds since the run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What the task did.
    pub doing: Doing,
    /// When it began.
    pub from: u64,
    /// When it ended; not before it began.
    pub to: u64,
}

impl Phase {
    /// Its length in microseconds.
    pub fn length(&self) -> u64 {
        self.to - self.from
    }
}

/// The course of one task.
#[derive(Debug)]
pub struct Course<'a> {
    /// What is recorded of it.
    pub record: &'a TaskRecord,
    /// The place of the task that spawned it among all courses, if that is known.
    pub parent: Option<usize>,
    /// When it was spawned.
    pub spawned: u64,
    /// Its phases, one after the other.
    pub phases: Vec<Phase>,
}

impl Course<'_> {
    /// When the last thing happened to it.
    pub fn end(&self) -> u64 {
        self.phases.last().map_or(self.spawned, |phase| phase.to)
    }

    /// Whether it is over.
    pub fn has_ended(&self) -> bool {
        matches!(
            self.record.state,
            TaskState::Finished | TaskState::Failed | TaskState::Cancelled
        )
    }

    /// Whether it took the result that an earlier run kept, or was known by the digest of that.
    pub fn was_kept(&self) -> bool {
        let mut story = self.record.story.iter();
        let kept = [Moment::Kept, Moment::Known].map(Moment::words);
        story.any(|(_, words)| kept.contains(&&**words))
    }

    /// The phases in which it ran.
    pub fn runs(&self) -> impl Iterator<Item = &Phase> {
        self.phases.iter().filter(|phase| phase.doing == Doing::Run)
    }
}

/// The courses of all tasks that are recorded, in their order. What lasts still, lasts to `now`.
pub fn courses(tasks: &[TaskRecord], now: u64) -> Vec<Course<'_>> {
    let labels: HashMap<String, usize> = tasks
        .iter()
        .enumerate()
        .map(|(place, task)| (task.label(), place))
        .collect();
    let course = |record| course(record, &labels, now);
    tasks.iter().map(course).collect()
}

fn course<'a>(record: &'a TaskRecord, labels: &HashMap<String, usize>, now: u64) -> Course<'a> {
    let moments = record.story.iter();
    let moments = moments.filter_map(|(at, words)| Some((*at, Moment::of_words(words)?)));
    let mut phases = Vec::new();
    let mut open: Option<(Doing, u64)> = None;
    for (at, moment) in moments {
        if let Some((doing, from)) = open {
            let to = at.max(from);
            phases.push(Phase { doing, from, to });
        }
        open = doing_after(moment).map(|doing| (doing, at));
    }
    if let Some((doing, from)) = open {
        let to = now.max(from);
        phases.push(Phase { doing, from, to });
    }
    phases.retain(|phase| phase.length() > 0);
    let parent = record.parent.as_ref();
    Course {
        record,
        parent: parent.and_then(|parent| labels.get(parent).copied()),
        spawned: record.story.first().map_or(0, |(at, _)| *at),
        phases,
    }
}

/// What a task does after a moment; nothing if that is its end.
fn doing_after(moment: Moment) -> Option<Doing> {
    match moment {
        Moment::Spawned
        | Moment::Suspended
        | Moment::Held
        | Moment::StreamLost
        | Moment::Reopened
        | Moment::FileLost => Some(Doing::Wait),
        Moment::Ready | Moment::Woken | Moment::Retried | Moment::Lost | Moment::RolledBack => {
            Some(Doing::Queue)
        }
        Moment::Started | Moment::Resumed | Moment::Duplicated => Some(Doing::Run),
        Moment::TailSpawned
        | Moment::Finished
        | Moment::Kept
        | Moment::Known
        | Moment::Overtaken
        | Moment::Failed
        | Moment::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::task;

    #[test]
    fn story_becomes_phases_that_follow_one_another() {
        let story = [
            (0, Moment::Spawned),
            (5, Moment::Ready),
            (5, Moment::Started),
            (9, Moment::Suspended),
            (20, Moment::Woken),
            (22, Moment::Resumed),
            (30, Moment::Finished),
        ];
        let tasks = [task("a", 1, None, &story)];
        let phase = |doing, from, to| Phase { doing, from, to };
        let expected = [
            phase(Doing::Wait, 0, 5),
            phase(Doing::Run, 5, 9),
            phase(Doing::Wait, 9, 20),
            phase(Doing::Queue, 20, 22),
            phase(Doing::Run, 22, 30),
        ];
        let courses = courses(&tasks, 100);
        assert_eq!(courses[0].phases, expected);
        assert_eq!(courses[0].end(), 30);
    }

    #[test]
    fn task_that_runs_still_has_a_phase_up_to_now() {
        let story = [(0, Moment::Ready), (3, Moment::Started)];
        let tasks = [task("a", 1, None, &story)];
        assert_eq!(courses(&tasks, 50)[0].end(), 50);
    }

    #[test]
    fn parent_is_found_by_its_label() {
        let tasks = [
            task("a", 1, None, &[(0, Moment::Started)]),
            task("b", 2, Some(("a", 1)), &[(1, Moment::Started)]),
            task("c", 3, Some(("gone", 9)), &[(1, Moment::Started)]),
        ];
        let parents: Vec<Option<usize>> = courses(&tasks, 9).iter().map(|one| one.parent).collect();
        assert_eq!(parents, [None, Some(0), None]);
    }
}
