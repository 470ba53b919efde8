//! One worker of the model: what runs in it, what it keeps, and when it looks for an idle core.
//!
//! It knows no time but what it receives. Read next: `strand`.

use std::collections::VecDeque;

use ciel_graph::Ahead;
use ciel_model::{Claim, Pace};
use ciel_node::AttemptKey;

use super::strand::Strand;

/// What runs in a worker without a pause, though it may become another task.
pub(super) type Turn = u64;

pub(super) struct Running {
    pub(super) turn: Turn,
    /// Not known yet of a child that has begun in place.
    pub(super) attempt: Option<AttemptKey>,
    pub(super) task: Task,
    /// Beats since that runs which runs in place of it.
    pub(super) beats: u32,
    /// Calls until the last beat, and until the one before.
    pub(super) calls: [u64; 2],
    /// When it is looked at again.
    pub(super) pace: Pace,
    /// It claims no core before that, because it has just served one.
    pub(super) rests_until: u64,
    /// It has asked for a result and has no answer.
    pub(super) asks: bool,
}

pub(super) enum Task {
    /// The one that spawns all others, of which so many are left.
    Root {
        left: u32,
        handles: u32,
    },
    Strand(Strand),
}

#[derive(Default)]
pub(super) struct Worker {
    pub(super) running: Option<Running>,
    pub(super) ahead: VecDeque<Ahead>,
    /// The idle core for which something that it keeps is to become a task.
    pub(super) claim: Claim,
}

impl Worker {
    /// Whether it keeps children that may become tasks as soon as a core is idle.
    pub(super) fn listens(&self, now: u64) -> bool {
        let Some(running) = self.running.as_ref().filter(|_| self.claim.cores() == 0) else {
            return false;
        };
        running.before(now) == Some(0) && !running.is_asleep()
    }
}

impl Running {
    /// Strands that have to become tasks before one of its children can; `None` if none of them has
    /// been kept for a beat, and just after it has served a core.
    pub(super) fn before(&self, now: u64) -> Option<usize> {
        let Task::Strand(strand) = &self.task else {
            return None;
        };
        let [_, before_beat] = self.calls;
        let first = strand.first_pending()?;
        (first < before_beat && now >= self.rests_until).then(|| strand.before_pending())
    }

    /// Whether nothing runs in place of it.
    pub(super) fn is_asleep(&self) -> bool {
        match &self.task {
            Task::Strand(strand) => self.asks || !strand.has_inside(),
            Task::Root { .. } => true,
        }
    }
}
