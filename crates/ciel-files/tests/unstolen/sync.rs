//! What threads share, as in the crate, but each atomic operation that writes is counted.
//!
//! Loads are not counted: on all common processors a load that acquires is a plain one. It does not
//! know files.

use std::cell::Cell;
use std::ops::Deref;
pub(crate) use std::sync::MutexGuard;
pub(crate) use std::sync::atomic::Ordering;
use std::sync::{LockResult, atomic};

thread_local! {
    static WRITES: Cell<u64> = const { Cell::new(0) };
}

/// Atomic operations that have written, on this thread so far.
pub fn atomic_writes() -> u64 {
    WRITES.get()
}

fn count() {
    WRITES.set(WRITES.get() + 1);
}

#[derive(Debug, Default)]
pub(crate) struct Arc<T>(std::sync::Arc<T>);

impl<T> Arc<T> {
    pub(crate) fn new(value: T) -> Arc<T> {
        Arc(std::sync::Arc::new(value))
    }

    pub(crate) fn ptr_eq(one: &Arc<T>, other: &Arc<T>) -> bool {
        std::sync::Arc::ptr_eq(&one.0, &other.0)
    }

    pub(crate) fn strong_count(of: &Arc<T>) -> usize {
        std::sync::Arc::strong_count(&of.0)
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Arc<T> {
        count();
        Arc(self.0.clone())
    }
}

impl<T> Drop for Arc<T> {
    fn drop(&mut self) {
        count();
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Counts the lock and the unlock.
    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        count();
        count();
        self.0.lock()
    }
}

#[derive(Debug)]
pub(crate) struct OnceLock<T>(std::sync::OnceLock<T>);

impl<T> OnceLock<T> {
    pub(crate) fn new() -> OnceLock<T> {
        OnceLock(std::sync::OnceLock::new())
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get()
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        count();
        self.0.get_or_init(make)
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        count();
        self.0.set(value)
    }

    pub(crate) fn into_inner(self) -> Option<T> {
        self.0.into_inner()
    }
}

#[derive(Debug)]
pub(crate) struct AtomicBool(atomic::AtomicBool);

impl AtomicBool {
    pub(crate) const fn new(value: bool) -> AtomicBool {
        AtomicBool(atomic::AtomicBool::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> bool {
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: bool, order: Ordering) {
        count();
        self.0.store(value, order);
    }
}

#[derive(Debug)]
pub(crate) struct AtomicU64(atomic::AtomicU64);

impl AtomicU64 {
    pub(crate) const fn new(value: u64) -> AtomicU64 {
        AtomicU64(atomic::AtomicU64::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u64, order: Ordering) {
        count();
        self.0.store(value, order);
    }

    pub(crate) fn fetch_add(&self, more: u64, order: Ordering) -> u64 {
        count();
        self.0.fetch_add(more, order)
    }
}
