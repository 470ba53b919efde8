//! Stragglers: tasks declared pure that run for much longer than others of their function.
//!
//! A task that was placed is looked at again when a straggler could be known at the earliest; until
//! then it costs one entry. It does not know what a second run does. Read next: `times`,
//! `duplicate`.

use ciel_model::{Class, Micros, TaskKey, limits};

use crate::event::Action;
use crate::graph::Graph;
use crate::second_runs::Purpose;
use crate::story::Moment;
use crate::task::State;

impl Graph {
    /// A task was placed.
    pub(crate) fn expect_straggler(&mut self, now: Micros, key: TaskKey) {
        let descriptor = &self.tasks[&key].descriptor;
        let is_allowed = self.policy.duplicates(descriptor.purity);
        let is_candidate = is_allowed && descriptor.class != Class::Coordination;
        if let Some(least_us) = self.policy.straggler_us
            && is_candidate
            && !self.duplicates.contains(key)
        {
            self.stragglers.look_at(now + least_us, least_us, key);
        }
    }

    /// A second run was placed: only from now on does the task run twice.
    pub(crate) fn note_duplicated(&mut self, now: Micros, duplicate: TaskKey) {
        let Some(&original) = self.duplicates.originals.get(&duplicate) else {
            return;
        };
        let duplicate = self.duplicate_mut(original);
        let is_first = !std::mem::replace(&mut duplicate.is_placed, true);
        if is_first && duplicate.purpose == Purpose::Straggler {
            self.counts.duplicated += 1;
            self.note(now, original, Moment::Duplicated);
        }
    }

    /// A task has ended well.
    pub(crate) fn note_time(&mut self, key: TaskKey) {
        let task = &self.tasks[&key];
        if self.policy.duplicates(task.descriptor.purity) {
            self.stragglers
                .note_time(&task.descriptor.what, task.ran_us);
        }
    }

    /// Time has passed: tasks that have become stragglers get a second run.
    pub(crate) fn look_for_stragglers(&mut self, now: Micros, actions: &mut Vec<Action>) {
        while let Some((at, key)) = self.stragglers.first()
            && at <= now
        {
            self.stragglers.take_first();
            if let Some(least_us) = self.policy.straggler_us
                && let Some(ran_us) = self.candidate_ran_us(now, key)
            {
                self.look_at_one(now, key, (ran_us, least_us), actions);
            }
        }
    }

    /// How long a task has run that may get a second run.
    fn candidate_ran_us(&self, now: Micros, key: TaskKey) -> Option<Micros> {
        let task = self.tasks.get(&key)?;
        let State::Running { since } = task.state else {
            return None;
        };
        let is_wanted = !self.verdict.is_decided() && self.may_duplicate(key) && task.is_silent();
        is_wanted.then(|| task.ran_us + now.saturating_sub(since))
    }

    fn look_at_one(
        &mut self,
        now: Micros,
        key: TaskKey,
        (ran_us, least_us): (Micros, Micros),
        actions: &mut Vec<Action>,
    ) {
        let limit_us = self.stragglers.limit_us(&self.tasks[&key].descriptor.what);
        let limit_us = limit_us.map(|limit_us| limit_us.max(least_us));
        let has_room = self.duplicates.live() < limits::DUPLICATES_MAX;
        match limit_us {
            Some(limit_us) if ran_us >= limit_us && has_room => {
                self.start_duplicate(now, key, Purpose::Straggler, actions);
            }
            Some(limit_us) if ran_us < limit_us => {
                let at = now + (limit_us - ran_us);
                self.stragglers.look_at(at, least_us, key);
            }
            Some(_) | None => self.stragglers.look_at(now + least_us, least_us, key),
        }
    }
}
