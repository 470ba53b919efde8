//! What the environment of a debug build may change for tests. Release builds never look.
//!
//! Read next: `death`, which asks here when to die.

use ciel_model::limits;

/// `300` gives a worker 300 ms to send hello.
const HELLO_MS: &str = "CIEL_HELLO_MS";

/// `1000` gives a process one second to end after it was asked to.
const KILL_GRACE_MS: &str = "CIEL_KILL_GRACE_MS";

/// A variable of the environment of a debug build.
pub(crate) fn variable(name: &str) -> Option<String> {
    match cfg!(debug_assertions) {
        true => std::env::var(name).ok(),
        false => None,
    }
}

/// Milliseconds a worker has to send hello.
pub(crate) fn hello_ms_max() -> u64 {
    milliseconds(HELLO_MS, limits::HELLO_MS_MAX)
}

/// Milliseconds a process has to end after it was asked to.
pub(crate) fn kill_grace_ms() -> u64 {
    milliseconds(KILL_GRACE_MS, limits::KILL_GRACE_MS)
}

fn milliseconds(name: &str, otherwise: u64) -> u64 {
    let named = variable(name).and_then(|named| named.parse().ok());
    named.unwrap_or(otherwise)
}
