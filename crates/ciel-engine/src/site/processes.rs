//! Starts of processes that are sent before their time, to begin where another one has ended.
//!
//! Whoever starts processes begins the first of them as soon as one ends well that passes its slot
//! on, and names it with that end; so a slot does not wait for the engine between two short
//! processes. For the graph the next one begins now, as one that a worker has begun. What was sent
//! stays in its queue. If it has a slot by the node's choice first, it begins there by the same
//! start: so nothing begins twice, and nothing waits that could run. It does not know how processes
//! are started. Read next: `prefetch`, for workers.

use std::collections::BTreeMap;

use ciel_graph::{Ahead, Assignment};
use ciel_model::{Micros, Resources};
use ciel_node::{self as node, AttemptKey};

use super::{Call, Site};
use crate::event::{Effect, attempt_of};
use crate::message::ToHome;

/// Microseconds: only after a process that took no longer are starts sent. For others it is not
/// worth it, and they are to begin in the order that the node chooses.
const QUICK_US_MAX: Micros = 20_000;

/// Starts that wait, for each core: so many may end before the engine has heard of the first.
const STARTS_FOR_EACH: usize = 2;

/// Starts of processes that were sent and have not begun.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// The last process was quick.
    was_quick: bool,
    /// Ready tasks about which the home was asked whether they may follow, with the attempt for
    /// which it was asked.
    asked: Vec<(AttemptKey, Vec<AttemptKey>)>,
    /// What was sent and has not begun, and whether it was withdrawn and is not returned yet.
    sent: BTreeMap<AttemptKey, bool>,
}

impl Processes {
    /// Nothing was sent that has not begun and is not returned.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
}

/// Whether another process may begin in the slot of one when that has exited with 0: it needs what
/// most do, and nobody reads or writes what it is given or gives while it runs.
pub fn passes_on(assignment: &Assignment) -> bool {
    let descriptor = &assignment.descriptor;
    descriptor.options.resources == Resources::default()
        && assignment.streams.is_empty()
        && descriptor.streams.outputs.is_empty()
}

impl Site {
    /// A process begins in its slot. What was sent of it begins there.
    pub(super) fn note_process(&mut self, call: &mut Call<'_>, assignment: &Assignment) {
        let attempt = attempt_of(assignment);
        self.take_process(attempt);
        if let Some(slot) = self.slots.get_mut(&attempt) {
            slot.since = call.now;
            slot.passes_on = passes_on(assignment);
            call.process = slot.passes_on.then_some(attempt);
        }
    }

    /// A process has ended.
    pub(super) fn note_process_end(&mut self, now: Micros, attempt: AttemptKey) {
        if let Some(slot) = self.slots.get(&attempt).filter(|slot| slot.passes_on) {
            self.processes.was_quick = now.saturating_sub(slot.since) <= QUICK_US_MAX;
        }
    }

    /// Whether `next` was sent, and so may have begun where a process has ended.
    pub(super) fn take_process(&mut self, next: AttemptKey) -> bool {
        self.processes.sent.remove(&next).is_some()
    }

    /// Asks the home whether ready tasks may follow the process that has begun; false if it is not
    /// asked. They are the first in serial order, and a small share.
    pub(super) fn ask_for_processes(&mut self, call: &mut Call<'_>) -> bool {
        let Some(behind) = call.process.take() else {
            return false;
        };
        if !self.processes.was_quick || self.job_ended || self.is_stopping(behind) {
            return false;
        }
        let most = STARTS_FOR_EACH * self.capacity().resources.millicores as usize / 1000;
        let count = most.min(self.node.share());
        let first: Vec<AttemptKey> = (0..count).map_while(|_| self.node.lend(behind)).collect();
        let is_sent = |attempt: &AttemptKey| self.processes.sent.contains_key(attempt);
        let (sent, mut lent): (Vec<_>, Vec<_>) = first.into_iter().partition(is_sent);
        let room = most.saturating_sub(self.processes.sent.len());
        let rest = lent.split_off(room.min(lent.len()));
        self.return_lent(sent.into_iter().chain(rest));
        if lent.is_empty() {
            return false;
        }
        self.processes.asked.push((behind, lent.clone()));
        call.to_home.push(ToHome::MayPrefetch {
            behind,
            line: Vec::new(),
            lent,
            keeps_strands: false,
        });
        true
    }

    fn return_lent(&mut self, lent: impl IntoIterator<Item = AttemptKey>) {
        let returned = lent.into_iter();
        self.for_node
            .extend(returned.map(|attempt| node::Event::TaskReturned { attempt }));
    }

    /// The home has said which of the tasks about which it was asked may follow a process; false if
    /// it was not asked for a process. All of them are in their queue again.
    pub(super) fn send_processes(
        &mut self,
        call: &mut Call<'_>,
        behind: AttemptKey,
        starts: &mut Vec<Ahead>,
    ) -> bool {
        let mut asked = self.processes.asked.iter();
        let Some(at) = asked.position(|(asked, _)| *asked == behind) else {
            return false;
        };
        let (_, lent) = self.processes.asked.remove(at);
        for ahead in starts.drain(..) {
            let attempt = attempt_of(&ahead.assignment);
            if self.node.is_lent(attempt) && passes_on(&ahead.assignment) {
                self.processes.sent.insert(attempt, false);
                call.effects.push(Effect::SendProcess(ahead.assignment));
            }
        }
        self.return_lent(lent);
        true
    }

    /// What was sent is not to begin.
    pub(super) fn withdraw_process(&mut self, call: &mut Call<'_>, attempt: AttemptKey) {
        if let Some(is_withdrawn) = self.processes.sent.get_mut(&attempt)
            && !std::mem::replace(is_withdrawn, true)
        {
            call.effects.push(Effect::WithdrawProcess(attempt));
        }
    }

    /// What was sent has not begun, and will not.
    pub(super) fn on_process_returned(&mut self, call: &mut Call<'_>, attempt: AttemptKey) {
        if self.take_process(attempt) {
            self.note_quiet(call);
        }
    }
}
