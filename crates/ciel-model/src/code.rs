//! The user's code: its location and its digest.
//!
//! It does not know what the code does. Read next: `call`, which compares it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// A line of the user's program.
#[derive(Clone, PartialEq, Eq, Debug, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct Site {
    /// File; empty when unknown.
    pub file: Arc<str>,
    /// Line from 1; 0 when unknown.
    pub line: u32,
}

impl fmt::Display for Site {
    /// `file:line`; nothing when unknown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// One function and the state of its code.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct FunctionCode {
    /// Its name.
    pub name: Arc<str>,
    /// Where it is defined.
    pub place: Site,
    /// Of its code.
    pub digest: Digest,
}

/// The code that a call runs, function by function, as far as its executor knows it; cheap to
/// clone.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub struct CodeIdentity(Option<Arc<Vec<FunctionCode>>>);

impl CodeIdentity {
    /// That of these functions, the called one first.
    pub fn of(functions: Vec<FunctionCode>) -> CodeIdentity {
        CodeIdentity((!functions.is_empty()).then(|| Arc::new(functions)))
    }

    /// The functions; none if the executor has no code of the user's, or does not say.
    pub fn functions(&self) -> &[FunctionCode] {
        self.0.as_ref().map_or(&[], |functions| functions)
    }

    /// The first function that is not the same in `now`, as it is now if it exists at all.
    pub fn diff<'a>(&'a self, now: &'a CodeIdentity) -> Option<&'a FunctionCode> {
        if self == now {
            return None;
        }
        let (before, now) = (self.functions(), now.functions());
        let pairs = before.iter().zip(now);
        let mut differing = pairs.filter(|(a, b)| a != b).map(|(_, now)| now);
        let common = before.len().min(now.len());
        let rest = before[common..].iter().chain(&now[common..]);
        differing.next().or(rest.into_iter().next())
    }
}
