//! `Kept`: the last memory that an end of a stream has used, for the next stream of its process.
//!
//! Fresh pages are what costs, and to map them. It is kept for a moment only, so that a process
//! that is done with streams gives it back. It does not know what is kept. Read next:
//! `held_memory` for readers, `shared_writer` for producers.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use ciel_streams::limits::SHARED_KEPT_MS;

/// A place for one thing.
pub struct Kept<T> {
    slot: Mutex<Option<Arc<T>>>,
    changed: Condvar,
}

impl<T> Kept<T> {
    /// Nothing is kept.
    pub const fn new() -> Kept<T> {
        Kept {
            slot: Mutex::new(None),
            changed: Condvar::new(),
        }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<T>>> {
        self.slot.lock().expect("nothing panics with it")
    }

    /// Keeps it in place of what is kept.
    pub fn put(&self, it: Arc<T>) {
        let before = self.slot().replace(it);
        self.changed.notify_all();
        drop(before);
    }

    /// What is kept, if it is suitable.
    pub fn take_if(&self, is_suitable: impl FnOnce(&T) -> bool) -> Option<Arc<T>> {
        let taken = self.slot().take_if(|it| is_suitable(it));
        self.changed.notify_all();
        taken
    }

    /// Waits until it is kept no longer: it was taken, another one has its place, or its time is
    /// over.
    pub fn await_end(&self, it: &Arc<T>) {
        let is_it =
            |slot: &mut Option<Arc<T>>| slot.as_ref().is_some_and(|one| Arc::ptr_eq(one, it));
        let time = Duration::from_millis(SHARED_KEPT_MS);
        let waited = self.changed.wait_timeout_while(self.slot(), time, is_it);
        let (mut slot, _) = waited.expect("nothing panics with it");
        if is_it(&mut slot) {
            *slot = None;
        }
    }

    /// It is not kept any more.
    pub fn remove(&self, it: &Arc<T>) {
        self.slot().take_if(|one| Arc::ptr_eq(one, it));
    }
}
