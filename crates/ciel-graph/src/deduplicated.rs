//! Equal pure calls: one runs, its twins share the result.
//!
//! A call that printed, spawned, delegated, published or tail-spawned cannot be shared: its twins
//! would have to do the same at their own positions, so each runs separately. It does not know what
//! a call means; two are equal when their keys are. Read next: `settle`.

use ciel_model::{CallKey, Digest, Micros, ObjectKey, TaskKey};

use crate::event::{Action, StrandChange};
use crate::graph::{Call, Graph};
use crate::objects::ObjectState;
use crate::story::Moment;
use crate::task::State;

impl Graph {
    /// Shares the result of an equal pure call; false if there is none to share.
    pub(crate) fn join_equal_call(
        &mut self,
        now: Micros,
        key: TaskKey,
        actions: &mut Vec<Action>,
    ) -> bool {
        let task = &self.tasks[&key];
        let inputs = task.inputs.iter().map(|input| self.objects.target(*input));
        let call = CallKey::digest_of(&task.descriptor, inputs);
        let Some(Call {
            task: leader,
            outputs,
        }) = self.calls.get(&call).cloned()
        else {
            self.register_call(call, key);
            return false;
        };
        if self.tasks.contains_key(&leader) {
            self.task_mut(leader).course.twins.push(key);
            self.task_mut(key).state = State::Twin { leader };
            return true;
        }
        let there = |output: &ObjectKey| {
            self.objects
                .get(*output)
                .is_some_and(|object| matches!(object.state, ObjectState::Ready(_)))
        };
        if !outputs.iter().all(there) {
            self.register_call(call, key);
            return false;
        }
        self.finish_as_twin(now, key, &outputs, actions);
        true
    }

    fn register_call(&mut self, call: Digest, key: TaskKey) {
        let outputs = self.tasks[&key].outputs.as_slice().into();
        let entry = Call { task: key, outputs };
        let (tasks, objects) = (&self.tasks, &self.objects);
        let can_be_shared = |_: &Digest, call: &Call| {
            let exists = |output: &ObjectKey| objects.get(*output).is_some();
            tasks.contains_key(&call.task) || call.outputs.iter().all(exists)
        };
        self.calls.insert_among(call, entry, can_be_shared);
        self.task_mut(key).call = Some(Box::new(call));
    }

    /// The twins get what the leader got; done first, while all is in the table.
    pub(crate) fn keep_for_twins(
        &mut self,
        now: Micros,
        key: TaskKey,
        outputs: &[ObjectKey],
        states: &[Option<ObjectState>],
        twins: Vec<TaskKey>,
        actions: &mut Vec<Action>,
    ) {
        let delegated = states
            .iter()
            .any(|state| !matches!(state, Some(ObjectState::Ready(_))));
        if delegated {
            self.forget_call(key);
            return self.promote_twins(now, twins, actions);
        }
        for twin in twins {
            let Some(task) = self.tasks.get(&twin) else {
                continue;
            };
            let mine = task.outputs.clone();
            let shared = states
                .iter()
                .cloned()
                .map(|state| state.expect("not delegated"));
            for (object, state) in mine.into_iter().zip(shared) {
                self.settle_object(now, object, state, actions);
            }
            self.close_twin(now, twin, actions);
        }
        debug_assert_eq!(outputs.len(), states.len());
    }

    /// An equal call has finished before: its outputs are this one's.
    fn finish_as_twin(
        &mut self,
        now: Micros,
        key: TaskKey,
        of: &[ObjectKey],
        actions: &mut Vec<Action>,
    ) {
        let mine = self.tasks[&key].outputs.clone();
        for (object, source) in mine.into_iter().zip(of) {
            let state = self.state_like(*source);
            self.settle_object(now, object, state, actions);
        }
        self.close_twin(now, key, actions);
        self.judge(now, actions);
    }

    /// The end of a deduplicated call; judging the job is left to the caller, who may be in the
    /// midst of the leader's commit.
    fn close_twin(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        self.counts.shared += 1;
        self.note(now, key, Moment::Finished);
        let strand = self.tasks[&key].strand.key;
        actions.push(Action::Strand(StrandChange::Closed(strand)));
        self.close_strand(now, key, None, actions);
    }

    /// The leader cannot be shared: each twin runs separately.
    pub(crate) fn promote_twins(
        &mut self,
        now: Micros,
        twins: Vec<TaskKey>,
        actions: &mut Vec<Action>,
    ) {
        for twin in twins {
            if self
                .tasks
                .get(&twin)
                .is_some_and(|task| matches!(task.state, State::Twin { .. }))
            {
                self.admit(now, twin, actions);
            }
        }
    }

    pub(crate) fn forget_call(&mut self, key: TaskKey) {
        if let Some(call) = &self.tasks[&key].call
            && self.calls.get(call).is_some_and(|entry| entry.task == key)
        {
            self.calls.remove(call);
        }
    }
}
