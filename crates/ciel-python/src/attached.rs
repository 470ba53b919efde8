//! A value of which one thread at a time has the use: the one that is attached to the interpreter.
//!
//! It is borrowed as the value of a class of Python is, but without the atomic operations of that,
//! which were a third of what a short call in a loop cost. It knows nothing of the value. Read
//! next: `stack.rs`.

use std::cell::{Ref, RefCell, RefMut};

use pyo3::Python;

/// A value that is borrowed by attached threads only.
pub struct Attached<T>(RefCell<T>);

// SAFETY: whoever borrows the value, or gives it back, is attached to the interpreter, whose lock
// the module declares to use: `Ref` and `RefMut` live no longer than the token that they were
// borrowed with, and cannot get to another thread, nor into the code that runs detached. So counts
// and value are seen by one thread at a time, and each sees what the one before it has done.
unsafe impl<T: Send> Sync for Attached<T> {}

impl<T> Attached<T> {
    /// That value.
    pub fn new(value: T) -> Attached<T> {
        Attached(RefCell::new(value))
    }

    /// The value, which others may read meanwhile.
    ///
    /// # Panics
    /// If somebody may write it.
    pub fn borrow<'a>(&'a self, _py: Python<'a>) -> Ref<'a, T> {
        self.0.borrow()
    }

    /// As `borrow`; `None` if somebody may write the value.
    pub fn try_borrow<'a>(&'a self, _py: Python<'a>) -> Option<Ref<'a, T>> {
        self.0.try_borrow().ok()
    }

    /// The value, which nobody else uses meanwhile.
    ///
    /// # Panics
    /// If somebody uses it.
    pub fn borrow_mut<'a>(&'a self, _py: Python<'a>) -> RefMut<'a, T> {
        self.0.borrow_mut()
    }
}
