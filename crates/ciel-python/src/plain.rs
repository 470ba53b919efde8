//! Results that a child in place shares with its parent: nobody can change them; they are small.
//!
//! It knows no tasks. Read next: `stack.rs`; `sdk/python/ciel/_atoms.py` says the same to Python.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyFloat, PyInt, PyString, PyTuple};

use crate::arguments::DEPTH_MAX;

/// Bytes of a result that is shared, at most.
const SMALL_BYTES_MAX: usize = 4 << 10;

/// Whether a value is plain, and costs little to share.
pub fn is_small(value: &Bound<'_, PyAny>) -> bool {
    let mut left = SMALL_BYTES_MAX;
    takes_little(value, &mut left, 0)
}

/// Whether a plain value takes less than `left` bytes, and subtracts what it takes.
fn takes_little(value: &Bound<'_, PyAny>, left: &mut usize, depth: usize) -> bool {
    let bytes = if value.is_exact_instance_of::<PyInt>() {
        match value.extract::<i64>() {
            Ok(_) => Some(size_of::<i64>()),
            Err(_) => long_bytes(value).ok(),
        }
    } else if let Ok(text) = value.cast_exact::<PyString>() {
        text.len().ok()
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        Some(bytes.as_bytes().len())
    } else if let Ok(parts) = value.cast_exact::<PyTuple>() {
        let mut each = parts.iter_borrowed();
        let bytes = size_of::<usize>() * (1 + parts.len());
        let is_little = bytes < *left
            && depth < DEPTH_MAX
            && each.all(|part| takes_little(&part, left, depth + 1));
        is_little.then_some(bytes)
    } else {
        let is_plain = value.is_none()
            || value.is_exact_instance_of::<PyFloat>()
            || value.is_exact_instance_of::<PyBool>()
            || value.is_exact_instance_of::<PyComplex>();
        is_plain.then_some(size_of::<f64>())
    };
    let rest = bytes.and_then(|bytes| left.checked_sub(bytes));
    *left = rest.unwrap_or_default();
    *left > 0
}

fn long_bytes(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let bits = value.call_method0(intern!(value.py(), "bit_length"))?;
    Ok(bits.extract::<usize>()? / 8 + 1)
}
