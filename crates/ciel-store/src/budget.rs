//! Bytes on disk that one run may use, counted where they are handled.
//!
//! It does not know what they are for, only how they came. Read next: `counts`.

use std::sync::{Mutex, MutexGuard};

use crate::counts::{Counts, Kind};
use crate::error::StoreError;

/// Counters with a limit, shared by all files of a run.
#[derive(Debug)]
pub struct Budget {
    counts: Mutex<Counts>,
    limit: u64,
}

impl Budget {
    /// A budget of `limit` bytes; `u64::MAX` for none.
    pub fn new(limit: u64) -> Budget {
        Budget {
            counts: Mutex::default(),
            limit,
        }
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.locked().present()
    }

    /// Bytes allowed.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// All counters at this moment.
    pub fn counts(&self) -> Counts {
        *self.locked()
    }

    /// Bytes were copied that are an object now, or become one: those of a user's file, or of a
    /// file with several names; or they went to the reader of a stream over a connection.
    pub fn count_moved(&self, bytes: u64) {
        self.locked().moved += bytes;
    }

    /// Counts bytes, or refuses with `Full` and counts nothing.
    pub(crate) fn charge(&self, kind: Kind, wanted: u64) -> Result<(), StoreError> {
        let mut counts = self.locked();
        let used = counts.present();
        let sum = used.checked_add(wanted).filter(|sum| *sum <= self.limit);
        if sum.is_none() {
            let limit = self.limit;
            return Err(StoreError::Full {
                wanted,
                used,
                limit,
            });
        }
        counts.make(kind, wanted);
        Ok(())
    }

    /// Counts bytes that are on disk already, whatever the limit says.
    pub(crate) fn count(&self, kind: Kind, bytes: u64) {
        self.locked().make(kind, bytes);
    }

    /// Bytes that were charged have not become what they were charged for.
    pub(crate) fn refund(&self, kind: Kind, bytes: u64) {
        self.locked().take_back(kind, bytes);
    }

    /// Bytes are not on the disk any more.
    pub(crate) fn release(&self, kind: Kind, bytes: u64) {
        self.locked().release(kind, bytes);
    }

    fn locked(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().expect("nobody panics with the counters")
    }
}
