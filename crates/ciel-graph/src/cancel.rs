//! Cancellation and deadlines: attempts that do not end by themselves.
//!
//! It does not know who else holds what a task wants to cancel. Read next: `holders`, which does.

use ciel_model::{Failure, FailureKind, Mark, Micros, ObjectKey, TaskKey};

use crate::event::Action;
use crate::graph::Graph;
use crate::objects::ObjectState;
use crate::task::{Rest, State};

impl Graph {
    pub(crate) fn on_cancel_requested(
        &mut self,
        now: Micros,
        key: TaskKey,
        actions: &mut Vec<Action>,
    ) {
        if self.tasks.contains_key(&key) {
            let beneath = self.beneath(key);
            for key in std::iter::once(key).chain(beneath) {
                self.cancel_task(now, key, ("it was cancelled", Rest::Cut), actions);
            }
        }
    }

    /// A running task cancels those of `objects` that are not resolved and that it alone holds,
    /// with all descendants of their tasks that no other task can name.
    pub(crate) fn cancel_objects(
        &mut self,
        now: Micros,
        canceller: TaskKey,
        objects: &[ObjectKey],
        actions: &mut Vec<Action>,
    ) {
        for key in self.only_held_by(canceller, objects) {
            self.cancel_task(now, key, ("it was cancelled", Rest::Cut), actions);
        }
    }

    /// Whether an object will never be there because its task was cancelled.
    pub(crate) fn is_cancelled(&self, object: ObjectKey) -> bool {
        match self.objects.settled_state(object) {
            ObjectState::Failed { failure, .. } => failure.kind == FailureKind::Cancelled,
            ObjectState::Ready(_)
            | ObjectState::Future { .. }
            | ObjectState::Alias(_)
            | ObjectState::Dropped => false,
        }
    }

    /// Ends all tasks between two marks.
    pub(crate) fn cancel_between(
        &mut self,
        now: Micros,
        begin: Mark,
        end: Mark,
        why: &str,
        actions: &mut Vec<Action>,
    ) {
        for key in self.between(begin, end) {
            self.cancel_task(now, key, (why, Rest::Stopped), actions);
        }
    }

    /// All that the strand of a task has spawned, directly or not.
    pub(crate) fn beneath(&self, key: TaskKey) -> Vec<TaskKey> {
        let strand = &self.tasks[&key].strand;
        self.between(strand.begin, strand.end)
    }

    fn between(&self, begin: Mark, end: Mark) -> Vec<TaskKey> {
        let between =
            |mark: Mark| self.order.precedes(begin, mark) && self.order.precedes(mark, end);
        let tasks = self.tasks.iter();
        let between = tasks.filter(|(_, task)| between(task.strand.begin));
        between.map(|(key, _)| key).collect()
    }

    /// Ends one task, whatever its state; `why`, and what becomes of the output after it.
    pub(crate) fn cancel_task(
        &mut self,
        now: Micros,
        key: TaskKey,
        (why, rest): (&str, Rest),
        actions: &mut Vec<Action>,
    ) {
        let Some(task) = self.tasks.get(&key) else {
            return;
        };
        let attempt = task.attempt;
        match &task.state {
            // The task in whose place it stands has ended.
            State::Dormant if self.is_stand_in(task) => return,
            State::Dormant => self.live += 1,
            State::Waiting { .. } | State::Twin { .. } | State::LookedUp | State::Held { .. } => {}
            State::Ready { resume } => {
                let resumed = resume.is_some();
                actions.push(Action::Withdraw { task: key, attempt });
                if resumed {
                    actions.push(Action::Stop { task: key, attempt });
                }
            }
            State::Running { .. } | State::Suspended { .. } => {
                actions.push(Action::Stop { task: key, attempt });
            }
        }
        let failure = Failure::new(FailureKind::Cancelled, self.tasks[&key].label(), why);
        self.end_failed(now, key, failure, rest, actions);
    }

    /// Ends a task none of whose code has run, because the job has failed before it.
    pub(crate) fn cancel_unstarted(
        &mut self,
        now: Micros,
        key: TaskKey,
        actions: &mut Vec<Action>,
    ) {
        let why = ("the job failed before it started", Rest::Stopped);
        self.cancel_task(now, key, why, actions);
    }

    /// Ends all work after `mark` that has not started.
    pub(crate) fn cancel_unstarted_after(
        &mut self,
        now: Micros,
        mark: Mark,
        actions: &mut Vec<Action>,
    ) {
        let all: Vec<TaskKey> = self
            .tasks
            .iter()
            .filter(|(_, task)| !task.has_started() && task.state != State::Dormant)
            .filter(|(_, task)| self.order.precedes(mark, task.strand.end))
            .map(|(key, _)| key)
            .collect();
        for key in all {
            self.cancel_unstarted(now, key, actions);
        }
    }

    pub(crate) fn on_ticked(&mut self, now: Micros, actions: &mut Vec<Action>) {
        while let Some((at, key)) = self.deadlines.first().copied()
            && at <= now
        {
            let task = &self.tasks[&key];
            if matches!(task.state, State::Suspended { .. }) {
                self.on_wait_expired(now, key, actions);
                continue;
            }
            let attempt = task.attempt;
            let limit = task.descriptor.options.timeout_us.unwrap_or(0);
            let message = format!("it exceeded its time limit of {}", seconds(limit));
            let failure = Failure::new(FailureKind::Timeout, task.label(), message)
                .with_hint("raise the limit with the option timeout, or --timeout for all tasks");
            actions.push(Action::Stop { task: key, attempt });
            self.fail_attempt(now, key, failure, actions);
        }
        self.look_for_stragglers(now, actions);
    }
}

fn seconds(microseconds: u64) -> String {
    let text = format!(
        "{}.{:06}",
        microseconds / 1_000_000,
        microseconds % 1_000_000
    );
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}
