//! What the store of objects has of the memory, and what it was asked to give back.
//!
//! It does not know who needs it. Read next: `memory`, which decides.

use ciel_model::{Micros, Resources};

/// What the store has of the memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loan {
    /// The most that it is lent, in bytes.
    pub(crate) bound: u64,
    /// What it is lent now.
    pub(crate) bytes: u64,
    /// What it was asked to shrink to, while it has not answered.
    pub(crate) asked: Option<Asked>,
    /// It could not give back what it was asked for, and nothing has changed since.
    pub(crate) is_stuck: bool,
    /// Since when nothing runs, while a task waits for what the store could not give back.
    pub(crate) idle_since: Option<Micros>,
    /// The store could not give it back at the end of that time, either.
    pub(crate) gives_up: bool,
}

/// A request that the store gives memory back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// All that it is to have.
    pub(crate) bytes: u64,
    /// What does not fit after the answer is refused.
    pub(crate) is_last: bool,
}

impl Loan {
    /// Something has left its slot or its worker, and may have used what is in memory.
    pub(crate) fn retry(&mut self) {
        self.is_stuck = false;
    }

    /// Counts what is lent as taken.
    pub(crate) fn take_from(&self, free: &mut Resources) {
        if let Some(memory) = &mut free.memory_bytes {
            *memory -= self.bytes;
        }
    }
}
