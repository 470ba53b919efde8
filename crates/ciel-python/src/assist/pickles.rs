//! Plain values as bytes, for another worker of the same interpreter: the module `marshal`.
//!
//! It knows no calls. Read next: `range.rs`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList};

/// The format without references: equal values are written each.
const FORMAT: u8 = 2;

/// A list of plain values as bytes.
///
/// # Errors
/// Those of `marshal.dumps`.
pub fn written<'py>(values: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyBytes>> {
    static DUMPS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let dumps = DUMPS.import(values.py(), "marshal", "dumps")?;
    Ok(dumps.call1((values, FORMAT))?.cast_into()?)
}

/// The values in such bytes.
///
/// # Errors
/// Those of `marshal.loads`, TypeError if they are no list.
pub fn values_of<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyList>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let loads = LOADS.import(py, "marshal", "loads")?;
    Ok(loads.call1((PyBytes::new(py, bytes),))?.cast_into()?)
}
