//! Tasks that take the references of a list one after the other.
//!
//! It does not know how a wait begins or ends. Read next: `first_of`, for the list itself; `wait`.

use ciel_model::{Failure, FailureKind, Handle, Micros, TaskKey};

use crate::event::{Action, Until};
use crate::first_of::FirstOf;
use crate::graph::Graph;
use crate::spawn::Refusal;
use crate::task::State;

impl Graph {
    /// A task waits for the first of a new list.
    pub(crate) fn list_first_of(&mut self, key: TaskKey, on: &[Handle]) {
        self.forget_first_of(key);
        self.task_mut(key).course.first_of = Some(Box::new(FirstOf::new(on)));
    }

    /// A task was given these places of its list.
    pub(crate) fn note_given(&mut self, key: TaskKey, places: &[u32]) {
        if let Some(list) = &mut self.task_mut(key).course.first_of {
            list.give(places);
        }
    }

    /// A task waits for the rest of its list, which is followed from now on.
    pub(crate) fn follow_rest(&mut self, key: TaskKey) -> Result<(), Refusal> {
        let task = &self.tasks[&key];
        let Some(list) = &task.course.first_of else {
            let message = "it waits for the rest of a list, and has waited for the first of none";
            let failure = Failure::new(FailureKind::Refused, task.label(), message);
            return Err(Box::new(failure));
        };
        if list.is_followed() {
            return Ok(());
        }
        let (mut arrived, mut left) = (Vec::new(), 0);
        for (place, handle) in list.rest() {
            let object = self.object_of(key, handle);
            match self.objects.follow(object, key, place) {
                true => left += 1,
                false => arrived.push(place),
            }
        }
        if let Some(list) = &mut self.task_mut(key).course.first_of {
            list.follow(arrived, left);
        }
        Ok(())
    }

    /// How many of the rest of a task's list are not resolved, and whether any is that the task was
    /// not given.
    pub(crate) fn rest_of_first(&self, key: TaskKey) -> (u32, bool) {
        let list = self.tasks[&key].course.first_of.as_ref();
        list.map_or((0, false), |list| (list.left(), list.has_arrived()))
    }

    /// What was resolved of the rest of a task's list, for the task: places and handles.
    pub(crate) fn take_arrived(&mut self, key: TaskKey) -> (Vec<u32>, Vec<Handle>) {
        let list = self.task_mut(key).course.first_of.as_mut();
        list.map(|list| list.take_arrived()).unwrap_or_default()
    }

    /// Something of a task's list is resolved.
    pub(crate) fn arrive(
        &mut self,
        now: Micros,
        key: TaskKey,
        place: u32,
        actions: &mut Vec<Action>,
    ) {
        let task = self.task_mut(key);
        let list = task.course.first_of.as_mut();
        list.expect("objects know only of lists that there are")
            .arrive(place);
        if let State::Suspended { resume, .. } = &task.state
            && resume.wait.until == Until::Rest
        {
            self.end_wait(now, key, actions);
        }
    }

    /// A task will not wait for the rest of its list.
    pub(crate) fn forget_first_of(&mut self, key: TaskKey) {
        let course = self.task_mut(key).course.unusual_mut();
        let list = course.and_then(|course| course.first_of.take());
        let Some(list) = list.filter(|list| list.is_followed()) else {
            return;
        };
        for (place, handle) in list.rest() {
            let object = self.object_of(key, handle);
            self.objects.follow_no_more(object, key, place);
        }
    }
}
