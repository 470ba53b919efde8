//! The actions of a task, and their events for the engine.
//!
//! Read next: `position`, for the indexes of actions.

use std::sync::Arc;

use bytes::Bytes;
use ciel_graph::{self as graph, Output, Step};
use ciel_model::{ActionKey, Audit, Descriptor, Failure, Handle, Value};
use ciel_node::AttemptKey;

use super::Attempt;
use crate::event::Event;

/// Something that a task does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// It spawns a task.
    Spawn {
        /// Where in its program: an action of its own.
        at: At,
        /// The handle of its first output, if the executor of the spawning task chooses it.
        first: Option<Handle>,
        /// The task.
        descriptor: Arc<Descriptor>,
    },
    /// It makes an object.
    Construct {
        /// Where in its program.
        at: At,
        /// Its handle, if the executor of the task chooses it.
        handle: Option<Handle>,
        /// What the object is.
        value: Value<Handle>,
    },
    /// It makes an object, which is one of its outputs before it ends.
    Publish {
        /// Where in its program.
        at: At,
        /// Its handle, if the executor of the task chooses it.
        handle: Option<Handle>,
        /// Which output.
        index: u32,
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
    TailSpawn(Arc<Descriptor>),
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
    /// At this index, as the executor of the task counts.
    Said(ActionKey),
}

/// An action that has its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// The event for the engine. The actions that end an attempt thereby release its slot, and have
    /// no effect if the graph has ended the attempt before.
    pub event: Event,
    /// The handle of the first object that it makes; the others follow.
    pub first: Option<Handle>,
}

impl Act {
    /// The same, with what the task was seen to do until then; only an end has that.
    pub fn audited(mut self, seen: Option<Arc<Audit>>) -> Act {
        if let Event::TurnEnded { end: Some(end), .. } = &mut self.event
            && let graph::Event::TaskFinished { audit, .. }
            | graph::Event::TaskTailSpawned { audit, .. } = end
        {
            *audit = seen;
        }
        self
    }
}

impl Attempt {
    /// The task does something.
    pub fn act(&mut self, action: Action) -> Act {
        let AttemptKey {
            task,
            number: attempt,
        } = self.key;
        let event = match action {
            Action::Spawn {
                at,
                first,
                descriptor,
            } => return self.spawn(at, first, descriptor),
            Action::Construct { at, handle, value } => {
                let (at, handle) = self.make_at(at, handle, 1);
                return self.making(handle, Step::Construct { at, handle, value });
            }
            Action::Publish {
                at,
                handle,
                index,
                value,
            } => {
                let (at, handle) = self.make_at(at, handle, 1);
                let publish = Step::Publish {
                    at,
                    handle,
                    index,
                    value,
                };
                return self.making(handle, publish);
            }
            Action::Observe { at, kind, value } => {
                let at = self.position.pass(at);
                self.step(Step::Input { at, kind, value })
            }
            Action::TailSpawn(descriptor) => self.left_with(graph::Event::TaskTailSpawned {
                task,
                attempt,
                descriptor,
                after: self.position.actions(),
                audit: None,
            }),
            Action::Finish(outputs) => self.left_with(graph::Event::TaskFinished {
                task,
                attempt,
                outputs,
                printed: self.printed,
                audit: None,
            }),
            Action::Fail(failure) => self.left_with(self.failed(failure)),
        };
        Act { event, first: None }
    }

    fn spawn(&mut self, at: At, first: Option<Handle>, descriptor: Arc<Descriptor>) -> Act {
        let (at, first) = self.make_at(at, first, descriptor.outputs);
        let action = at.action;
        let spawn = Step::Spawn {
            action,
            first,
            descriptor,
        };
        self.making(first, spawn)
    }

    fn making(&self, first: Handle, step: Step) -> Act {
        Act {
            event: self.step(step),
            first: Some(first),
        }
    }

    /// The task makes `count` objects here: where that is, and the handle of the first.
    fn make_at(&mut self, at: At, said: Option<Handle>, count: u32) -> (ActionKey, Handle) {
        let first = said.unwrap_or_else(|| self.make(count));
        (self.position.pass(at), first)
    }
}
