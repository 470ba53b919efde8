//! The turns of a task: placed, started, and what it receives then.
//!
//! Read next: `wait`, for what happens between turns.

use ciel_model::{
    AttemptNumber, Fact, Handle, InputMode, Micros, ObjectKey, Resolution, TaskKey, Value, WaitEnd,
};

use crate::event::{Action, Assignment, Continuation, Entry, StrandChange};
use crate::graph::Graph;
use crate::objects::ObjectState;
use crate::story::Moment;
use crate::task::{Resume, State};

impl Graph {
    pub(crate) fn on_task_placed(
        &mut self,
        now: Micros,
        key: TaskKey,
        attempt: AttemptNumber,
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
        let limit = task.descriptor.options.timeout_us;
        let deadline = limit.map(|limit| now.saturating_add(limit.saturating_sub(task.ran_us)));
        let moment = match resume {
            Some(_) => Moment::Resumed,
            None => Moment::Started,
        };
        self.note(now, key, moment);
        if let Some(deadline) = deadline {
            self.set_deadline(key, deadline);
        }
        self.expect_straggler(now, key);
        self.note_duplicated(now, key);
        let (entry, ended) = match resume {
            None => (Entry::Start(self.known_inputs(key)), None),
            Some(mut resume) => {
                let ended = self.wait_end(key, &mut resume);
                let replayed = resume.continuation == Continuation::Replay;
                let entry = self.entry_again(now, key, *resume, actions);
                (entry, ended.filter(|_| !replayed))
            }
        };
        let assignment = self.assignment(key, entry, ended);
        actions.push(Action::Begin(Box::new(assignment)));
    }

    /// How a strand that has run before resumes.
    fn entry_again(
        &mut self,
        now: Micros,
        key: TaskKey,
        resume: Resume,
        actions: &mut Vec<Action>,
    ) -> Entry {
        match resume.continuation {
            Continuation::Live => {
                let told = self.told_after(key, &resume);
                Entry::Resume(self.answers(key, &told))
            }
            Continuation::Saved(bytes) => Entry::Restore {
                bytes,
                answers: self.answers(key, &resume.on),
                facts: Vec::new(),
            },
            Continuation::Replay => {
                self.roll_back(now, key, StrandChange::NOTHING, actions);
                if let Some(stored) = self.tasks[&key].course.checkpoint.clone() {
                    return Entry::Restore {
                        bytes: stored.state,
                        answers: self.answers(key, &stored.on),
                        facts: self.tasks[&key].course.facts.iter().cloned().collect(),
                    };
                }
                let inputs = self.known_inputs(key);
                let task = &self.tasks[&key];
                let facts: Vec<Fact> = task.course.facts.iter().cloned().collect();
                let recorded = facts.last().map_or(0, |fact| fact.at.after());
                let until = recorded.max(task.course.given_after);
                Entry::Replay {
                    inputs,
                    facts,
                    until,
                }
            }
        }
    }

    pub(crate) fn assignment(
        &self,
        key: TaskKey,
        entry: Entry,
        ended: Option<WaitEnd>,
    ) -> Assignment {
        let task = &self.tasks[&key];
        Assignment {
            task: key,
            attempt: task.attempt,
            strand: task.strand.key,
            label: task.label(),
            position: task.strand.name,
            next_action: task.strand.next,
            next_handle: task.table.own_end(),
            descriptor: task.descriptor.clone(),
            entry,
            streams: self.stream_inputs(key),
            ended,
        }
    }

    /// The resolutions of a task's inputs when it starts. A failure is included only if the task
    /// takes that input by value, because the failure then counts as handled.
    fn known_inputs(&mut self, key: TaskKey) -> Vec<(Handle, Resolution)> {
        let descriptor = self.tasks[&key].descriptor.clone();
        if descriptor.inputs.is_empty() {
            return Vec::new();
        }
        let handles: Vec<Handle> = (0..descriptor.inputs.len() as u32).map(Handle).collect();
        let mut known = self.answers(key, &handles);
        known.retain(|(handle, resolution)| match resolution {
            Resolution::Ready { .. } => true,
            Resolution::Failed(_) => {
                descriptor.inputs[handle.0 as usize].mode != InputMode::Reference
            }
            Resolution::Future => false,
        });
        known
    }

    /// The resolutions of those of `handles` that are resolved; references inside values join the
    /// task's table, in this order.
    pub(crate) fn answers(
        &mut self,
        key: TaskKey,
        handles: &[Handle],
    ) -> Vec<(Handle, Resolution)> {
        let mut answers = Vec::with_capacity(handles.len());
        for handle in handles {
            let object = self.object_of(key, *handle);
            match self.resolution(key, object) {
                Resolution::Future => {}
                known => answers.push((*handle, known)),
            }
        }
        answers
    }

    /// What a task calls `handle`, which it is known to have.
    pub(crate) fn object_of(&self, key: TaskKey, handle: Handle) -> ObjectKey {
        let object = self.tasks[&key].table.get(handle);
        object.expect("the handle was looked up when it was used first")
    }

    pub(crate) fn resolution(&mut self, key: TaskKey, object: ObjectKey) -> Resolution {
        let stored = match self.objects.settled_state(object) {
            ObjectState::Future { .. } => return Resolution::Future,
            ObjectState::Failed { failure, .. } => return Resolution::Failed(failure.clone()),
            ObjectState::Ready(stored) => stored,
            ObjectState::Alias(_) => unreachable!("a settled state is never an alias"),
            ObjectState::Dropped => unreachable!("nobody but a replay's table names it"),
        };
        let value = &stored.value;
        let (name, form, content) = (stored.name, value.form.clone(), value.content.clone());
        let inner = value.references.clone();
        let task = self.tasks.get_mut(&key).expect("the asking task is there");
        let references = task.table.deliver(&inner);
        for reference in &inner {
            self.objects.hold(*reference);
        }
        Resolution::Ready {
            name,
            value: Value {
                form,
                content,
                references,
            },
        }
    }

    /// Ends a running task's turn, or its waiting: adds to its time, takes its deadline away, and
    /// it watches nothing any more.
    pub(crate) fn stop_clock(&mut self, now: Micros, key: TaskKey) {
        let task = self
            .tasks
            .get_mut(&key)
            .expect("the caller has just seen this task");
        if let State::Running { since } = &mut task.state {
            task.ran_us += now.saturating_sub(*since);
            *since = now;
        }
        self.clear_deadline(key);
        self.watch_no_more(key);
    }

    /// Nothing has to happen to that task at any time.
    pub(crate) fn clear_deadline(&mut self, key: TaskKey) {
        let course = self.task_mut(key).course.unusual_mut();
        if let Some(deadline) = course.and_then(|course| course.deadline.take()) {
            self.deadlines.remove(&(deadline, key));
        }
    }

    /// Something has to happen to that task at that time.
    pub(crate) fn set_deadline(&mut self, key: TaskKey, deadline: Micros) {
        self.task_mut(key).course.deadline = Some(deadline);
        self.deadlines.insert((deadline, key));
    }
}
