//! Why an act on the stream was refused.
//!
//! A refusal changes nothing, with one exception: a mismatch turns its strand's later acts away
//! until the strand is rewound, rolled back, closed or discarded. Read next: `stream`.

use crate::piece::StrandKey;

/// A refused act. None is retryable: the same act would be refused again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderedError {
    /// The strand was never opened, or has been released, rolled back or cut off. Late acts of a
    /// strand that has been given up end here and may be ignored.
    Unknown {
        /// The strand of the act.
        strand: StrandKey,
    },
    /// The key names a strand of another position.
    AlreadyKnown {
        /// The key that was to be opened.
        strand: StrandKey,
    },
    /// The strand has been closed or discarded.
    Closed {
        /// The strand of the act.
        strand: StrandKey,
    },
    /// Only a held strand can be rolled back.
    NotHeld {
        /// The strand of the act.
        strand: StrandKey,
    },
    /// The replay of the strand differs from what it wrote before: it is not deterministic.
    Mismatch {
        /// The strand of the act.
        strand: StrandKey,
        /// Everything before this byte of the strand's own output agreed.
        offset: u64,
    },
    /// An act of a strand whose replay has already been found to differ.
    Diverged {
        /// The strand of the act.
        strand: StrandKey,
    },
    /// The piece of this ticket was dropped in the meantime; the caller may recycle its extent.
    UnknownTicket,
}

impl OrderedError {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            OrderedError::Unknown { .. } => "ordered.unknown-strand",
            OrderedError::AlreadyKnown { .. } => "ordered.already-known",
            OrderedError::Closed { .. } => "ordered.closed",
            OrderedError::NotHeld { .. } => "ordered.not-held",
            OrderedError::Mismatch { .. } => "ordered.mismatch",
            OrderedError::Diverged { .. } => "ordered.diverged",
            OrderedError::UnknownTicket => "ordered.unknown-ticket",
        }
    }

    /// Whether the same act may succeed later; never.
    pub fn is_retryable(&self) -> bool {
        false
    }
}

impl std::fmt::Display for OrderedError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OrderedError::Unknown { strand } => write!(formatter, "{strand} has no place"),
            OrderedError::AlreadyKnown { strand } => write!(formatter, "{strand} stands elsewhere"),
            OrderedError::Closed { strand } => write!(formatter, "{strand} is closed"),
            OrderedError::NotHeld { strand } => write!(formatter, "{strand} is not held"),
            OrderedError::Mismatch { strand, offset } => {
                write!(
                    formatter,
                    "{strand} wrote different output in its replay, from byte {offset} on"
                )
            }
            OrderedError::Diverged { strand } => {
                write!(formatter, "{strand} has already differed in its replay")
            }
            OrderedError::UnknownTicket => write!(formatter, "the spilled piece has gone"),
        }
    }
}

impl std::error::Error for OrderedError {}
