//! Strands of a Python program: forked here, run on whatever thread.
//!
//! It does not know how threads are started; `sdk/python/ciel/ordered.py` does. Read next: crate
//! `ciel-files`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use ciel_files::{Group, Strand, fork};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A strand that was forked and has not begun; if it is dropped, it ends without a byte.
#[pyclass(frozen, module = "ciel._native")]
pub struct OrderedStrand {
    strand: Mutex<Option<Strand>>,
    /// Whether an exception cuts what comes behind it in the strand's group.
    cuts: bool,
}

#[pymethods]
impl OrderedStrand {
    /// Forks a strand: what it writes to ordered files comes here, before all that the caller
    /// writes from now on.
    #[new]
    fn new(py: Python<'_>) -> OrderedStrand {
        OrderedStrand::of(py.detach(fork), false)
    }

    /// Calls `function` as this strand, on this thread, and ends the strand.
    ///
    /// Raises what the function does, RuntimeError if the strand has begun or ended before.
    #[pyo3(signature = (function, *arguments, **keywords))]
    fn run<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        arguments: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(mut strand) = self.take() else {
            let message = "a strand runs once; fork another one for another call";
            return Err(PyRuntimeError::new_err(message));
        };
        let result = self.call(&mut strand, || function.call(arguments, keywords));
        // What waits for the end of the strand may be written now, which can take long.
        function.py().detach(|| drop(strand));
        result
    }

    /// Ends a strand that has not begun; otherwise does nothing.
    fn end(&self, py: Python<'_>) {
        let strand = self.take();
        py.detach(|| drop(strand));
    }
}

impl OrderedStrand {
    fn of(strand: Strand, cuts: bool) -> OrderedStrand {
        OrderedStrand {
            strand: Mutex::new(Some(strand)),
            cuts,
        }
    }

    /// Calls as the strand, which learns of an exception that cuts as it would of a panic.
    fn call<T>(&self, strand: &mut Strand, call: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        if !self.cuts {
            return strand.within(call);
        }
        let whole = || call().unwrap_or_else(|error| resume_unwind(Box::new(error)));
        let caught = catch_unwind(AssertUnwindSafe(|| strand.within(whole)));
        caught.map_err(|payload| match payload.downcast::<PyErr>() {
            Ok(error) => *error,
            Err(panic) => resume_unwind(panic),
        })
    }

    fn take(&self) -> Option<Strand> {
        let mut own = self.strand.lock().unwrap_or_else(PoisonError::into_inner);
        own.take()
    }
}

/// Strands that end together: an exception in one cuts what comes behind it in the group.
#[pyclass(frozen, module = "ciel._native")]
pub struct OrderedGroup {
    group: Mutex<Option<Group>>,
}

#[pymethods]
impl OrderedGroup {
    /// A group without strands, of the strand that calls.
    #[new]
    fn new() -> OrderedGroup {
        OrderedGroup {
            group: Mutex::new(Some(Group::new())),
        }
    }

    /// Forks a strand of the group, on the thread that made it. Raises RuntimeError if the group
    /// has ended.
    fn fork(&self) -> PyResult<OrderedStrand> {
        let own = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        match &*own {
            Some(group) => Ok(OrderedStrand::of(group.fork(), true)),
            None => Err(PyRuntimeError::new_err("the group of strands has ended")),
        }
    }

    /// All its strands have ended; the one that made it, on whose thread this is called, continues.
    fn end(&self, py: Python<'_>) {
        let mut own = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        let group = own.take();
        drop(own);
        py.detach(|| drop(group));
    }
}
