//! The state of the value behind a handle: five classes, one for each state.
//!
//! It does not know what Python makes of the bytes. Read `engine_messages.rs` for the messages that
//! carry references.

use ciel_protocol::wire::{self, reference};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PyString, PyTuple};

use crate::failure::{self, Failure};
use crate::record::record;

record! {
    /// The value is not ready yet.
    Pending {
        @const is_resolved: bool = false;
        /// The handle.
        handle: PyInt,
    }
}

record! {
    /// The value itself.
    Value {
        @const is_resolved: bool = true;
        /// The handle.
        handle: PyInt,
        /// Its bytes.
        data: PyBytes,
        /// How the bytes are read.
        form: PyString,
        /// Handles of the references inside, in the order in which the bytes count them.
        references: PyTuple,
    }
}

record! {
    /// The value is in a file.
    File {
        @const is_resolved: bool = true;
        /// The handle.
        handle: PyInt,
        /// Where the file is.
        path: PyString,
        /// Length in bytes.
        length: PyInt,
        /// How the bytes are read.
        form: PyString,
        /// Handles of the references inside, in the order in which the bytes count them.
        references: PyTuple,
    }
}

record! {
    /// There will be no value: its task failed.
    Failed {
        @const is_resolved: bool = true;
        /// The handle.
        handle: PyInt,
        /// The failure that it resolved to.
        failure: Failure,
    }
}

record! {
    /// The value is being written, and can be read as it comes.
    Incoming {
        @const is_resolved: bool = false;
        /// The handle.
        handle: PyInt,
        /// Where the pipe is.
        path: PyString,
        /// How the bytes are read.
        form: PyString,
    }
}

/// The object for a reference.
pub fn to_python<'py>(py: Python<'py>, one: &wire::Reference) -> PyResult<Bound<'py, PyAny>> {
    let handle = number(py, one.handle);
    Ok(match &one.state {
        Some(reference::State::Future(_)) | None => Bound::new(py, Pending { handle })?.into_any(),
        Some(reference::State::Value(value)) => {
            let value = Value {
                handle,
                data: PyBytes::new(py, &value.data).unbind(),
                form: form(py, &value.form),
                references: handles(py, &value.references)?,
            };
            Bound::new(py, value)?.into_any()
        }
        Some(reference::State::Concrete(file)) => {
            let file = File {
                handle,
                path: PyString::new(py, &file.path).unbind(),
                length: number(py, file.length),
                form: form(py, &file.form),
                references: handles(py, &file.references)?,
            };
            Bound::new(py, file)?.into_any()
        }
        Some(reference::State::Stream(stream)) => {
            let incoming = Incoming {
                handle,
                path: PyString::new(py, &stream.path).unbind(),
                form: form(py, &stream.form),
            };
            Bound::new(py, incoming)?.into_any()
        }
        Some(reference::State::Error(error)) => {
            let failure = failure::to_python(py, error)?.unbind();
            Bound::new(py, Failed { handle, failure })?.into_any()
        }
    })
}

/// The objects for several references.
pub fn list<'py>(py: Python<'py>, all: &[wire::Reference]) -> PyResult<Py<PyList>> {
    let found: Vec<Bound<'py, PyAny>> = all
        .iter()
        .map(|one| to_python(py, one))
        .collect::<PyResult<_>>()?;
    Ok(PyList::new(py, found)?.unbind())
}

/// A whole number.
pub fn number<'py, N>(py: Python<'py>, value: N) -> Py<PyInt>
where
    N: IntoPyObject<
            'py,
            Target = PyInt,
            Output = Bound<'py, PyInt>,
            Error = std::convert::Infallible,
        >,
{
    match value.into_pyobject(py) {
        Ok(number) => number.unbind(),
        Err(never) => match never {},
    }
}

/// The name of a form: one object, however many values have it.
fn form(py: Python<'_>, name: &str) -> Py<PyString> {
    match name {
        "pickle" => intern!(py, "pickle").clone().unbind(),
        name => PyString::intern(py, name).unbind(),
    }
}

/// The handles inside a value; mostly there are none, which is one object for all.
pub fn handles(py: Python<'_>, inside: &[u32]) -> PyResult<Py<PyTuple>> {
    match inside {
        [] => Ok(PyTuple::empty(py).unbind()),
        inside => Ok(PyTuple::new(py, inside)?.unbind()),
    }
}
