//! What is kept of an attempt beside the state that its executor saves.
//!
//! One format for all executors: the executor's bytes, then one byte: whether the attempt has
//! written output. The rest of an [`Attempt`] comes from the assignment that returns the state. It
//! does not know what a state means. Read next: `wait`.

use bytes::Bytes;
use ciel_graph::{Checkpoint, Entry};
use ciel_model::Handle;

use super::Attempt;

impl Attempt {
    /// A checkpoint, from the executor's state and the references in it.
    pub fn checkpoint(&self, state: Vec<u8>, kept: Vec<Handle>) -> Checkpoint {
        let state = self.seal(state);
        Checkpoint { state, kept }
    }

    /// The executor's state as the graph keeps it.
    pub(super) fn seal(&self, mut state: Vec<u8>) -> Bytes {
        state.push(u8::from(self.printed));
        state.into()
    }
}

/// The state with which an executor takes an attempt up; none if it begins from the start, or has
/// a live copy.
pub fn saved_state(entry: &Entry) -> Option<Bytes> {
    let Entry::Restore { bytes, .. } = entry else {
        return None;
    };
    Some(bytes.slice(..bytes.len().saturating_sub(1)))
}

/// Whether an attempt had written output before its state was saved.
pub(super) fn has_printed(entry: &Entry) -> bool {
    match entry {
        Entry::Restore { bytes, .. } => bytes.last() == Some(&1),
        Entry::Start(_) | Entry::Replay { .. } | Entry::Resume(_) => false,
    }
}
