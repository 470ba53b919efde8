//! What a site has to know of direct streams: which ready tasks are to begin together.
//!
//! It does not know whether a stream is direct in the end. Read next: `stream`.

use crate::task::TaskKey;

/// What a ready task has to do with direct streams, of which both ends need a slot at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Pairing {
    /// It reads what that task writes for it alone.
    pub reads: Option<TaskKey>,
    /// Who reads what it writes.
    pub reader: SingleReader,
}

/// What is known of the one reader of a task that has not begun to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub enum SingleReader {
    /// It writes no direct stream.
    #[default]
    None,
    /// None was spawned yet, or the reader waits for something else as well.
    Expected,
    /// The reader waits for this stream only.
    Waits,
}
