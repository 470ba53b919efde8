//! Results that earlier runs have kept: a task that may take one is looked up before it is offered.
//!
//! The answer is an event like any other, so a replay or a resumed run does not depend on what is
//! kept by then. It does not know keys or stores. Read next: `settle`, which commits.

use ciel_model::{
    AttemptNumber, Class, Content, Form, Handle, InputMode, Keeping, Micros, Name, RerunReason,
    TaskKey, Value,
};

use crate::event::{Action, Event};
use crate::graph::Graph;
use crate::objects::ObjectState;
use crate::story::Moment;
use crate::task::{State, Task};

impl Graph {
    /// A task has all that it needs and has not run yet: it is looked up if it may take a kept
    /// result, and otherwise offered.
    pub(crate) fn offer_or_look_up(
        &mut self,
        now: Micros,
        key: TaskKey,
        actions: &mut Vec<Action>,
    ) {
        let task = &self.tasks[&key];
        let takes = task.descriptor.keeping == Keeping::Takes && !self.is_stand_in(task);
        let inputs = self.plain_inputs(task).filter(|_| takes);
        self.forget_lookup(key);
        let Some(inputs) = inputs else {
            return self.offer_or_wait(now, key, actions);
        };
        self.lookups += 1;
        self.task_mut(key).state = State::LookedUp;
        actions.push(self.query(key, &self.tasks[&key], inputs));
    }

    /// A task that has to run is offered when all that it needs is there.
    fn offer_or_wait(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        if !self.await_known(now, key, actions) {
            // It is kept as one that was given what it was looked up with.
            self.bind_inputs(key);
            self.task_mut(key).state = State::Ready { resume: None };
            self.offer(key, actions);
        }
    }

    /// A task waits no longer for the answer, if it did.
    pub(crate) fn forget_lookup(&mut self, key: TaskKey) {
        self.lookups -= u64::from(self.tasks[&key].state == State::LookedUp);
    }

    /// The names of a task and of what it spawns as that action, if results of it are kept.
    pub fn kept_parent(&self, key: TaskKey, action: u64) -> Option<(Name, Name)> {
        let task = self.tasks.get(&key)?;
        let takes_part = task.descriptor.keeping != Keeping::Never;
        takes_part.then(|| (task.name, self.child_names.of(task.strand.name, action)))
    }

    /// The name of the object that a task knows by a handle.
    pub fn object_name(&self, key: TaskKey, handle: Handle) -> Option<Name> {
        let object = self.tasks.get(&key)?.table.get(handle)?;
        Some(self.objects.get(object)?.name)
    }

    /// The query for the result of a task, if all that it is given is known by its content.
    pub fn query_for(&self, key: TaskKey) -> Option<Action> {
        let task = self.tasks.get(&key)?;
        Some(self.query(key, task, self.plain_inputs(task)?))
    }

    fn query(&self, key: TaskKey, task: &Task, inputs: Vec<(Form, Content)>) -> Action {
        Action::FindResult {
            task: key,
            attempt: task.attempt,
            strand: task.strand.key,
            label: task.label(),
            after: task.strand.next,
            descriptor: task.descriptor.clone(),
            inputs,
        }
    }

    /// Whether the result of any task is being looked up.
    pub fn awaits_results(&self) -> bool {
        self.lookups > 0
    }

    /// What a task is given, if all of that is known by its content.
    fn plain_inputs(&self, task: &Task) -> Option<Vec<(Form, Content)>> {
        // A task on a thread of the engine reads what it is given by reference. What another one
        // does with a reference is not known.
        let is_read = task.descriptor.class == Class::Coordination;
        let by_value = |mode| mode != InputMode::Reference || is_read;
        let mut given = task.descriptor.inputs.iter();
        if !given.all(|it| by_value(it.mode)) {
            return None;
        }
        let plain = |object| match self.objects.settled_state(object) {
            ObjectState::Ready(stored) if stored.value.references.is_empty() => {
                Some((stored.value.form.clone(), stored.value.content.clone()))
            }
            ObjectState::Future { .. } => {
                let (form, content) = self.known_content(object)?;
                Some((form.clone(), content.clone()))
            }
            _ => None,
        };
        task.inputs.iter().map(|object| plain(*object)).collect()
    }

    /// Whether that attempt has been looked up and not yet answered, or given up.
    pub fn awaits_result(&self, key: TaskKey, attempt: AttemptNumber) -> bool {
        let task = self.tasks.get(&key);
        task.is_some_and(|task| task.attempt == attempt && task.state == State::LookedUp)
    }

    /// What came of a lookup.
    pub(crate) fn on_looked_up(&mut self, now: Micros, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::ResultFound {
                task,
                attempt,
                outputs,
                printed,
            } => self.on_result_found(now, (task, attempt), outputs, printed, actions),
            Event::ResultKnown {
                task,
                attempt,
                outputs,
                printed,
            } => self.on_result_known(now, (task, attempt), outputs, printed, actions),
            Event::ResultMissing {
                task,
                attempt,
                reason,
            } => self.on_result_missing(now, (task, attempt), reason, actions),
            other => unreachable!("{other:?} is no answer to a lookup"),
        }
    }

    fn on_result_found(
        &mut self,
        now: Micros,
        (key, attempt): (TaskKey, AttemptNumber),
        outputs: Vec<Value<Handle>>,
        printed: bool,
        actions: &mut Vec<Action>,
    ) {
        if !self.may_take((key, attempt), &outputs) {
            let files = outputs.iter().filter_map(|output| output.content.file());
            actions.extend(files.map(|(name, _)| Action::DropObject(name)));
            let reason = Box::new(RerunReason::Damaged);
            return self.on_result_missing(now, (key, attempt), reason, actions);
        }
        self.note(now, key, Moment::Kept);
        self.bind_inputs(key);
        self.counts.kept += 1;
        let name = self.tasks[&key].name;
        let mut states = Vec::with_capacity(outputs.len());
        for (index, output) in (0..).zip(outputs) {
            let value = Value {
                form: output.form,
                content: output.content,
                references: Vec::new(),
            };
            let origin = self.origin_of(key, index, &value.content);
            states.push(Some(self.objects.store(
                name.output(index.into()),
                value,
                origin,
            )));
        }
        self.commit(now, key, states, (printed, None), actions);
    }

    /// Whether an attempt is looked up, and these can be its outputs.
    fn may_take(
        &self,
        (key, attempt): (TaskKey, AttemptNumber),
        outputs: &[Value<Handle>],
    ) -> bool {
        self.awaits_result(key, attempt) && self.tasks[&key].outputs.len() == outputs.len()
    }

    fn on_result_known(
        &mut self,
        now: Micros,
        (key, attempt): (TaskKey, AttemptNumber),
        outputs: Vec<Value<Handle>>,
        printed: bool,
        actions: &mut Vec<Action>,
    ) {
        if !self.may_take((key, attempt), &outputs) {
            let reason = Box::new(RerunReason::Damaged);
            return self.on_result_missing(now, (key, attempt), reason, actions);
        }
        self.end_as_known(now, key, outputs, printed, actions);
    }

    fn on_result_missing(
        &mut self,
        now: Micros,
        (key, attempt): (TaskKey, AttemptNumber),
        reason: Box<RerunReason>,
        actions: &mut Vec<Action>,
    ) {
        if self.awaits_result(key, attempt) {
            self.forget_lookup(key);
            let task = self.task_mut(key);
            task.course.rerun = Some(reason);
            self.offer_or_wait(now, key, actions);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ciel_model::{Class, Descriptor, Name};

    use super::*;
    use crate::event::{Policy, Step};
    use crate::for_tests::{FIRST, ROOT, parent_of, tell};

    const CHILD: TaskKey = TaskKey(1);

    /// A root that spawned a command which takes kept results; what the graph wants done.
    fn looked_up() -> (Graph, Vec<Action>) {
        let mut graph = parent_of(0);
        let descriptor = Descriptor::plain("shell", Class::Process, "sort", b"sort".to_vec())
            .with(|it| it.keeping = Keeping::Takes);
        let step = Step::Spawn {
            action: 0,
            first: Handle(0),
            descriptor: Arc::new(descriptor),
        };
        let (task, attempt) = (ROOT, FIRST);
        let event = Event::TaskStepped {
            task,
            attempt,
            step,
        };
        let actions = tell(&mut graph, event);
        (graph, actions)
    }

    fn found() -> Event {
        let content = Content::File {
            name: Name(9),
            length: 3,
            digest: None,
        };
        Event::ResultFound {
            task: CHILD,
            attempt: FIRST,
            outputs: vec![Value {
                form: Form::Bytes,
                content,
                references: Vec::new(),
            }],
            printed: true,
        }
    }

    fn asks(actions: &[Action]) -> bool {
        let asks = |action: &Action| matches!(action, Action::FindResult { .. });
        actions.iter().any(asks)
    }

    fn offers(actions: &[Action]) -> bool {
        let is_offer =
            |action: &Action| matches!(action, Action::Offer { task, .. } if *task == CHILD);
        actions.iter().any(is_offer)
    }

    #[test]
    fn task_that_takes_kept_results_is_looked_up_before_it_is_offered() {
        let (mut graph, actions) = looked_up();
        assert!(asks(&actions) && !offers(&actions));
        let missing = Event::ResultMissing {
            task: CHILD,
            attempt: FIRST,
            reason: Box::new(RerunReason::New),
        };
        assert!(offers(&tell(&mut graph, missing.clone())));
        assert!(tell(&mut graph, missing).is_empty());
        assert!(!graph.awaits_results());
    }

    #[test]
    fn found_result_settles_the_outputs_and_ends_the_task() {
        let (mut graph, _) = looked_up();
        assert!(graph.awaits_results());
        let actions = tell(&mut graph, found());
        let ended =
            |action: &Action| matches!(action, Action::Ended(summary) if summary.failure.is_none());
        assert!(actions.iter().any(ended));
        assert_eq!((graph.counts().kept, graph.counts().finished), (1, 1));
        assert!(graph.is_ready(ROOT, FIRST, Handle(0)));
        assert!(!graph.awaits_results());
        graph.check_all();
    }

    #[test]
    fn result_of_a_cancelled_task_is_dropped() {
        let (mut graph, _) = looked_up();
        tell(&mut graph, Event::CancelRequested { task: CHILD });
        assert!(!graph.awaits_results());
        assert_eq!(tell(&mut graph, found()), [Action::DropObject(Name(9))]);
        graph.check_all();
    }

    #[test]
    fn another_process_that_resumes_the_run_asks_again() {
        let (mut graph, _) = looked_up();
        let (policy, lost) = (Policy::default(), Vec::new());
        let actions = tell(&mut graph, Event::EngineLost { policy, lost });
        assert!(asks(&actions) && !offers(&actions));
        graph.check_all();
    }
}
