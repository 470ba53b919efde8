//! The watchdog's question: is there anything from which the job could continue?
//!
//! A job continues because a task is in its slot, a worker starts, the store gives memory back, a
//! result is looked up, or a deadline comes. Where none of these is so, no event will ever arrive:
//! an invariant is broken, here or in what runs the tasks, and waiting helps nobody. It does not
//! know what is done about it. Read next: `engine`.

use ciel_graph::Situation;
use ciel_model::Label;
use ciel_node::Slot;

use crate::Engine;

/// Tasks that a stall names at most.
const NAMED_MAX: usize = 8;

/// Marks of the serial order among which they are looked for.
const MARKS_MAX: usize = 1024;

/// Which of those that run tasks have anything to do. A worker has it as long as its process lives,
/// and the engine receives the process's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alive {
    /// A thread of scripts works, or a turn waits for one.
    pub threads: bool,
    /// A process of a task is watched, or waits.
    pub processes: bool,
}

impl Alive {
    /// All of them.
    pub const ALL: Alive = Alive {
        threads: true,
        processes: true,
    };

    fn runs(self, slot: Slot) -> bool {
        match slot {
            Slot::Thread => self.threads,
            Slot::Process => self.processes,
            Slot::Worker(_) => true,
        }
    }
}

/// A job that is not over and cannot continue.
#[derive(Clone, PartialEq, Debug)]
pub struct Stall {
    /// Number of tasks that have not ended.
    pub pending: usize,
    /// Number of attempts in slots, though nothing runs them.
    pub lost: usize,
    /// The first of the pending tasks in serial order, with what the graph says of each.
    pub first: Vec<(Label, Situation)>,
}

impl Engine {
    /// The job's stall, if it is stalled. Costs the number of slots and workers if it is not.
    pub fn stall(&self, alive: Alive) -> Option<Stall> {
        let is_over = self.graph().has_ended() && self.is_quiet();
        let mut slots = self.slots().chain(self.node().taken());
        let can_continue = slots.any(|slot| alive.runs(slot))
            || (alive.processes && self.awaits_processes())
            || self.node().awaits_worker()
            || self.node().awaits_store()
            || self.graph().awaits_results()
            || self.has_held()
            || self.graph().next_time_limit().is_some()
            || self.node().next_deadline().is_some();
        let has_begun = self.graph().counts().spawned > 0;
        (has_begun && !is_over && !can_continue).then(|| self.describe())
    }

    fn describe(&self) -> Stall {
        let graph = self.graph();
        let tasks = graph.in_order_after(None, MARKS_MAX).into_iter();
        let views = tasks.filter_map(|task| graph.view(task));
        let first = views.map(|view| (view.label, view.situation));
        Stall {
            pending: graph.pending(),
            lost: self.slots().count(),
            first: first.take(NAMED_MAX).collect(),
        }
    }
}
