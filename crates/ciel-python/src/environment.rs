//! One variable of the process's environment that changes with every task.
//!
//! `setenv` keeps every value that it ever saw, so a worker of a million tasks would grow by a
//! million strings. Here the variable is memory of this module that is overwritten. It knows no
//! tasks. Read next: `names.rs`, which makes seeds.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::prelude::*;

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn putenv(entry: *const c_char) -> c_int;
}

const ENTRY: &[u8] = b"CIEL_TASK_SEED=";

/// Bytes of the entry: its name, 20 digits at most, and the end.
const ENTRY_BYTES: usize = ENTRY.len() + 21;

/// The entry itself, which the environment points to.
static PLACE: [AtomicU8; ENTRY_BYTES] = [const { AtomicU8::new(0) }; ENTRY_BYTES];

/// Makes `seed` the value of `CIEL_TASK_SEED` that processes inherit from now on. To be called by
/// one thread only; others may read the environment meanwhile.
#[pyfunction]
pub fn tell_seed(seed: u64) {
    for (place, byte) in PLACE.iter().zip(ENTRY) {
        place.store(*byte, Ordering::Relaxed);
    }
    tell_digits(seed.to_string().as_bytes());
    let entry = PLACE.as_ptr().cast::<c_char>();
    // SAFETY: `PLACE` lives as long as the process, has the layout of bytes, and always holds an
    // end, since its last byte is never anything else. `getenv` receives a terminated name, and its
    // result is only compared. `putenv` keeps the pointer and writes nothing; it is skipped when
    // the entry exists already, so threads that read meanwhile see no other array.
    unsafe {
        if getenv(c"CIEL_TASK_SEED".as_ptr()) != entry.add(ENTRY.len()) {
            putenv(entry);
        }
    }
}

/// As `tell_seed`, with the decimal digits of the seed, for an environment that has the variable
/// and has not changed since.
pub fn tell_digits(digits: &[u8]) {
    let text = digits.iter().copied().chain([0]);
    for (place, byte) in PLACE[ENTRY.len()..].iter().zip(text) {
        place.store(byte, Ordering::Relaxed);
    }
}
