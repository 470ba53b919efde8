//! The end of a turn, and which task follows it in the same slot.
//!
//! What a task makes ready when it ends, and the slot that it leaves, reach the node together: so
//! they can meet, in a worker that is awake and has the data. A worker that has begun the next task
//! by itself keeps the slot for it, if that task is ready by then. Read next: `prefetch`.

use ciel_graph as graph;
use ciel_node::{self as node, AttemptKey, Slot};

use crate::engine::{Engine, Telling};
use crate::event::{Effect, Reply};

impl Engine {
    /// An attempt waits. One that the graph has ended, before or by this, leaves its slot.
    pub(crate) fn on_task_blocked(
        &mut self,
        telling: &mut Telling<'_>,
        run: AttemptKey,
        event: graph::Event,
    ) {
        if !self.is_stopping(run) {
            self.tell_graph(telling, event);
        }
        if self.is_stopping(run) {
            telling.reply = Reply::Stopped;
            self.free_slot(telling, run);
        }
    }

    /// An attempt's turn is over; its slot is free, unless its worker has begun another one in it.
    pub(crate) fn on_turn_ended(
        &mut self,
        telling: &mut Telling<'_>,
        run: AttemptKey,
        end: Option<graph::Event>,
    ) {
        self.note_end(telling);
        if let Some(event) = end.filter(|_| !self.is_stopping(run)) {
            self.tell_graph(telling, event);
        }
        match telling.follower() {
            None => self.free_slot(telling, run),
            Some(next) => self.follow(telling, run, next),
        }
    }

    /// The slot passes on, if what the worker has begun is ready: it was lent to the worker, or
    /// became ready just now.
    fn follow(&mut self, telling: &mut Telling<'_>, run: AttemptKey, next: AttemptKey) {
        let is_next = |event: &node::Event| match event {
            node::Event::TaskOffered { run, .. } => *run == next,
            _ => false,
        };
        let offered = self.for_node.iter().position(is_next);
        let is_known = offered.is_some() || self.node.is_lent(next);
        let is_ready = self.graph().awaits_place(next.task, next.attempt);
        if !(self.take_follower(telling, next) && is_known && is_ready) {
            telling.reply = Reply::FollowerStopped;
            return self.for_node.push(node::Event::Ticked);
        }
        if let Some(offered) = offered {
            // It needs no slot looked for.
            self.for_node.remove(offered);
        }
        self.slots.remove(&run);
        self.for_node.push(node::Event::TaskFollowed { run, next });
    }

    /// The graph has suspended an attempt.
    pub(crate) fn suspend(&mut self, telling: &mut Telling<'_>, run: AttemptKey) {
        telling.reply = Reply::Suspended;
        telling.suspended = Some(run);
        if let Some(Slot::Worker(worker)) = self.place_of(run) {
            self.return_all(worker);
        }
        self.slots.remove(&run);
        let parked = self.graph().keeps_live_copy(run.task);
        self.leave_node(run, parked);
    }

    /// Nothing of an attempt is in its slot any more.
    pub(crate) fn free_slot(&mut self, telling: &mut Telling<'_>, run: AttemptKey) {
        if let Some(slot) = self.slots.remove(&run)
            && let Slot::Worker(worker) = slot.place
        {
            self.return_all(worker);
        }
        if self.job_ended && self.slots.is_empty() {
            telling.effects.push(Effect::Quiet);
        }
        self.leave_node(run, false);
    }

    pub(crate) fn leave_node(&mut self, run: AttemptKey, parked: bool) {
        self.for_node.push(node::Event::TaskLeft { run, parked });
    }
}
