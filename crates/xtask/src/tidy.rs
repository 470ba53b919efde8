//! The rules of the house that can be checked by reading the source tree.
//!
//! Each module holds the rules of one kind, as functions from text to [`Finding`]s. They know
//! neither git nor a compiler, and read comments and strings only where a rule needs it. Read
//! [`tree`] for what is read, [`text`] for how code is separated from comments, and `tests/tidy.rs`
//! for the list of the rules.

use std::fmt;

pub mod circles;
pub mod claims;
pub mod dependencies;
pub mod doors;
pub mod executors;
pub mod form;
pub mod halves;
pub mod lengths;
pub mod links;
pub mod producers;
pub mod prose;
pub mod purity;
pub mod text;
pub mod tree;
pub mod words;

/// One place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the root of the source tree.
    pub path: String,
    /// The line, counted from 1; 0 if the finding is about the whole file.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

impl Finding {
    /// A finding at `line` of the file `path`.
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}
