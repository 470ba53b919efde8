//! The turn of a task in a worker: what its requests see of the worker, and what comes of them.
//!
//! A worker that is used up retires from the node's pool before its task leaves its slot, so that
//! it gets no new task. Read next: `requests`.

use std::sync::Arc;

use ciel_engine::{Action, Caller, Event, Reply};
use ciel_model::{Audit, Descriptor, Failure, Refused};
use ciel_node::{AttemptKey, WorkerKey};
use ciel_protocol::wire::block_on::Continuation as Persistence;
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{self, Answer, Keep, PoolPolicy, Resume};

use crate::definitions::Received;
use crate::descriptor;
use crate::features::Features;
use crate::host::Host;
use crate::io::{Effect, Rules};
use crate::task::WorkerTask;

/// What comes of one message.
pub(crate) enum Outcome {
    Nothing,
    /// To be sent at once.
    Answer(Box<Answer>),
    /// The block is over before it began.
    Resumed(Resume),
    /// The turn is over, and this is what the engine replied.
    Over(TurnEnd, Reply),
}

/// What becomes of a task whose turn has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TurnEnd {
    /// The worker keeps the strand.
    Parked,
    /// The worker has nothing more of the task.
    Gone,
    /// The worker keeps the strand, and has to forget it.
    Unwanted,
}

/// Where a task acts.
pub(crate) struct Turn<'a> {
    pub(crate) host: &'a mut dyn Host,
    pub(crate) effects: &'a mut Vec<Effect>,
    pub(crate) worker: WorkerKey,
    pub(crate) rules: &'a Rules,
    pub(crate) pool: &'a PoolPolicy,
    pub(crate) features: Features,
    /// What the worker has declared.
    pub(crate) definitions: &'a Received,
    /// Strands that are parked in the worker.
    pub(crate) parked: usize,
    /// The worker gets no new task.
    pub(crate) used_up: bool,
    /// The attempt with which the worker continues by itself.
    pub(crate) next: Option<AttemptKey>,
    /// Nothing of the worker has come after the message that is performed.
    pub(crate) is_last: bool,
}

impl Turn<'_> {
    /// What becomes of the process when a turn ends with that message.
    pub(crate) fn note_use(&mut self, kind: &Kind) {
        let keep = match kind {
            Kind::Exit(exit) => exit.keep(),
            kind if ends_turn(kind) => Keep::Unspecified,
            _ => return,
        };
        self.used_up |= match keep {
            Keep::Unspecified => !self.pool.reuse,
            Keep::Process => false,
            Keep::End => true,
        };
    }

    /// A task that the worker spawns or delegates to.
    ///
    /// # Errors
    /// Why it cannot be spawned.
    pub(crate) fn descriptor(&self, asked: &wire::Descriptor) -> Result<Arc<Descriptor>, Refused> {
        let definition = self.definitions.find(asked.definition)?;
        descriptor::descriptor(definition, asked, self.features.streams)
    }

    /// Ends a task, which was seen to do that and frees its slot.
    pub(crate) fn end(
        &mut self,
        task: &mut WorkerTask,
        end: Action,
        audit: Option<Arc<Audit>>,
    ) -> Outcome {
        let event = task.attempt.act(end).audited(audit).event;
        Outcome::Over(TurnEnd::Gone, self.ask(event))
    }

    /// A task of whose end the graph knows leaves its slot, unless its worker has continued.
    pub(crate) fn leave(&mut self, task: &WorkerTask) -> Reply {
        match self.next {
            Some(_) => Reply::FollowerStopped,
            None => {
                let (attempt, end) = (task.slot_owner(), None);
                self.ask(Event::TurnEnded { attempt, end })
            }
        }
    }

    /// Tells the graph that a task failed; its slot is freed with its last message.
    pub(crate) fn fail(&mut self, task: &WorkerTask, failure: Failure) {
        let failed = task.attempt.failed(failure);
        self.host.tell(vec![failed.into()]);
    }

    /// Hands an event to the engine in the worker's name.
    pub(crate) fn ask(&mut self, event: Event) -> Reply {
        let worker = self.worker;
        if self.used_up {
            self.host.tell(vec![Event::WorkerRetired { worker }]);
        }
        let caller = Caller::Worker {
            worker,
            follows: self.next,
            is_last: self.is_last,
        };
        self.host.ask(event, caller)
    }
}

/// Whether a message ends a turn.
pub(crate) fn ends_turn(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Exit(_) | Kind::Error(_) | Kind::TailSpawn(_) | Kind::BlockOn(_)
    )
}

/// Whether a message means that the worker keeps the strand.
pub(crate) fn parks(kind: &Kind) -> bool {
    match kind {
        Kind::BlockOn(block) => matches!(block.continuation, Some(Persistence::Parked(_))),
        _ => false,
    }
}
