//! How long tasks of each function ran, and when to look at those that run.
//!
//! It does not know what is done about one that runs for long. Read next: `stragglers`.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use ciel_model::{Micros, TaskKey, limits};
use rustc_hash::FxHashMap;

/// What is known of how long tasks run.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Stragglers {
    /// When to look at tasks that run. Those that have ended are found to have, then.
    looks: BTreeSet<(Micros, TaskKey)>,
    /// Microseconds that the latest tasks of each function ran.
    times: FxHashMap<Arc<str>, VecDeque<Micros>>,
}

impl Stragglers {
    /// When a task is looked at next.
    pub(crate) fn next_look(&self) -> Option<Micros> {
        self.looks.first().map(|(at, _)| *at)
    }

    /// The task that is looked at next, and when.
    pub(crate) fn first(&self) -> Option<(Micros, TaskKey)> {
        self.looks.first().copied()
    }

    /// That task is looked at.
    pub(crate) fn take_first(&mut self) {
        self.looks.pop_first();
    }

    /// A task that may be a straggler after `least_us` is looked at then.
    pub(crate) fn look_at(&mut self, at: Micros, least_us: Micros, key: TaskKey) {
        // Looks at many tasks fall on the same moment, so that time is asked for seldom.
        let between_us = (least_us / limits::STRAGGLER_LOOKS).max(1);
        self.looks.insert((at.next_multiple_of(between_us), key));
    }

    /// A task of a function has run for so long.
    pub(crate) fn note_time(&mut self, what: &Arc<str>, ran_us: Micros) {
        if !self.times.contains_key(what) && self.times.len() >= limits::FUNCTIONS_COUNTED_MAX {
            return;
        }
        let times = self.times.entry(what.clone()).or_default();
        times.truncate(limits::STRAGGLER_TIMES_MAX - 1);
        times.push_front(ran_us);
    }

    /// Microseconds after which a task of a function is a straggler; none if too few have ended.
    pub(crate) fn limit_us(&self, what: &str) -> Option<Micros> {
        let times = self.times.get(what)?;
        if times.len() < limits::STRAGGLER_TIMES_MIN {
            return None;
        }
        let mut sorted: Vec<Micros> = times.iter().copied().collect();
        let (_, median, _) = sorted.select_nth_unstable(times.len() / 2);
        let limit = median.saturating_mul(limits::STRAGGLER_MEDIANS);
        Some(limit)
    }
}
