//! Calls that cannot be run: why, and what to do about it.
//!
//! It does not know who refuses them.

use crate::{Failure, FailureKind, Label};

/// Why a call cannot be run, with what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// What was asked for, and why not.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Refused {
    /// Why, without a hint.
    pub fn new(message: impl Into<String>) -> Refused {
        Refused {
            message: message.into(),
            hint: None,
        }
    }

    /// The same with what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Refused {
        self.hint = Some(hint.into());
        self
    }

    /// The failure of the task that made the call.
    pub fn failure(self, task: &Label) -> Failure {
        let failure = Failure::new(FailureKind::Refused, task.clone(), self.message);
        match self.hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}
