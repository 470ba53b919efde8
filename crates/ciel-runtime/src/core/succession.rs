//! How one task follows another in the same worker, with no detour.
//!
//! It does not know what is said to the worker. Read next: `workers/conversation.rs`.

use ciel_graph::{self as graph, Assignment};
use ciel_model::Micros;
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
