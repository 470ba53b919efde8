//! Rollback: a strand returns to one of its actions, and is replayed.
//!
//! A replay rolls it back to none: then it only repeats what it did; a retry to the spawn of a task
//! that has failed, or of an executor that cannot replay, to its task's first action. Facts from
//! that action on are dropped, and what was spawned from there on is cancelled. It knows neither
//! the reason of a rollback, nor which output is released: the caller must know. Read next:
//! `replay`, which compares a replayed strand with its facts.

use ciel_model::{ActionKey, Fact, FactAct, Mark, Micros, ObjectKey, StrandKey, TaskKey};

use crate::event::{Action, StrandChange};
use crate::graph::Graph;
use crate::objects::{ObjectState, Released};
use crate::story::Moment;
use crate::table::Table;
use crate::task::{Resume, State, Task};

impl Graph {
    /// The first action to which a strand can be rolled back: it records its facts, has begun, and
    /// neither its checkpoint nor a published output comes after. Released output is not known
    /// here.
    pub fn rollback_min(&self, task: TaskKey) -> Option<u64> {
        let task = self.tasks.get(&task)?;
        let undone = task.descriptor.replayable && task.has_started() && !self.verdict.is_decided();
        undone.then(|| task.base().max(task.course.given_after))
    }

    /// The first action from `least` on that spawned a task which has failed, and had no retries of
    /// its own.
    pub fn failed_spawn(&self, task: TaskKey, least: u64) -> Option<u64> {
        let facts = &self.tasks.get(&task)?.course.facts;
        let first = facts.partition_point(|fact| fact.at < ActionKey::part(least, 0));
        let has_failed = |output: &ObjectKey| {
            let state = self.objects.settled_state(*output);
            matches!(
                state,
                ObjectState::Failed {
                    is_final: false,
                    ..
                }
            )
        };
        let mut spawns = facts.iter_from(first).filter(|fact| match &fact.act {
            FactAct::Spawned { outputs, .. } => outputs.iter().any(has_failed),
            FactAct::Constructed { .. } | FactAct::Waited(_) | FactAct::Input { .. } => false,
        });
        spawns.next().map(|fact| fact.at.action)
    }

    /// The index that the next action of a task's strand will have at least.
    pub fn next_action(&self, task: TaskKey) -> Option<u64> {
        self.tasks.get(&task).map(|task| task.strand.next)
    }

    /// The strand that a task belongs to.
    pub fn strand_of(&self, task: TaskKey) -> Option<StrandKey> {
        self.tasks.get(&task).map(|task| task.strand.key)
    }

    pub(crate) fn on_task_rolled_back(
        &mut self,
        now: Micros,
        key: TaskKey,
        to: u64,
        actions: &mut Vec<Action>,
    ) {
        if self.rollback_min(key).is_none_or(|least| to < least) {
            return;
        }
        let (task, attempt) = (key, self.tasks[&key].attempt);
        if matches!(self.tasks[&key].state, State::Ready { .. }) {
            actions.push(Action::Withdraw { task, attempt });
        }
        actions.push(Action::Stop { task, attempt });
        self.give_up_waiting(key);
        self.stop_clock(now, key);
        self.roll_back(now, key, to, actions);
        self.wait_again(now, key, actions);
    }

    /// The strand resumes from its checkpoint, for which it may have to wait as it did there, or
    /// from its start.
    fn wait_again(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        let stored = self.tasks[&key].course.checkpoint.as_ref();
        let on = stored.map_or(Vec::new(), |stored| stored.on.clone());
        let objects: Vec<ObjectKey> = on.iter().map(|on| self.object_of(key, *on)).collect();
        let mut woken = Vec::new();
        let missing = self.wait_and_demand(now, key, &objects, &mut woken);
        if missing == 0 {
            self.begin_again(now, key, Moment::RolledBack, actions);
        } else {
            let mut resume = Resume::replay();
            resume.on = on;
            let task = self.task_mut(key);
            task.begin_attempt();
            task.state = State::Suspended { missing, resume };
            self.note(now, key, Moment::RolledBack);
        }
        actions.append(&mut woken);
    }

    /// Makes a strand ready for a replay from its start, or its last checkpoint. Its actions from
    /// `to` on are undone.
    pub(crate) fn roll_back(
        &mut self,
        now: Micros,
        key: TaskKey,
        to: u64,
        actions: &mut Vec<Action>,
    ) {
        let strand = self.tasks[&key].strand.key;
        actions.push(Action::Strand(StrandChange::RolledBack { strand, to }));
        self.forget_first_of(key);
        self.name_again(key);
        let undone = self.drop_facts(key, to);
        if let Some(begin) = undone.begin {
            let end = self.tasks[&key].strand.end;
            self.forgive_between(begin, end, actions);
            self.cancel_between(now, begin, end, undone.why, actions);
        }
        let mut released = Released::default();
        self.release_facts(undone.facts, &mut released);
        self.clear(released, actions);
        let task = self.task_mut(key);
        task.strand.next = task.base();
        task.course.met = 0;
        self.reset_table(key, actions);
    }

    /// Takes the facts from action `to` on away.
    fn drop_facts(&mut self, key: TaskKey, to: u64) -> Undone {
        let task = self.task_mut(key);
        if !task.descriptor.replayable {
            let spawned = task.course.spawned && to <= task.course.begun_at;
            task.course.spawned &= !spawned;
            return Undone {
                begin: spawned.then_some(task.strand.begin),
                facts: Vec::new(),
                why: "the attempt that spawned it failed",
            };
        }
        let first = ActionKey::part(to, 0);
        let kept = task.course.facts.partition_point(|fact| fact.at < first);
        let facts = task.course.facts.split_off(kept);
        let begin = facts.iter().find_map(|fact| match fact.act {
            FactAct::Spawned { before, .. } => Some(before),
            FactAct::Constructed { .. } | FactAct::Waited(_) | FactAct::Input { .. } => None,
        });
        let why = "its spawn was rolled back";
        Undone { begin, facts, why }
    }

    fn reset_table(&mut self, key: TaskKey, actions: &mut Vec<Action>) {
        let task = &self.tasks[&key];
        let table = match &task.course.checkpoint {
            Some(stored) => stored.table.clone(),
            None => task.inputs.to_vec(),
        };
        for object in &table {
            self.objects.hold(*object);
        }
        let before = std::mem::replace(&mut self.task_mut(key).table, Table::of(table));
        let mut released = Released::default();
        self.release_all(before.objects(), &mut released);
        self.clear(released, actions);
    }
}

/// What a rollback takes away.
struct Undone {
    /// All that the strand had spawned after this.
    begin: Option<Mark>,
    facts: Vec<Fact>,
    /// Why that is cancelled.
    why: &'static str,
}

impl Task {
    /// The index of the first action that a replay of the strand does.
    fn base(&self) -> u64 {
        self.course
            .checkpoint
            .as_ref()
            .map_or(self.course.begun_at, |stored| stored.next)
    }
}
