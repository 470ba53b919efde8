//! Digests of files that tasks have read: the same that the engine computes.
//!
//! It holds no state and follows no link. Read next: `sdk/python/ciel/_audit.py`, which asks.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 1 << 17;

/// Length and BLAKE3 hash, 32 bytes, of the content of a file. Other threads run meanwhile.
///
/// Raises OSError if it cannot be read.
#[pyfunction]
pub fn digest_of_file(py: Python<'_>, path: PathBuf) -> PyResult<(u64, Bound<'_, PyBytes>)> {
    let (length, hash) = py.detach(|| hash(path))?;
    Ok((length, PyBytes::new(py, hash.as_bytes())))
}

fn hash(path: PathBuf) -> io::Result<(u64, blake3::Hash)> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut length = 0;
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((length, hasher.finalize())),
            count => {
                hasher.update(&piece[..count]);
                length += count as u64;
            }
        }
    }
}
