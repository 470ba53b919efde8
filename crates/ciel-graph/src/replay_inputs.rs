//! What a task may request beside its answers: whether a reference is resolved, and in a replay,
//! the resolutions of all that it had demanded.
//!
//! It does not decide anything. Read next: `turn`, where tasks ask.

use ciel_model::{AttemptNumber, FactAct, Handle, ObjectKey, Resolution, TaskKey};
use rustc_hash::FxHashSet;

use crate::event::{Action, Continuation};
use crate::graph::Graph;
use crate::objects::ObjectState;
use crate::task::State;

impl Graph {
    /// Whether a reference of a running task is resolved, or has failed; `None` if this attempt
    /// does not run or has no such handle.
    pub fn is_settled(
        &self,
        task: TaskKey,
        attempt: AttemptNumber,
        handle: Handle,
    ) -> Option<bool> {
        let task = self.tasks.get(&task)?;
        let runs = task.attempt == attempt && matches!(task.state, State::Running { .. });
        let object = task.table.get(handle).filter(|_| runs)?;
        let state = self.objects.settled_state(object);
        Some(!matches!(state, ObjectState::Future { .. }))
    }

    /// Whether what a running task names is resolved, and not as a failure.
    pub fn is_ready(&self, task: TaskKey, attempt: AttemptNumber, handle: Handle) -> bool {
        let task = self.tasks.get(&task).filter(|task| task.attempt == attempt);
        let object = task.and_then(|task| task.table.get(handle));
        object.is_some_and(|object| self.is_object_ready(object))
    }

    /// Whether a waiting task resumes with its live copy.
    pub fn keeps_live_copy(&self, task: TaskKey) -> bool {
        let Some(task) = self.tasks.get(&task) else {
            return false;
        };
        match &task.state {
            State::Suspended { resume, .. }
            | State::Ready {
                resume: Some(resume),
            } => resume.continuation == Continuation::Live,
            State::Dormant
            | State::Waiting { .. }
            | State::Twin { .. }
            | State::LookedUp
            | State::Ready { resume: None }
            | State::Running { .. }
            | State::Held { .. } => false,
        }
    }

    pub(crate) fn on_task_recalled(
        &mut self,
        task: TaskKey,
        attempt: AttemptNumber,
        actions: &mut Vec<Action>,
    ) {
        let known = self.recall(task, attempt);
        actions.push(Action::Recalled {
            task,
            attempt,
            known,
        });
    }

    /// The resolutions of all that an earlier run of a task had demanded, for a replay that has not
    /// acted yet. References inside values join its table, in this order. Resolutions of its inputs
    /// are not repeated.
    fn recall(&mut self, key: TaskKey, attempt: AttemptNumber) -> Vec<(Handle, Resolution)> {
        if self.running(key, attempt).is_none() {
            return Vec::new();
        }
        let asked = std::mem::take(&mut self.task_mut(key).course.asked);
        let mut recalled = Vec::new();
        for (handle, object) in self.made(key) {
            self.recall_one(key, &asked, object, handle, &mut recalled);
        }
        let inputs = (0..).map(Handle).zip(self.tasks[&key].inputs.clone());
        for (handle, object) in inputs {
            if !self.is_object_ready(object) {
                self.recall_one(key, &asked, object, handle, &mut recalled);
            }
        }
        let mut delivered = 0;
        while let Some((handle, object)) = self.tasks[&key].table.delivered(delivered) {
            self.recall_one(key, &asked, object, handle, &mut recalled);
            delivered += 1;
        }
        self.task_mut(key).course.asked = asked;
        recalled
    }

    fn recall_one(
        &mut self,
        key: TaskKey,
        asked: &FxHashSet<ObjectKey>,
        object: ObjectKey,
        handle: Handle,
        recalled: &mut Vec<(Handle, Resolution)>,
    ) {
        if !asked.contains(&object) {
            return;
        }
        match self.resolution(key, object) {
            Resolution::Future => {}
            known => recalled.push((handle, known)),
        }
    }

    /// What the recorded facts of a task made, with the handles of then, in order.
    fn made(&self, key: TaskKey) -> Vec<(Handle, ObjectKey)> {
        let mut made = Vec::new();
        for fact in self.tasks[&key].course.facts.iter() {
            match &fact.act {
                FactAct::Spawned { first, outputs, .. } => {
                    made.extend((first.0..).map(Handle).zip(outputs.iter().copied()));
                }
                FactAct::Constructed { handle, object } => made.push((*handle, *object)),
                FactAct::Waited(_) | FactAct::Input { .. } => {}
            }
        }
        made
    }

    fn is_object_ready(&self, object: ObjectKey) -> bool {
        matches!(self.objects.settled_state(object), ObjectState::Ready(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Continuation, Event, Wait};
    use crate::for_tests::{FIRST, ROOT, block_for, finish, parent, place, tell};

    fn block(graph: &mut Graph, on: Handle, continuation: Continuation) {
        block_for(graph, on, Wait::ALL, continuation);
    }

    #[test]
    fn replay_is_told_what_the_task_had_asked_for_and_no_more() {
        let mut graph = parent();
        assert_eq!(graph.is_settled(ROOT, FIRST, Handle(0)), Some(true));
        assert_eq!(graph.is_settled(ROOT, FIRST, Handle(2)), Some(false));
        assert_eq!(graph.is_settled(ROOT, FIRST, Handle(3)), None);
        block(&mut graph, Handle(2), Continuation::Replay);
        assert!(!graph.keeps_live_copy(ROOT));
        for child in [TaskKey(1), TaskKey(2)] {
            place(&mut graph, child);
            finish(&mut graph, child);
        }
        place(&mut graph, ROOT);
        let recalled = graph.recall(ROOT, FIRST);
        assert_eq!(recalled.len(), 1, "{recalled:?}");
        assert_eq!(recalled[0].0, Handle(2));
        assert!(matches!(recalled[0].1, Resolution::Ready { .. }));
        graph.check_all();
    }

    #[test]
    fn live_copy_is_kept_while_its_strand_waits() {
        let mut graph = parent();
        block(&mut graph, Handle(1), Continuation::Live);
        assert!(graph.keeps_live_copy(ROOT));
        tell(&mut graph, Event::ContinuationLost { task: ROOT });
        assert!(!graph.keeps_live_copy(ROOT));
    }
}
