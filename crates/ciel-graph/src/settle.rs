//! Ends: outputs that are resolved, failures, retries and replays.

use std::sync::Arc;

use ciel_model::{
    ActionKey, AttemptNumber, Audit, Digest, Fact, FactAct, Failure, FailureKind, Frame, Handle,
    Label, Micros, Name, ObjectKey, TaskKey, Value,
};

use crate::event::{Action, Output, StrandChange};
use crate::graph::Graph;
use crate::objects::{ObjectState, Released, Waiter};
use crate::spawn::Refusal;
use crate::story::Moment;
use crate::task::{End, Rest, Strand, Task};

impl Graph {
    /// A new object, and an output is that object; one that is settled stays as it is.
    pub(crate) fn publish(
        &mut self,
        now: Micros,
        key: TaskKey,
        (at, handle): (ActionKey, Handle),
        (index, value): (u32, Value<Handle>),
        actions: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        let output = self.output_of(key, index)?;
        let origin = self.origin_of(key, index, &value.content);
        self.construct(key, at, handle, (value, origin))?;
        self.give(key);
        if self.is_future(output) {
            let state = self.state_like(self.object_of(key, handle));
            self.want_no_more(key, output);
            self.settle_object(now, output, state, actions);
        }
        Ok(())
    }

    /// Other tasks may have an output from now on, so the actions before it cannot be rolled back.
    fn give(&mut self, key: TaskKey) {
        let task = self.task_mut(key);
        if task.course.given_after < task.strand.next {
            task.course.given_after = task.strand.next;
        }
    }

    pub(crate) fn output_of(&self, key: TaskKey, index: u32) -> Result<ObjectKey, Refusal> {
        let task = &self.tasks[&key];
        task.outputs.get(index as usize).copied().ok_or_else(|| {
            let count = task.outputs.len();
            let message = format!("it published output {index}, but has {count}");
            Box::new(Failure::new(FailureKind::Refused, task.label(), message))
        })
    }

    fn let_go(&mut self, state: ObjectState, actions: &mut Vec<Action>) {
        let mut released = Released::default();
        self.objects.drop_state(state, &mut released);
        self.clear(released, actions);
    }

    pub(crate) fn is_future(&self, object: ObjectKey) -> bool {
        self.objects
            .get(object)
            .is_none_or(|object| matches!(object.state, ObjectState::Future { .. }))
    }

    pub(crate) fn on_task_finished(
        &mut self,
        now: Micros,
        key: TaskKey,
        attempt: AttemptNumber,
        outputs: Vec<Output>,
        (printed, audit): (bool, Option<Arc<Audit>>),
        actions: &mut Vec<Action>,
    ) {
        if self.running(key, attempt).is_none() {
            return;
        }
        let printed = (printed, audit.and_then(|audit| audit.printed));
        self.stop_clock(now, key);
        if self.duplicates.contains(key) {
            return self.on_duplicate_finished(now, key, outputs, printed, actions);
        }
        let is_whole = outputs.len() == self.tasks[&key].outputs.len();
        if is_whole && self.must_be_held(key, &outputs) {
            let printed = printed.0;
            return self.hold_end(now, key, End::Well { outputs, printed });
        }
        let states = self
            .check_replayed(key)
            .and_then(|()| self.states_of(key, outputs, actions));
        match states {
            Ok(states) => {
                self.note_time(key);
                self.commit(now, key, states, printed, actions)
            }
            Err(failure) => self.fail_attempt(now, key, *failure, actions),
        }
    }

    /// What each output becomes; `None` for one that was published before.
    pub(crate) fn states_of(
        &mut self,
        key: TaskKey,
        outputs: Vec<Output>,
        actions: &mut Vec<Action>,
    ) -> Result<Vec<Option<ObjectState>>, Refusal> {
        let task = &self.tasks[&key];
        if outputs.len() != task.outputs.len() {
            let message = format!(
                "it gave {} outputs instead of {}",
                outputs.len(),
                task.outputs.len()
            );
            return Err(Box::new(Failure::new(
                FailureKind::TaskError,
                task.label(),
                message,
            )));
        }
        let mut states = Vec::with_capacity(outputs.len());
        for (index, output) in outputs.into_iter().enumerate() {
            match self.state_of(key, index, output) {
                Ok(state) => states.push(state),
                Err(refusal) => {
                    states
                        .into_iter()
                        .flatten()
                        .for_each(|state| self.let_go(state, actions));
                    return Err(refusal);
                }
            }
        }
        Ok(states)
    }

    fn state_of(
        &mut self,
        key: TaskKey,
        index: usize,
        output: Output,
    ) -> Result<Option<ObjectState>, Refusal> {
        match output {
            Output::Passed => Ok(Some(self.passed_state(key, index))),
            Output::Published => self.check_published(key, index).map(|()| None),
            Output::Delegate(handle) => {
                let object = self.keys_of(key, &[handle])?[0];
                Ok(Some(self.state_like(object)))
            }
            Output::Value(value) => {
                let value = self.adopt(key, value)?;
                let name = self.name_of_output(key, index);
                let origin = self.origin_of(key, index as u32, &value.content);
                Ok(Some(self.objects.store(name, value, origin)))
            }
        }
    }

    /// The name of what a task makes as one of its outputs. The object itself has it, if the task
    /// is the first of its strand.
    fn name_of_output(&self, key: TaskKey, index: usize) -> Name {
        let task = &self.tasks[&key];
        let derived = || task.name.output(index as u64);
        let is_first = task.name == task.strand.name;
        let object = is_first.then(|| self.objects.get(task.outputs[index]));
        let name = object.flatten().map_or_else(derived, |object| object.name);
        debug_assert_eq!(name, derived());
        name
    }

    /// The state of an object that delegates to `object`.
    pub(crate) fn state_like(&self, object: ObjectKey) -> ObjectState {
        match self.objects.settled_state(object) {
            ObjectState::Future { .. } => ObjectState::Alias(self.objects.target(object)),
            settled => settled.clone(),
        }
    }

    /// A declared output that was not published is the task's failure.
    fn check_published(&self, key: TaskKey, index: usize) -> Result<(), Refusal> {
        let task = &self.tasks[&key];
        let object = task.outputs[index];
        if self.objects.get(object).is_none() || !self.is_future(object) {
            return Ok(());
        }
        let message = format!("it ended without publishing output {index}");
        Err(Box::new(Failure::new(
            FailureKind::TaskError,
            task.label(),
            message,
        )))
    }

    pub(crate) fn commit(
        &mut self,
        now: Micros,
        key: TaskKey,
        states: Vec<Option<ObjectState>>,
        (printed, digest): (bool, Option<Digest>),
        actions: &mut Vec<Action>,
    ) {
        self.note(now, key, Moment::Finished);
        let task = self.task_mut(key);
        let outputs = task.outputs.clone();
        let strand = task.strand.key;
        let spawned = task.course.spawned;
        let twins = task.take_twins();
        self.counts.finished += 1;
        if printed || spawned {
            self.bind_outputs(key);
        }
        actions.push(Action::Strand(StrandChange::Committed(strand)));
        // Equal calls would have to print what the children print, each at its own place.
        if printed || spawned {
            self.forget_call(key);
            self.promote_twins(now, twins, actions);
        } else {
            self.keep_for_twins(now, key, &outputs, &states, twins, actions);
        }
        for (object, state) in outputs.iter().zip(&states) {
            if let Some(state) = state {
                self.pass_want(now, key, *object, state, actions);
            }
        }
        for (object, state) in outputs.iter().zip(states) {
            match state {
                Some(state) if self.is_future(*object) => {
                    self.settle_object(now, *object, state, actions)
                }
                Some(state) => self.let_go(state, actions),
                None => {}
            }
        }
        self.on_original_committed(now, key, digest, actions);
        actions.push(Action::Strand(StrandChange::Closed(strand)));
        self.end_strand(now, key, None, actions);
    }

    /// Settles a future and wakes the waiting tasks.
    pub(crate) fn settle_object(
        &mut self,
        now: Micros,
        object: ObjectKey,
        state: ObjectState,
        actions: &mut Vec<Action>,
    ) {
        let mut released = Released::default();
        if self.objects.get(object).is_none() {
            self.objects.drop_state(state, &mut released);
        } else if let ObjectState::Alias(target) = state {
            self.objects.alias(object, target);
            self.wake_readers(now, target, actions);
            if self.objects.is_asked(target) {
                self.demand(now, target, actions);
            }
            self.objects.collect(object, &mut released);
        } else {
            let (waiters, aliases) = self.objects.settle(object, &state).unwrap_or_default();
            for settled in aliases.iter().chain([object]) {
                self.compare_known(now, settled, &state, actions);
            }
            drop(state);
            for waiter in waiters.iter() {
                match waiter {
                    Waiter::Blocked(task) => self.wake(now, task, actions),
                    Waiter::Watching(task, handle) => self.tell_watcher(task, handle, actions),
                    Waiter::FirstOf(task, place) => self.arrive(now, task, place, actions),
                    Waiter::Reading(task) => self.on_read_settled(task, object),
                }
            }
            for settled in aliases.iter().chain([object]) {
                self.objects.collect(settled, &mut released);
            }
        }
        self.clear(released, actions);
    }

    /// Takes a task out of the graph; its outputs are settled or handed over.
    pub(crate) fn dismiss(
        &mut self,
        now: Micros,
        key: TaskKey,
        failure: Option<Arc<Failure>>,
        actions: &mut Vec<Action>,
    ) -> Strand {
        self.stop_clock(now, key);
        self.forget_lookup(key);
        self.forget_first_of(key);
        self.stop_reading(key);
        let mut task = self
            .tasks
            .remove(&key)
            .expect("the caller has just seen this task");
        self.live -= 1;
        let few_left = self.children.remove(task.strand.spawner);
        actions.extend(few_left.map(|strand| Action::FewChildren { strand }));
        match self.duplicates.contains(key) {
            true => self.functions.on_duplicate_ended(&task),
            false => self.summarise(&mut task, failure, actions),
        }
        let mut released = Released::default();
        let Task {
            table,
            inputs,
            strand,
            mut course,
            ..
        } = *task;
        if let Some(course) = course.unusual_mut() {
            let facts = std::mem::take(&mut course.facts);
            self.release_facts(facts.into_entries(), &mut released);
            let stored = course.checkpoint.take().map(|stored| stored.table);
            self.release_all(stored.unwrap_or_default(), &mut released);
        }
        self.release_all(table.objects(), &mut released);
        self.release_all(inputs, &mut released);
        self.clear(released, actions);
        self.on_original_gone(now, key, actions);
        strand
    }

    /// Takes the last task of a strand out of the graph, and judges the job.
    pub(crate) fn end_strand(
        &mut self,
        now: Micros,
        key: TaskKey,
        failure: Option<Arc<Failure>>,
        actions: &mut Vec<Action>,
    ) {
        self.close_strand(now, key, failure, actions);
        self.judge(now, actions);
    }

    /// Takes the last task of a strand out of the graph; the job is judged when all that belongs
    /// to the same step is done.
    pub(crate) fn close_strand(
        &mut self,
        now: Micros,
        key: TaskKey,
        failure: Option<Arc<Failure>>,
        actions: &mut Vec<Action>,
    ) {
        let failed = failure.is_some();
        let strand = self.dismiss(now, key, failure, actions);
        self.order.remove(strand.begin);
        if !failed {
            self.order.remove(strand.end);
        }
    }

    pub(crate) fn release_facts(
        &mut self,
        facts: impl IntoIterator<Item = Fact>,
        released: &mut Released,
    ) {
        for fact in facts {
            match fact.act {
                FactAct::Spawned {
                    before, outputs, ..
                } => {
                    self.order.remove(before);
                    for output in outputs {
                        self.objects.forget_record(output);
                        self.objects.release(output, released);
                    }
                }
                FactAct::Constructed { object, .. } => self.objects.release(object, released),
                FactAct::Waited(_) | FactAct::Input { .. } => {}
            }
        }
    }

    pub(crate) fn on_task_failed(
        &mut self,
        now: Micros,
        key: TaskKey,
        attempt: AttemptNumber,
        failure: Failure,
        actions: &mut Vec<Action>,
    ) {
        if self.running(key, attempt).is_none() {
            return;
        }
        match self.may_have_missed(key, &failure) {
            true => self.begin_again_with_its_files(now, key, actions),
            false => self.fail_attempt(now, key, failure, actions),
        }
    }

    /// No slot can ever hold the task, so another attempt would be refused, too.
    pub(crate) fn on_task_refused(
        &mut self,
        now: Micros,
        key: TaskKey,
        attempt: AttemptNumber,
        failure: Failure,
        actions: &mut Vec<Action>,
    ) {
        if self.awaits_place(key, attempt) {
            self.fail_task(now, key, failure, actions);
        }
    }

    /// An attempt failed: another one, or the task's failure.
    pub(crate) fn fail_attempt(
        &mut self,
        now: Micros,
        key: TaskKey,
        failure: Failure,
        actions: &mut Vec<Action>,
    ) {
        self.stop_clock(now, key);
        let over = self.verdict.is_over();
        let task = self.task_mut(key);
        let retries = task.descriptor.options.retries;
        if over || !failure.is_retryable() || task.course.failures >= retries {
            return self.fail_task(now, key, failure, actions);
        }
        task.course.failures += 1;
        let left = retries - task.course.failures;
        self.counts.retried += 1;
        let label = self.tasks[&key].label();
        let failure = Arc::new(failure);
        actions.push(Action::AttemptFailed {
            key,
            task: label,
            failure,
            left,
            to: None,
        });
        self.begin_again(now, key, Moment::Retried, actions);
    }

    /// The task is offered again from its start, as a new attempt, and so is all that has to start
    /// again with it.
    pub(crate) fn begin_again(
        &mut self,
        now: Micros,
        key: TaskKey,
        why: Moment,
        actions: &mut Vec<Action>,
    ) {
        let bound = self.bound_to(key);
        for other in &bound {
            self.stop_attempt(now, *other, actions);
        }
        for one in bound.iter().chain([&key]) {
            self.stop_reading(*one);
            if let Some(course) = self.task_mut(*one).course.unusual_mut() {
                course.open.clear();
            }
        }
        self.begin_anew(now, key, why, actions);
        for other in bound {
            self.begin_anew(now, other, Moment::StreamLost, actions);
        }
    }

    /// The task failed for good: its outputs become the failure.
    pub(crate) fn fail_task(
        &mut self,
        now: Micros,
        key: TaskKey,
        failure: Failure,
        actions: &mut Vec<Action>,
    ) {
        if self.must_hold_failure(key, &failure) {
            return self.hold_end(now, key, End::Failed(failure.into()));
        }
        // What it received was perhaps cancelled because the job has failed before it.
        let cancelled = failure.kind == FailureKind::Cancelled;
        let is_beyond = self.verdict.is_over() || self.is_cut(self.tasks[&key].strand.end);
        let rest = match cancelled && is_beyond {
            true => Rest::Stopped,
            false => Rest::Goes,
        };
        self.end_failed(now, key, failure, rest, actions);
    }

    /// The same; `rest` is what becomes of its output.
    pub(crate) fn end_failed(
        &mut self,
        now: Micros,
        key: TaskKey,
        failure: Failure,
        rest: Rest,
        actions: &mut Vec<Action>,
    ) {
        if self.on_duplicate_failed(now, key, &failure, actions) {
            return;
        }
        let cancelled = failure.kind == FailureKind::Cancelled;
        let moment = match cancelled {
            true => Moment::Cancelled,
            false => Moment::Failed,
        };
        self.note(now, key, moment);
        let task = self.task_mut(key);
        let outputs = task.outputs.clone();
        let (strand, held) = (task.strand.key, task.strand.held);
        let (label, place) = (task.label(), task.place());
        let is_final = cancelled || task.descriptor.options.retries > 0;
        // It is held only because of what it reads.
        let is_replayed = task.descriptor.options.live && task.descriptor.replayable;
        let is_replayed = is_replayed && task.takes_streams();
        let twins = task.take_twins();
        match cancelled {
            true => self.counts.cancelled += 1,
            false => self.counts.failed += 1,
        }
        let failure = Arc::new(seen_from(failure, label, place));
        self.forget_call(key);
        self.note_failure(key, &failure);
        if held && rest == Rest::Goes {
            actions.push(Action::Strand(match is_replayed {
                true => StrandChange::Committed(strand),
                false => StrandChange::Withdrawn(strand),
            }));
        }
        actions.push(Action::Strand(match rest {
            Rest::Goes => StrandChange::Closed(strand),
            Rest::Cut => StrandChange::Cut(strand),
            Rest::Stopped => StrandChange::Discarded(strand),
        }));
        for source in outputs {
            if self.is_future(source) {
                let failure = failure.clone();
                let state = ObjectState::Failed {
                    failure,
                    source,
                    is_final,
                };
                self.settle_object(now, source, state, actions);
            }
        }
        self.promote_twins(now, twins, actions);
        self.end_strand(now, key, Some(failure), actions);
    }
}

/// The failure with a frame for the task it leaves, if that has none yet.
fn seen_from(failure: Failure, task: Label, place: String) -> Failure {
    if failure
        .frames
        .last()
        .is_some_and(|frame| frame.task == task)
    {
        return failure;
    }
    let note = String::new();
    failure.through(Frame { task, place, note })
}
