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
    /// None before the first.
    given: Option<Box<FxHashSet<u32>>>,
}

impl Outputs {
    pub(super) fn new(count: u32) -> Outputs {
        Outputs { count, given: None }
    }

    pub(super) fn may_give(&self, output: u32) -> Result<(), OutputError> {
        let count = self.count;
        match output < count {
            false => Err(OutputError::Unknown { output, count }),
            true if self.has_given(output) => Err(OutputError::Twice { output }),
            true => Ok(()),
        }
    }

    pub(super) fn give(&mut self, output: u32) -> Result<(), OutputError> {
        self.may_give(output)?;
        self.given.get_or_insert_default().insert(output);
        Ok(())
    }

    pub(super) fn any_given(&self) -> bool {
        self.given.is_some()
    }

    fn has_given(&self, output: u32) -> bool {
        let given = self.given.as_ref();
        given.is_some_and(|given| given.contains(&output))
    }
}
