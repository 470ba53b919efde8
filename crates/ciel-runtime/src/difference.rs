//! What differs between two runs of a job: what differed first, and what followed from it.
//!
//! Tasks of two runs are the same if their positions have the same name, whatever their code. A
//! task follows another one if the input that differs is what the other one gave. It knows no
//! files. Read next: `ciel_kept::identities`.

use std::sync::Arc;

use ciel_kept::{Identities, TaskIdentity};
use ciel_model::{Digest, Label, Name, RerunReason};
use rustc_hash::FxHashMap;

/// What differs, in the order in which the second run came to its tasks; tasks that only the first
/// one has stand at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// The tasks that differ.
    pub tasks: Vec<TaskDifference>,
    /// How many tasks are the same in both.
    pub equal: u64,
}

/// A task that is not the same in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskDifference {
    /// The task.
    pub task: Label,
    /// How it differs.
    pub kind: DifferenceKind,
}

/// How a task differs.
#[derive(Clone, Debug, PartialEq)]
pub enum DifferenceKind {
    /// By itself: its code, its arguments, or an input that no task has given.
    Changed(RerunReason),
    /// That input differs because this task, which also differs, gave it.
    Follows {
        /// The input.
        input: Arc<str>,
        /// Who gave it.
        from: Label,
    },
    /// It was given the same, and gave something else.
    OtherResult,
    /// It ended well in the first run only.
    EndedBefore,
    /// It ended well in the second run only.
    EndedNow,
    /// Only the first run has it.
    Missing,
    /// Only the second run has it.
    New,
}

impl DifferenceKind {
    /// Whether it is no consequence of another task that differs.
    pub fn is_first(&self) -> bool {
        !matches!(self, DifferenceKind::Follows { .. })
    }
}

/// Compares a run with an earlier one.
pub fn between(before: &Identities, now: &Identities) -> Difference {
    let known = by_name(before);
    let mut difference = Difference::default();
    let mut givers: FxHashMap<Digest, Label> = FxHashMap::default();
    for task in &now.tasks {
        let former = known.get(&task.given.name).copied();
        match kind(former, task, &givers) {
            None => difference.equal += 1,
            Some(kind) => {
                let label = label(task);
                for output in other_outputs(former, task) {
                    givers.insert(output, label.clone());
                }
                difference.tasks.push(TaskDifference { task: label, kind });
            }
        }
    }
    let present = by_name(now);
    let gone = before.tasks.iter();
    let gone = gone.filter(|task| !present.contains_key(&task.given.name));
    difference.tasks.extend(gone.map(|task| TaskDifference {
        task: label(task),
        kind: DifferenceKind::Missing,
    }));
    difference
}

/// The label of a task, as messages show it.
pub fn label(task: &TaskIdentity) -> Label {
    Label {
        what: task.given.what.clone(),
        name: Name(task.given.name),
    }
}

fn by_name(run: &Identities) -> FxHashMap<u128, &TaskIdentity> {
    let tasks = run.tasks.iter();
    tasks.map(|task| (task.given.name, task)).collect()
}

/// How a task differs from what it was; none if it does not.
fn kind(
    before: Option<&TaskIdentity>,
    now: &TaskIdentity,
    givers: &FxHashMap<Digest, Label>,
) -> Option<DifferenceKind> {
    let Some(before) = before else {
        return Some(DifferenceKind::New);
    };
    if let Some(reason) = before.given.parts.diff(&now.given.parts) {
        return Some(changed(before, now, reason, givers));
    }
    let outputs = |task: &TaskIdentity| task.gave.as_ref().map(|gave| gave.outputs.clone());
    match (outputs(before), outputs(now)) {
        (None, Some(_)) => Some(DifferenceKind::EndedNow),
        (Some(_), None) => Some(DifferenceKind::EndedBefore),
        (before, now) => (before != now).then_some(DifferenceKind::OtherResult),
    }
}

fn changed(
    before: &TaskIdentity,
    now: &TaskIdentity,
    reason: RerunReason,
    givers: &FxHashMap<Digest, Label>,
) -> DifferenceKind {
    let input = match &reason {
        RerunReason::InputChanged(_) => before.given.parts.changed_input(&now.given.parts),
        _ => None,
    };
    let giver = input.and_then(|input| Some((input, givers.get(&input.digest)?)));
    match giver {
        Some((input, from)) => DifferenceKind::Follows {
            input: input.name.clone(),
            from: from.clone(),
        },
        None => DifferenceKind::Changed(reason),
    }
}

/// What a task gave that it did not give before.
fn other_outputs(before: Option<&TaskIdentity>, now: &TaskIdentity) -> Vec<Digest> {
    let gave = |task: &TaskIdentity| task.gave.as_ref().map(|gave| gave.outputs.clone());
    let before = before.and_then(gave).unwrap_or_default();
    let now = gave(now).unwrap_or_default();
    let others = now.into_iter().filter(|output| !before.contains(output));
    others.collect()
}

#[cfg(test)]
mod tests {
    use ciel_kept::identities::{GaveTask, GivenTask};
    use ciel_kept::{Input, Parts};
    use ciel_model::Form;

    use super::*;

    fn task(name: u128, payload: u128, input: Option<u128>, output: u128) -> TaskIdentity {
        let input = input.map(|digest| Input {
            name: "text".into(),
            digest: Digest(digest),
            form: Form::Bytes,
        });
        let parts = Parts {
            executor: "shell".into(),
            surroundings: Digest(1),
            code: None,
            pieces: Arc::default(),
            payload: Digest(payload),
            arguments: vec![("command".into(), Digest(payload))],
            inputs: input.into_iter().collect(),
            outputs: 1,
        };
        TaskIdentity {
            given: GivenTask {
                name,
                what: "sort".into(),
                parts,
                is_marked: false,
            },
            gave: Some(GaveTask {
                name,
                outputs: vec![Digest(output)],
                read: Vec::new(),
                is_taken: false,
            }),
        }
    }

    fn run(tasks: Vec<TaskIdentity>) -> Identities {
        Identities {
            tasks,
            ..Identities::default()
        }
    }

    #[test]
    fn equal_runs_have_no_difference() {
        let one = run(vec![task(1, 10, None, 20), task(2, 11, Some(20), 30)]);
        let found = between(&one, &one);
        assert_eq!((found.tasks.len(), found.equal), (0, 2));
    }

    #[test]
    fn task_whose_input_was_given_by_a_changed_one_follows_from_it() {
        let before = run(vec![task(1, 10, None, 20), task(2, 11, Some(20), 30)]);
        let now = run(vec![task(1, 99, None, 21), task(2, 11, Some(21), 31)]);
        let found = between(&before, &now);
        let reason = RerunReason::ArgumentChanged(Some("command".into()));
        assert_eq!(found.tasks[0].kind, DifferenceKind::Changed(reason));
        let first = found.tasks[0].task.clone();
        let follows = DifferenceKind::Follows {
            input: "text".into(),
            from: first,
        };
        assert_eq!(found.tasks[1].kind, follows);
        assert!(!found.tasks[1].kind.is_first());
    }

    #[test]
    fn tasks_of_one_run_only_are_named_as_such() {
        let before = run(vec![task(1, 10, None, 20), task(2, 11, None, 30)]);
        let mut broken = task(1, 10, None, 20);
        broken.gave = None;
        let now = run(vec![broken, task(3, 12, None, 40)]);
        let kinds: Vec<DifferenceKind> = between(&before, &now)
            .tasks
            .into_iter()
            .map(|task| task.kind)
            .collect();
        let expected = [
            DifferenceKind::EndedBefore,
            DifferenceKind::New,
            DifferenceKind::Missing,
        ];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn same_work_with_another_result_is_where_runs_part() {
        let before = run(vec![task(1, 10, None, 20), task(2, 11, Some(20), 30)]);
        let now = run(vec![task(1, 10, None, 21), task(2, 11, Some(21), 31)]);
        let found = between(&before, &now);
        assert_eq!(found.tasks[0].kind, DifferenceKind::OtherResult);
        assert!(!found.tasks[1].kind.is_first());
    }
}
