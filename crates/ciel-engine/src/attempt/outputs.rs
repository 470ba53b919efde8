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
    /// Of the first outputs, which are all that most tasks have, one bit each.
    first: u32,
    /// The others; none before the first of them.
    rest: Option<Box<FxHashSet<u32>>>,
}

impl Outputs {
    pub(super) fn new(count: u32) -> Outputs {
        Outputs {
            count,
            first: 0,
            rest: None,
        }
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
        match 1u32.checked_shl(output) {
            Some(bit) => self.first |= bit,
            None => drop(self.rest.get_or_insert_default().insert(output)),
        }
        Ok(())
    }

    pub(super) fn any_given(&self) -> bool {
        self.first != 0 || self.rest.is_some()
    }

    fn has_given(&self, output: u32) -> bool {
        let rest = self.rest.as_ref();
        match 1u32.checked_shl(output) {
            Some(bit) => self.first & bit != 0,
            None => rest.is_some_and(|rest| rest.contains(&output)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_output_is_given_once_whatever_its_number() {
        let mut outputs = Outputs::new(100);
        assert!(!outputs.any_given());
        for output in (0..100).rev() {
            assert_eq!(outputs.may_give(output), Ok(()));
            assert_eq!(outputs.give(output), Ok(()));
            assert!(outputs.any_given());
            assert_eq!(outputs.give(output), Err(OutputError::Twice { output }));
        }
        let (output, count) = (100, 100);
        let unknown = Err(OutputError::Unknown { output, count });
        assert_eq!(outputs.give(output), unknown);
    }
}
