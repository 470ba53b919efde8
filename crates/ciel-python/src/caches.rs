//! What this process keeps of objects beyond the task that made it, as the engine is told.
//!
//! It does not know what is kept. Read next: `connection`.

use ciel_protocol::wire::{Caches, WorkerMessage};
use pyo3::prelude::*;

use crate::connection::Connection;

/// Tells the engine that the process keeps something of the objects at the paths `held` from now
/// on, and nothing any more of those at the paths `dropped`.
#[pyfunction]
pub fn tell_caches(
    py: Python<'_>,
    connection: &Connection,
    held: Vec<String>,
    dropped: Vec<String>,
) -> PyResult<()> {
    connection.append(py, &WorkerMessage::connection(Caches { held, dropped }))
}
