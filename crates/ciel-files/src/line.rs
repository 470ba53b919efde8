//! Formatted text before it is written.
//!
//! The pieces of a formatted line are many and short: each digit that fills a field is one. They
//! are gathered here, so that the strand, its buffer and its limits are looked at once for a line.
//! It does not know files.

use std::cell::Cell;
use std::fmt::{Arguments, Write};
use std::io;

/// Bytes that a thread keeps for its next text; a longer one is given back to the allocator.
const KEPT_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static KEPT: Cell<String> = const { Cell::new(String::new()) };
}

/// Formats a text and acts on its bytes. Values that format texts in turn have each their own.
///
/// # Errors
/// Those of the action, and that a value cannot be formatted.
pub(crate) fn with(
    text: Arguments<'_>,
    act: impl FnOnce(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut line = KEPT.take();
    let done = match line.write_fmt(text) {
        Ok(()) => act(line.as_bytes()),
        Err(_) => Err(io::Error::other("a value cannot be formatted")),
    };
    if line.capacity() <= KEPT_BYTES_MAX {
        line.clear();
        KEPT.set(line);
    }
    done
}
