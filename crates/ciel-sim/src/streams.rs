//! Simulated streams: readers that run while what they read is written.
//!
//! A reader gets the value of a stream when its producer has ended well, as a process gets the end
//! of a file; until then it looks again and again, in its slot. Some streams are direct: their
//! value is in the world and in no object. It does not know what a reader does with it. Read next:
//! `world`.

use ciel_graph::{Carriage, Output, Step};
use ciel_model::{Handle, Resolution};
use ciel_node::AttemptKey;

use crate::script::Move;
use crate::world::{Happening, World};

/// Microseconds after which a reader looks again.
const LOOK_US: u64 = 70;

impl World<'_> {
    /// An attempt opens its output.
    pub(crate) fn note_opened(&mut self, attempt: AttemptKey, step: &Step) {
        if let Step::OpenOutput { index: 0, .. } = step
            && let Some(process) = self.processes.get(&attempt)
        {
            let name = process.script.name().output(0);
            self.streams.open.insert(name, attempt);
        }
    }

    /// A process goes no further without this; whether it reads it as a stream.
    pub(crate) fn read_stream(&mut self, attempt: AttemptKey, on: &[Handle]) -> bool {
        let process = &self.processes[&attempt];
        let Some(handle) = on.first().copied() else {
            return false;
        };
        let mut streams = process.streams.iter();
        let Some(name) = streams.find(|it| it.input == handle).map(|it| it.name) else {
            return false;
        };
        let producer = self.streams.open.get(&name).copied();
        if let Some(producer) = producer {
            self.pass_directly(producer, attempt);
        }
        let producer = producer.filter(|it| self.streams.readers.get(it) == Some(&attempt));
        let passed = producer.and_then(|producer| self.streams.passed.get(&producer).cloned());
        let stored = || self.engine.graph().ended_stream(attempt.task, handle);
        self.streams.direct += u64::from(passed.is_some());
        let value = match producer {
            Some(_) => passed,
            None => stored(),
        };
        if let Some(value) = value {
            let process = self.processes.get_mut(&attempt).expect("it acts");
            let answer = (handle, Resolution::Ready { name, value });
            process.script.answer(vec![answer], None);
            self.streams.read += 1;
        }
        self.schedule(self.now + LOOK_US, Happening::Act(attempt));
        true
    }

    /// Sometimes the first reader has the bytes for itself.
    fn pass_directly(&mut self, producer: AttemptKey, reader: AttemptKey) {
        let runs = |attempt| {
            let process = self.processes.get(&attempt);
            process.is_some_and(|process| !process.stopped)
        };
        let graph = self.engine.graph();
        let both_run = runs(producer) && runs(reader);
        let not_direct = graph.not_direct(producer.task, 0, reader.task);
        if both_run && not_direct.is_none() && !self.random.one_in(3) {
            self.streams.readers.insert(producer, reader);
            let step = Step::OpenOutput {
                index: 0,
                carriage: Carriage::Direct,
            };
            self.tell_step(producer, step);
        }
    }

    /// The end of an attempt, of which a direct stream has no value for others.
    pub(crate) fn with_passed(&mut self, attempt: AttemptKey, last: Move) -> Move {
        let is_direct = self.streams.readers.contains_key(&attempt);
        match last {
            Move::Finish(mut outputs) if is_direct => {
                if let Output::Value(value) = std::mem::replace(&mut outputs[0], Output::Passed) {
                    self.streams.passed.insert(attempt, value);
                }
                Move::Finish(outputs)
            }
            last => last,
        }
    }
}
