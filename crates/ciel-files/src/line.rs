//! Formatted text before it is written.
//!
//! The pieces of a formatted line are many and short: each digit that fills a field is one. They
//! are gathered here, so that the strand, its buffer and its limits are looked at once for a line.
//! It does not know files.

use std::cell::Cell;
use std::fmt::{self, Arguments, Write};
use std::io;

/// Bytes that a thread keeps for its next text; a longer one is given back to the allocator.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// A text as far as it is formatted. Most pieces are a single letter of ASCII, or short.
#[derive(Default)]
struct Line(Vec<u8>);

impl Line {
    #[cold]
    #[inline(never)]
    fn grow_by(&mut self, piece: &str) {
        self.0.extend_from_slice(piece.as_bytes());
    }
}

impl Write for Line {
    #[inline]
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        match piece.len() <= self.0.capacity() - self.0.len() {
            true => self.0.extend_from_slice(piece.as_bytes()),
            false => self.grow_by(piece),
        }
        Ok(())
    }

    #[inline]
    fn write_char(&mut self, letter: char) -> fmt::Result {
        match letter.is_ascii() && self.0.len() < self.0.capacity() {
            true => self.0.push(letter as u8),
            false => self.grow_by(letter.encode_utf8(&mut [0; 4])),
        }
        Ok(())
    }
}

thread_local! {
    static KEPT: Cell<Line> = const { Cell::new(Line(Vec::new())) };
}

/// Formats a text and acts on its bytes. Values that format texts in turn have each their own.
///
/// # Errors
/// Those of the action, and that a value cannot be formatted.
#[inline]
pub(crate) fn with(
    text: Arguments<'_>,
    act: impl FnOnce(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut line = KEPT.take();
    let done = match line.write_fmt(text) {
        Ok(()) => act(&line.0),
        Err(_) => Err(io::Error::other("a value cannot be formatted")),
    };
    if line.0.capacity() <= KEPT_BYTES_MAX {
        line.0.clear();
        KEPT.set(line);
    }
    done
}
