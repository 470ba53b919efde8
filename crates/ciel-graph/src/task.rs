//! A task inside the graph: its states and what it holds.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use ciel_model::{
    AttemptNumber, Class, Descriptor, Digest, Fact, Failure, Handle, InputMode, Label, Mark,
    Micros, Name, ObjectKey, Rare, RerunReason, Segmented, StrandKey, TaskKey, Usual,
};
use rustc_hash::FxHashSet;

use crate::children::Spawner;
use crate::event::{Carriage, Continuation, Output, Wait};
use crate::first_of::FirstOf;
use crate::story::Story;
use crate::table::Table;

/// Where a task is in its life. Ended tasks are not kept.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) enum State {
    /// Marked lazy, and not demanded yet.
    Dormant,
    /// Some inputs that it needs to start are unresolved.
    Waiting { missing: u32 },
    /// An equal call, the leader, is on its way; its result will do.
    Twin { leader: TaskKey },
    /// It has all it needs, and whether its result was kept by an earlier run is being looked up.
    LookedUp,
    /// Offered to the node; `recovery` if it has run before.
    Ready { resume: Option<Box<Resume>> },
    /// Placed and running.
    Running { since: Micros },
    /// Waits for references; holds no place.
    Suspended { missing: u32, resume: Box<Resume> },
    /// Has ended, and holds no place; that counts after the other ends of its streams.
    Held { end: Box<End> },
}

/// How a task has ended whose end does not count yet.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) enum End {
    /// Well, with these outputs; whether it has printed.
    Well { outputs: Vec<Output>, printed: bool },
    /// With a failure of its own.
    Failed(Box<Failure>),
}

impl End {
    /// The outputs; none of a failure.
    pub(crate) fn outputs(&self) -> &[Output] {
        match self {
            End::Well { outputs, .. } => outputs,
            End::Failed(_) => &[],
        }
    }
}

/// What becomes of the output of a task that ends with a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// What it wrote and need not be withdrawn is its output.
    Goes,
    /// What the serial frontier can reach stays; output after it is released as usual.
    Cut,
    /// The output of the job ends there.
    Stopped,
}

/// How a suspended attempt resumes after its wait.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Resume {
    /// What it waits for.
    pub(crate) on: Vec<Handle>,
    /// When the wait ends.
    pub(crate) wait: Wait,
    /// The wait is over because its time was.
    pub(crate) timed_out: bool,
    /// By what means.
    pub(crate) continuation: Continuation,
}

/// The chain of tasks that a task belongs to; a tail-spawn moves it to the successor.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Strand {
    pub(crate) key: StrandKey,
    /// Its output waits for a commit and can be rolled back.
    pub(crate) held: bool,
    pub(crate) name: Name,
    /// The least index that its next action may have.
    pub(crate) next: u64,
    /// Tasks of it that were tail-spawned so far.
    pub(crate) tails: u64,
    /// Before everything that its current task spawns.
    pub(crate) begin: Mark,
    /// After everything that the strand spawned so far, and before everything after it.
    pub(crate) end: Mark,
    /// Who counts its current task among its children.
    #[serde(skip)]
    pub(crate) spawner: Spawner,
}

/// A task that has not ended. There may be as many that have not begun as memory has room for, so
/// what those have none of is kept apart.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Task {
    pub(crate) name: Name,
    pub(crate) descriptor: Arc<Descriptor>,
    pub(crate) parent: Option<Arc<Label>>,
    pub(crate) strand: Strand,
    pub(crate) state: State,
    pub(crate) attempt: AttemptNumber,
    /// What the task can name; each entry holds its object.
    pub(crate) table: Table,
    /// Its inputs, held because any task may be rerun from its start: if not for a failure of its
    /// own, then because the engine was lost.
    pub(crate) inputs: Box<[ObjectKey]>,
    /// Its outputs; not held.
    pub(crate) outputs: Vec<ObjectKey>,
    /// No retry of its spawner spawns it once more and not what was spawned before it.
    pub(crate) is_spawned_once: bool,
    /// The digest of the key under which equal calls find it, if pure.
    pub(crate) call: Option<Box<Digest>>,
    /// Microseconds it ran in this attempt, up to its last suspension.
    pub(crate) ran_us: Micros,
    pub(crate) story: Story,
    pub(crate) course: Rare<Course>,
}

/// What a task has done and met with; all of it is empty of most tasks that have not begun.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Course {
    /// The index of the task's first action; an attempt from scratch begins there.
    pub(crate) begun_at: u64,
    /// Whether it has spawned anything.
    pub(crate) spawned: bool,
    /// Its label, as its children share it.
    #[serde(skip)]
    pub(crate) label: Option<Arc<Label>>,
    /// Actions below this index cannot be undone: an output was given after them, or a value was
    /// dropped that they could name.
    pub(crate) given_after: u64,
    /// Failed attempts so far.
    pub(crate) failures: u32,
    /// Workers lost so far.
    pub(crate) losses: u32,
    /// Attempts so far that failed because a file that they read was lost.
    pub(crate) misses: u32,
    /// Recorded facts since the last checkpoint, if replayable, in the order of their keys.
    pub(crate) facts: Segmented<Fact>,
    /// The point from which a replay of the strand starts, if not the task's start.
    pub(crate) checkpoint: Option<Box<StoredCheckpoint>>,
    /// Facts before the point that a replay has reached; equals `facts.len()` otherwise.
    pub(crate) met: usize,
    /// All that it demanded so far, kept only if it may be replayed.
    pub(crate) asked: FxHashSet<ObjectKey>,
    /// The last list of which it waited for the first.
    pub(crate) first_of: Option<Box<FirstOf>>,
    /// Its outputs that others may read by now.
    pub(crate) open: Vec<(u32, Carriage)>,
    /// It has waited since it began: nobody who holds a slot reads what it writes.
    pub(crate) has_waited: bool,
    /// It has waited for something while a stream went directly to or from it: its streams are
    /// stored from then on.
    pub(crate) stores_streams: bool,
    /// It has opened a stream again: it takes its inputs when they are whole.
    pub(crate) reads_whole: bool,
    /// Unresolved open outputs of others that it reads.
    pub(crate) reads: Vec<ObjectKey>,
    /// Unresolved outputs that a task demanded before it continued: a failure then counts as
    /// handled, even if the output has no holder any more.
    pub(crate) wanted: Vec<ObjectKey>,
    /// Equal calls that wait for this one.
    pub(crate) twins: Vec<TaskKey>,
    /// When its current turn must end, or its wait.
    pub(crate) deadline: Option<Micros>,
    /// Why no kept result was used for it, if one was looked up.
    pub(crate) rerun: Option<Box<RerunReason>>,
}

impl Course {
    /// Attempts that are over, but for the last one.
    pub(crate) fn attempts_before(&self) -> u32 {
        self.failures + self.losses + self.misses
    }
}

impl Usual for Course {
    fn usual() -> &'static Course {
        static NONE: LazyLock<Course> = LazyLock::new(Course::default);
        &NONE
    }
}

/// A wait of a strand, from which it can be replayed.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct StoredCheckpoint {
    pub(crate) state: Bytes,
    /// The least index that the strand's next action may have.
    pub(crate) next: u64,
    /// What the task could name; each entry holds its object.
    pub(crate) table: Vec<ObjectKey>,
    /// What it waited for, as entries of that table.
    pub(crate) on: Vec<Handle>,
}

impl Resume {
    /// The program is replayed from its start, and has waited for nothing.
    pub(crate) fn replay() -> Box<Resume> {
        Box::new(Resume {
            on: Vec::new(),
            wait: Wait::ALL,
            timed_out: false,
            continuation: Continuation::Replay,
        })
    }
}

impl Task {
    /// Microseconds that its strand would run to come again to where it waits; more than all unless
    /// that may happen any number of times, as a pure task promises.
    pub(crate) fn replay_us(&self) -> Micros {
        match self.descriptor.replayable && self.descriptor.purity.is_pure() {
            true => self.ran_us,
            false => Micros::MAX,
        }
    }

    /// Whether another attempt can take the place of one that has missed a file.
    pub(crate) fn begins_again(&self) -> bool {
        self.descriptor.replayable || self.descriptor.class == Class::Process
    }

    /// Whether nothing that it did in this attempt is known to others.
    pub(crate) fn is_silent(&self) -> bool {
        !self.course.spawned && self.course.facts.is_empty() && self.course.given_after == 0
    }

    /// Its label in messages.
    pub(crate) fn label(&self) -> Label {
        Label {
            what: self.descriptor.what.clone(),
            name: self.name,
        }
    }

    /// Events of earlier attempts are stale from now on.
    pub(crate) fn begin_attempt(&mut self) {
        self.attempt.0 += 1;
        self.ran_us = 0;
        if let Some(course) = self.course.unusual_mut() {
            course.has_waited = false;
        }
    }

    /// Its label, one copy for all children.
    pub(crate) fn shared_label(&mut self) -> Arc<Label> {
        let label = self.label();
        let shared = &mut self.course.label;
        shared.get_or_insert_with(|| Arc::new(label)).clone()
    }

    /// The equal calls that wait for it, which wait no more.
    pub(crate) fn take_twins(&mut self) -> Vec<TaskKey> {
        let course = self.course.unusual_mut();
        course.map_or(Vec::new(), |course| std::mem::take(&mut course.twins))
    }

    /// What was demanded of it, which it forgets.
    pub(crate) fn take_wanted(&mut self) -> Vec<ObjectKey> {
        let course = self.course.unusual_mut();
        course.map_or(Vec::new(), |course| std::mem::take(&mut course.wanted))
    }

    /// `file:line` of its spawn; empty when unknown.
    pub(crate) fn place(&self) -> String {
        self.descriptor.site.to_string()
    }

    /// Whether it takes any input as a stream.
    pub(crate) fn takes_streams(&self) -> bool {
        let mut inputs = self.descriptor.inputs.iter();
        inputs.any(|input| input.mode == InputMode::Stream)
    }

    /// Whether any of its code has run.
    pub(crate) fn has_started(&self) -> bool {
        match self.state {
            State::Dormant | State::Waiting { .. } | State::Twin { .. } | State::LookedUp => false,
            State::Ready { ref resume } => resume.is_some(),
            State::Running { .. } | State::Suspended { .. } | State::Held { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_that_has_not_begun_stays_small() {
        assert!(size_of::<Task>() <= 256, "{}", size_of::<Task>());
    }
}
