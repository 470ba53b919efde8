//! A state from which a strand can be replayed instead of from its start.
//!
//! It does not know what the state says. Read next: `recovery`.

use bytes::Bytes;
use ciel_model::Handle;

/// A saved state of a waiting strand.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Checkpoint {
    /// The state, as the executor understands it.
    pub state: Bytes,
    /// Handles that the state uses, in its own numbering: they will be the table of the strand that
    /// is restored. The awaited references are among them.
    pub kept: Vec<Handle>,
}
