//! Which task the serial program would be at: the *first* one in serial order.
//!
//! It does not know what is done about it. Read next: `view`.

use ciel_model::{Name, StrandKey, TaskKey};

use crate::graph::Graph;
use crate::task::State;

/// The first task, and what it is beneath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First {
    /// The task.
    pub task: TaskKey,
    /// Its strand, and those of all tasks that it is beneath, which began before it.
    pub strands: Vec<StrandKey>,
    /// How many outputs it has.
    pub outputs: u32,
}

impl Graph {
    /// The task of that name if it is the first: each live task before it in serial order is one
    /// that it is beneath, or a lazy one that nobody needs. It costs the number of those.
    pub fn first(&self, name: Name) -> Option<First> {
        let mut strands = Vec::new();
        let mut above: Option<TaskKey> = None;
        let mut mark = self.order.next(None);
        while let Some(here) = mark {
            mark = self.order.next(Some(here));
            let Some(key) = self.begins_at(here) else {
                continue;
            };
            let task = &self.tasks[&key];
            if matches!(task.state, State::Dormant) {
                continue;
            }
            let is_above = |above: TaskKey| {
                let end = self.tasks[&above].strand.end;
                self.order.precedes(here, end)
            };
            if !above.is_none_or(is_above) {
                return None;
            }
            strands.push(task.strand.key);
            if task.label().name == name {
                let outputs = task.descriptor.outputs;
                return Some(First {
                    task: key,
                    strands,
                    outputs,
                });
            }
            above = Some(key);
        }
        None
    }
}
