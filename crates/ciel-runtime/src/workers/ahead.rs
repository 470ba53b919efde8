//! Starts that a worker has received before their time, as the conversation knows them.
//!
//! The engine decides which tasks those are. When a task ends with all that the next one waits for,
//! the worker begins that by itself and says so with its exit; if it is not to begin any more, it
//! is cancelled. A worker whose task takes long gives back what it received. Read next:
//! `conversation`.

use std::collections::VecDeque;

use ciel_engine::{Event, Reply};
use ciel_graph::{Ahead, Entry};
use ciel_model::{Handle, TaskKey};
use ciel_node::AttemptKey;
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{self, Awaited};

use super::conversation::{Conversation, Talked, WorkerExitReason};
use super::held::Held;
use super::{attempt_of, start};

/// The starts that a worker has received and not begun: each follows the one before it, the first
/// the task that runs.
pub(super) type Line = VecDeque<Held>;

impl Conversation<'_> {
    /// Whether this worker is ever to receive starts before their time.
    pub(super) fn prefetches(&self) -> bool {
        self.features.ahead && self.features.no_scratch && self.pool.reuse
    }

    /// Sends what may follow the task that has begun.
    pub(super) fn send_ahead(&mut self, starts: Vec<Ahead>) -> Talked {
        for ahead in starts {
            if !self.send_one_ahead(ahead)? {
                break;
            }
        }
        Ok(())
    }

    /// Sends a start that is to follow the last one; false if there is none.
    fn send_one_ahead(&mut self, ahead: Ahead) -> Result<bool, WorkerExitReason> {
        let Some(running) = &self.running else {
            return Ok(false);
        };
        let before = self.line.back().unwrap_or(running).tag;
        let told = wire::Ahead {
            before,
            awaited: ahead
                .awaited
                .iter()
                .map(|awaited| Awaited {
                    input: awaited.input.0,
                    tag: self.tag_of(awaited.producer),
                    output: awaited.output,
                })
                .collect(),
        };
        let attempt = attempt_of(&ahead.assignment);
        let Ok((held, mut start)) = start::start(self.workers, ahead.assignment, self.features)
        else {
            // It fails the same way when it begins, and then it counts.
            self.return_starts(vec![attempt]);
            return Ok(false);
        };
        start.ahead = Some(told);
        let define = self.define(&held, &mut start);
        let tag = held.tag;
        self.line.push_back(held);
        self.say_definition(define)?;
        self.say(tag, start).map(|()| true)
    }

    /// What a task is called that runs or is in the line.
    fn tag_of(&self, task: TaskKey) -> u32 {
        let mut known = self.running.iter().chain(&self.line);
        let producer = known.find(|held| held.assignment.task == task);
        producer
            .expect("the producer of what a start awaits comes before it")
            .tag
    }

    /// The running task has waited for no time: the worker has dropped what was to follow it.
    pub(super) fn drop_line(&mut self) {
        let gone: Vec<AttemptKey> = self
            .line
            .drain(..)
            .map(|held| attempt_of(&held.assignment))
            .collect();
        self.return_starts(gone);
    }

    /// The worker gives starts back; those behind them go with them.
    pub(super) fn give_back(&mut self, tags: &[u32]) {
        let is_gone = |held: &Held| tags.contains(&held.tag);
        if let Some(first) = self.line.iter().position(is_gone) {
            let gone = self.line.drain(first..);
            let gone = gone.map(|held| attempt_of(&held.assignment)).collect();
            self.return_starts(gone);
        }
    }

    fn return_starts(&self, attempts: Vec<AttemptKey>) {
        if !attempts.is_empty() {
            let worker = self.worker;
            let event = Event::PrefetchReturned { worker, attempts };
            self.workers.engine.with(|core, now| core.tell(now, event));
        }
    }

    /// The start with which the worker goes on after `kind`, if it does.
    ///
    /// # Errors
    /// It has not received that start, or another one comes first.
    pub(super) fn follower(&mut self, kind: &Kind) -> Result<Option<Held>, WorkerExitReason> {
        let Kind::Exit(word) = kind else {
            return Ok(None);
        };
        if word.next == 0 {
            return Ok(None);
        }
        let next = self.line.pop_front_if(|first| first.tag == word.next);
        let untold =
            || WorkerExitReason::Breach("it continued with a start that it never received".into());
        next.map(Some).ok_or_else(untold)
    }

    /// The worker has ended `before` and begun `next`, which the engine has begun or does not want.
    pub(super) fn follow(&mut self, before: Held, mut next: Held, reply: Reply) -> Talked {
        (self.cancelled_at, self.sample_at) = (None, None);
        let Reply::Begin(begun) = reply else {
            next.over = true;
            next.place_of = Some(before.seat());
            before.close(self.workers);
            self.running = Some(next);
            return self.cancel();
        };
        before.close(self.workers);
        next.assignment = begun.assignment;
        next.assignment.entry = Entry::Start(Vec::new());
        let inputs = next.assignment.descriptor.inputs.len() as u32;
        next.told.extend((0..inputs).map(Handle));
        self.running = Some(next);
        self.send_ahead(begun.ahead)
    }
}
