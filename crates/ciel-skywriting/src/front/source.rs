//! From the bytes of a file to its text.
//!
//! It knows nothing of the language. Read next: `include`.

use crate::diagnostic::Diagnostic;
use crate::hir::Span;
use crate::limits::SOURCE_BYTES_MAX;

/// The text of a file, as far as it can be shown, and what makes it unreadable.
pub fn decode(name: &str, bytes: &[u8], source: u16) -> (String, Option<Diagnostic>) {
    let whole = Span {
        source,
        start: 0,
        end: 0,
    };
    if bytes.len() > SOURCE_BYTES_MAX {
        let message = format!("{name} is too large for a script: {} bytes", bytes.len());
        let hint = format!("a script has at most {SOURCE_BYTES_MAX} bytes; read data from files");
        return (
            String::new(),
            Some(Diagnostic::new("file", message, whole).with_hint(hint)),
        );
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        let problem = Diagnostic::new("file", format!("{name} is written in UTF-16"), whole);
        return (String::new(), Some(problem.with_hint("save it as UTF-8")));
    }
    if bytes.contains(&0) {
        let problem = Diagnostic::new(
            "file",
            format!("{name} is a binary file, not a script"),
            whole,
        );
        return (
            String::new(),
            Some(problem.with_hint("name the file that holds the program text")),
        );
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(error) => (
            String::from_utf8_lossy(bytes).into_owned(),
            Some(not_unicode(bytes, error, source)),
        ),
    }
}

/// The place is one of the text in which bad bytes are replaced; up to the first they agree.
fn not_unicode(bytes: &[u8], error: std::str::Utf8Error, source: u16) -> Diagnostic {
    let start = error.valid_up_to();
    let replaced = char::REPLACEMENT_CHARACTER.len_utf8();
    let span = Span {
        source,
        start: start as u32,
        end: (start + replaced) as u32,
    };
    let message = format!("the byte 0x{:02x} is not UTF-8", bytes[start]);
    Diagnostic::new("file", message, span).with_hint("save the file as UTF-8")
}

/// A script without a single character that could be seen.
pub fn nothing_in_it(name: &str, source: u16) -> Diagnostic {
    let message = format!("{name} contains no program");
    Diagnostic::new(
        "file",
        message,
        Span {
            source,
            start: 0,
            end: 0,
        },
    )
    .with_hint("the smallest script is `return null;`")
}
