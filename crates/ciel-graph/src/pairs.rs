//! Which tasks are the two ends of a direct stream, before it is one: so that both have slots.
//!
//! What can be said when a task is offered. Whether a stream is direct is seen when both ends run.
//! It does not know slots. Read next: `streams`.

use ciel_model::{Class, InputMode, Mode, ObjectKey, Pairing, SingleReader, TaskKey};

use crate::event::Action;
use crate::graph::Graph;
use crate::objects::{ObjectState, Waiter};
use crate::task::State;

impl Graph {
    /// Which direct streams a ready task reads or writes.
    pub(crate) fn pairing_of(&self, key: TaskKey) -> Pairing {
        Pairing {
            reads: self.read_directly(key),
            reader: self.single_reader_of(key),
        }
    }

    fn read_directly(&self, reader: TaskKey) -> Option<TaskKey> {
        let [read] = self.tasks[&reader].course.reads[..] else {
            return None;
        };
        let is_direct = self.mode_of(reader, read) == Some(Mode::Direct);
        self.producer_of(read).filter(|_| is_direct)
    }

    fn single_reader_of(&self, producer: TaskKey) -> SingleReader {
        let Some(output) = self.direct_output(producer) else {
            return SingleReader::None;
        };
        let object = self.objects.get(output).map(|object| &object.state);
        let Some(ObjectState::Future { waiters, .. }) = object else {
            return SingleReader::None;
        };
        let mut waiting = waiters.iter().filter_map(|waiter| match waiter {
            Waiter::Blocked(reader) => Some(reader),
            _ => None,
        });
        match waiting.any(|reader| self.waits_only_for(reader, (producer, output))) {
            true => SingleReader::Waits,
            false => SingleReader::Expected,
        }
    }

    /// The one stream that a task is to write for a single reader.
    fn direct_output(&self, producer: TaskKey) -> Option<ObjectKey> {
        let task = self.tasks.get(&producer)?;
        let [index] = task.descriptor.streams.outputs[..] else {
            return None;
        };
        let stores = task.course.has_waited || task.course.stores_streams;
        let is_direct = task.descriptor.streams.single_consumer
            && task.descriptor.class != Class::Coordination
            && !stores;
        let output = task.outputs.get(index as usize).copied();
        output.filter(|_| is_direct)
    }

    /// Whether a task begins as soon as that output is open, and could read it directly.
    fn waits_only_for(&self, reader: TaskKey, (producer, output): (TaskKey, ObjectKey)) -> bool {
        let Some(task) = self.tasks.get(&reader) else {
            return false;
        };
        let given = task.descriptor.inputs.iter().zip(&task.inputs);
        let mut same = given.filter(|(_, it)| self.objects.target(**it) == output);
        matches!(task.state, State::Waiting { missing: 1 })
            && same.all(|(input, _)| input.mode == InputMode::Stream)
            && self.mode_of(reader, output) == Some(Mode::Direct)
            && task.course.reads.is_empty()
            && task.descriptor.class != Class::Coordination
            && task.parent == self.tasks[&producer].parent
            && task.is_spawned_once
    }

    /// A task waits for one of `needed` only. Who is to write that directly begins together with
    /// it.
    pub(crate) fn tell_producer(
        &self,
        reader: TaskKey,
        needed: &[ObjectKey],
        actions: &mut Vec<Action>,
    ) {
        for object in needed {
            let Some(producer) = self.producer_of(*object) else {
                continue;
            };
            let output = self.objects.target(*object);
            let is_its = self.direct_output(producer) == Some(output);
            if !is_its || !self.waits_only_for(reader, (producer, output)) {
                continue;
            }
            let task = &self.tasks[&producer];
            if matches!(task.state, State::Ready { .. } | State::Running { .. }) {
                let (task, attempt) = (producer, task.attempt);
                actions.push(Action::ReaderWaits { task, attempt });
            }
        }
    }
}
