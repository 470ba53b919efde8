//! Records for the tests of this crate.

use ciel_graph::Moment;
use ciel_view::records::{TaskRecord, TaskState, words_of};

/// A task of function `what`, with a name made of a number, and its parent likewise; its state is
/// that of the end of its story.
pub fn task(
    what: &str,
    number: u32,
    parent: Option<(&str, u32)>,
    story: &[(u64, Moment)],
) -> TaskRecord {
    let state = match story.last().map(|(_, moment)| moment) {
        Some(Moment::Finished | Moment::TailSpawned) => TaskState::Finished,
        Some(Moment::Failed) => TaskState::Failed,
        Some(Moment::Cancelled) => TaskState::Cancelled,
        _ => TaskState::Running,
    };
    let mut task = TaskRecord {
        name: format!("{number:08x}{:024}", 0),
        what: what.to_string(),
        executor: "python".to_string(),
        parent: parent.map(|(what, number)| format!("{what}@{number:08x}")),
        state,
        story: words_of(story),
        attempts: 1,
        ..TaskRecord::default()
    };
    if state == TaskState::Failed {
        task.failure = Some(format!("{}: TaskError: no room", task.label()));
    }
    let began = story.iter().find(|(_, moment)| *moment == Moment::Started);
    if let (Some((from, _)), Some((to, _))) = (began, story.last()) {
        task.ran_us = to - from;
    }
    task
}

/// A task that begins at once, runs from `from` to `to` and ends well.
pub fn run(what: &str, number: u32, parent: Option<(&str, u32)>, from: u64, to: u64) -> TaskRecord {
    let story = [
        (from, Moment::Spawned),
        (from, Moment::Ready),
        (from, Moment::Started),
        (to, Moment::Finished),
    ];
    task(what, number, parent, &story)
}
