//! How one task follows another in the same worker, with no detour.
//!
//! It does not know what is said to the worker. Read next: `workers/conversation.rs`.

use ciel_graph::{self as graph, Ahead, Assignment};
use ciel_model::{Micros, TaskKey};
use ciel_node::{self as node, Run, WorkerKey};

use super::Core;

impl Core {
    /// Tells the graph the end of a task, then the node that its place is free: what it made ready
    /// can go where it ran, whose process is awake and has its data. A worker that has `retired`
    /// gets nothing of that.
    pub(crate) fn tell_end(
        &mut self,
        now: Micros,
        event: graph::Event,
        run: Run,
        retired: Option<WorkerKey>,
    ) {
        self.node.hold(true);
        self.tell(now, event);
        if let Some(worker) = retired {
            self.tell_node(now, node::Event::WorkerRetired { worker });
        }
        self.node.hold(false);
        self.leave(now, run);
    }

    /// Tells the graph the end of a task whose worker goes on with `next` by itself. False if that
    /// is not ready now, because it was given up for instance; then the place stays taken until the
    /// worker has left it as well.
    pub(crate) fn tell_succession(
        &mut self,
        now: Micros,
        event: graph::Event,
        run: Run,
        next: Run,
    ) -> bool {
        self.node.hold(true);
        self.follower = Some((next, false));
        self.tell(now, event);
        self.node.hold(false);
        let is_offered = self.follower == Some((next, true)) || self.node.is_lent(next);
        let follows = is_offered && self.graph().awaits_place(next.task, next.attempt);
        if follows {
            self.forget_place(run);
            self.tell_node(now, node::Event::TaskFollowed { run, next });
        } else {
            self.tell_node(now, node::Event::Ticked);
        }
        self.follower = None;
        follows
    }

    /// A task is ready; the node need not look for a place for one that has begun already.
    pub(super) fn offer(&mut self, now: Micros, event: node::Event) {
        match (&event, &mut self.follower) {
            (node::Event::TaskOffered { run, .. }, Some((next, is_offered))) if run == next => {
                *is_offered = true;
            }
            _ => self.feed_node(now, event),
        }
    }

    /// Whether what begins in `worker` now is handed to its conversation, which has just spoken. A
    /// full history is written down by who performs orders, so then it goes that way; but not what
    /// the worker has begun already.
    pub(super) fn goes_on(&self, worker: WorkerKey) -> bool {
        let may_go_on = self.follower.is_some() || !self.history.is_full();
        self.speaking == Some(worker) && self.next.is_none() && may_go_on
    }

    /// That task is over, wherever it was.
    pub(super) fn forget_place(&mut self, run: Run) {
        self.places.remove(&run);
        self.stopping.remove(&run);
        self.script_lines.remove(&run.task);
        self.pids.remove(&run.task);
    }

    /// What a worker that runs the last of `before` can be told ahead. Nothing while others wait
    /// for a place: they are to have their turn in serial order.
    pub(crate) fn look_ahead(&self, before: &[TaskKey]) -> Option<Ahead> {
        match self.node.queued() == 0 && !self.node.is_serial() && self.ending.is_none() {
            true => self.graph().ahead(before),
            false => None,
        }
    }

    /// A ready task that the worker of `run` can be told ahead. It is lent to that worker.
    pub(crate) fn lend(&mut self, now: Micros, run: Run) -> Option<Ahead> {
        let lent = self.node.lend(self.state.graph().order(), run)?;
        let ahead = self.graph().preview(lent.task, lent.attempt);
        if ahead.is_none() {
            self.take_back(now, vec![lent]);
        }
        ahead
    }

    /// What was told ahead does not begin where it was told.
    pub(crate) fn take_back(&mut self, now: Micros, runs: Vec<Run>) {
        for run in runs {
            if self.node.is_lent(run) {
                self.tell_node(now, node::Event::TaskReturned { run });
            }
        }
    }

    /// Does something in the name of a worker's conversation, which then asks [`Core::take_next`].
    pub(crate) fn speak_for<T>(
        &mut self,
        worker: WorkerKey,
        act: impl FnOnce(&mut Core) -> T,
    ) -> T {
        self.speaking = Some(worker);
        let done = act(self);
        self.speaking = None;
        done
    }

    /// The task that the worker that has just spoken is to run next, if there is one.
    pub(crate) fn take_next(&mut self) -> Option<Box<Assignment>> {
        self.next.take()
    }
}
