//! Results that are kept: what a task gave is found by an equal one, also after the engine was
//! lost.
//!
//! Only results without references are kept, of tasks that printed nothing. Of some only the digest
//! is left. It does not know why
//! one is looked up. Read next: `ciel_graph`'s `kept`.

use std::collections::BTreeMap;

use ciel_engine::ResultQuery;
use ciel_graph::{Event, Output};
use ciel_model::{Content, Handle, RerunReason, TaskKey, Value};
use ciel_node::AttemptKey;

/// What a result depends on: the payload, the number of outputs, and the inputs.
type Key = (Vec<u8>, u32, Vec<Vec<u8>>);

/// Of so many results that are found, one has lost its bytes.
const KNOWN_EACH: u64 = 2;

/// Kept results, and lookups that are not answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Results {
    kept: BTreeMap<Key, Vec<Value<Handle>>>,
    /// What tasks were looked up under; they may run afterwards.
    asked: BTreeMap<TaskKey, Key>,
    /// How many lookups have found a result.
    found: u64,
}

impl Results {
    pub(crate) fn ask(&mut self, query: ResultQuery) {
        let inputs = query.inputs.iter().map(|(_, content)| bytes_of(content));
        let descriptor = &query.descriptor;
        let key = (
            descriptor.payload.to_vec(),
            descriptor.outputs,
            inputs.collect(),
        );
        self.asked.insert(query.attempt.task, key);
    }

    /// A task spawns: its children would have to print again.
    pub(crate) fn forget(&mut self, task: TaskKey) {
        self.asked.remove(&task);
    }

    /// A task ended by this event.
    pub(crate) fn note(&mut self, event: &Event) {
        let Event::TaskFinished {
            task,
            outputs,
            printed: false,
            ..
        } = event
        else {
            return;
        };
        let plain = |output: &Output| match output {
            Output::Value(value) if value.references.is_empty() => Some(value.clone()),
            _ => None,
        };
        let outputs: Option<Vec<_>> = outputs.iter().map(plain).collect();
        if let (Some(key), Some(outputs)) = (self.asked.get(task), outputs) {
            self.kept.insert(key.clone(), outputs);
        }
    }

    /// What came of a lookup.
    pub(crate) fn answer(&mut self, AttemptKey { task, number }: AttemptKey) -> Event {
        let attempt = number;
        let asked = self.asked.get(&task);
        let found = asked.and_then(|key| self.kept.get(key)).cloned();
        self.found += u64::from(found.is_some());
        match found {
            Some(outputs) if self.found.is_multiple_of(KNOWN_EACH) => Event::ResultKnown {
                task,
                attempt,
                outputs,
                printed: false,
            },
            Some(outputs) => Event::ResultFound {
                task,
                attempt,
                outputs,
                printed: false,
            },
            None => Event::ResultMissing {
                task,
                attempt,
                reason: Box::new(RerunReason::New),
            },
        }
    }
}

fn bytes_of(content: &Content) -> Vec<u8> {
    match content {
        Content::Inline(bytes) => bytes.to_vec(),
        Content::File { name, .. } => name.0.to_be_bytes().to_vec(),
    }
}
