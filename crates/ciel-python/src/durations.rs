//! Lengths of time as Python gives them, in seconds.
//!
//! It does not know what they are for.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Raises ValueError for what is no length of time.
pub(crate) fn duration(seconds: f64) -> PyResult<Duration> {
    let found = Duration::try_from_secs_f64(seconds);
    found.map_err(|error| PyValueError::new_err(format!("{seconds} s: {error}")))
}
