//! What a task does, and what the engine is told of it.
//!
//! Read next: `position`, for the indexes of actions.

use std::sync::Arc;

use bytes::Bytes;
use ciel_graph::{self as graph, Output, Step};
use ciel_model::{Descriptor, Failure, Handle, Value};
use ciel_node::AttemptKey;

use super::Attempt;
use crate::event::Event;

/// Something that a task does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// It spawns a task.
    Spawn(Descriptor),
    /// It makes an object.
    Construct {
        /// Where in its program.
        at: At,
        /// What the object is.
        value: Value<Handle>,
    },
    /// It asked its environment something.
    Observe {
        /// Where in its program.
        at: At,
        /// What it asked.
        kind: Arc<str>,
        /// The answer.
        value: Bytes,
    },
    /// It ends, and its outputs are those of this successor.
    TailSpawn(Descriptor),
    /// It ends, with its outputs in order.
    Finish(Vec<Output>),
    /// It ends with a failure.
    Fail(Failure),
}

/// Where in its program a strand does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// As an action of its own.
    Action,
    /// As a part of the next action.
    Part,
}

/// An action that has its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// What to tell the engine. The actions that end an attempt thereby leave its slot, and count
    /// for nothing if the graph has ended the attempt before.
    pub event: Event,
    /// The handle of the first object that it makes; the others follow.
    pub first: Option<Handle>,
}

impl Attempt {
    /// The task does something.
    pub fn act(&mut self, action: Action) -> Act {
        let AttemptKey { task, attempt } = self.key;
        let event = match action {
            Action::Spawn(descriptor) => return self.spawn(descriptor),
            Action::Construct { at, value } => return self.construct(at, value),
            Action::Observe { at, kind, value } => {
                let at = self.position.pass(at);
                self.step(Step::Input { at, kind, value })
            }
            Action::TailSpawn(descriptor) => self.end(graph::Event::TaskTailSpawned {
                task,
                attempt,
                descriptor,
                after: self.position.actions(),
            }),
            Action::Finish(outputs) => self.end(graph::Event::TaskFinished {
                task,
                attempt,
                outputs,
                printed: self.printed,
            }),
            Action::Fail(failure) => self.end(graph::Event::TaskFailed {
                task,
                attempt,
                failure,
            }),
        };
        Act { event, first: None }
    }

    fn spawn(&mut self, descriptor: Descriptor) -> Act {
        let action = self.position.pass(At::Action).action;
        let first = self.make(descriptor.outputs);
        let step = Step::Spawn {
            action,
            first,
            descriptor,
        };
        Act {
            event: self.step(step),
            first: Some(first),
        }
    }

    fn construct(&mut self, at: At, value: Value<Handle>) -> Act {
        let (at, handle) = (self.position.pass(at), self.make(1));
        Act {
            event: self.step(Step::Construct { at, handle, value }),
            first: Some(handle),
        }
    }
}
