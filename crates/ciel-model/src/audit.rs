//! What a task was seen to do beside computing its outputs from its inputs.
//!
//! An executor that can watch its tasks reports it with their end. This module does not know who
//! watches, nor what follows from it. Read next: `task`, for what a task declares of itself.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// What a task was seen to do, from its start to its end; what its children did is in their own.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Audit {
    /// What taking a kept result would not repeat, or what another run may find otherwise: writes,
    /// connections, processes, unrecorded inputs. Each in words, for people.
    pub effects: Box<[Arc<str>]>,
    /// The files that it has read, and that are not its inputs.
    pub read: Box<[FileRead]>,
    /// Of all that it has printed, if that is compared with another run.
    pub printed: Option<Digest>,
}

/// A file that a task has read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileRead {
    /// Its absolute path.
    pub path: Arc<str>,
    /// Its length in bytes.
    pub length: u64,
    /// Of its content.
    pub digest: Digest,
}

impl Audit {
    /// That of a task of which nothing was seen but what it printed.
    pub fn of_printed(printed: Digest) -> Arc<Audit> {
        Arc::new(Audit {
            printed: Some(printed),
            ..Audit::default()
        })
    }

    /// That of a task of which nothing was seen, one copy for all tasks.
    pub fn shared_empty() -> Arc<Audit> {
        static EMPTY: LazyLock<Arc<Audit>> = LazyLock::new(Arc::default);
        EMPTY.clone()
    }

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty() && self.read.is_empty()
    }
}
