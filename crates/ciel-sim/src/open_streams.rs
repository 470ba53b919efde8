//! The streams of a simulated world: who has opened, reads and passed which.
//!
//! It does not know processes or time. Read next: `streams`.

use std::collections::BTreeMap;

use ciel_model::{Handle, Name, Value};
use ciel_node::AttemptKey;

/// What is known of the streams of a world.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Who has opened each output.
    pub(crate) open: BTreeMap<Name, AttemptKey>,
    /// Readers of direct streams, by their producers.
    pub(crate) readers: BTreeMap<AttemptKey, AttemptKey>,
    /// The values of direct streams that have come to their ends.
    pub(crate) passed: BTreeMap<AttemptKey, Value<Handle>>,
    /// Values that readers received.
    pub(crate) read: u64,
    /// Those of them that were not stored.
    pub(crate) direct: u64,
}
