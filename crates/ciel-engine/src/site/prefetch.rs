//! Starts that a worker receives before their time, each to follow the one before it.
//!
//! When a task ends with all that the next one waits for, the worker begins that by itself and
//! names it in its exit; so a chain of short tasks does not wait for the engine between any two of
//! them. For the graph the next one begins now. The node reserves ready tasks; the home knows which
//! others can follow, see [`ciel_graph::Ahead`]. It does not know how a worker receives a start.
//! Read next: `succession`.

use ciel_graph::{Ahead, Entry};
use ciel_model::Micros;
use ciel_node::{self as node, AttemptKey, Slot, WorkerKey};

use super::{Call, Site};
use crate::event::{Begun, Caller, Effect, attempt_of};
use crate::message::{STARTS_MAX, ToHome};

/// Microseconds: only after a task that took no longer are starts prefetched. For others it is not
/// worth it, and they are to begin in the order that the node chooses.
const QUICK_US_MAX: Micros = 1000;

/// A worker with more starts than these receives no others yet: many at once cost little more than
/// one.
const STARTS_ENOUGH: usize = STARTS_MAX / 2;

impl Site {
    pub(super) fn on_retired(&mut self, worker: WorkerKey) {
        if let Some(line) = self.lines.get_mut(&worker) {
            line.is_retired = true;
        }
    }

    pub(super) fn note_begin(&mut self, now: Micros, worker: WorkerKey) {
        if let Some(line) = self.lines.get_mut(&worker) {
            line.since = now;
        }
    }

    pub(super) fn note_end(&mut self, call: &Call<'_>) {
        if let Caller::Worker { worker, .. } = call.caller
            && let Some(line) = self.lines.get_mut(&worker)
        {
            line.was_quick = call.now.saturating_sub(line.since) <= QUICK_US_MAX;
        }
    }

    /// Whether `next` is what the caller was to begin after its task. It has begun it.
    pub(super) fn take_follower(&mut self, call: &Call<'_>, next: AttemptKey) -> bool {
        let worker = match call.caller {
            Caller::Worker { worker, .. } => worker,
            Caller::Process { .. } => return self.take_process(next),
            Caller::Nobody | Caller::Thread => return false,
        };
        let line = self.lines.get_mut(&worker);
        line.is_some_and(|line| line.starts.pop_front_if(|first| *first == next).is_some())
    }

    /// What was prefetched does not begin: that which the worker gave back, and all behind it.
    pub(super) fn on_prefetch_returned(&mut self, worker: WorkerKey, attempts: &[AttemptKey]) {
        let Some(line) = self.lines.get_mut(&worker) else {
            return;
        };
        if let Some(first) = line
            .starts
            .iter()
            .position(|attempt| attempts.contains(attempt))
        {
            let gone = line.starts.drain(first..);
            self.for_node
                .extend(gone.map(|attempt| node::Event::TaskReturned { attempt }));
        }
    }

    /// Nothing follows the task that ran in `worker`.
    pub(super) fn return_all(&mut self, worker: WorkerKey) {
        if let Some(line) = self.lines.get_mut(&worker) {
            let gone = line.starts.drain(..).chain(line.lent.drain(..));
            self.for_node
                .extend(gone.map(|attempt| node::Event::TaskReturned { attempt }));
        }
    }

    /// Asks the home what may follow the tasks that have begun in workers; false if there are none.
    pub(super) fn ask_for_starts(&mut self, call: &mut Call<'_>) -> bool {
        let mut asked = false;
        while let Some((worker, begun)) = call.begun.get(call.looked) {
            call.looked += 1;
            if self.may_prefetch(*worker, begun) && !call.has_sent_more(*worker) {
                let (worker, behind) = (*worker, attempt_of(&begun.assignment));
                asked |= self.ask_behind(call, worker, behind);
            }
        }
        asked
    }

    /// Nothing follows a task whose memory is watched, for it may take its worker with it; and
    /// nothing one that resumes, for what it takes is not known.
    fn may_prefetch(&self, worker: WorkerKey, begun: &Begun) -> bool {
        let assignment = &begun.assignment;
        let line = self.lines.get(&worker);
        line.is_some_and(|line| line.prefetches && line.was_quick && !line.is_retired)
            && self.node.takes_starts(worker)
            && !self.is_stopping(attempt_of(assignment))
            && !matches!(assignment.entry, Entry::Resume(_))
            && assignment
                .descriptor
                .options
                .resources
                .memory_bytes
                .is_none()
    }

    /// A share of the ready tasks may follow. If others wait for a slot, only those may: the others
    /// are to have their turn in serial order.
    fn ask_behind(&mut self, call: &mut Call<'_>, worker: WorkerKey, behind: AttemptKey) -> bool {
        let line = &self.lines[&worker];
        if line.starts.len() > STARTS_ENOUGH {
            return false;
        }
        let room = (STARTS_MAX - line.starts.len()).min(self.node.share());
        let lent: Vec<AttemptKey> = (0..room).map_while(|_| self.node.lend(behind)).collect();
        let is_free = self.node.queued() == 0 && !self.node.is_serial() && !self.job_ended;
        if lent.is_empty() && !is_free {
            return false;
        }
        let line = self.lines.get_mut(&worker).expect("it was there above");
        line.lent.extend(&lent);
        call.to_home.push(ToHome::MayPrefetch {
            behind,
            line: line.starts.iter().map(|attempt| attempt.task).collect(),
            lent,
            keeps_strands: self.node.keeps_strands(worker),
        });
        true
    }

    /// The home has reported what may follow an attempt; if the attempt has left its slot
    /// meanwhile, nothing follows.
    pub(super) fn on_prefetch(
        &mut self,
        call: &mut Call<'_>,
        behind: AttemptKey,
        mut starts: Vec<Ahead>,
    ) {
        if self.send_processes(call, behind, &mut starts) {
            return;
        }
        let Some(Slot::Worker(worker)) = self.slot_of(behind) else {
            return;
        };
        let is_followed = self.followers.values().any(|before| *before == behind);
        let Some(line) = self.lines.get_mut(&worker).filter(|_| !is_followed) else {
            return;
        };
        line.starts
            .extend(starts.iter().map(|ahead| attempt_of(&ahead.assignment)));
        let rest = line
            .lent
            .drain(..)
            .filter(|attempt| !line.starts.contains(attempt));
        self.for_node
            .extend(rest.map(|attempt| node::Event::TaskReturned { attempt }));
        let is_behind =
            |(_, begun): &&mut (WorkerKey, Begun)| attempt_of(&begun.assignment) == behind;
        match call.begun.iter_mut().find(is_behind) {
            Some((_, begun)) => begun.ahead = starts,
            None if starts.is_empty() => {}
            None => call.effects.push(Effect::SendStarts {
                worker,
                attempt: behind,
                starts,
            }),
        }
    }
}
