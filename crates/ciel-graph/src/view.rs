//! What people may ask about the graph while it lives.

use std::sync::Arc;

use ciel_model::{Attempt, Class, Label, Micros, ObjectKey, Options, TaskKey};

use crate::graph::Graph;
use crate::objects::ObjectState;
use crate::story::Moment;
use crate::task::{State, Task};

/// How many tasks there were of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Tasks asked for.
    pub spawned: u64,
    /// Tasks that ran and ended well.
    pub finished: u64,
    /// Equal calls that shared another's result.
    pub shared: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Attempts that failed and were tried again.
    pub retried: u64,
    /// Attempts lost with their worker and run again.
    pub lost: u64,
}

/// Where a task stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Situation {
    /// Lazy, and nobody has asked for it.
    Dormant,
    /// It cannot start before these are there.
    Waiting(Vec<Label>),
    /// An equal call is on its way.
    Twin(Option<Label>),
    /// It waits for a place; true if it has run before.
    Ready(bool),
    /// It runs since then.
    Running(Micros),
    /// It runs no further before these are there.
    Suspended(Vec<Label>),
}

/// A live task as people see it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskView {
    /// Its key.
    pub task: TaskKey,
    /// Who.
    pub label: Label,
    /// Which executor.
    pub executor: Arc<str>,
    /// How it is run.
    pub class: Class,
    /// `file:line` of its spawn.
    pub place: String,
    /// Who spawned it.
    pub parent: Option<Label>,
    /// Where it stands.
    pub situation: Situation,
    /// What happened to it.
    pub story: Vec<(Micros, Moment)>,
    /// What was said about it at its spawn.
    pub options: Arc<Options>,
    /// How often it has been begun anew.
    pub attempts: u32,
}

impl Graph {
    /// How many tasks there were.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of tasks that have not ended.
    pub fn pending(&self) -> usize {
        self.tasks.len()
    }

    /// Whether that attempt has been offered and not yet placed, withdrawn or given up.
    pub fn awaits_place(&self, task: TaskKey, attempt: Attempt) -> bool {
        self.tasks.get(&task).is_some_and(|task| {
            task.attempt == attempt && matches!(task.state, State::Ready { .. })
        })
    }

    /// Live tasks that answer to what a person typed, in serial order.
    pub fn find(&self, text: &str) -> Vec<TaskKey> {
        let found = self
            .tasks
            .iter()
            .filter(|(_, task)| task.label().answers_to(text));
        self.in_order(found.map(|(key, task)| (*key, &**task)).collect())
    }

    /// All live tasks in serial order.
    pub fn all(&self) -> Vec<TaskKey> {
        self.in_order(
            self.tasks
                .iter()
                .map(|(key, task)| (*key, &**task))
                .collect(),
        )
    }

    fn in_order(&self, mut found: Vec<(TaskKey, &Task)>) -> Vec<TaskKey> {
        found.sort_by(|a, b| self.order.compare(a.1.strand.begin, b.1.strand.begin));
        found.into_iter().map(|(key, _)| key).collect()
    }

    /// One live task.
    pub fn view(&self, key: TaskKey) -> Option<TaskView> {
        let task = self.tasks.get(&key)?;
        Some(TaskView {
            task: key,
            label: task.label(),
            executor: task.descriptor.executor.clone(),
            class: task.descriptor.class.clone(),
            place: task.place(),
            parent: task.parent.clone(),
            situation: self.situation(key, task),
            story: task.story.entries().to_vec(),
            options: task.descriptor.options.clone(),
            attempts: task.attempt.0 + 1,
        })
    }

    fn situation(&self, key: TaskKey, task: &Task) -> Situation {
        match &task.state {
            State::Dormant => Situation::Dormant,
            State::Waiting { .. } => Situation::Waiting(self.missing(&task.table)),
            State::Twin => Situation::Twin(self.leader_of(key)),
            State::Ready { resume } => Situation::Ready(resume.is_some()),
            State::Running { since } => Situation::Running(*since),
            State::Suspended { resume, .. } => {
                let on: Vec<ObjectKey> = resume
                    .on
                    .iter()
                    .map(|handle| task.table[handle.0 as usize])
                    .collect();
                Situation::Suspended(self.missing(&on))
            }
        }
    }

    fn leader_of(&self, key: TaskKey) -> Option<Label> {
        let mut tasks = self.tasks.values();
        tasks
            .find(|task| task.twins.contains(&key))
            .map(|task| task.label())
    }

    /// Who makes those of `objects` that are not there, each once.
    fn missing(&self, objects: &[ObjectKey]) -> Vec<Label> {
        let mut labels: Vec<Label> = Vec::new();
        for object in objects {
            if let ObjectState::Future { producer, .. } = self.objects.settled_state(*object)
                && let Some(task) = self.tasks.get(producer)
                && !labels.contains(&task.label())
            {
                labels.push(task.label());
            }
        }
        labels
    }
}
