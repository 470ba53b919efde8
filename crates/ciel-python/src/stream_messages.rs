//! What a task says of the memory that it shares with the reader of its stream.
//!
//! It does not know what is shared. Read next: `shared_writer`, `connection`.

use ciel_protocol::wire::{OpenShared, StreamShared, WorkerMessage};
use pyo3::prelude::*;

use crate::connection::Connection;

/// Requests memory in which four values of `length` bytes have room; answered by `opened`, with an
/// empty path if there is none.
#[pyfunction]
pub fn open_shared(
    py: Python<'_>,
    connection: &Connection,
    tag: u32,
    request: u32,
    length: u64,
) -> PyResult<()> {
    let message = OpenShared { request, length };
    connection.append(py, &WorkerMessage::about(tag, message))
}

/// Tells how many bytes of an output its reader has had through such memory.
#[pyfunction]
pub fn tell_shared(
    py: Python<'_>,
    connection: &Connection,
    tag: u32,
    output: u32,
    bytes: u64,
) -> PyResult<()> {
    let message = StreamShared { output, bytes };
    connection.append(py, &WorkerMessage::about(tag, message))
}
