//! Whether anything has happened since the input/output thread last looked, and who wakes it.
//!
//! It does not know what is looked at. Read next: `looks`.

use ciel_model::Label;

use super::{Core, Order};

/// What the input/output thread has missed.
#[derive(Default)]
pub(crate) struct Stirring {
    has_happened: bool,
    /// The thread looks no more until something happens.
    is_unwatched: bool,
}

impl Core {
    /// Something has happened: the input/output thread is to look again.
    pub(crate) fn stir(&mut self) {
        self.stirring.has_happened = true;
        if std::mem::take(&mut self.stirring.is_unwatched) {
            self.order(Order::Rearm);
        }
    }

    /// Whether anything has happened since the last call.
    pub(crate) fn take_happened(&mut self) -> bool {
        std::mem::take(&mut self.stirring.has_happened)
    }

    /// The input/output thread looks no more until something happens; false if something has since
    /// it last asked.
    pub(crate) fn leave_unwatched(&mut self) -> bool {
        self.stirring.is_unwatched = !self.stirring.has_happened;
        self.stirring.is_unwatched
    }

    /// A task has written what only its log shows.
    pub(crate) fn log(&mut self, task: &Label, stream: &'static str, bytes: &[u8]) {
        self.stir();
        self.history.log(task, stream, bytes);
    }

    /// So many calls of a function have ended in place.
    pub(crate) fn count_in_place(&mut self, what: &str, count: u64) {
        self.stir();
        self.in_place.add(what.into(), count);
    }
}
