//! Results known by their digest: an earlier run has kept what a task gave, but the bytes are gone.
//!
//! Such a task has ended for whoever looks; what it printed is in the output. In its place stands
//! its *stand-in*, a task that sleeps like a lazy one and runs when somebody needs the bytes. Until
//! then a consumer that takes a kept result itself is looked up with the digests. What the stand-in
//! gives is compared: if it is another result although something already follows from the known
//! one, the job fails, because neither printed output nor a result that was taken can be withdrawn.
//! It does not know why bytes are gone. Read first: `kept`.

use ciel_model::{
    Content, Form, Handle, InputMode, Keeping, Micros, ObjectKey, RerunReason, TaskKey, Value,
};

use crate::event::{Action, StrandChange};
use crate::graph::Graph;
use crate::known_output::KnownOutput;
use crate::objects::{ObjectState, Released, Waiter};
use crate::story::Moment;
use crate::task::{State, Strand, Task};

impl Graph {
    /// An earlier run has kept what a task gives, without all of the bytes.
    pub(crate) fn end_as_known(
        &mut self,
        now: Micros,
        key: TaskKey,
        outputs: Vec<Value<Handle>>,
        printed: bool,
        actions: &mut Vec<Action>,
    ) {
        self.note(now, key, Moment::Known);
        self.note(now, key, Moment::Finished);
        self.counts.kept += 1;
        self.counts.known += 1;
        self.counts.finished += 1;
        self.bind_inputs(key);
        let task = self.task_mut(key);
        let twins = task.take_twins();
        let strand = task.strand.key;
        let label = task.label();
        self.forget_call(key);
        self.promote_twins(now, twins, actions);
        actions.push(Action::Strand(StrandChange::Committed(strand)));
        actions.push(Action::Strand(StrandChange::Closed(strand)));
        let (stand_in, objects) = self.put_stand_in(now, key, actions);
        self.forget_unneeded_known();
        for (object, output) in objects.iter().zip(outputs) {
            let known = KnownOutput {
                task: label.clone(),
                form: output.form,
                content: output.content,
                is_binding: printed,
            };
            self.known.insert(*object, known);
        }
        self.wake_those_who_rely(now, stand_in, &objects, actions);
        let mut released = Released::default();
        self.forget_dormant(stand_in, &mut released);
        self.clear(released, actions);
        self.judge(now, actions);
    }

    /// A dormant task in the place of one that ends; both know the same objects.
    fn put_stand_in(
        &mut self,
        now: Micros,
        key: TaskKey,
        actions: &mut Vec<Action>,
    ) -> (TaskKey, Vec<ObjectKey>) {
        self.on_original_gone(now, key, actions);
        let task = self.task_mut(key);
        let outputs = std::mem::take(&mut task.outputs);
        let wanted = task.take_wanted();
        let (name, parent) = (task.name, task.parent.clone());
        let (descriptor, inputs) = (task.descriptor.clone(), task.inputs.to_vec());
        let Strand { begin, end, .. } = task.strand;
        // The output has no such strand, so what the stand-in writes is dropped.
        let strand = Strand {
            next: task.strand.next,
            tails: task.strand.tails,
            name: task.strand.name,
            ..self.new_strand(name, begin, end)
        };
        let stand_in = self.new_task(now, name, descriptor, strand, parent, inputs);
        self.functions.on_stand_in(&self.tasks[&stand_in]);
        self.counts.spawned -= 1;
        for output in &outputs {
            self.objects.reassign(*output, stand_in);
        }
        if let Some((root, _)) = &mut self.verdict.root
            && *root == key
        {
            *root = stand_in;
        }
        let task = self.task_mut(stand_in);
        task.outputs = outputs.clone();
        if !wanted.is_empty() {
            task.course.wanted = wanted;
        }
        self.dismiss(now, key, None, actions);
        (stand_in, outputs)
    }

    /// Consumers that may take a result themselves wait no longer; for any other the bytes are
    /// needed.
    fn wake_those_who_rely(
        &mut self,
        now: Micros,
        stand_in: TaskKey,
        outputs: &[ObjectKey],
        actions: &mut Vec<Action>,
    ) {
        let mut is_needed = !self.tasks[&stand_in].course.wanted.is_empty();
        let mut relying = Vec::new();
        for output in outputs {
            let mut held = self.verdict.held();
            is_needed |= held.any(|held| self.objects.target(held) == *output);
            for waiter in self.all_waiters(*output) {
                match waiter {
                    Waiter::Blocked(task) if self.waits_and_relies(task) => {
                        relying.push((*output, task));
                    }
                    _ => is_needed = true,
                }
            }
        }
        for (output, task) in &relying {
            self.objects.wait_no_more(*output, *task);
        }
        for (_, task) in relying {
            self.wake(now, task, actions);
        }
        // What was demanded may have no holder any more: then nobody reads its bytes.
        let is_held = |output: &ObjectKey| self.objects.get(*output).is_some();
        if is_needed && outputs.iter().any(is_held) {
            self.wake_dormant(now, vec![stand_in], actions);
        }
    }

    fn all_waiters(&self, object: ObjectKey) -> Vec<Waiter> {
        match self.objects.get(object).map(|object| &object.state) {
            Some(ObjectState::Future { waiters, .. }) => waiters.iter().collect(),
            _ => Vec::new(),
        }
    }

    fn waits_and_relies(&self, key: TaskKey) -> bool {
        let task = &self.tasks[&key];
        matches!(task.state, State::Waiting { .. }) && self.may_rely(task)
    }

    /// Whether a task may be looked up by what its inputs are known to be.
    pub(crate) fn may_rely(&self, task: &Task) -> bool {
        let is_first = task.descriptor.keeping == Keeping::Takes && task.course.rerun.is_none();
        is_first && !self.known.is_empty() && !self.is_stand_in(task)
    }

    /// Whether a task recomputes what is known by its digest.
    pub(crate) fn is_stand_in(&self, task: &Task) -> bool {
        let mut outputs = task.outputs.iter();
        !self.known.is_empty() && outputs.any(|output| self.known.contains_key(output))
    }

    /// Whether any unresolved result is known by its digest.
    pub fn has_known(&self) -> bool {
        !self.known.is_empty()
    }

    /// What an unresolved object is known to be.
    pub(crate) fn known_content(&self, object: ObjectKey) -> Option<(&Form, &Content)> {
        let known = self.known.get(&self.known_key(object)?)?;
        Some((&known.form, &known.content))
    }

    fn known_key(&self, object: ObjectKey) -> Option<ObjectKey> {
        if self.known.is_empty() || !self.is_future_at_last(object) {
            return None;
        }
        let target = self.objects.target(object);
        let mut either = [object, target].into_iter();
        either.find(|key| self.known.contains_key(key))
    }

    fn is_future_at_last(&self, object: ObjectKey) -> bool {
        matches!(
            self.objects.settled_state(object),
            ObjectState::Future { .. }
        )
    }

    /// A task has no kept result, or none may be looked up: it waits for those of its inputs that
    /// are only known, and their stand-ins run. False if there are none.
    pub(crate) fn await_known(
        &mut self,
        now: Micros,
        key: TaskKey,
        actions: &mut Vec<Action>,
    ) -> bool {
        if self.known.is_empty() {
            return false;
        }
        let task = &self.tasks[&key];
        let given = task.descriptor.inputs.iter().zip(&task.inputs);
        let needed = given.filter(|(input, _)| input.mode != InputMode::Reference);
        let needed = needed.map(|(_, object)| *object);
        let needed: Vec<ObjectKey> = needed.filter(|one| self.is_future_at_last(*one)).collect();
        if needed.is_empty() {
            return false;
        }
        let missing = needed.len() as u32;
        self.task_mut(key).state = State::Waiting { missing };
        self.wait_and_demand(now, key, &needed, actions);
        true
    }

    /// A task takes a kept result, or is known itself: what its inputs are known to be must not
    /// turn out to be something else.
    pub(crate) fn bind_inputs(&mut self, key: TaskKey) {
        if self.known.is_empty() {
            return;
        }
        for object in self.tasks[&key].inputs.clone() {
            let known = self.known_key(object);
            if let Some(known) = known.and_then(|key| self.known.get_mut(&key)) {
                known.is_binding = true;
            }
        }
    }

    /// A stand-in is to run: its task has not ended after all.
    pub(crate) fn on_stand_in_needed(&mut self, key: TaskKey) {
        if self.is_stand_in(&self.tasks[&key]) {
            self.counts.kept -= 1;
            self.counts.known -= 1;
            self.counts.finished -= 1;
            self.counts.recomputed += 1;
            self.functions.on_stand_in_needed(&self.tasks[&key]);
            self.task_mut(key).course.rerun = Some(Box::new(RerunReason::BytesRemoved));
        }
    }

    /// What a stand-in prints, or has others do, is not in the output.
    pub(crate) fn bind_outputs(&mut self, key: TaskKey) {
        for output in &self.tasks[&key].outputs {
            if let Some(known) = self.known.get_mut(output) {
                known.is_binding = true;
            }
        }
    }

    /// A known object has become this.
    pub(crate) fn compare_known(
        &mut self,
        now: Micros,
        object: ObjectKey,
        state: &ObjectState,
        actions: &mut Vec<Action>,
    ) {
        let Some(known) = self.known.remove(&object) else {
            return;
        };
        let ObjectState::Ready(stored) = state else {
            return;
        };
        if known.is(&stored.value) {
            return;
        }
        if known.is_binding {
            let failure = known.differs(&stored.value.content);
            self.differing.get_or_insert_with(|| Box::new(failure));
        } else {
            self.look_up_again(now, object, actions);
        }
    }

    /// Lookups under way were made with what an object was known to be, which was wrong.
    fn look_up_again(&mut self, now: Micros, object: ObjectKey, actions: &mut Vec<Action>) {
        let target = self.objects.target(object);
        let is_given = |task: &Task| {
            let mut inputs = task.inputs.iter();
            inputs.any(|input| self.objects.target(*input) == target)
        };
        let asked = self.tasks.iter();
        let asked = asked.filter(|(_, task)| task.state == State::LookedUp && is_given(task));
        let asked: Vec<TaskKey> = asked.map(|(key, _)| key).collect();
        for key in asked {
            self.task_mut(key).begin_attempt();
            self.offer_or_look_up(now, key, actions);
        }
    }

    /// Fails the job if a result differs from which something follows.
    pub(crate) fn look_at_differing(&mut self, now: Micros, actions: &mut Vec<Action>) {
        if let Some(failure) = self.differing.take() {
            self.on_job_cancelled(now, *failure, actions);
        }
    }

    /// Forgets what objects were known to be that are gone; now and then.
    fn forget_unneeded_known(&mut self) {
        if self.known.len().is_power_of_two() {
            let objects = &self.objects;
            self.known.retain(|key, _| objects.get(*key).is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ciel_model::{AttemptNumber, Class, Descriptor, Input};

    use super::*;
    use crate::event::{Continuation, Event, Output, Step, Wait};
    use crate::for_tests::{FIRST, ROOT, block_for, parent_of, place, tell};

    const MAKER: TaskKey = TaskKey(1);
    const TAKER: TaskKey = TaskKey(2);
    /// The task that stands in for the first one.
    const STAND_IN: TaskKey = TaskKey(3);

    /// A root that spawned a command and another one that takes its output; both are looked up.
    fn pair() -> Graph {
        let mut graph = parent_of(0);
        for (action, inputs) in [(0, Vec::new()), (1, vec![Input::value(Handle(0))])] {
            let descriptor =
                Descriptor::plain("shell", Class::Process, "sort", Vec::new()).with(|it| {
                    it.keeping = Keeping::Takes;
                    it.inputs = inputs;
                });
            let step = Step::Spawn {
                action,
                first: Handle(action as u32),
                descriptor: Arc::new(descriptor),
            };
            let (task, attempt) = (ROOT, FIRST);
            let event = Event::TaskStepped {
                task,
                attempt,
                step,
            };
            tell(&mut graph, event);
        }
        graph
    }

    fn bytes(text: &'static str) -> Value<Handle> {
        Value::inline(Form::Bytes, text)
    }

    fn known(graph: &mut Graph, task: TaskKey, printed: bool) -> Vec<Action> {
        let event = Event::ResultKnown {
            task,
            attempt: FIRST,
            outputs: vec![bytes("known")],
            printed,
        };
        let actions = tell(graph, event);
        graph.check_all();
        actions
    }

    fn found(graph: &mut Graph, task: TaskKey, attempt: u32) -> Vec<Action> {
        let event = Event::ResultFound {
            task,
            attempt: AttemptNumber(attempt),
            outputs: vec![bytes("taken")],
            printed: false,
        };
        tell(graph, event)
    }

    fn missing(graph: &mut Graph, task: TaskKey) -> Vec<Action> {
        let event = Event::ResultMissing {
            task,
            attempt: FIRST,
            reason: Box::new(RerunReason::New),
        };
        tell(graph, event)
    }

    /// The stand-in runs, and gives that.
    fn give(graph: &mut Graph, text: &'static str, printed: bool) -> Vec<Action> {
        place(graph, STAND_IN);
        let event = Event::TaskFinished {
            task: STAND_IN,
            attempt: FIRST,
            outputs: vec![Output::Value(bytes(text))],
            printed,
            audit: None,
        };
        let actions = tell(graph, event);
        graph.check_all();
        actions
    }

    fn asks(actions: &[Action]) -> Vec<TaskKey> {
        let asked = actions.iter().filter_map(|action| match action {
            Action::FindResult { task, inputs, .. } => Some((*task, inputs)),
            _ => None,
        });
        asked.map(|(task, _)| task).collect()
    }

    fn offers(actions: &[Action]) -> Vec<TaskKey> {
        let offered = actions.iter().filter_map(|action| match action {
            Action::Offer { task, .. } => Some(*task),
            _ => None,
        });
        offered.collect()
    }

    fn has_failed(graph: &Graph) -> bool {
        graph.verdict.is_decided()
    }

    #[test]
    fn taker_of_a_known_result_is_looked_up_and_nothing_runs() {
        let mut graph = pair();
        let actions = known(&mut graph, MAKER, true);
        assert_eq!((asks(&actions), offers(&actions)), (vec![TAKER], vec![]));
        assert!(offers(&found(&mut graph, TAKER, 0)).is_empty());
        let counts = graph.counts();
        assert_eq!((counts.kept, counts.known, counts.finished), (2, 1, 2));
        graph.check_all();
    }

    #[test]
    fn known_task_runs_when_its_taker_has_no_result_of_its_own() {
        let mut graph = pair();
        known(&mut graph, MAKER, false);
        let actions = missing(&mut graph, TAKER);
        graph.check_all();
        assert_eq!((offers(&actions), asks(&actions)), (vec![STAND_IN], vec![]));
        let actions = give(&mut graph, "known", false);
        assert_eq!(asks(&actions), [TAKER]);
        let counts = graph.counts();
        assert_eq!((counts.kept, counts.known, counts.recomputed), (0, 0, 1));
        assert_eq!((counts.finished, has_failed(&graph)), (1, false));
    }

    #[test]
    fn known_task_runs_when_a_program_waits_for_its_value() {
        for waits_before in [true, false] {
            let mut graph = pair();
            let wait =
                |graph: &mut Graph| block_for(graph, Handle(0), Wait::ALL, Continuation::Replay);
            let mut actions = Vec::new();
            if waits_before {
                actions.append(&mut wait(&mut graph));
            }
            actions.append(&mut known(&mut graph, MAKER, false));
            if !waits_before {
                actions.append(&mut wait(&mut graph));
            }
            assert_eq!(offers(&actions), [STAND_IN]);
            assert!(offers(&give(&mut graph, "known", false)).contains(&ROOT));
        }
    }

    #[test]
    fn other_result_fails_the_job_if_something_follows_from_the_known_one() {
        // Whether the known one printed, whether the taker took a result, whether the other one
        // prints; and what becomes of the job.
        let table = [
            (false, false, false, false),
            (true, false, false, true),
            (false, true, false, true),
            (false, false, true, true),
        ];
        for row in table {
            let (printed, is_taken, prints, fails) = row;
            let mut graph = pair();
            known(&mut graph, MAKER, printed);
            match is_taken {
                true => drop(found(&mut graph, TAKER, 0)),
                false => drop(missing(&mut graph, TAKER)),
            }
            block_for(&mut graph, Handle(0), Wait::ALL, Continuation::Replay);
            give(&mut graph, "other", prints);
            assert_eq!(has_failed(&graph), fails, "{row:?}");
        }
    }

    #[test]
    fn answer_to_a_lookup_by_a_wrong_digest_is_stale() {
        let mut graph = pair();
        known(&mut graph, MAKER, false);
        block_for(&mut graph, Handle(0), Wait::ALL, Continuation::Replay);
        let actions = give(&mut graph, "other", false);
        assert_eq!(asks(&actions), [TAKER]);
        found(&mut graph, TAKER, 0);
        assert!(graph.awaits_result(TAKER, AttemptNumber(1)));
        found(&mut graph, TAKER, 1);
        assert_eq!((graph.counts().finished, has_failed(&graph)), (2, false));
        graph.check_all();
    }

    #[test]
    fn known_results_outlive_the_engine_and_are_forgotten_with_their_last_holder() {
        let mut graph = pair();
        known(&mut graph, MAKER, false);
        let (policy, lost) = (Default::default(), Vec::new());
        let actions = tell(&mut graph, Event::EngineLost { policy, lost });
        assert_eq!(asks(&actions), [TAKER]);
        graph.check_all();
        found(&mut graph, TAKER, 0);
        let (task, attempt) = (ROOT, AttemptNumber(1));
        tell(&mut graph, Event::TaskPlaced { task, attempt });
        let outputs = vec![Output::Value(bytes("done"))];
        let event = Event::TaskFinished {
            task,
            attempt,
            outputs,
            printed: false,
            audit: None,
        };
        let actions = tell(&mut graph, event);
        let has_ended = |action: &Action| matches!(action, Action::JobEnded(_));
        assert!(actions.iter().any(has_ended), "{actions:?}");
        assert!(!graph.has_known() && graph.tasks.is_empty());
    }
}
