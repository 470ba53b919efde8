//! The memory of the last streams that this process has read and written, for its next ones.
//!
//! Fresh pages are what costs, and to map them. Both ends keep the memory for a moment only, so
//! that a process that is done with streams gives it back. The producer of the next one claims it,
//! whichever end it was before, and sends it to its reader, which has it mapped then. The engine,
//! which has granted it, may take its pages back before. It does not know when memory is free. Read
//! next: `held_memory` for readers, `shared_writer` for producers.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use ciel_streams::limits::SHARED_KEPT_MS;

use crate::shared_memory::SharedFile;

/// That of the last stream that was read.
pub static READ: Kept = Kept::new();

/// That of the last stream that was written.
pub static WRITTEN: Kept = Kept::new();

/// Memory that is kept and suitable.
pub fn take_if(is_suitable: impl Fn(&SharedFile) -> bool) -> Option<Arc<SharedFile>> {
    let read = READ.take_if(&is_suitable);
    read.or_else(|| WRITTEN.take_if(&is_suitable))
}

/// A place for one memory.
pub struct Kept {
    slot: Mutex<Option<Arc<SharedFile>>>,
    changed: Condvar,
}

impl Kept {
    const fn new() -> Kept {
        Kept {
            slot: Mutex::new(None),
            changed: Condvar::new(),
        }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<SharedFile>>> {
        self.slot.lock().expect("nothing panics with it")
    }

    /// Keeps it in place of what is kept.
    pub fn put(&self, it: Arc<SharedFile>) {
        let before = self.slot().replace(it);
        self.changed.notify_all();
        drop(before);
    }

    fn take_if(&self, is_suitable: impl Fn(&SharedFile) -> bool) -> Option<Arc<SharedFile>> {
        let taken = self.slot().take_if(|it| is_suitable(it));
        self.changed.notify_all();
        taken
    }

    /// Waits until it is kept no longer: it was taken, another one has its place, or its time is
    /// over.
    pub fn await_end(&self, it: &Arc<SharedFile>) {
        let is_it = |slot: &Option<Arc<_>>| slot.as_ref().is_some_and(|one| Arc::ptr_eq(one, it));
        let time = Duration::from_millis(SHARED_KEPT_MS);
        let waited = self
            .changed
            .wait_timeout_while(self.slot(), time, |slot| is_it(slot));
        let (mut slot, _) = waited.expect("nothing panics with it");
        if is_it(&slot) {
            *slot = None;
        }
    }

    /// It is not kept any more.
    pub fn remove(&self, it: &Arc<SharedFile>) {
        self.slot().take_if(|one| Arc::ptr_eq(one, it));
    }
}
