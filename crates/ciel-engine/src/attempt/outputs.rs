//! Which outputs a task has given before its end.
//!
//! It does not know what they are. Read next: `action`, for publishing.

use rustc_hash::FxHashSet;
use thiserror::Error;

/// An output that cannot be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OutputError {
    /// The task has no such output.
    #[error("it gave output {output}, but has {count}")]
    Unknown {
        /// The index.
        output: u32,
        /// The outputs that it has.
        count: u32,
    },
    /// Each output is given once.
    #[error("it gave output {output} twice")]
    Twice {
        /// The index.
        output: u32,
    },
}

/// The outputs of a task.
#[derive(Clone, Debug)]
pub(super) struct Outputs {
    count: u32,
    given: FxHashSet<u32>,
}

impl Outputs {
    pub(super) fn new(count: u32) -> Outputs {
        let given = FxHashSet::default();
        Outputs { count, given }
    }

    pub(super) fn may_give(&self, output: u32) -> Result<(), OutputError> {
        let count = self.count;
        match output < count {
            false => Err(OutputError::Unknown { output, count }),
            true if self.given.contains(&output) => Err(OutputError::Twice { output }),
            true => Ok(()),
        }
    }

    pub(super) fn give(&mut self, output: u32) -> Result<(), OutputError> {
        self.may_give(output)?;
        self.given.insert(output);
        Ok(())
    }

    pub(super) fn any_given(&self) -> bool {
        !self.given.is_empty()
    }
}
