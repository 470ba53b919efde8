//! What a task may learn beside its answers: whether something is there, and when it is run again,
//! what became of everything it had asked for.
//!
//! It does not decide anything. Read next: `turn`, where tasks ask.

use ciel_model::{Attempt, Fact, Handle, ObjectKey, Resolution, TaskKey};
use rustc_hash::FxHashSet;

use crate::event::Continuation;
use crate::graph::Graph;
use crate::objects::ObjectState;
use crate::task::State;

/// An object that an earlier run of a task had asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recalled {
    /// In the task's table now: an input, or inside something that it was told.
    There(Handle),
    /// It will be made again: counted from 0 over all outputs of spawns and all new objects, in
    /// the order of the recorded facts.
    Made(u32),
}

impl Graph {
    /// Whether what a running task names is there, be it as a failure; `None` if this attempt
    /// does not run or has no such handle.
    pub fn is_settled(&self, task: TaskKey, attempt: Attempt, handle: Handle) -> Option<bool> {
        let task = self.tasks.get(&task)?;
        let runs = task.attempt == attempt && matches!(task.state, State::Running { .. });
        let object = task.table.get(handle.0 as usize).filter(|_| runs)?;
        let state = self.objects.settled_state(*object);
        Some(!matches!(state, ObjectState::Future { .. }))
    }

    /// Whether a task that waits is to go on with its live copy.
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
            | State::Twin
            | State::Ready { resume: None }
            | State::Running { .. } => false,
        }
    }

    /// What is known now of all that an earlier run of a task had asked for, when it has begun
    /// again from its start and has done nothing yet. References inside values join its table, in
    /// this order. What it was told with its inputs is not repeated.
    pub fn recall(&mut self, key: TaskKey, attempt: Attempt) -> Vec<(Recalled, Resolution)> {
        if self.running(key, attempt).is_none() {
            return Vec::new();
        }
        let asked = std::mem::take(&mut self.task_mut(key).asked);
        let mut recalled = Vec::new();
        for (index, object) in self.made(key).into_iter().enumerate() {
            let handle = Recalled::Made(index as u32);
            self.recall_one(key, &asked, object, handle, &mut recalled);
        }
        let inputs = self.tasks[&key].inputs.len();
        let mut place = 0;
        while let Some(object) = self.tasks[&key].table.get(place).copied() {
            let told = place < inputs && self.is_ready(object);
            if !told {
                let handle = Recalled::There(Handle(place as u32));
                self.recall_one(key, &asked, object, handle, &mut recalled);
            }
            place += 1;
        }
        self.task_mut(key).asked = asked;
        recalled
    }

    fn recall_one(
        &mut self,
        key: TaskKey,
        asked: &FxHashSet<ObjectKey>,
        object: ObjectKey,
        handle: Recalled,
        recalled: &mut Vec<(Recalled, Resolution)>,
    ) {
        if !asked.contains(&object) {
            return;
        }
        match self.resolution(key, object) {
            Resolution::Future => {}
            known => recalled.push((handle, known)),
        }
    }

    /// What the recorded facts of a task made, in order.
    fn made(&self, key: TaskKey) -> Vec<ObjectKey> {
        let made = |fact: &Fact| match fact {
            Fact::Spawned { outputs, .. } => outputs.clone(),
            Fact::Constructed { object } => vec![*object],
            Fact::Input { .. } => Vec::new(),
        };
        self.tasks[&key].facts.iter().flat_map(made).collect()
    }

    fn is_ready(&self, object: ObjectKey) -> bool {
        matches!(self.objects.settled_state(object), ObjectState::Ready(_))
    }
}
