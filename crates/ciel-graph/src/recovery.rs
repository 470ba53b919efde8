//! Recovery: another process resumes the run; and the points from which strands are replayed.
//!
//! After a fold of all recorded events the graph has its former state, but no task runs any more
//! and no live copy is left. This is not counted as a loss of any task. It does not know how events
//! are kept. Read next: `settle`, for what a restarted task receives.

use std::collections::BTreeMap;

use ciel_model::{FileContent, Handle, Micros, Name, TaskKey};

use crate::event::{Action, Checkpoint, Continuation, Policy, StrandChange};
use crate::graph::Graph;
use crate::objects::Released;
use crate::spawn::Refusal;
use crate::story::Moment;
use crate::task::{Resume, State, StoredCheckpoint, Task};

/// Bytes that a fact takes, about.
const FACT_BYTES: usize = 64;

impl Graph {
    /// Whether a strand has met so much since its last checkpoint that it should leave another one:
    /// `least` facts and answers, and as much as that checkpoint took, so that each of them costs a
    /// constant. Not while it replays them, nor if it records none.
    pub fn outgrows_checkpoint(&self, task: TaskKey, least: usize) -> bool {
        let Some(task) = self.tasks.get(&task).filter(|task| is_whole(task)) else {
            return false;
        };
        let met = task.course.facts.len() + task.course.asked.len();
        let taken = task.course.checkpoint.as_ref().map_or(0, |stored| {
            (stored.state.len() / FACT_BYTES).max(stored.table.len())
        });
        met >= least.max(taken)
    }

    /// The files that must be on disk.
    pub fn files(&self) -> BTreeMap<Name, FileContent> {
        self.objects.all_files()
    }

    /// From now on a replay of the strand starts here; the facts before are dropped. A strand that
    /// is still meeting its facts has a point before them, and keeps that.
    pub(crate) fn store_checkpoint(
        &mut self,
        key: TaskKey,
        checkpoint: Checkpoint,
        on: &[Handle],
        actions: &mut Vec<Action>,
    ) -> Result<(), Refusal> {
        let table = self.keys_named(key, &checkpoint.kept)?;
        let place = |handle: &Handle| checkpoint.kept.iter().position(|kept| kept == handle);
        let on: Option<Vec<usize>> = on.iter().map(place).collect();
        let Some(on) = on.filter(|_| is_whole(&self.tasks[&key])) else {
            return Ok(());
        };
        for object in &table {
            self.objects.hold(*object);
        }
        let stored = StoredCheckpoint {
            state: checkpoint.state,
            next: self.tasks[&key].strand.next,
            table,
            on: on.into_iter().map(|place| Handle(place as u32)).collect(),
        };
        let task = self.task_mut(key);
        let facts = std::mem::take(&mut task.course.facts);
        (task.course.met, task.course.asked) = (0, Default::default());
        let strand = task.strand.key;
        let before = task.course.checkpoint.replace(Box::new(stored));
        let mut released = Released::default();
        self.release_facts(facts.into_entries(), &mut released);
        let before = before.map(|stored| stored.table).unwrap_or_default();
        self.release_all(before, &mut released);
        self.clear(released, actions);
        actions.push(Action::Strand(StrandChange::Marked(strand)));
        Ok(())
    }

    pub(crate) fn on_engine_lost(
        &mut self,
        now: Micros,
        policy: Policy,
        lost: Vec<Name>,
        actions: &mut Vec<Action>,
    ) {
        self.policy = policy;
        let remakes = !lost.is_empty() && self.begin_remaking(&lost);
        let had_ended = self.has_ended();
        let mut told = Vec::new();
        self.drop_duplicates(now, &mut told);
        let all: Vec<TaskKey> = self.tasks.keys().collect();
        for key in all {
            // A snapshot has a kind for each task.
            if let Some(task) = self.tasks.get_mut(&key) {
                self.kinds.share(&mut task.descriptor);
            }
            self.recover(now, key, &mut told);
        }
        // The new process knows no attempt: it has nothing to end, and each ready task is offered
        // once, even if several of these steps have made it ready.
        actions.extend(told.into_iter().filter(|action| {
            let of_an_attempt = matches!(
                action,
                Action::Offer { .. }
                    | Action::ReaderWaits { .. }
                    | Action::FindResult { .. }
                    | Action::Withdraw { .. }
                    | Action::Stop { .. }
            );
            !of_an_attempt
        }));
        self.offer_all(now, actions);
        if remakes {
            self.remake(now, &lost, actions);
        }
        if had_ended {
            self.judge_again(actions);
        }
    }

    fn offer_all(&mut self, now: Micros, actions: &mut Vec<Action>) {
        let all: Vec<TaskKey> = self.tasks.keys().collect();
        for key in all {
            match self.tasks[&key].state {
                State::Ready { .. } => self.offer(key, actions),
                State::LookedUp => self.offer_or_look_up(now, key, actions),
                State::Dormant
                | State::Waiting { .. }
                | State::Twin { .. }
                | State::Running { .. }
                | State::Suspended { .. }
                | State::Held { .. } => {}
            }
        }
    }

    /// Makes one task ready for a process that knows nothing of it.
    fn recover(&mut self, now: Micros, key: TaskKey, actions: &mut Vec<Action>) {
        let Some(task) = self.tasks.get(&key) else {
            return;
        };
        let replayable = task.descriptor.replayable;
        match &task.state {
            State::Dormant | State::Waiting { .. } | State::Twin { .. } | State::LookedUp => {}
            State::Running { .. } | State::Held { .. } => {
                self.stop_clock(now, key);
                self.begin_again(now, key, Moment::Lost, actions);
            }
            State::Suspended { resume, .. } if needs_its_copy(resume) && !replayable => {
                self.give_up_waiting(key);
                self.begin_again(now, key, Moment::Lost, actions);
            }
            State::Ready {
                resume: Some(resume),
            } if needs_its_copy(resume) && !replayable => {
                self.begin_again(now, key, Moment::Lost, actions);
            }
            State::Suspended { .. } | State::Ready { .. } => {
                self.on_continuation_lost(now, key, actions)
            }
        }
    }
}

/// Whether a strand records its facts and has met all of them.
fn is_whole(task: &Task) -> bool {
    task.descriptor.replayable && task.course.met == task.course.facts.len()
}

fn needs_its_copy(resume: &Resume) -> bool {
    resume.continuation == Continuation::Live
}
