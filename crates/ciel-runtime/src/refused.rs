//! Calls that cannot be run: why, and what to do about it.
//!
//! It does not know who refuses them.

use ciel_model::{Failure, FailureKind, Label};

/// Why a call cannot be run, with what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refused {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Refused {
    pub(crate) fn new(message: impl Into<String>) -> Refused {
        Refused {
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Refused {
        self.hint = Some(hint.into());
        self
    }

    /// The failure of the task that made the call.
    pub(crate) fn failure(self, task: &Label) -> Failure {
        let failure = Failure::new(FailureKind::Refused, task.clone(), self.message);
        match self.hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}
