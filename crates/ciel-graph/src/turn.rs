//! A task's turns: placed, running, blocked, woken.

use ciel_model::{
    Attempt, Failure, FailureKind, Handle, Micros, Needs, ObjectKey, Resolution, TaskKey, Value,
};

use crate::event::{Action, Assignment, Continuation, Entry};
use crate::graph::Graph;
use crate::objects::{ObjectState, Released};
use crate::spawn::Refusal;
use crate::story::Moment;
use crate::task::{Resume, State};

impl Graph {
    pub(crate) fn on_task_placed(
        &mut self,
        now: Micros,
        key: TaskKey,
        attempt: Attempt,
        actions: &mut Vec<Action>,
    ) {
        let Some(task) = self
            .tasks
            .get_mut(&key)
            .filter(|task| task.attempt == attempt)
        else {
            return;
        };
        let State::Ready { resume } = &mut task.state else {
            return;
        };
        let resume = resume.take();
        task.state = State::Running { since: now };
        task.story.add(
            now,
            if resume.is_some() {
                Moment::Resumed
            } else {
                Moment::Started
            },
        );
        if let Some(limit) = task.descriptor.options.timeout_us {
            let deadline = now + limit.saturating_sub(task.ran_us);
            task.deadline = Some(deadline);
            self.deadlines.insert((deadline, key));
        }
        let entry = match resume {
            None => Entry::Start(self.known_inputs(key)),
            Some(Resume {
                on,
                continuation: Continuation::Live,
            }) => Entry::Resume(self.answers(key, &on)),
            Some(Resume {
                on,
                continuation: Continuation::Saved(bytes),
            }) => Entry::Restore {
                bytes,
                answers: self.answers(key, &on),
            },
            Some(Resume {
                continuation: Continuation::Replay,
                ..
            }) => {
                self.rewind(key, actions);
                let inputs = self.known_inputs(key);
                Entry::Replay {
                    inputs,
                    facts: self.tasks[&key].facts.clone(),
                }
            }
        };
        actions.push(Action::Begin(Box::new(self.assignment(key, entry))));
    }

    fn assignment(&self, key: TaskKey, entry: Entry) -> Assignment {
        let task = &self.tasks[&key];
        Assignment {
            task: key,
            attempt: task.attempt,
            strand: task.strand.key,
            label: task.label(),
            descriptor: task.descriptor.clone(),
            entry,
        }
    }

    /// What is known of a task's inputs when it starts. A failure is told only to a task that
    /// needed that input, for to tell it is to be asked for it.
    fn known_inputs(&mut self, key: TaskKey) -> Vec<(Handle, Resolution)> {
        let descriptor = self.tasks[&key].descriptor.clone();
        let handles: Vec<Handle> = (0..descriptor.inputs.len() as u32).map(Handle).collect();
        let mut known = self.answers(key, &handles);
        known.retain(|(_, resolution)| match resolution {
            Resolution::Ready { .. } => true,
            Resolution::Failed(_) => descriptor.needs == Needs::Everything,
            Resolution::Future => false,
        });
        known
    }

    /// What became of `handles`; references inside values join the task's table, in this order.
    fn answers(&mut self, key: TaskKey, handles: &[Handle]) -> Vec<(Handle, Resolution)> {
        let mut answers = Vec::with_capacity(handles.len());
        for handle in handles {
            let object = self.tasks[&key].table[handle.0 as usize];
            answers.push((*handle, self.resolution(key, object)));
        }
        answers
    }

    pub(crate) fn resolution(&mut self, key: TaskKey, object: ObjectKey) -> Resolution {
        let stored = match self.objects.settled_state(object) {
            ObjectState::Future { .. } => return Resolution::Future,
            ObjectState::Failed { failure, .. } => return Resolution::Failed(failure.clone()),
            ObjectState::Ready(stored) => stored,
            ObjectState::Alias(_) => unreachable!("a settled state is never an alias"),
        };
        let (name, form, content) = (stored.name, stored.value.form, stored.value.content.clone());
        let inner = stored.value.references.clone();
        let task = self.tasks.get_mut(&key).expect("the asking task is there");
        let first = task.table.len() as u32;
        task.table.extend(&inner);
        for reference in &inner {
            self.objects.hold(*reference);
        }
        let references = (first..first + inner.len() as u32).map(Handle).collect();
        Resolution::Ready {
            name,
            value: Value {
                form,
                content,
                references,
            },
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    pub(crate) fn on_task_blocked(
        &mut self,
        now: Micros,
        key: TaskKey,
        attempt: Attempt,
        kept: Option<Vec<Handle>>,
        on: Vec<Handle>,
        continuation: Continuation,
        actions: &mut Vec<Action>,
    ) {
        if self.running(key, attempt).is_none() {
            return;
        }
        let kept = self
            .check_continuation(key, &continuation)
            .and_then(|()| kept.map(|kept| self.keys_of(key, &kept)).transpose());
        let waited = kept.and_then(|kept| {
            self.compact_table(key, kept, actions);
            self.keys_of(key, &on)
        });
        let objects = match waited {
            Ok(objects) => objects,
            Err(failure) => {
                actions.push(Action::Stop { task: key, attempt });
                return self.fail_attempt(now, key, *failure, actions);
            }
        };
        if self.tasks[&key].descriptor.replayable {
            self.task_mut(key).asked.extend(&objects);
        }
        // The task has left its place before what it wakes is offered.
        let mut woken = Vec::new();
        let missing = self.wait_and_demand(now, key, &objects, &mut woken);
        if missing == 0 && continuation == Continuation::Live {
            let answers = self.answers(key, &on);
            actions.push(Action::Continue {
                task: key,
                attempt,
                answers,
            });
            return;
        }
        self.stop_clock(now, key);
        let task = self.task_mut(key);
        task.story.add(now, Moment::Suspended);
        task.state = State::Suspended {
            missing,
            resume: Resume { on, continuation },
        };
        actions.push(Action::Suspend { task: key, attempt });
        actions.append(&mut woken);
        if missing == 0 {
            self.make_ready(now, key, actions);
        }
    }

    /// Only a strand whose spawns are recorded can go on by replay.
    fn check_continuation(&self, key: TaskKey, continuation: &Continuation) -> Result<(), Refusal> {
        let task = &self.tasks[&key];
        if *continuation != Continuation::Replay || task.descriptor.replayable {
            return Ok(());
        }
        let message = "it wants to go on by replay, but was not spawned as replayable";
        Err(Box::new(Failure::new(
            FailureKind::Refused,
            task.label(),
            message,
        )))
    }

    /// The table becomes `kept`, in that order.
    fn compact_table(
        &mut self,
        key: TaskKey,
        kept: Option<Vec<ObjectKey>>,
        actions: &mut Vec<Action>,
    ) {
        let Some(kept) = kept else { return };
        for object in &kept {
            self.objects.hold(*object);
        }
        let before = std::mem::replace(&mut self.task_mut(key).table, kept);
        let mut released = Released::default();
        self.release_all(before, &mut released);
        self.clear(released, actions);
    }

    /// Something that `key` waited for is there.
    pub(crate) fn wake(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        let Some(task) = self.tasks.get_mut(&key) else {
            return;
        };
        let missing = match &mut task.state {
            State::Waiting { missing } | State::Suspended { missing, .. } => missing,
            State::Dormant | State::Twin | State::Ready { .. } | State::Running { .. } => return,
        };
        *missing -= 1;
        if *missing == 0 {
            self.make_ready(now, key, actions);
        }
    }

    fn make_ready(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        let task = self.task_mut(key);
        let resume = match std::mem::replace(&mut task.state, State::Dormant) {
            State::Waiting { .. } => None,
            State::Suspended { resume, .. } => Some(resume),
            State::Dormant | State::Twin | State::Ready { .. } | State::Running { .. } => {
                unreachable!("only a waiting task becomes ready")
            }
        };
        task.story.add(
            now,
            if resume.is_some() {
                Moment::Woken
            } else {
                Moment::Ready
            },
        );
        task.state = State::Ready { resume };
        self.offer(key, actions);
    }

    /// Ends a running task's turn: adds to its time and takes its deadline away.
    pub(crate) fn stop_clock(&mut self, now: Micros, key: TaskKey) {
        let task = self
            .tasks
            .get_mut(&key)
            .expect("the caller has just seen this task");
        if let State::Running { since } = &mut task.state {
            task.ran_us += now.saturating_sub(*since);
            *since = now;
        }
        if let Some(deadline) = task.deadline.take() {
            self.deadlines.remove(&(deadline, key));
        }
    }

    pub(crate) fn on_continuation_lost(
        &mut self,
        now: Micros,
        key: TaskKey,
        actions: &mut Vec<Action>,
    ) {
        let Some(task) = self.tasks.get_mut(&key) else {
            return;
        };
        let attempt = task.attempt;
        let queued = matches!(task.state, State::Ready { .. });
        let (State::Suspended { resume, .. }
        | State::Ready {
            resume: Some(resume),
        }) = &mut task.state
        else {
            return;
        };
        if resume.continuation != Continuation::Live {
            return;
        }
        if task.descriptor.replayable {
            resume.continuation = Continuation::Replay;
            task.story.add(now, Moment::Lost);
            return;
        }
        let waited = std::mem::take(&mut resume.on);
        let message = "the worker that kept its state is gone";
        let failure = Failure::new(FailureKind::WorkerLost, task.label(), message);
        for handle in waited {
            let object = self.tasks[&key].table[handle.0 as usize];
            self.objects.wait_no_more(object, key);
        }
        if queued {
            actions.push(Action::Withdraw { task: key, attempt });
        }
        actions.push(Action::Stop { task: key, attempt });
        self.fail_attempt(now, key, failure, actions);
    }
}
