//! Streams: outputs that others read while their task writes them.
//!
//! A running task opens an output; who takes it as a stream starts then, and *reads* it until its
//! task has ended. A reader that has ended first is *held*: it has no slot, and commits after the
//! tasks whose streams it reads. If one of those is lost or retried, its readers start again with
//! it; if it fails, they start again and find the failure. A *direct* stream goes from its task to
//! one reader and is not stored, so both are held until both have ended, and both start again if
//! one of them does (ciel-programming-models §6). It does not know how bytes travel. Read next:
//! `settle`, which commits.

use ciel_model::{
    AttemptNumber, Class, Failure, FailureKind, Handle, InputMode, Micros, Mode, Name, ObjectKey,
    TaskKey, Value,
};

use crate::event::{Action, Carriage, Output, StreamInput};
use crate::graph::Graph;
use crate::objects::{ObjectState, Waiter};
use crate::spawn::Refusal;
use crate::story::Moment;
use crate::task::{End, Resume, State, Task};

/// Why a stream cannot be direct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDirect {
    /// The producer has ended, or the stream is direct already.
    #[error("its producer does not write it any more")]
    Ended,
    /// The producer may have several readers.
    #[error("its producer does not declare single_consumer")]
    NotPromised,
    /// One of both ends could be held up by another stream.
    #[error("its producer or its reader has another stream")]
    OtherStreams,
    /// Somebody else reads it.
    #[error("it has another reader")]
    OtherReaders,
    /// Its reader reads it from the beginning in two places.
    #[error("its reader has it twice")]
    TakenTwice,
    /// One of both ends has waited for tasks, or is a script.
    #[error("its producer or its reader has waited for tasks")]
    Waits,
    /// A retry of a task could spawn the reader again, and not the producer.
    #[error("its producer and its reader may be spawned again apart from each other")]
    SpawnedApart,
}

impl Graph {
    /// A running task opens an output, or passes one that it has opened directly to its reader.
    pub(crate) fn open_output(
        &mut self,
        now: Micros,
        key: TaskKey,
        index: u32,
        carriage: Carriage,
        actions: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        let output = self.output_of(key, index)?;
        let task = self.task_mut(key);
        task.course.open.retain(|(open, _)| *open != index);
        task.course.open.push((index, carriage));
        if self.is_future(output) {
            self.wake_readers(now, output, actions);
        }
        Ok(())
    }

    /// A task restarts that has opened a stream again, which is a file once it is whole.
    pub(crate) fn read_whole(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        self.task_mut(key).course.reads_whole = true;
        self.stop_attempt(now, key, actions);
        self.begin_again(now, key, Moment::Reopened, actions);
    }

    /// Those that wait for an open output, and take it as a stream, have it from now on.
    pub(crate) fn wake_readers(
        &mut self,
        now: Micros,
        output: ObjectKey,
        actions: &mut Vec<Action>,
    ) {
        let Some(ObjectState::Future { waiters, .. }) =
            self.objects.get(output).map(|object| &object.state)
        else {
            return;
        };
        let mut waiting: Vec<TaskKey> = Vec::new();
        for waiter in waiters.iter() {
            match waiter {
                Waiter::Blocked(task) if !waiting.contains(&task) => waiting.push(task),
                _ => {}
            }
        }
        for reader in waiting {
            let Some(State::Waiting { .. }) = self.tasks.get(&reader).map(|task| &task.state)
            else {
                continue;
            };
            let taken = self.times_taken(reader, output);
            if self.join_stream(reader, output) {
                self.objects.wait_no_more(output, reader);
                (0..taken).for_each(|_| self.wake(now, reader, actions));
            }
        }
    }

    /// How many inputs of a task are that object.
    fn times_taken(&self, key: TaskKey, target: ObjectKey) -> usize {
        let inputs = self.tasks[&key].inputs.iter();
        inputs
            .filter(|input| self.objects.target(**input) == target)
            .count()
    }

    /// Makes a task a reader of `object`, if that is open and the task takes it as a stream and in
    /// no other way.
    pub(crate) fn join_stream(&mut self, key: TaskKey, object: ObjectKey) -> bool {
        let target = self.objects.target(object);
        // Most objects are not: only where one is are all inputs of the task looked at.
        if !self.is_open(target) {
            return false;
        }
        let task = &self.tasks[&key];
        let mut taken = task.descriptor.inputs.iter().zip(&task.inputs);
        let is_stream = taken.all(|(input, given)| {
            input.mode == InputMode::Stream || self.objects.target(*given) != target
        });
        let mode = self.mode_of(key, target);
        let is_read_whole = mode == Some(Mode::NoStream) || task.course.reads_whole;
        if !is_stream || is_read_whole {
            return false;
        }
        let task = self.task_mut(key);
        if !task.course.reads.contains(&target) {
            task.course.reads.push(target);
            self.objects.read(target, key);
            // It may have ended when that fails.
            self.want(target);
        }
        true
    }

    /// The mode in which a task would read an output that it takes as a stream.
    pub(crate) fn mode_of(&self, reader: TaskKey, target: ObjectKey) -> Option<Mode> {
        let producer = self.tasks.get(&self.producer_of(target)?)?;
        let output = producer.outputs.iter().position(|it| *it == target)?;
        let reader = &self.tasks[&reader];
        let mut inputs = (0..).zip(&reader.inputs);
        let (input, _) = inputs.find(|(_, it)| self.objects.target(**it) == target)?;
        let producer = (&*producer.descriptor.streams, output as u32);
        Some(reader.descriptor.streams.mode_from(input, producer))
    }

    /// Whether a reader may join: a task that has not waited is writing the output, and its bytes
    /// are stored.
    fn is_open(&self, target: ObjectKey) -> bool {
        let producer = self
            .producer_of(target)
            .and_then(|key| self.tasks.get(&key));
        let has_waited = producer.is_some_and(|producer| producer.course.has_waited);
        !has_waited && self.carriage_of(target) == Some(Carriage::Stored)
    }

    /// A task waits. What it waits for may need the slots that its readers would hold while they
    /// wait for it, so they begin again when it has ended; those that have ended keep what they
    /// read. If it reads what is written directly to it, the same holds of the slot of the writer:
    /// both begin again, and the stream is stored.
    pub(crate) fn close_to_readers(&mut self, key: TaskKey) {
        let task = self.task_mut(key);
        task.course.has_waited = true;
        let outputs = task.outputs.clone();
        let open = task.course.open.clone();
        let open_outputs = open.iter().map(|(index, _)| outputs[*index as usize]);
        let readers: Vec<TaskKey> = open_outputs.flat_map(|it| self.readers_of(it)).collect();
        let runs = |reader: &TaskKey| !matches!(self.tasks[reader].state, State::Held { .. });
        let mut running: Vec<TaskKey> = readers.into_iter().filter(runs).collect();
        let is_bound = self.is_held_up_by_writer(key);
        running.extend(is_bound.then_some(key));
        let task = self.task_mut(key);
        let is_direct = task
            .course
            .open
            .iter()
            .any(|(_, way)| *way == Carriage::Direct);
        task.course.stores_streams |= is_bound || is_direct && !running.is_empty();
        self.lost_streams.append(&mut running);
    }

    /// Whether a task reads a direct stream whose writer still runs: that may be in a slot until
    /// this one reads on.
    fn is_held_up_by_writer(&self, key: TaskKey) -> bool {
        let reads = self.tasks[&key].course.reads.iter();
        let mut direct = reads.filter(|read| self.carriage_of(**read) == Some(Carriage::Direct));
        direct.any(|read| {
            let writer = self.producer_of(*read).and_then(|key| self.tasks.get(&key));
            writer.is_some_and(|writer| !matches!(writer.state, State::Held { .. }))
        })
    }

    fn carriage_of(&self, target: ObjectKey) -> Option<Carriage> {
        let producer = self.tasks.get(&self.producer_of(target)?)?;
        let index = producer.outputs.iter().position(|it| *it == target)?;
        let open = producer.course.open.iter();
        let mut open = open.filter(|(open, _)| *open as usize == index);
        open.next().map(|(_, carriage)| *carriage)
    }

    /// The unresolved inputs that a task reads, for its assignment.
    pub(crate) fn stream_inputs(&self, key: TaskKey) -> Vec<StreamInput> {
        let task = &self.tasks[&key];
        let inputs = (0..).map(Handle).zip(&task.inputs);
        let read = inputs.filter_map(|(input, object)| {
            let target = self.objects.target(*object);
            let name = self.objects.get(target)?.name;
            let mode = self.mode_of(key, target)?;
            let stream = StreamInput { input, name, mode };
            task.course.reads.contains(&target).then_some(stream)
        });
        read.collect()
    }

    fn readers_of(&self, output: ObjectKey) -> Vec<TaskKey> {
        let object = self.objects.get(output);
        let Some(ObjectState::Future { waiters, .. }) = object.map(|object| &object.state) else {
            return Vec::new();
        };
        let readers = waiters.iter().filter_map(|waiter| match waiter {
            Waiter::Reading(reader) => Some(reader),
            _ => None,
        });
        readers.collect()
    }

    /// Why bytes cannot go from an open output of `producer` to `reader` without being stored; none
    /// if they can: nobody else reads it, neither end has waited for tasks or has another stream
    /// that could hold it up, and nothing spawns the reader again without the producer.
    pub fn not_direct(&self, producer: TaskKey, index: u32, reader: TaskKey) -> Option<NotDirect> {
        let (Some(from), Some(to)) = (self.tasks.get(&producer), self.tasks.get(&reader)) else {
            return Some(NotDirect::Ended);
        };
        let waits = |task: &Task| {
            task.descriptor.class == Class::Coordination
                || task.course.has_waited
                || task.course.stores_streams
        };
        let output = from.outputs.get(index as usize).copied();
        let output = output.filter(|_| from.course.open.contains(&(index, Carriage::Stored)));
        match output {
            None => Some(NotDirect::Ended),
            Some(_) if !from.descriptor.streams.single_consumer => Some(NotDirect::NotPromised),
            Some(_) if from.descriptor.streams.outputs.len() > 1 => Some(NotDirect::OtherStreams),
            Some(output) if to.course.reads != [output] => Some(NotDirect::OtherStreams),
            Some(output) if self.readers_of(output) != [reader] => Some(NotDirect::OtherReaders),
            Some(output) if self.times_taken(reader, output) > 1 => Some(NotDirect::TakenTwice),
            Some(_) if waits(from) || waits(to) => Some(NotDirect::Waits),
            Some(_) if from.parent != to.parent || !to.is_spawned_once => {
                Some(NotDirect::SpawnedApart)
            }
            Some(_) => None,
        }
    }

    /// The attempt to which an open output of `producer` can go without being stored, if one has
    /// joined it.
    pub fn direct_reader(&self, producer: TaskKey, index: u32) -> Option<(TaskKey, AttemptNumber)> {
        let output = *self.tasks.get(&producer)?.outputs.get(index as usize)?;
        let [reader] = self.readers_of(output)[..] else {
            return None;
        };
        let is_asked_for = self.mode_of(reader, output) == Some(Mode::Direct);
        let can_be = is_asked_for && self.not_direct(producer, index, reader).is_none();
        can_be.then(|| (reader, self.tasks[&reader].attempt))
    }

    /// The name of the object behind a handle of an attempt, under which a task that makes it opens
    /// it.
    pub fn name_of(&self, key: TaskKey, attempt: AttemptNumber, handle: Handle) -> Option<Name> {
        let task = self.tasks.get(&key)?;
        let object = task.table.get(handle).filter(|_| task.attempt == attempt)?;
        Some(self.objects.get(self.objects.target(object))?.name)
    }

    /// What a reader finds in place of a stream whose task has ended well.
    pub fn ended_stream(&self, reader: TaskKey, input: Handle) -> Option<Value<Handle>> {
        let object = *self.tasks.get(&reader)?.inputs.get(input.0 as usize)?;
        match self.objects.settled_state(object) {
            ObjectState::Ready(stored) if stored.value.references.is_empty() => Some(Value {
                form: stored.value.form.clone(),
                content: stored.value.content.clone(),
                references: Vec::new(),
            }),
            ObjectState::Future { producer, .. } => {
                let task = self.tasks.get(producer)?;
                let target = self.objects.target(object);
                let index = task.outputs.iter().position(|output| *output == target)?;
                match &task.state {
                    State::Held { end } => match end.outputs().get(index)? {
                        Output::Value(value) => Some(value.clone()),
                        Output::Delegate(_) | Output::Published | Output::Passed => None,
                    },
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether the end of a task has to wait: for the ends of tasks whose streams it reads, or for
    /// that of the reader of a stream that was not stored.
    pub(crate) fn must_be_held(&self, key: TaskKey, outputs: &[Output]) -> bool {
        let task = &self.tasks[&key];
        let mut passed = outputs.iter().zip(&task.outputs);
        !task.course.reads.is_empty()
            || passed.any(|(output, object)| {
                *output == Output::Passed && !self.readers_of(*object).is_empty()
            })
    }

    /// Whether a failure of a task counts only when those whose streams it reads have ended: what
    /// it has written until then is its output, unless one of them fails. That of a command is not.
    pub(crate) fn must_hold_failure(&self, key: TaskKey, failure: &Failure) -> bool {
        let task = &self.tasks[&key];
        let waits = !task.course.reads.is_empty() && task.descriptor.class != Class::Process;
        waits && failure.kind != FailureKind::Cancelled && !self.verdict.is_over()
    }

    /// The task has ended, which counts when those that it depends on have ended, too.
    pub(crate) fn hold_end(&mut self, now: Micros, key: TaskKey, end: End) {
        self.task_mut(key).state = State::Held { end: Box::new(end) };
        self.note(now, key, Moment::Held);
        self.may_commit.push(key);
    }

    /// What a passed output becomes: its bytes are nowhere.
    pub(crate) fn passed_state(&self, key: TaskKey, index: usize) -> ObjectState {
        let task = &self.tasks[&key];
        let message = format!("output {index} went to its single consumer and was not stored");
        let promise = match task.descriptor.streams.mode {
            Some(Mode::Direct) => "the mode direct",
            _ => "single_consumer",
        };
        let failure = Failure::new(FailureKind::ObjectLost, task.label(), message).with_hint(
            format!("leave out {promise}, and the stream is stored for other readers"),
        );
        ObjectState::Failed {
            failure: failure.into(),
            source: task.outputs[index],
            is_final: true,
        }
    }

    /// An output that `reader` reads has been settled.
    pub(crate) fn on_read_settled(&mut self, reader: TaskKey, object: ObjectKey) {
        let Some(task) = self.tasks.get_mut(&reader) else {
            return;
        };
        task.course.reads.retain(|read| *read != object);
        match self.objects.settled_state(object) {
            ObjectState::Failed { .. } => self.lost_streams.push(reader),
            _ => self.may_commit.push(reader),
        }
    }

    /// Begins again what has lost the other end of a stream, and commits what is held and depends
    /// on nothing that has not ended.
    pub(crate) fn follow_streams(&mut self, now: Micros, actions: &mut Vec<Action>) {
        loop {
            while let Some(reader) = self.lost_streams.pop() {
                if self.tasks.contains_key(&reader) {
                    self.stop_attempt(now, reader, actions);
                    self.begin_again(now, reader, Moment::StreamLost, actions);
                }
            }
            match self.may_commit.pop() {
                Some(key) => self.commit_with(now, key, actions),
                None => return,
            }
        }
    }

    /// Commits a held task and all that have to commit with it, if all of them are held.
    fn commit_with(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        if let Some(mut group) = self.held_with(key) {
            let is_first = |graph: &Graph, key: &TaskKey| {
                let task = graph.tasks.get(key);
                task.is_none_or(|task| task.course.reads.is_empty())
            };
            while let Some(at) = group.iter().position(|key| is_first(self, key)) {
                let key = group.swap_remove(at);
                if !self.lost_streams.contains(&key) {
                    self.commit_one_held(now, key, actions);
                }
            }
        }
    }

    fn commit_one_held(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        let Some(task) = self.tasks.get_mut(&key) else {
            return;
        };
        let State::Held { end } = &mut task.state else {
            return;
        };
        let (outputs, printed) = match &mut **end {
            End::Well { outputs, printed } => (std::mem::take(outputs), *printed),
            End::Failed(failure) => {
                let failure = (**failure).clone();
                return self.fail_task(now, key, failure, actions);
            }
        };
        for (index, output) in outputs.iter().enumerate() {
            if *output == Output::Passed {
                self.part_with_readers(key, index);
            }
        }
        match self.states_of(key, outputs, actions) {
            Ok(states) => self.commit(now, key, states, (printed, None), actions),
            Err(failure) => self.fail_attempt(now, key, *failure, actions),
        }
    }

    /// Whether an unresolved object is an open output.
    pub(crate) fn has_writer(&self, read: ObjectKey) -> bool {
        self.carriage_of(read).is_some()
    }

    /// Whether a held task depends on nothing that has not ended.
    pub(crate) fn could_commit(&self, key: TaskKey) -> bool {
        self.held_with(key).is_some()
    }

    /// The readers of a passed output have its bytes already.
    fn part_with_readers(&mut self, key: TaskKey, index: usize) {
        let output = self.tasks[&key].outputs[index];
        for reader in self.readers_of(output) {
            self.objects.read_no_more(output, reader);
            self.task_mut(reader)
                .course
                .reads
                .retain(|read| *read != output);
        }
    }

    /// A held task with all those that have to commit with it; none if any of them has not ended.
    fn held_with(&self, key: TaskKey) -> Option<Vec<TaskKey>> {
        let mut group = vec![key];
        let mut at = 0;
        while at < group.len() {
            let task = self.tasks.get(&group[at])?;
            let State::Held { end } = &task.state else {
                return None;
            };
            let producers = task
                .course
                .reads
                .iter()
                .filter_map(|read| self.producer_of(*read));
            let passed = end.outputs().iter().zip(&task.outputs);
            let passed = passed.filter(|(output, _)| **output == Output::Passed);
            let readers = passed.flat_map(|(_, object)| self.readers_of(*object));
            for other in producers.chain(readers) {
                if !group.contains(&other) {
                    group.push(other);
                }
            }
            at += 1;
        }
        Some(group)
    }

    /// A task that ends or starts again reads nothing any more. What was passed to it directly may
    /// now have no reader.
    pub(crate) fn stop_reading(&mut self, key: TaskKey) {
        let course = self.task_mut(key).course.unusual_mut();
        let reads = course.map(|course| std::mem::take(&mut course.reads));
        for read in reads.unwrap_or_default() {
            self.objects.read_no_more(read, key);
            self.may_commit.extend(self.producer_of(read));
        }
    }

    /// All that have to start again with a task: the readers of its open outputs and the producers
    /// of what is passed to it directly, and so on from those.
    pub(crate) fn bound_to(&self, key: TaskKey) -> Vec<TaskKey> {
        let mut bound = vec![key];
        let mut at = 0;
        while at < bound.len() {
            let task = &self.tasks[&bound[at]];
            let open = task
                .course
                .open
                .iter()
                .map(|(index, _)| task.outputs[*index as usize]);
            let readers = open.flat_map(|output| self.readers_of(output));
            let direct = task.course.reads.iter().copied();
            let direct = direct.filter(|read| self.carriage_of(*read) == Some(Carriage::Direct));
            let producers = direct.filter_map(|read| self.producer_of(read));
            for other in readers.chain(producers) {
                if !bound.contains(&other) {
                    bound.push(other);
                }
            }
            at += 1;
        }
        bound.remove(0);
        bound
    }

    /// Ends the current attempt of a task that is offered, runs, waits or is held.
    pub(crate) fn stop_attempt(&mut self, now: Micros, task: TaskKey, actions: &mut Vec<Action>) {
        let attempt = self.tasks[&task].attempt;
        match &self.tasks[&task].state {
            State::Ready { resume } => {
                let has_run = resume.is_some();
                actions.push(Action::Withdraw { task, attempt });
                if has_run {
                    actions.push(Action::Stop { task, attempt });
                }
            }
            State::Running { .. } | State::Suspended { .. } => {
                actions.push(Action::Stop { task, attempt });
            }
            State::Dormant
            | State::Waiting { .. }
            | State::Twin { .. }
            | State::LookedUp
            | State::Held { .. } => {}
        }
        self.give_up_waiting(task);
        self.stop_clock(now, task);
    }

    /// A task that waited for some inputs while it read others waits for all of them again.
    pub(crate) fn wait_for_nothing(&mut self, key: TaskKey) {
        if let State::Waiting { .. } = self.tasks[&key].state {
            for object in self.tasks[&key].inputs.clone() {
                self.objects.wait_no_more(object, key);
            }
        }
    }

    /// A new attempt of a task from its start, as soon as all that it needs is there.
    pub(crate) fn begin_anew(
        &mut self,
        now: Micros,
        key: TaskKey,
        why: Moment,
        actions: &mut Vec<Action>,
    ) {
        self.wait_for_nothing(key);
        let task = self.task_mut(key);
        task.begin_attempt();
        let takes_streams = task.takes_streams();
        let resume = task.descriptor.replayable.then(Resume::replay);
        self.note(now, key, why);
        if resume.is_none() || takes_streams {
            // It has no facts, or may read something else: nothing to compare a replay with.
            let first = self.tasks[&key].course.begun_at;
            self.roll_back(now, key, first, actions);
        }
        if takes_streams {
            return self.admit(now, key, actions);
        }
        self.task_mut(key).state = State::Ready { resume };
        self.offer(key, actions);
    }
}
