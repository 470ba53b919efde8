//! Prefetch: the task that a worker can start as soon as the tasks before it have ended.
//!
//! A chain of short tasks would otherwise wait for the engine between any two of them. To look
//! ahead changes nothing: the task is offered and placed as any other once it has all that it
//! needs. It does not know workers. Read next: `turn`, for what a task receives when it starts.

use ciel_model::{
    AttemptNumber, Content, Form, Handle, InputMode, ObjectKey, Resolution, TaskKey, Value,
};

use crate::event::{Assignment, Entry};
use crate::graph::Graph;
use crate::objects::{ObjectState, Stored, Waiter};
use crate::task::{State, Task};

/// Of the tasks that wait for an output, how many are examined; the others are not prefetched.
const WAITERS_MAX: usize = 8;

/// Inputs of a prefetched task.
const INPUTS_MAX: usize = 16;

/// A task that is ready, or waits for nothing but what others are about to make.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Ahead {
    /// The assignment that it will have when it starts; inputs that it waits for are unresolved.
    pub assignment: Box<Assignment>,
    /// What it waits for.
    pub awaited: Vec<Awaited>,
}

/// An input that is still unresolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Awaited {
    /// Its handle in the table of the task that reads it.
    pub input: Handle,
    /// The task that produces it.
    pub producer: TaskKey,
    /// Which of the producer's outputs it is.
    pub output: u32,
}

impl Graph {
    /// A task that can follow the last of `before` in its place: one of the same kind that needs
    /// the last one's output, and no other unresolved input that is not an output of one of
    /// `before`. Its resolved inputs are small and without references.
    pub fn ahead(&self, before: &[TaskKey]) -> Option<Ahead> {
        let last = self.tasks.get(before.last()?)?;
        if self.remaking.is_some() {
            return None;
        }
        let outputs = last.outputs.iter();
        let mut waiters = outputs.flat_map(|output| self.waiters_of(*output));
        waiters.find_map(|waiter| self.following(last, before, waiter))
    }

    /// That task as it will be when it begins, if it is ready now, has not run yet, and what it is
    /// given is small and without references.
    pub fn preview(&self, key: TaskKey, attempt: AttemptNumber) -> Option<Ahead> {
        let task = self.tasks.get(&key)?;
        let is_ready = task.attempt == attempt && task.state == State::Ready { resume: None };
        if !is_ready || self.remaking.is_some() {
            return None;
        }
        self.as_begun(key, task, &[])
    }

    /// Whether the end of a task resumes a strand that has a live copy. Of the tasks that wait for
    /// an output, only the first few are examined.
    pub fn end_resumes_copy(&self, task: TaskKey) -> bool {
        let outputs = self.tasks.get(&task).map(|task| task.outputs.iter());
        let mut waiters = outputs
            .into_iter()
            .flatten()
            .flat_map(|output| self.first_waiters(*output));
        waiters.any(|waiter| match waiter {
            Waiter::Blocked(task) => self.lacks_one(task) && self.keeps_live_copy(task),
            Waiter::FirstOf(task, _) => self.keeps_live_copy(task),
            Waiter::Watching(..) | Waiter::Reading(_) => false,
        })
    }

    fn lacks_one(&self, task: TaskKey) -> bool {
        let task = self.tasks.get(&task);
        task.is_some_and(|task| matches!(task.state, State::Suspended { missing: 1, .. }))
    }

    fn waiters_of(&self, output: ObjectKey) -> impl Iterator<Item = TaskKey> + '_ {
        self.first_waiters(output)
            .filter_map(|waiter| match waiter {
                Waiter::Blocked(task) => Some(task),
                _ => None,
            })
    }

    fn first_waiters(&self, output: ObjectKey) -> impl Iterator<Item = Waiter> + '_ {
        let waiters = match self.objects.get(output).map(|object| &object.state) {
            Some(ObjectState::Future { waiters, .. }) => Some(waiters),
            _ => None,
        };
        let waiters = waiters.into_iter().flat_map(|waiters| waiters.iter());
        waiters.take(WAITERS_MAX)
    }

    fn following(&self, last: &Task, before: &[TaskKey], key: TaskKey) -> Option<Ahead> {
        // A cancelled task is still among the waiters.
        let task = self.tasks.get(&key)?;
        let fits = matches!(task.state, State::Waiting { .. })
            && task.descriptor.class == last.descriptor.class
            && task.descriptor.options.resources == last.descriptor.options.resources
            && !before.contains(&key);
        match fits {
            true => self.as_begun(key, task, before),
            false => None,
        }
    }

    fn as_begun(&self, key: TaskKey, task: &Task, before: &[TaskKey]) -> Option<Ahead> {
        // A second run waits for a slot that nothing else wants.
        if self.duplicates.contains(key) {
            return None;
        }
        let mut given = task.descriptor.inputs.iter();
        if given.any(|input| input.mode != InputMode::Value) || task.inputs.len() > INPUTS_MAX {
            return None;
        }
        let (mut known, mut awaited) = (Vec::new(), Vec::new());
        for (input, object) in (0..).map(Handle).zip(&task.inputs) {
            match self.objects.settled_state(*object) {
                ObjectState::Ready(stored) => known.push((input, plain(stored)?)),
                ObjectState::Future { producer, .. } => {
                    awaited.push(self.awaited(input, *producer, *object, before)?);
                }
                ObjectState::Failed { .. } | ObjectState::Alias(_) | ObjectState::Dropped => {
                    return None;
                }
            }
        }
        let assignment = Box::new(self.assignment(key, Entry::Start(known), None));
        Some(Ahead {
            assignment,
            awaited,
        })
    }

    fn awaited(
        &self,
        input: Handle,
        producer: TaskKey,
        object: ObjectKey,
        before: &[TaskKey],
    ) -> Option<Awaited> {
        let maker = self
            .tasks
            .get(&producer)
            .filter(|_| before.contains(&producer))?;
        let target = self.objects.target(object);
        let output = maker.outputs.iter().position(|output| *output == target)?;
        Some(Awaited {
            input,
            producer,
            output: output as u32,
        })
    }
}

/// A value that can be copied into any number of messages; `None` for others.
fn plain(stored: &Stored) -> Option<Resolution> {
    let value = &stored.value;
    let is_plain = value.references.is_empty()
        && value.form != Form::Skywriting
        && matches!(value.content, Content::Inline(_));
    is_plain.then(|| Resolution::Ready {
        name: stored.name,
        value: Value {
            form: value.form.clone(),
            content: value.content.clone(),
            references: Vec::new(),
        },
    })
}
