//! The end of a turn, and which task follows it in the same slot.
//!
//! What a task makes ready when it ends, and the slot that it leaves, reach the node together if
//! the home is in the same process: so they can meet, in a worker that is awake and has the data. A
//! worker that has begun the next task by itself keeps the slot for it, if the home agrees. Read
//! next: `prefetch`.

use ciel_graph as graph;
use ciel_node::{self as node, AttemptKey, Slot};

use super::{Call, Site, TakenSlot};
use crate::event::{Caller, Effect, Reply};
use crate::message::ToHome;

impl Site {
    /// An attempt waits, if the home agrees. One that the graph has ended already leaves its slot.
    pub(super) fn on_task_blocked(
        &mut self,
        call: &mut Call<'_>,
        attempt: AttemptKey,
        wait: graph::Wait,
    ) -> bool {
        call.asks = Some(attempt);
        let slot = self.slots.get_mut(&attempt);
        if let Some(slot) = slot.filter(|slot| !slot.is_stopping) {
            slot.is_asking = true;
            slot.is_timely |= wait.is_timely();
            return true;
        }
        call.answer(attempt, Reply::Stopped);
        self.free_slot(call, attempt);
        false
    }

    /// An attempt's turn is over, as the home receives first; its slot is free, unless its worker
    /// has begun another one in it.
    pub(crate) fn on_turn_ended(&mut self, call: &mut Call<'_>, attempt: AttemptKey) {
        self.note_end(call);
        self.note_process_end(call.now, attempt);
        match call.follower() {
            None => self.free_slot(call, attempt),
            Some(next) => self.follow(call, attempt, next),
        }
    }

    /// The slot is to pass on to the attempt that the worker has begun. The home reports whether
    /// that is ready.
    fn follow(&mut self, call: &mut Call<'_>, attempt: AttemptKey, next: AttemptKey) {
        call.asks = Some(attempt);
        let has_slot = self.slots.get(&next).is_some_and(|slot| slot.has_begun);
        if has_slot && matches!(call.caller, Caller::Process { .. }) {
            // It had that before it was known to have begun here.
            return self.free_slot(call, attempt);
        }
        let was_sent = self.take_follower(call, next) && !self.node.is_placed(next);
        let slot = self.slot_of(attempt);
        let (Some(slot), true) = (slot, was_sent) else {
            return self.refuse_follower(call, attempt);
        };
        self.followers.insert(next, attempt);
        // The node does not look for another slot meanwhile.
        self.for_node
            .push_back(node::Event::TaskWithdrawn { attempt: next });
        let attempt = next;
        call.to_home.push(ToHome::Placed { attempt, slot });
    }

    /// What a worker has begun by itself is not to run: its slot is free when it has stopped.
    pub(super) fn refuse_follower(&mut self, call: &mut Call<'_>, before: AttemptKey) {
        call.answer(before, Reply::FollowerStopped);
        self.for_node.push_back(node::Event::Ticked);
    }

    /// What a worker has begun by itself has the slot of the task that it follows.
    pub(super) fn pass_slot_on(&mut self, next: AttemptKey) {
        let Some(attempt) = self.followers.remove(&next) else {
            return;
        };
        self.return_begun(attempt);
        let slot = self.slots.remove(&attempt);
        let slot = slot.expect("the slot stays taken until the home has replied");
        let slot = TakenSlot {
            is_follower: true,
            ..TakenSlot::new(slot.slot)
        };
        self.slots.insert(next, slot);
        self.for_node.push_back(node::Event::TaskFollowed {
            attempt,
            next,
            kept: node::Kept::Nothing,
        });
    }

    /// The graph has suspended an attempt. If its worker is gone meanwhile, so is its live copy.
    pub(super) fn suspend(&mut self, call: &mut Call<'_>, attempt: AttemptKey, parked: bool) {
        let Some(slot) = self.slots.remove(&attempt) else {
            if parked {
                let task = attempt.task;
                call.to_home.push(ToHome::ContinuationLost { task });
            }
            return;
        };
        call.answer(attempt, Reply::Suspended);
        call.suspended = Some(attempt);
        if let Slot::Worker(worker) = slot.slot {
            self.return_all(worker);
        }
        let kept = match (parked, slot.is_timely) {
            (false, _) => node::Kept::Nothing,
            (true, false) => node::Kept::Copy,
            (true, true) => node::Kept::TimelyCopy,
        };
        if parked && let Some(next) = self.begun.remove(&attempt) {
            return self.for_node.push_back(node::Event::TaskFollowed {
                attempt,
                next,
                kept,
            });
        }
        self.return_begun(attempt);
        self.leave_node(attempt, kept);
    }

    /// Nothing of an attempt is in its slot any more.
    pub(super) fn free_slot(&mut self, call: &mut Call<'_>, attempt: AttemptKey) {
        self.return_begun(attempt);
        if let Some(slot) = self.slots.remove(&attempt)
            && let Slot::Worker(worker) = slot.slot
        {
            self.return_all(worker);
            self.followers.retain(|_, before| *before != attempt);
        }
        self.note_quiet(call);
        self.leave_node(attempt, node::Kept::Nothing);
    }

    pub(super) fn note_quiet(&self, call: &mut Call<'_>) {
        if self.job_ended && self.is_quiet() {
            call.effects.push(Effect::Quiet);
        }
    }

    fn leave_node(&mut self, attempt: AttemptKey, kept: node::Kept) {
        self.for_node
            .push_back(node::Event::TaskLeft { attempt, kept });
    }
}
