//! Running processes that are paused, because too much output waits behind the serial frontier.
//!
//! A process cannot ask before it writes, as a script or a worker does. But what it writes comes
//! through pipes: while nobody reads these they fill, and it sleeps in a write. It keeps its slot,
//! which the leftmost strand may need; that is why the bound gives way to it as to a task that is
//! held (`holds`). One to which the bound gave way is not paused again until the leftmost strand
//! works by itself.
//!
//! Read next: `backpressure`, which decides who is paused.

use std::collections::BTreeSet;

use ciel_model::KeyMap;
use ciel_node::AttemptKey;

/// The processes that are paused, and what running ones have written that is no output yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Pauses {
    paused: BTreeSet<AttemptKey>,
    /// The bound gave way to them.
    excused: BTreeSet<AttemptKey>,
    /// Bytes that become output when the process ends.
    written: KeyMap<AttemptKey, u64>,
    ever_paused: u64,
}

impl Pauses {
    /// A process has written so many bytes by now; forgets those that do not run any more.
    pub(super) fn note_written(
        &mut self,
        attempt: AttemptKey,
        bytes: u64,
        runs: impl Fn(AttemptKey) -> bool,
    ) {
        self.written.insert(attempt, bytes);
        self.written.retain(|attempt, _| runs(*attempt));
        self.excused.retain(|attempt| runs(*attempt));
    }

    /// Bytes that processes have written, of those that run.
    pub(super) fn written_bytes(&self, runs: impl Fn(AttemptKey) -> bool) -> u64 {
        let running = self.written.iter().filter(|(attempt, _)| runs(**attempt));
        running.map(|(_, bytes)| bytes).sum()
    }

    /// What a process writes is not read any more.
    pub(super) fn put(&mut self, attempt: AttemptKey) {
        self.excused.remove(&attempt);
        self.ever_paused += u64::from(self.paused.insert(attempt));
    }

    /// What a process writes is read again.
    pub(super) fn remove(&mut self, attempt: AttemptKey) {
        self.paused.remove(&attempt);
    }

    /// The bound gives way to a paused process.
    pub(super) fn excuse(&mut self, attempt: AttemptKey) {
        self.remove(attempt);
        self.excused.insert(attempt);
    }

    /// Whether the bound gave way to a process.
    pub(super) fn is_excused(&self, attempt: AttemptKey) -> bool {
        self.excused.contains(&attempt)
    }

    /// Those that are paused.
    pub(super) fn paused(&self) -> impl Iterator<Item = AttemptKey> {
        self.paused.iter().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.paused.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.paused.len()
    }

    /// How often a process was paused.
    pub(super) fn ever_paused(&self) -> u64 {
        self.ever_paused
    }
}
