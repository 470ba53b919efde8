//! The stack of the thread that runs: each worker has one, in the thread of its tasks.
//!
//! It does not know what is in it. Read next: `stack.rs`, `attached.rs`.

use std::cell::{Ref, RefCell, RefMut};

use pyo3::prelude::*;

use super::{Stack, StackObject};

thread_local! {
    /// The stack of the worker whose tasks this thread runs.
    static HERE: RefCell<Option<Py<StackObject>>> = const { RefCell::new(None) };
}

/// The stack of the thread that runs.
pub(super) struct Here<'py>(Bound<'py, StackObject>);

/// That stack; `None` in a thread without one.
pub(super) fn here(py: Python<'_>) -> Option<Here<'_>> {
    HERE.with_borrow(|stack| stack.as_ref().map(|stack| Here(stack.bind(py).clone())))
}

/// The thread that runs has that stack from now on.
pub(super) fn set(stack: Py<StackObject>) {
    let before = HERE.replace(Some(stack));
    drop(before);
}

impl<'py> Here<'py> {
    /// That one, whichever thread it is of.
    pub(super) fn of(stack: &Bound<'py, StackObject>) -> Here<'py> {
        Here(stack.clone())
    }

    pub(super) fn py(&self) -> Python<'py> {
        self.0.py()
    }

    pub(super) fn borrow(&self) -> Ref<'_, Stack> {
        self.0.get().0.borrow(self.py())
    }

    pub(super) fn borrow_mut(&self) -> RefMut<'_, Stack> {
        self.0.get().0.borrow_mut(self.py())
    }
}
