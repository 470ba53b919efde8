//! One call of the conversation's door, as its parts share it.
//!
//! Read next: `conversation`.

use ciel_engine::Event;
use ciel_graph::Assignment;
use ciel_model::Micros;
use ciel_node::AttemptKey;
use ciel_protocol::wire::{EngineMessage, engine_message};

use crate::host::Host;
use crate::io::{Effect, WorkerExitReason};

/// One call of the door.
pub(crate) struct Io<'a> {
    pub(crate) now: Micros,
    pub(crate) host: &'a mut dyn Host,
    pub(crate) effects: &'a mut Vec<Effect>,
}

impl Io<'_> {
    /// Sends a message about a task.
    pub(crate) fn send(&mut self, tag: u32, kind: impl Into<engine_message::Kind>) {
        let message = EngineMessage::about(tag, kind);
        self.effects.push(Effect::Send(Box::new(message)));
    }

    /// Sends a message about the connection.
    pub(crate) fn send_plainly(&mut self, kind: impl Into<engine_message::Kind>) {
        let message = EngineMessage::connection(kind);
        self.effects.push(Effect::Send(Box::new(message)));
    }

    /// Hands an event to the engine.
    pub(crate) fn tell(&mut self, event: Event) {
        self.host.tell(vec![event]);
    }
}

/// What comes of one step: the conversation continues, or why it is over.
pub(crate) type Step = Result<(), WorkerExitReason>;

/// The attempt that an assignment is for.
pub(crate) fn attempt_of(assignment: &Assignment) -> AttemptKey {
    AttemptKey {
        task: assignment.task,
        number: assignment.attempt,
    }
}
