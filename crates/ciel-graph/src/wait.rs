//! Waiting: a task that is suspended until references are resolved, and one that continues but
//! watches a reference.
//!
//! A wait ends when all references are resolved, or with the first, or when its time limit expires;
//! if its end depends on time, the next turn receives it. A wait for nothing is a yield: the task
//! is offered again at once, and earlier tasks may take its slot. It does not know how a strand is
//! kept meanwhile. Read next: `turn`, for the turns between two waits.

use ciel_model::{
    AttemptNumber, FactAct, Failure, FailureKind, Handle, Micros, ObjectKey, TaskKey, WaitEnd,
};

use crate::event::{Action, Checkpoint, Continuation, Until, Wait};
use crate::graph::Graph;
use crate::objects::{ObjectState, Released};
use crate::replay::words;
use crate::spawn::Refusal;
use crate::story::Moment;
use crate::table::Table;
use crate::task::{Resume, State};

/// How a task stops: what it waits for, and how it resumes.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) kept: Option<Vec<Handle>>,
    pub(crate) on: Vec<Handle>,
    pub(crate) wait: Wait,
    pub(crate) continuation: Continuation,
    pub(crate) checkpoint: Option<Box<Checkpoint>>,
}

impl Block {
    /// With these parts.
    pub(crate) fn of(
        kept: Option<Vec<Handle>>,
        on: Vec<Handle>,
        wait: Wait,
        continuation: Continuation,
        checkpoint: Option<Box<Checkpoint>>,
    ) -> Block {
        Block {
            kept,
            on,
            wait,
            continuation,
            checkpoint,
        }
    }
}

impl Graph {
    pub(crate) fn on_task_blocked(
        &mut self,
        now: Micros,
        key: TaskKey,
        attempt: AttemptNumber,
        block: Block,
        actions: &mut Vec<Action>,
    ) {
        if self.running(key, attempt).is_none() {
            return;
        }
        let Block {
            kept,
            on,
            wait,
            continuation,
            checkpoint,
        } = block;
        let asked = self
            .reach_wait(key, wait)
            .and_then(|()| self.objects_of_block(key, kept, (&on, wait), &continuation, actions));
        // What it has read may be another thing when it runs again: then it runs from its start.
        let checkpoint = checkpoint.filter(|_| !self.tasks[&key].takes_streams());
        let asked = asked.and_then(|objects| {
            let stored = checkpoint.map(|taken| self.store_checkpoint(key, *taken, &on, actions));
            stored.unwrap_or(Ok(())).map(|()| objects)
        });
        let objects = match asked {
            Ok(objects) => objects,
            Err(failure) => {
                actions.push(Action::Stop { task: key, attempt });
                return self.fail_attempt(now, key, *failure, actions);
            }
        };
        // The task has left its slot before the tasks that it wakes are offered.
        let mut woken = Vec::new();
        let (missing, is_some_there) = self.begin_wait(now, key, wait.until, &objects, &mut woken);
        if self.running(key, attempt).is_none() {
            return actions.append(&mut woken);
        }
        let is_met = missing == 0 || (!wait.until.is_all() && is_some_there);
        let over = is_met || wait.limit_us == Some(0);
        let mut resume = Resume {
            timed_out: over && !is_met,
            wait,
            on,
            continuation,
        };
        if over {
            self.stop_waiting(key, &objects);
        }
        let yields = resume.on.is_empty() && !wait.is_timely();
        if over && resume.continuation == Continuation::Live && !yields {
            self.continue_at_once(key, &mut resume, actions);
            return actions.append(&mut woken);
        }
        self.suspend(now, key, if over { 0 } else { missing }, Box::new(resume));
        actions.push(Action::Suspend { task: key, attempt });
        self.close_to_readers(key);
        actions.append(&mut woken);
        match wait.limit_us {
            _ if over => self.make_ready(now, key, actions),
            Some(limit) => self.set_deadline(key, now.saturating_add(limit)),
            None => {}
        }
    }

    /// How many references a task waits for from now on, and whether another one is resolved.
    fn begin_wait(
        &mut self,
        now: Micros,
        key: TaskKey,
        until: Until,
        objects: &[ObjectKey],
        woken: &mut Vec<Action>,
    ) -> (u32, bool) {
        match until {
            Until::All | Until::AllAndLater | Until::First => {
                let missing = self.wait_and_demand(now, key, objects, woken);
                (missing, objects.len() > missing as usize)
            }
            Until::Rest => self.rest_of_first(key),
            Until::Cancelled => {
                self.cancel_objects(now, key, objects, woken);
                (0, true)
            }
        }
    }

    /// The wait is over, and the task is where it was.
    fn continue_at_once(&mut self, task: TaskKey, resume: &mut Resume, actions: &mut Vec<Action>) {
        let attempt = self.tasks[&task].attempt;
        let ended = self.wait_end(task, resume);
        let told = self.told_after(task, resume);
        let answers = self.answers(task, &told);
        actions.push(Action::Continue {
            task,
            attempt,
            answers,
            ended,
        });
    }

    fn suspend(&mut self, now: Micros, key: TaskKey, missing: u32, resume: Box<Resume>) {
        self.stop_clock(now, key);
        self.task_mut(key).state = State::Suspended { missing, resume };
        self.note(now, key, Moment::Suspended);
    }

    /// The references that a blocked task waits for, perhaps not for all of them; its table is made
    /// smaller if it wants that.
    fn objects_of_block(
        &mut self,
        key: TaskKey,
        kept: Option<Vec<Handle>>,
        (on, wait): (&[Handle], Wait),
        continuation: &Continuation,
        actions: &mut Vec<Action>,
    ) -> Result<Vec<ObjectKey>, Refusal> {
        self.check_continuation(key, continuation)?;
        let kept = kept.map(|kept| self.keys_named(key, &kept)).transpose()?;
        let saved = matches!(continuation, Continuation::Saved(_));
        self.compact_table(key, kept, saved, actions);
        let objects = self.keys_of(key, on)?;
        self.note_asked(key, &objects);
        match wait.until {
            Until::All | Until::AllAndLater | Until::Cancelled => {}
            Until::First => self.list_first_of(key, on),
            Until::Rest => self.follow_rest(key)?,
        }
        if wait.is_timely() && wait.until != Until::Cancelled {
            objects.iter().for_each(|object| self.want(*object));
        }
        Ok(objects)
    }

    /// The end of a wait that depends on time has its place among the actions; it has not ended
    /// before, or the strand would have been given that.
    fn reach_wait(&mut self, key: TaskKey, wait: Wait) -> Result<(), Refusal> {
        if !wait.is_timely() {
            return Ok(());
        }
        let does = || match wait.until {
            Until::Cancelled => "cancelled references".to_string(),
            Until::All | Until::AllAndLater | Until::First | Until::Rest => {
                "waited for the first of several".to_string()
            }
        };
        match self.reach(key, wait.at, does)? {
            None => Ok(()),
            Some(before) => {
                let how = format!("{} where it had {}", does(), words(&before));
                Err(self.differs(key, &how))
            }
        }
    }

    /// A task that may be replayed receives in its replay all that it demanded.
    pub(crate) fn note_asked(&mut self, key: TaskKey, objects: &[ObjectKey]) {
        let task = self.task_mut(key);
        if task.descriptor.replayable && !objects.is_empty() {
            task.course.asked.extend(objects);
        }
    }

    /// A task demands `object`, and may have ended when it is resolved.
    pub(crate) fn want(&mut self, object: ObjectKey) {
        let (producer, target) = (self.producer_of(object), self.objects.target(object));
        if let Some(task) = producer.and_then(|key| self.tasks.get_mut(&key))
            && !task.course.wanted.contains(&target)
        {
            task.course.wanted.push(target);
        }
    }

    /// An output of `key` is resolved before the task ends: the tasks that demanded it have it.
    pub(crate) fn want_no_more(&mut self, key: TaskKey, output: ObjectKey) {
        if let Some(course) = self.task_mut(key).course.unusual_mut() {
            course.wanted.retain(|wanted| *wanted != output);
        }
    }

    /// If an output of `key` was demanded, the producer of the object that it becomes is demanded
    /// from now on. A lazy task is woken even if the demanding task has ended by now: whether it
    /// runs must not depend on time.
    pub(crate) fn pass_want(
        &mut self,
        now: Micros,
        key: TaskKey,
        output: ObjectKey,
        becomes: &ObjectState,
        actions: &mut Vec<Action>,
    ) {
        if !self.tasks[&key].course.wanted.contains(&output) {
            return;
        }
        match becomes {
            ObjectState::Alias(target) => {
                self.want(*target);
                self.demand(now, *target, actions);
            }
            ObjectState::Failed { source, .. } => self.objects.ask(*source),
            ObjectState::Ready(_) | ObjectState::Future { .. } | ObjectState::Dropped => {}
        }
    }

    /// Only a strand whose spawns are recorded can resume by replay.
    fn check_continuation(&self, key: TaskKey, continuation: &Continuation) -> Result<(), Refusal> {
        let task = &self.tasks[&key];
        if *continuation != Continuation::Replay || task.descriptor.replayable {
            return Ok(());
        }
        let message = "it requested a replay, but was not spawned as replayable";
        Err(Box::new(Failure::new(
            FailureKind::Refused,
            task.label(),
            message,
        )))
    }

    /// The table becomes `kept`, in that order; what a saved strand keeps is delivered to it.
    fn compact_table(
        &mut self,
        key: TaskKey,
        kept: Option<Vec<ObjectKey>>,
        saved: bool,
        actions: &mut Vec<Action>,
    ) {
        let Some(kept) = kept else { return };
        for object in &kept {
            self.objects.hold(*object);
        }
        self.watch_no_more(key);
        self.forget_first_of(key);
        let table = &mut self.task_mut(key).table;
        let kept = match saved {
            true => table.delivering(kept),
            false => Table::of(kept),
        };
        let before = std::mem::replace(table, kept);
        let mut released = Released::default();
        self.release_all(before.objects(), &mut released);
        self.clear(released, actions);
    }

    /// A reference that `key` waited for is resolved.
    pub(crate) fn wake(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        let Some(task) = self.tasks.get_mut(&key) else {
            return;
        };
        let (missing, first) = match &mut task.state {
            State::Waiting { missing } => (missing, false),
            State::Suspended { missing, resume } => (missing, !resume.wait.until.is_all()),
            State::Dormant
            | State::Twin { .. }
            | State::LookedUp
            | State::Ready { .. }
            | State::Running { .. }
            | State::Held { .. } => {
                return;
            }
        };
        *missing -= 1;
        if *missing == 0 {
            self.make_ready(now, key, actions);
        } else if first {
            self.end_wait(now, key, actions);
        }
    }

    /// The wait of a suspended task ends although some references are unresolved.
    pub(crate) fn end_wait(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        let task = &self.tasks[&key];
        let State::Suspended { resume, .. } = &task.state else {
            unreachable!("the caller has seen that it waits");
        };
        let objects: Vec<ObjectKey> = objects_of(&task.table, &resume.on).collect();
        self.stop_waiting(key, &objects);
        self.make_ready(now, key, actions);
    }

    /// A suspended task waits for nothing any more.
    pub(crate) fn give_up_waiting(&mut self, key: TaskKey) {
        self.clear_deadline(key);
        if let State::Suspended { resume, .. } = &self.tasks[&key].state {
            let objects: Vec<ObjectKey> = objects_of(&self.tasks[&key].table, &resume.on).collect();
            self.stop_waiting(key, &objects);
        }
    }

    /// The time of a suspended task's wait is over.
    pub(crate) fn on_wait_expired(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        if let State::Suspended { resume, .. } = &mut self.task_mut(key).state {
            resume.timed_out = true;
            self.end_wait(now, key, actions);
        }
    }

    fn stop_waiting(&mut self, key: TaskKey, objects: &[ObjectKey]) {
        for object in objects {
            self.objects.wait_no_more(*object, key);
        }
    }

    fn make_ready(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        self.clear_deadline(key);
        let task = self.task_mut(key);
        let resume = match std::mem::replace(&mut task.state, State::Dormant) {
            State::Waiting { .. } => None,
            State::Suspended { resume, .. } => Some(resume),
            State::Dormant
            | State::Twin { .. }
            | State::LookedUp
            | State::Ready { .. }
            | State::Running { .. }
            | State::Held { .. } => {
                unreachable!("only a waiting task becomes ready")
            }
        };
        if resume.is_none() {
            self.note(now, key, Moment::Ready);
            return self.offer_or_look_up(now, key, actions);
        }
        task.state = State::Ready { resume };
        self.note(now, key, Moment::Woken);
        self.offer(key, actions);
    }

    /// How a wait ended that is over now; `None` if that does not depend on time. It is recorded
    /// for a strand that may be replayed.
    pub(crate) fn wait_end(&mut self, key: TaskKey, resume: &mut Resume) -> Option<WaitEnd> {
        if !resume.wait.is_timely() {
            return None;
        }
        let places = match resume.wait.until {
            Until::All | Until::AllAndLater => self.places_resolved(key, &resume.on),
            Until::First => {
                let places = self.places_resolved(key, &resume.on);
                self.note_given(key, &places);
                places
            }
            Until::Rest => {
                let (places, handles) = self.take_arrived(key);
                resume.on = handles;
                places
            }
            Until::Cancelled => {
                let (places, handles) = self.places_cancelled(key, &resume.on);
                resume.on = handles;
                places
            }
        };
        let ended = WaitEnd {
            places,
            timed_out: resume.timed_out,
            rest: resume.wait.until == Until::Rest,
            cancels: resume.wait.until == Until::Cancelled,
        };
        let task = self.task_mut(key);
        if task.descriptor.replayable {
            task.record(resume.wait.at, FactAct::Waited(ended.clone()));
        }
        Some(ended)
    }

    fn places_cancelled(&self, key: TaskKey, on: &[Handle]) -> (Vec<u32>, Vec<Handle>) {
        let cancelled = |handle: &Handle| self.is_cancelled(self.object_of(key, *handle));
        let all = (0..).zip(on.iter().copied());
        all.filter(|(_, handle)| cancelled(handle)).unzip()
    }

    fn places_resolved(&self, key: TaskKey, on: &[Handle]) -> Vec<u32> {
        let objects = (0..).zip(objects_of(&self.tasks[&key].table, on));
        let resolved = objects.filter(|(_, object)| !self.is_pending(*object));
        resolved.map(|(place, _)| place).collect()
    }

    fn is_pending(&self, object: ObjectKey) -> bool {
        matches!(
            self.objects.settled_state(object),
            ObjectState::Future { .. }
        )
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
            return self.note(now, key, Moment::Lost);
        }
        let waited = objects_of(&task.table, &resume.on).collect::<Vec<_>>();
        let message = "the worker that kept its state was lost";
        let failure = Failure::new(FailureKind::WorkerLost, task.label(), message);
        self.stop_waiting(key, &waited);
        if queued {
            actions.push(Action::Withdraw { task: key, attempt });
        }
        actions.push(Action::Stop { task: key, attempt });
        self.fail_attempt(now, key, failure, actions);
    }
}

fn objects_of<'a>(table: &'a Table, on: &'a [Handle]) -> impl Iterator<Item = ObjectKey> + 'a {
    let object = |handle: &Handle| table.get(*handle);
    on.iter()
        .map(move |handle| object(handle).expect("the task had it when it blocked"))
}

/// Observers of references, which do not block on them.
impl Graph {
    pub(crate) fn on_task_watched(
        &mut self,
        now: Micros,
        key: TaskKey,
        attempt: AttemptNumber,
        handle: Handle,
        actions: &mut Vec<Action>,
    ) {
        if self.running(key, attempt).is_none() {
            return;
        }
        let object = match self.keys_of(key, &[handle]) {
            Ok(objects) => objects[0],
            Err(failure) => {
                actions.push(Action::Stop { task: key, attempt });
                return self.fail_attempt(now, key, *failure, actions);
            }
        };
        self.note_asked(key, &[object]);
        self.objects.ask(object);
        self.want(object);
        let watched = self.watches.entry(key).or_default();
        if !watched.insert(handle) {
            return;
        }
        match self.objects.watch(object, key, handle) {
            true => self.demand(now, object, actions),
            false => self.tell_watcher(key, handle, actions),
        }
    }

    /// A reference that `key` watches is resolved.
    pub(crate) fn tell_watcher(&mut self, key: TaskKey, handle: Handle, actions: &mut Vec<Action>) {
        let watched = self.watches.get_mut(&key);
        let watched = watched.expect("a watch is known on both sides");
        watched.remove(&handle);
        if watched.is_empty() {
            self.watches.remove(&key);
        }
        let attempt = self.tasks[&key].attempt;
        actions.push(Action::Notify {
            task: key,
            attempt,
            handle,
        });
    }

    /// The turn of `key` has ended: it stops watching all references.
    pub(crate) fn watch_no_more(&mut self, key: TaskKey) {
        for handle in self.watches.remove(&key).unwrap_or_default() {
            let object = self.object_of(key, handle);
            self.objects.watch_no_more(object, key, handle);
        }
    }
}
