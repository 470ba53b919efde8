//! The bounds of a conversation, with their units.

/// Characters of a label that people are shown.
pub const LABEL_CHARACTERS_MAX: usize = 64;

/// Bytes of a line that never ends before it is shown in parts.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// Files that a task has received which are looked at when it ends: whether it has overwritten one.
pub const MAPPED_MAX: usize = 256;

/// Requests of one task that are not answered, and files that it has opened and not committed.
pub const REQUESTS_OPEN_MAX: usize = 1 << 20;
