//! Starts that a worker receives before their time, each to follow the one before it.
//!
//! When a task ends with all that the next one waits for, the worker begins that by itself and says
//! so with its exit; so a chain of short tasks does not wait for the engine between any two of
//! them. For the graph it is as if the next one was begun now. Which tasks can follow
//! [`ciel_graph::Ahead`] says, and of the ready ones the node, which lends them. It does not know
//! how a worker receives a start. Read next: `succession`.

use ciel_graph::{Ahead, Entry};
use ciel_model::{Micros, TaskKey};
use ciel_node::{self as node, AttemptKey, WorkerKey};

use crate::engine::{Engine, Telling};
use crate::event::{Begun, Caller, attempt_of};
use crate::line::STARTS_MAX;

/// Microseconds: only after a task that took no longer are starts prefetched. For others it is not
/// worth it, and they are to begin in the order that the node chooses.
const QUICK_US_MAX: Micros = 1000;

impl Engine {
    pub(crate) fn on_retired(&mut self, worker: WorkerKey) {
        if let Some(line) = self.lines.get_mut(&worker) {
            line.is_retired = true;
        }
    }

    pub(crate) fn note_begin(&mut self, now: Micros, worker: WorkerKey) {
        if let Some(line) = self.lines.get_mut(&worker) {
            line.since = now;
        }
    }

    pub(crate) fn note_end(&mut self, telling: &Telling<'_>) {
        if let Caller::Worker { worker, .. } = telling.caller
            && let Some(line) = self.lines.get_mut(&worker)
        {
            line.was_quick = telling.now.saturating_sub(line.since) <= QUICK_US_MAX;
        }
    }

    /// Whether `next` is what the calling worker was to begin after its task. It has begun it.
    pub(crate) fn take_follower(&mut self, telling: &Telling<'_>, next: AttemptKey) -> bool {
        let Caller::Worker { worker, .. } = telling.caller else {
            return false;
        };
        let line = self.lines.get_mut(&worker);
        line.is_some_and(|line| line.starts.pop_front_if(|first| *first == next).is_some())
    }

    /// What was prefetched does not begin: that which the worker gave back, and all behind it.
    pub(crate) fn on_prefetch_returned(&mut self, worker: WorkerKey, runs: &[AttemptKey]) {
        let Some(line) = self.lines.get_mut(&worker) else {
            return;
        };
        if let Some(first) = line.starts.iter().position(|run| runs.contains(run)) {
            let gone = line.starts.drain(first..);
            self.for_node
                .extend(gone.map(|run| node::Event::TaskReturned { run }));
        }
    }

    /// Nothing follows the task that ran in `worker`.
    pub(crate) fn return_all(&mut self, worker: WorkerKey) {
        if let Some(line) = self.lines.get_mut(&worker) {
            let gone = line.starts.drain(..);
            self.for_node
                .extend(gone.map(|run| node::Event::TaskReturned { run }));
        }
    }

    /// Looks for what may follow the tasks that have begun in workers.
    pub(crate) fn prefetch(&mut self, telling: &mut Telling<'_>) {
        while let Some((worker, begun)) = telling.begun.get_mut(telling.looked) {
            telling.looked += 1;
            if self.may_prefetch(*worker, begun) {
                begun.ahead = self.look_ahead(*worker, attempt_of(&begun.assignment));
            }
        }
    }

    /// Nothing follows a task whose memory is watched, for it may take its worker with it; and
    /// nothing one that resumes, for what it takes is not known.
    fn may_prefetch(&self, worker: WorkerKey, begun: &Begun) -> bool {
        let assignment = &begun.assignment;
        let line = self.lines.get(&worker);
        line.is_some_and(|line| line.prefetches && line.was_quick && !line.is_retired)
            && !matches!(assignment.entry, Entry::Resume(_))
            && assignment
                .descriptor
                .options
                .resources
                .memory_bytes
                .is_none()
    }

    /// What can follow `run` and what was prefetched behind it: one after the other.
    fn look_ahead(&mut self, worker: WorkerKey, run: AttemptKey) -> Vec<Ahead> {
        let starts = self.lines[&worker].starts.iter().map(|run| run.task);
        let mut tasks: Vec<TaskKey> = std::iter::once(run.task).chain(starts).collect();
        let mut share = self.node.share();
        let mut found = Vec::new();
        while tasks.len() <= STARTS_MAX {
            let mut ahead = self.following(&tasks);
            if ahead.is_none() && share > 0 {
                share -= 1;
                ahead = self.lend(run);
            }
            let Some(ahead) = ahead else { break };
            tasks.push(ahead.assignment.task);
            found.push(ahead);
        }
        let line = self.lines.get_mut(&worker).expect("it was there above");
        line.starts
            .extend(found.iter().map(|ahead| attempt_of(&ahead.assignment)));
        found
    }

    /// Nothing while others wait for a slot: they are to have their turn in serial order.
    fn following(&self, tasks: &[TaskKey]) -> Option<Ahead> {
        let is_free = self.node.queued() == 0 && !self.node.is_serial() && !self.job_ended;
        is_free.then(|| self.graph().ahead(tasks)).flatten()
    }

    /// A ready task that may follow `run`. It is lent to that worker.
    fn lend(&mut self, run: AttemptKey) -> Option<Ahead> {
        let run = self.node.lend(run)?;
        let ahead = self.graph().preview(run.task, run.attempt);
        if ahead.is_none() {
            self.for_node.push(node::Event::TaskReturned { run });
        }
        ahead
    }
}
