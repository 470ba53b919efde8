//! Names of tasks, and hashes: the same that the engine computes.
//!
//! It holds no state. Read `ciel_model::Name` for what a name is.

use ciel_model::{Label, Name};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Bytes from which on a hash is worth letting other Python threads run.
const HASHED_ALONE_BYTES_MIN: usize = 1 << 14;

/// The name of a run's root, 16 bytes: the hash of what distinguishes its run from others.
#[pyfunction]
pub fn position_of_root<'py>(py: Python<'py>, key: &[u8]) -> Bound<'py, PyBytes> {
    bytes_of(py, Name::of_root(key))
}

/// The name of the `index`-th task, from 0, that the strand named `position` spawns; 16 bytes.
#[pyfunction]
pub fn position_of_spawn<'py>(
    py: Python<'py>,
    position: [u8; 16],
    index: u64,
) -> Bound<'py, PyBytes> {
    bytes_of(py, name_of(position).spawn(index))
}

/// The label of a task: `fib@3f9c12ab`.
#[pyfunction]
pub fn label_of(what: &str, position: [u8; 16]) -> String {
    let (what, name) = (what.into(), name_of(position));
    Label { what, name }.to_string()
}

/// The seed for randomness of the task at `position`.
#[pyfunction]
pub fn seed_of(position: [u8; 16]) -> u64 {
    seed_of_name(name_of(position))
}

/// The seed of the task of that name: the lower half of it; the upper one is in labels.
pub fn seed_of_name(name: Name) -> u64 {
    name.0 as u64
}

/// The first 16 bytes of the BLAKE3 hash of a contiguous buffer. Other threads run meanwhile.
///
/// Raises BufferError if `data` is no contiguous buffer of unsigned bytes.
#[pyfunction]
pub fn hash_of<'py>(py: Python<'py>, data: PyBuffer<u8>) -> PyResult<Bound<'py, PyBytes>> {
    let not_contiguous = || pyo3::exceptions::PyBufferError::new_err("the buffer has gaps");
    let pointer = data.as_slice_ptr().ok_or_else(not_contiguous)?;
    // SAFETY: the buffer is held until the end of this function, so the bytes stay where they are.
    // A thread that changes them meanwhile gets a hash of what it has made of them.
    let bytes: &[u8] = unsafe { pointer.as_ref() };
    let hash = if bytes.len() < HASHED_ALONE_BYTES_MIN {
        blake3::hash(bytes)
    } else {
        py.detach(|| blake3::hash(bytes))
    };
    Ok(PyBytes::new(py, &hash.as_bytes()[..16]))
}

/// The name of these bytes.
pub fn name_of(position: [u8; 16]) -> Name {
    Name(u128::from_be_bytes(position))
}

fn bytes_of(py: Python<'_>, name: Name) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &name.0.to_be_bytes())
}
