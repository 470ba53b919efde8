//! Duplicates: a pure task that runs a second time, in another process.
//!
//! For a check both runs come to their end, and the shell compares what they gave; the job
//! continues with the first result. For a straggler the run that ends first gives the result, and
//! the other one is stopped, so there is nothing to compare; unless the second run ends first and
//! cannot give the result, because it printed. A duplicate is a task of its own, last in serial
//! order, so it runs where nothing else is ready; nobody can name its outputs, and what it prints
//! is dropped. It spawns nothing: one that tries to is given up. It does not know which tasks run
//! for long. Read next: `stragglers`, which does.

use std::sync::Arc;

use ciel_model::{
    Content, Descriptor, Digest, Failure, FailureKind, Keeping, Micros, ObjectKey, Options, TaskKey,
};

use crate::event::{Action, Output};
use crate::graph::Graph;
use crate::objects::{ObjectState, Released};
use crate::second_runs::{Comparison, Duplicate, Given, Purpose};
use crate::story::Moment;
use crate::task::{Rest, State, Strand};

impl Graph {
    /// A task is about to be offered for the first time: it is duplicated if all are checked.
    pub(crate) fn duplicate_for_check(
        &mut self,
        now: Micros,
        key: TaskKey,
        actions: &mut Vec<Action>,
    ) {
        if self.policy.check && self.may_duplicate(key) {
            self.start_duplicate(now, key, Purpose::Check, actions);
        }
    }

    /// Whether a second run of a task could give its result.
    pub(crate) fn may_duplicate(&self, key: TaskKey) -> bool {
        let descriptor = &self.tasks[&key].descriptor;
        let is_apart = descriptor.class != ciel_model::Class::Coordination;
        let is_known = self.duplicates.contains(key) || self.duplicates.has(key);
        // What streams is not there as a whole.
        let is_whole = descriptor.streams.outputs.is_empty() && !self.tasks[&key].takes_streams();
        is_whole && descriptor.purity.is_pure() && is_apart && !is_known && self.remaking.is_none()
    }

    /// Runs a task a second time.
    pub(crate) fn start_duplicate(
        &mut self,
        now: Micros,
        original: TaskKey,
        purpose: Purpose,
        actions: &mut Vec<Action>,
    ) {
        let task = &self.tasks[&original];
        let name = task.name.duplicate();
        let (label, inputs, firsts) = (task.label(), task.inputs.clone(), task.outputs.clone());
        let descriptor = Arc::new(second(&task.descriptor, purpose));
        let site = descriptor.site.clone();
        let (begun_at, attempt) = (task.course.begun_at, task.attempt);
        let begin = self.order.push_last();
        let end = self.order.push_last();
        let strand = Strand {
            next: begun_at,
            ..self.new_strand(name, begin, end)
        };
        // Observers and counts hear of tasks, not of their second runs.
        let key = TaskKey(self.next_task);
        self.duplicates.originals.insert(key, original);
        self.new_task(
            now,
            name,
            descriptor,
            strand,
            Some(Arc::new(label.clone())),
            inputs.into(),
        );
        self.counts.spawned -= 1;
        let numbers = 0..firsts.len() as u64;
        let seconds: Vec<ObjectKey> = numbers
            .map(|index| self.objects.create(name.output(index), key, 1))
            .collect();
        self.task_mut(key).outputs = seconds.clone();
        let (mut outputs, mut others) = (Vec::new(), Vec::new());
        for (first, second) in firsts.into_iter().zip(seconds) {
            self.objects.ask(second);
            // What nobody can name any more is not compared, nor what a predecessor has published.
            let is_its_own = self.objects.get(first).is_some() && self.is_future(first);
            match is_its_own {
                true => {
                    self.objects.hold(first);
                    outputs.push((first, second));
                }
                false => others.push(second),
            }
        }
        let duplicate = Duplicate {
            purpose,
            label,
            site,
            attempt,
            task: Some(key),
            outputs,
            others,
            printed: [None; 2],
            is_placed: false,
            is_committed: false,
            failure: None,
        };
        self.duplicates.of.insert(original, duplicate);
        self.live += 1;
        self.admit(now, key, actions);
    }

    /// A second run has ended well.
    pub(crate) fn on_duplicate_finished(
        &mut self,
        now: Micros,
        key: TaskKey,
        outputs: Vec<Output>,
        (printed, digest): (bool, Option<Digest>),
        actions: &mut Vec<Action>,
    ) {
        let original = self.duplicates.originals[&key];
        let states = match self.states_of(key, outputs, actions) {
            Ok(states) => states,
            Err(failure) => return self.fail_task(now, key, *failure, actions),
        };
        // What it published before is an object of its own.
        let is_whole = states.iter().all(Option::is_some);
        if is_whole && self.overtakes(original, printed) {
            return self.overtake(now, (key, original), states, actions);
        }
        self.note(now, key, Moment::Finished);
        let seconds = self.tasks[&key].outputs.clone();
        for (second, state) in seconds.into_iter().zip(states) {
            if let Some(state) = state {
                self.settle_object(now, second, state, actions);
            }
        }
        self.end_duplicate(now, key, actions);
        self.duplicate_mut(original).printed[1] = digest;
        self.conclude(original, actions);
        self.judge(now, actions);
    }

    /// Whether the second run of a task may give its result: the first run has given nothing yet
    /// that others know, and the second has printed nothing.
    fn overtakes(&self, original: TaskKey, printed: bool) -> bool {
        let duplicate = &self.duplicates.of[&original];
        let Some(task) = self.tasks.get(&original) else {
            return false;
        };
        duplicate.purpose == Purpose::Straggler
            && !printed
            && task.attempt == duplicate.attempt
            && matches!(task.state, State::Running { .. })
            && task.is_silent()
    }

    /// The second run gives the result of the task, and the first is stopped.
    fn overtake(
        &mut self,
        now: Micros,
        (key, original): (TaskKey, TaskKey),
        states: Vec<Option<ObjectState>>,
        actions: &mut Vec<Action>,
    ) {
        let attempt = self.tasks[&original].attempt;
        actions.push(Action::Stop {
            task: original,
            attempt,
        });
        self.note(now, key, Moment::Finished);
        self.end_duplicate(now, key, actions);
        self.forget_duplicate(original, actions);
        self.counts.overtaken += 1;
        self.note(now, original, Moment::Overtaken);
        self.stop_clock(now, original);
        self.commit(now, original, states, (false, None), actions);
    }

    /// A second run has failed or was cancelled; true if the task is one, which has ended so.
    pub(crate) fn on_duplicate_failed(
        &mut self,
        now: Micros,
        key: TaskKey,
        failure: &Failure,
        actions: &mut Vec<Action>,
    ) -> bool {
        let Some(original) = self.duplicates.originals.get(&key).copied() else {
            return false;
        };
        let is_cancelled = failure.kind == FailureKind::Cancelled;
        let duplicate = &self.duplicates.of[&original];
        let is_check = duplicate.purpose == Purpose::Check;
        // Whoever takes the first run out of the graph is in the midst of it, and judges then.
        let is_alone = duplicate.is_committed || self.tasks.contains_key(&original);
        self.note(
            now,
            key,
            match is_cancelled {
                true => Moment::Cancelled,
                false => Moment::Failed,
            },
        );
        self.end_duplicate(now, key, actions);
        match is_check && !is_cancelled {
            true => {
                let duplicate = self.duplicate_mut(original);
                duplicate.failure = Some(Arc::new(failure.clone()));
                let outputs = duplicate.take_outputs();
                self.release_outputs(outputs, actions);
                self.conclude(original, actions);
            }
            false => self.forget_duplicate(original, actions),
        }
        if is_alone {
            self.judge(now, actions);
        }
        true
    }

    /// The first run of a task has ended well, and its outputs are settled.
    pub(crate) fn on_original_committed(
        &mut self,
        now: Micros,
        key: TaskKey,
        printed: Option<Digest>,
        actions: &mut Vec<Action>,
    ) {
        let Some(duplicate) = self.duplicates.of.get_mut(&key) else {
            return;
        };
        duplicate.is_committed = true;
        duplicate.printed[0] = printed;
        match (duplicate.purpose, duplicate.task) {
            (Purpose::Check | Purpose::Straggler, None) => self.conclude(key, actions),
            (Purpose::Check, Some(_)) => {}
            (Purpose::Straggler, Some(_)) => self.drop_duplicate(now, key, actions),
        }
    }

    /// A task is gone: without a result there is nothing to compare.
    pub(crate) fn on_original_gone(
        &mut self,
        now: Micros,
        key: TaskKey,
        actions: &mut Vec<Action>,
    ) {
        let duplicate = self.duplicates.of.get(&key);
        if duplicate.is_some_and(|duplicate| !duplicate.is_committed) {
            self.drop_duplicate(now, key, actions);
        }
    }

    /// The second run of a task is not wanted any more.
    pub(crate) fn drop_duplicate(
        &mut self,
        now: Micros,
        original: TaskKey,
        actions: &mut Vec<Action>,
    ) {
        let Some(duplicate) = self.duplicates.of.get(&original) else {
            return;
        };
        match duplicate.task {
            Some(key) => {
                let why = ("the result of its first run will do", Rest::Stopped);
                self.cancel_task(now, key, why, actions);
            }
            None => self.forget_duplicate(original, actions),
        }
    }

    /// A second run would spawn tasks: those would run twice, too.
    pub(crate) fn give_duplicate_up(
        &mut self,
        now: Micros,
        key: TaskKey,
        actions: &mut Vec<Action>,
    ) {
        self.cancel_task(now, key, ("it spawns tasks", Rest::Stopped), actions);
    }

    /// Second runs are not repeated by another process.
    pub(crate) fn drop_duplicates(&mut self, now: Micros, actions: &mut Vec<Action>) {
        let all: Vec<TaskKey> = self.duplicates.of.keys().copied().collect();
        for original in all {
            self.drop_duplicate(now, original, actions);
        }
    }

    /// Compares both runs when both have ended.
    fn conclude(&mut self, original: TaskKey, actions: &mut Vec<Action>) {
        let duplicate = &self.duplicates.of[&original];
        if duplicate.task.is_some() || !duplicate.is_committed {
            return;
        }
        let comparison = self.compare(duplicate);
        if duplicate.purpose == Purpose::Check {
            self.counts.checked += 1;
        }
        if let Some(comparison) = comparison {
            actions.push(Action::Compare(Box::new(comparison)));
        }
        self.forget_duplicate(original, actions);
    }

    /// What is not known to be equal, if anything.
    fn compare(&self, duplicate: &Duplicate) -> Option<Comparison> {
        let failure = duplicate.failure.clone();
        let is_whole = failure.is_none();
        let pairs = (0..).zip(&duplicate.outputs).filter(|_| is_whole);
        let differ = pairs.filter_map(|(index, (first, second))| {
            let (first, second) = (self.given(*first)?, self.given(*second)?);
            (!is_equal(&first, &second)).then_some((index, first, second))
        });
        let outputs: Vec<(u32, Given, Given)> = differ.collect();
        let [first, second] = duplicate.printed;
        // What a straggler prints is known only if something else wants to know it.
        let is_told = duplicate.purpose == Purpose::Check || (first.is_some() && second.is_some());
        let printed = (is_whole && is_told && first != second).then_some(duplicate.printed);
        let is_news = !outputs.is_empty() || printed.is_some() || failure.is_some();
        is_news.then(|| Comparison {
            task: duplicate.label.clone(),
            site: duplicate.site.clone(),
            outputs,
            printed,
            failure,
        })
    }

    /// The value of an object; none if it has none of its own.
    fn given(&self, object: ObjectKey) -> Option<Given> {
        match self.objects.settled_state(object) {
            ObjectState::Ready(stored) => {
                Some((stored.value.form.clone(), stored.value.content.clone()))
            }
            ObjectState::Future { .. }
            | ObjectState::Failed { .. }
            | ObjectState::Alias(_)
            | ObjectState::Dropped => None,
        }
    }

    /// Takes a second run out of the graph; its record stays.
    fn end_duplicate(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        let strand = self.dismiss(now, key, None, actions);
        self.order.remove(strand.begin);
        self.order.remove(strand.end);
        if let Some(original) = self.duplicates.originals.remove(&key) {
            self.duplicate_mut(original).task = None;
        }
    }

    fn forget_duplicate(&mut self, original: TaskKey, actions: &mut Vec<Action>) {
        if let Some(mut duplicate) = self.duplicates.of.remove(&original) {
            self.release_outputs(duplicate.take_outputs(), actions);
        }
    }

    fn release_outputs(&mut self, outputs: Vec<ObjectKey>, actions: &mut Vec<Action>) {
        let mut released = Released::default();
        self.release_all(outputs, &mut released);
        self.clear(released, actions);
    }

    pub(crate) fn duplicate_mut(&mut self, original: TaskKey) -> &mut Duplicate {
        let duplicate = self.duplicates.of.get_mut(&original);
        duplicate.expect("a second run has its record until it has ended")
    }
}

/// What the second run of a task runs: a check is done by a worker that runs nothing else.
fn second(descriptor: &Descriptor, purpose: Purpose) -> Descriptor {
    let retries = match purpose {
        Purpose::Check => descriptor.options.retries,
        Purpose::Straggler => 0,
    };
    let options = Options {
        retries,
        ..(*descriptor.options).clone()
    };
    descriptor.clone().with(|it| {
        it.class = match purpose {
            Purpose::Check => descriptor.class.apart(),
            Purpose::Straggler => descriptor.class.clone(),
        };
        it.options = Arc::new(options);
        it.keeping = Keeping::Never;
    })
}

/// Whether two values are known to be equal.
fn is_equal((form, content): &Given, (other_form, other): &Given) -> bool {
    form == other_form
        && match (content, other) {
            (Content::Inline(bytes), Content::Inline(other)) => bytes == other,
            (Content::File { digest, .. }, Content::File { digest: other, .. }) => {
                digest.is_some() && digest == other
            }
            (Content::Inline(_), Content::File { .. })
            | (Content::File { .. }, Content::Inline(_)) => false,
        }
}
