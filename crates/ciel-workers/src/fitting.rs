//! What of very many references fits into one message.
//!
//! Failures, and small values by the ten thousand, may be more than a message holds. A worker asks
//! again for what is left out. What it could not ask for is put into files. It does not know what
//! is sent. Read next: `task`, which makes each reference, and `start`.

use std::path::Path;

use ciel_model::{Handle, Resolution};
use ciel_protocol::limits::ANSWERS_BYTES_MAX;
use ciel_protocol::wire::reference::State;
use ciel_protocol::wire::{Concrete, Data, Future, Reference};

/// How many more bytes of references fit into a message.
pub(crate) struct Room(usize);

impl Room {
    /// That of a message without any.
    pub(crate) fn of_a_message() -> Room {
        Room(ANSWERS_BYTES_MAX)
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.0 == 0
    }

    /// So many bytes are put into the message.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }
}

/// A value as that of a file.
pub(crate) fn concrete(path: &Path, value: Data) -> State {
    State::Concrete(Concrete {
        path: path.to_string_lossy().into_owned(),
        length: value.data.len() as u64,
        form: value.form,
        references: value.references,
        r#type: value.r#type,
    })
}

/// A reference of which only the handle is told.
pub(crate) fn untold(handle: Handle) -> Reference {
    Reference {
        handle: handle.0,
        state: Some(State::Future(Future {})),
    }
}

/// Whether a task that receives it receives references with it.
pub(crate) fn has_references(known: &Resolution) -> bool {
    matches!(known, Resolution::Ready { value, .. } if !value.references.is_empty())
}
