//! The end of a worker: what becomes of the task that it ran and of the strands that it kept.
//!
//! Read next: `conversation`, which comes to this end.

use ciel_graph::Event;
use ciel_model::{Failure, FailureKind, limits};
use ciel_protocol::wire::{self, Shutdown};
use tokio::sync::mpsc::UnboundedReceiver;

use super::Word;
use super::conversation::{Conversation, WorkerExitReason};
use super::failing::failure_told;
use super::held::Held;

impl Conversation<'_> {
    /// The worker goes, with what it ran and what it kept.
    pub(super) async fn end(
        mut self,
        ending: WorkerExitReason,
        mut words: UnboundedReceiver<Word>,
    ) {
        if matches!(ending, WorkerExitReason::Died) {
            self.peer.finish(limits::KILL_GRACE_MS).await;
        }
        self.workers.forget(self.worker);
        for held in std::mem::take(&mut self.parked).into_values() {
            held.close(self.workers);
        }
        self.part(&ending);
        words.close();
        while let Some(word) = words.recv().await {
            if let Word::Begin(begun) = word {
                self.workers.lost(&begun.assignment);
            }
        }
        let grace_ms = match ending {
            WorkerExitReason::Dismissed => limits::KILL_GRACE_MS,
            _ => 0,
        };
        if matches!(ending, WorkerExitReason::Dismissed) {
            // A worker that cannot be told is killed.
            let failures = self.failures_told();
            let _ = self.say_plainly(Shutdown { failures });
        }
        self.peer.finish(grace_ms).await;
    }

    /// What the client of a session hears at its end: the failures that nobody asked for.
    fn failures_told(&self) -> Vec<wire::Failure> {
        if !self.is_client {
            return Vec::new();
        }
        let core = self.workers.engine.lock();
        let failures = core.ending.iter().flat_map(|ending| &ending.failures);
        failures.map(|failure| failure_told(failure)).collect()
    }

    /// Tells the core that the worker is gone, and what became of the task that it ran.
    fn part(&mut self, ending: &WorkerExitReason) {
        let worker = self.worker;
        let held = self.running.take();
        let event = held.as_ref().and_then(|held| self.outcome(held, ending));
        self.workers.engine.with(|core, now| {
            let attempt = held.as_ref().map(|held| held.attempt.key());
            let stopping = attempt.is_some_and(|attempt| core.is_stopping(attempt));
            if let Some(event) = event.filter(|_| !stopping) {
                core.tell(now, event);
            }
            if let Some(held) = held.as_ref().filter(|_| self.is_client) {
                let failure = abandoned(held);
                core.tell(
                    now,
                    Event::JobCancelled {
                        failure: Box::new(failure),
                    },
                );
            }
            core.tell(now, ciel_engine::Event::WorkerGone { worker });
            core.worker_pids.remove(&worker);
            if let Some(held) = &held {
                let (attempt, end) = (held.seat(), None);
                core.tell(now, ciel_engine::Event::TurnEnded { attempt, end });
            }
        });
        if let Some(held) = held {
            held.close(self.workers);
        }
    }

    /// What the graph is told of a task whose worker ended; nothing if it knows.
    fn outcome(&self, held: &Held, ending: &WorkerExitReason) -> Option<Event> {
        let failure = |kind, message: String| {
            let mut failure = Failure::new(kind, held.label().clone(), message);
            failure.excerpt = self.peer.last_lines();
            failure
        };
        let (kind, message) = match ending {
            _ if held.over => return None,
            WorkerExitReason::Died | WorkerExitReason::Dismissed | WorkerExitReason::Overdue => {
                let message = format!("its worker {}", self.peer.end_in_words());
                let failure = failure(FailureKind::WorkerLost, message);
                return Some(held.attempt.lost(failure));
            }
            WorkerExitReason::Breach(what) => {
                let message = format!("its worker broke the executor protocol: {what}");
                (FailureKind::TaskError, message)
            }
            WorkerExitReason::TooLarge(bytes) => {
                let most = held.assignment.descriptor.options.resources.memory_bytes;
                let (used, most) = (bytes >> 20, most.unwrap_or(0) >> 20);
                let message = format!("it used {used} MiB of memory, but declared {most} MiB");
                (FailureKind::OutOfMemory, message)
            }
        };
        Some(held.attempt.failed(failure(kind, message)))
    }
}

/// Without its client a session is nobody's business.
fn abandoned(held: &Held) -> Failure {
    let message = "the program that began the session is gone";
    Failure::new(FailureKind::Cancelled, held.label().clone(), message)
}
