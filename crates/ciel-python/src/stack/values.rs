//! The values of a `map`, in their order, as far as native code gives them: an iterator that ends
//! wherever Python has something to do, and continues behind that.
//!
//! It asks for the arguments of further calls, spawns these, and so is ahead of its values. It does
//! not know how a call is kept, or runs. Read next: `ahead.rs`, `sdk/python/ciel/_flat_loop.py`.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use super::calls::Ahead;

/// The values of a loop.
#[pyclass(frozen, module = "ciel._native")]
pub struct Values {
    ahead: Py<Ahead>,
    /// The arguments of its calls.
    given: Py<PyIterator>,
}

#[pymethods]
impl Values {
    /// Of the calls `ahead`, for which `given` has tuples of arguments.
    #[new]
    fn new(ahead: Py<Ahead>, given: Py<PyIterator>) -> Values {
        Values { ahead, given }
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// The next value; none while Python has a call to spawn, or the value that is due is unknown,
    /// and at the end.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let calls = &self.ahead.get().0;
        while calls.borrow(py).has_room() {
            // Nothing is borrowed: to ask for arguments may run any code.
            let items = self.given.bind(py).clone().next();
            let mut calls = calls.borrow_mut(py);
            match items {
                Some(Ok(items)) => calls.spawn(items.cast_into::<PyTuple>()?)?,
                Some(Err(error)) if error.is_instance_of::<PyException>(py) => {
                    // It is raised when it is due: the loop is ahead of its reader.
                    calls.failure = Some(error.into_value(py).into_any());
                    calls.close();
                }
                Some(Err(error)) => return Err(error),
                None => calls.close(),
            }
        }
        Ok(calls.borrow_mut(py).take_value())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.ahead)?;
        visit.call(&self.given)
    }
}
