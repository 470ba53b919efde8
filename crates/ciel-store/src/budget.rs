//! Bytes on disk that one run may use, counted. It does not know what they are for.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::StoreError;

/// A counter with a limit, shared by all files of a run.
#[derive(Debug)]
pub struct Budget {
    used: AtomicU64,
    limit: u64,
}

impl Budget {
    /// A budget of `limit` bytes; `u64::MAX` for none.
    pub fn new(limit: u64) -> Budget {
        Budget {
            used: AtomicU64::new(0),
            limit,
        }
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes allowed.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Counts bytes, or refuses with `Full` and counts nothing.
    pub(crate) fn charge(&self, wanted: u64) -> Result<(), StoreError> {
        let within_limit = |used: u64| used.checked_add(wanted).filter(|sum| *sum <= self.limit);
        match self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, within_limit)
        {
            Ok(_) => Ok(()),
            Err(used) => Err(StoreError::Full {
                wanted,
                used,
                limit: self.limit,
            }),
        }
    }

    /// Counts bytes that are on disk already, whatever the limit says.
    pub(crate) fn count(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives bytes back.
    pub(crate) fn refund(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "only charged bytes are given back");
    }
}
