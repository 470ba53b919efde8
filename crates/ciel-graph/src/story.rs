//! The story of a task: a bounded record of what happened to it.

use ciel_model::{Micros, limits};

/// One transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// It was asked for.
    Spawned,
    /// Everything it needs to start is there.
    Ready,
    /// It began to run.
    Started,
    /// It waits for references and holds no place.
    Suspended,
    /// What it waited for is there.
    Woken,
    /// It goes on.
    Resumed,
    /// An attempt failed and is tried again.
    Retried,
    /// Its worker died; it is run again.
    Lost,
    /// What it did was undone from some action on; it is run again.
    RolledBack,
    /// It handed its outputs to a successor.
    TailSpawned,
    /// Its outputs are there.
    Finished,
    /// It failed for good.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl Moment {
    /// As people read it.
    pub fn words(self) -> &'static str {
        match self {
            Moment::Spawned => "spawned",
            Moment::Ready => "ready to start",
            Moment::Started => "started",
            Moment::Suspended => "suspended, waiting",
            Moment::Woken => "ready to go on",
            Moment::Resumed => "resumed",
            Moment::Retried => "attempt failed, tried again",
            Moment::Lost => "lost with its worker, run again",
            Moment::RolledBack => "rolled back, run again",
            Moment::TailSpawned => "handed over to its successor",
            Moment::Finished => "finished",
            Moment::Failed => "failed",
            Moment::Cancelled => "cancelled",
        }
    }
}

/// The first and the latest transitions of a task.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Story(Vec<(Micros, Moment)>);

impl Story {
    /// Adds a transition; past the bound, one from the middle gives way.
    pub(crate) fn add(&mut self, now: Micros, moment: Moment) {
        if self.0.len() >= limits::STORY_ENTRIES_MAX {
            self.0.remove(limits::STORY_ENTRIES_MAX / 2);
        }
        self.0.push((now, moment));
    }

    /// All that is kept, for a task that is over.
    pub(crate) fn into_entries(self) -> Vec<(Micros, Moment)> {
        self.0
    }

    /// All that is kept, oldest first.
    pub(crate) fn entries(&self) -> &[(Micros, Moment)] {
        &self.0
    }
}
