//! Release: handles that a task uses no more, and values that no task can name.
//!
//! A recorded spawn holds its outputs until the task ends, since a replay repeats the spawn. The
//! replay compares keys; it reads only what the task has demanded. So a value that the task has
//! released without having demanded it is dropped with its file as soon as nobody else holds it.
//! Then the strand cannot be rolled back to a point at which its program could name the value. It
//! does not know files. Read next: `objects::recorded`.

use ciel_model::{FactAct, Failure, FailureKind, Handle, ObjectKey, TaskKey};

use crate::event::Action;
use crate::graph::Graph;
use crate::objects::Released;
use crate::spawn::Refusal;
use crate::task::Task;

impl Graph {
    /// A running task uses these handles no more.
    pub(crate) fn release_handles(
        &mut self,
        key: TaskKey,
        handles: &[Handle],
        actions: &mut Vec<Action>,
    ) {
        let mut released = Released::default();
        for handle in handles {
            let object = self.tasks[&key].table.get(*handle);
            if object.is_none_or(|object| self.is_in_use(key, *handle, object)) {
                continue;
            }
            if let Some(object) = self.task_mut(key).table.release(*handle) {
                self.objects.give_up(object, key);
                self.objects.release(object, &mut released);
            }
        }
        self.clear(released, actions);
    }

    /// Whether the graph itself needs that handle: a replay receives what the task has demanded by
    /// the same one, and a list or a watch finds its object by it.
    fn is_in_use(&self, key: TaskKey, handle: Handle, object: ObjectKey) -> bool {
        let task = &self.tasks[&key];
        let watched = self.watches.get(&key);
        task.course.asked.contains(&object)
            || (!task.descriptor.replayable && task.course.first_of.is_some())
            || watched.is_some_and(|watched| watched.contains(&handle))
    }

    /// Drops a value that only the record of a spawn holds, unless a replay receives it.
    pub(crate) fn drop_unread(&mut self, object: ObjectKey, released: &mut Released) {
        let Some(key) = self.objects.recorder_of_unread(object) else {
            return;
        };
        let Some(task) = self.tasks.get_mut(&key) else {
            return;
        };
        if !task.course.asked.contains(&object) {
            task.course.given_after = task.course.given_after.max(task.reached());
            self.objects.drop_value(object, released);
        }
    }

    /// A strand goes back to a point at which its program names what it released after that.
    pub(crate) fn name_again(&mut self, key: TaskKey) {
        for fact in self.tasks[&key].course.facts.iter() {
            if let FactAct::Spawned { outputs, .. } = &fact.act {
                let outputs = outputs.iter();
                outputs.for_each(|output| self.objects.record(*output, key));
            }
        }
    }

    /// Refuses objects whose values were dropped: a task that names one has released it before.
    pub(crate) fn check_kept(&self, key: TaskKey, objects: &[ObjectKey]) -> Result<(), Refusal> {
        if !objects
            .iter()
            .any(|object| self.objects.is_dropped(*object))
        {
            return Ok(());
        }
        let label = self.tasks[&key].label();
        let message = "it used a reference that it had released";
        let failure = Failure::new(FailureKind::NonDeterministic, label, message);
        Err(Box::new(failure.with_hint(
            "each replay must use its references as the attempt before it did",
        )))
    }
}

impl Task {
    /// After all actions that the strand has done, in this attempt or before.
    fn reached(&self) -> u64 {
        let recorded = self.course.facts.last().map_or(0, |fact| fact.at.after());
        self.strand.next.max(recorded)
    }
}
