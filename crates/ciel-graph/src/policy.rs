//! What a run decides once for all of its tasks.
//!
//! It does not know tasks. Read next: `verdict`, `duplicate`.

use ciel_model::{Micros, Purity};

/// What a failure does to the rest of the job, and which pure tasks run a second time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Policy {
    /// All spawned tasks finish, whatever fails.
    pub keep_going: bool,
    /// The task that fails first in time ends the job.
    pub fail_fast: bool,
    /// Each pure task that runs outside of the engine runs twice, and its results are compared.
    pub check: bool,
    /// Microseconds for which a task runs at least before it may be a straggler, of which a
    /// duplicate is started; none if none is.
    pub straggler_us: Option<Micros>,
    /// Tasks that are assumed to be pure get duplicates, too, beside those declared so.
    pub duplicates_assumed: bool,
}

impl Policy {
    /// Whether a straggler of which that is said gets a duplicate.
    pub(crate) fn duplicates(&self, purity: Purity) -> bool {
        self.straggler_us.is_some()
            && match purity {
                Purity::Impure | Purity::Unsaid => false,
                Purity::Assumed => self.duplicates_assumed,
                Purity::Declared => true,
            }
    }
}
