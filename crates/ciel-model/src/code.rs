//! The user's code: its location and its digest.
//!
//! It does not know what the code does. Read next: `call`, which compares it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Hasher};

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

/// All code that a call may reach, the called function included: other functions, classes,
/// constants, modules, installed packages. Cheap to clone.
///
/// A kept result is valid if the digest is the same. The pieces serve to name what has changed;
/// they are not recorded, so those of a task of an earlier process are empty.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Reached(Option<Arc<All>>);

struct All {
    digest: Digest,
    pieces: Arc<[FunctionCode]>,
}

/// As it is written.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Reached")]
struct Written {
    digest: Option<Digest>,
}

impl From<Written> for Reached {
    fn from(written: Written) -> Reached {
        written.digest.map(Reached::of_digest).unwrap_or_default()
    }
}

impl From<Reached> for Written {
    fn from(reached: Reached) -> Written {
        Written {
            digest: reached.digest(),
        }
    }
}

impl Reached {
    /// These pieces, the called function first.
    pub fn of(pieces: Vec<FunctionCode>) -> Reached {
        if pieces.is_empty() {
            return Reached::default();
        }
        let mut hasher = Hasher::default();
        for piece in &pieces {
            // The places do not count: code that moves does the same.
            hasher.update(&(piece.name.len() as u64).to_be_bytes());
            hasher.update(piece.name.as_bytes());
            hasher.update(&piece.digest.0.to_be_bytes());
        }
        let digest = hasher.finish();
        let pieces = pieces.into();
        Reached(Some(Arc::new(All { digest, pieces })))
    }

    /// Code that is known by what stands for it alone.
    pub fn of_digest(digest: Digest) -> Reached {
        let pieces = Arc::default();
        Reached(Some(Arc::new(All { digest, pieces })))
    }

    /// Of all pieces by name, not by place; none if the executor does not say what a call reaches.
    pub fn digest(&self) -> Option<Digest> {
        self.0.as_ref().map(|all| all.digest)
    }

    /// The pieces, the called function first, as far as this process knows them.
    pub fn pieces(&self) -> &[FunctionCode] {
        self.0.as_ref().map_or(&[], |all| &all.pieces)
    }

    /// The same, as all tasks that reach this code share them.
    pub fn shared_pieces(&self) -> Arc<[FunctionCode]> {
        let all = self.0.as_ref();
        all.map_or_else(Arc::default, |all| all.pieces.clone())
    }

    /// The first piece of `now` that is not here with the same name and digest; if there is none,
    /// the first piece here that is gone.
    pub fn diff<'a>(&'a self, now: &'a Reached) -> Option<&'a FunctionCode> {
        let known = |all: &Reached, one: &FunctionCode| {
            let same = |other: &FunctionCode| other.name == one.name && other.digest == one.digest;
            all.pieces().iter().any(same)
        };
        let changed = now.pieces().iter().find(|piece| !known(self, piece));
        changed.or_else(|| self.pieces().iter().find(|piece| !known(now, piece)))
    }
}

impl fmt::Debug for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pieces = self.0.as_ref().map(|all| &all.pieces);
        let pieces = pieces.filter(|pieces| !pieces.is_empty());
        let mut all = f.debug_struct("Reached");
        all.field("digest", &self.digest()).field("pieces", &pieces);
        all.finish()
    }
}

impl PartialEq for Reached {
    fn eq(&self, other: &Reached) -> bool {
        self.digest() == other.digest()
    }
}

impl Eq for Reached {}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(name: &str, line: u32, digest: u128) -> FunctionCode {
        FunctionCode {
            name: name.into(),
            place: Site {
                file: "job.py".into(),
                line,
            },
            digest: Digest(digest),
        }
    }

    #[test]
    fn reached_code_is_the_same_wherever_it_stands() {
        let before = Reached::of(vec![piece("f", 1, 1), piece("g", 5, 2)]);
        let moved = Reached::of(vec![piece("f", 3, 1), piece("g", 9, 2)]);
        assert_eq!(before, moved);
        assert_eq!(before.diff(&moved), None);
        assert_eq!(Reached::default().digest(), None);
    }

    #[test]
    fn difference_of_reached_code_is_named() {
        let before = Reached::of(vec![piece("f", 1, 1), piece("g", 5, 2)]);
        let changed = Reached::of(vec![piece("f", 1, 1), piece("g", 7, 3)]);
        assert_ne!(before, changed);
        assert_eq!(before.diff(&changed), Some(&piece("g", 7, 3)));
        let less = Reached::of(vec![piece("f", 1, 1)]);
        assert_eq!(before.diff(&less), Some(&piece("g", 5, 2)));
    }
}
