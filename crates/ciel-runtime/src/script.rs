//! A script between its turns: the machine, and what the engine knows of it.
//!
//! Plain state. Read next: `scripts`, which runs it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use ciel_engine::Attempt;
use ciel_graph::{Assignment, Checkpoint, Entry};
use ciel_model::{FactAct, Handle, WaitEnd};
use ciel_skywriting::host::Handle as ScriptHandle;
use ciel_skywriting::machine::Machine;
use rustc_hash::FxHashMap;

use crate::programs::Program;

/// A script between its turns.
pub(crate) struct Script {
    pub(crate) machine: Machine,
    pub(crate) assignment: Box<Assignment>,
    pub(crate) attempt: Attempt,
    pub(crate) program: Arc<Program>,
    /// What the payloads of functions that it spawns begin with.
    pub(crate) origin: Bytes,
    /// How cancellations ended in an earlier run of the strand, which it repeats.
    pub(crate) recorded: VecDeque<WaitEnd>,
    /// Handles of the packages that were requested so far.
    pub(crate) packages: FxHashMap<String, ScriptHandle>,
}

impl Script {
    /// The state of a script that waits. From now on it requests packages again, as it will when it
    /// resumes from here.
    pub(crate) fn checkpoint(&mut self) -> Checkpoint {
        self.packages.clear();
        let saved = self.machine.save();
        let kept = handles(&saved.references);
        self.attempt.checkpoint(saved.bytes, kept)
    }
}

impl Script {
    /// Takes the recorded ends of waits out of what an attempt begins with.
    pub(crate) fn rewind(&mut self, entry: &Entry) {
        let facts = match entry {
            Entry::Replay { facts, .. } | Entry::Restore { facts, .. } => facts,
            Entry::Start(_) | Entry::Resume(_) => return,
        };
        let ends = facts.iter().filter_map(|fact| match &fact.act {
            FactAct::Waited(ended) => Some(ended.clone()),
            FactAct::Spawned { .. } | FactAct::Constructed { .. } | FactAct::Input { .. } => None,
        });
        self.recorded = ends.collect();
    }

    /// A cancellation of one reference has ended so.
    pub(crate) fn cancelled(&mut self, ended: &WaitEnd) {
        self.attempt.pass_wait();
        self.machine.cancelled(!ended.places.is_empty());
    }
}

const _: () = assert!(ScriptHandle::DELIVERED_MIN == Handle::DELIVERED_MIN);

/// What a script calls a reference, as the graph calls it: both number alike.
pub(crate) fn handle(handle: ScriptHandle) -> Handle {
    Handle(handle.0)
}

/// What a script calls references, as the graph calls them.
pub(crate) fn handles(handles: &[ScriptHandle]) -> Vec<Handle> {
    handles.iter().map(|one| handle(*one)).collect()
}
