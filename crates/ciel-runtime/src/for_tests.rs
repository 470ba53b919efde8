//! What the environment of a debug build may change for tests. Release builds never look.
//!
//! Read next: `death`, which asks here when to die.

use ciel_model::limits;

/// `300` gives a worker 300 ms to send hello.
const HELLO_MS: &str = "CIEL_HELLO_MS";

/// A variable of the environment of a debug build.
pub(crate) fn variable(name: &str) -> Option<String> {
    match cfg!(debug_assertions) {
        true => std::env::var(name).ok(),
        false => None,
    }
}

/// Milliseconds a worker has to send hello.
pub(crate) fn hello_ms_max() -> u64 {
    let named = variable(HELLO_MS).and_then(|named| named.parse().ok());
    named.unwrap_or(limits::HELLO_MS_MAX)
}
