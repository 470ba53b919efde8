//! Names: the identity of a position on the wire, in the store and in messages.
//!
//! A name is the hash of a path of counters in the spawn tree, so rerun work gets the same names.
//! It does not order anything: see [`crate::order`] for that.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The 128-bit name of a position: a task, an object, a run.
///
/// Printed as 32 hexadecimal digits; [`Name::from_str`] reads that form back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Name(pub u128);

/// The kind of a derived name; names of different kinds never collide.
#[derive(Clone, Copy)]
enum Branch {
    Spawn = 1,
    Output = 2,
    Construct = 3,
    Tail = 4,
    Json = 5,
    Argument = 6,
    Duplicate = 7,
}

impl Name {
    /// The name of a root: the hash of what identifies its run.
    pub fn of_root(seed: &[u8]) -> Name {
        Name::from_hash(blake3::hash(seed))
    }

    /// The child that the strand named `self` spawns as action `index`.
    pub fn spawn(self, index: u64) -> Name {
        self.derive(Branch::Spawn, index)
    }

    /// The `index`-th output of the task named `self`, from 0.
    pub fn output(self, index: u64) -> Name {
        self.derive(Branch::Output, index)
    }

    /// The object that the strand named `self` constructs as action `index`.
    pub fn construct(self, index: u64) -> Name {
        self.derive(Branch::Construct, index)
    }

    /// The `index`-th object that was made for the arguments of the task named `self`, from 0.
    pub fn argument(self, index: u64) -> Name {
        self.derive(Branch::Argument, index)
    }

    /// The `index`-th task of the strand named `self` that was tail-spawned, from 0. Tails are
    /// counted apart from spawns: a worker may run the tail in place, and then no spawn exists.
    pub fn tail(self, index: u64) -> Name {
        self.derive(Branch::Tail, index)
    }

    /// The second run of the task named `self`.
    pub fn duplicate(self) -> Name {
        self.derive(Branch::Duplicate, 0)
    }

    /// The JSON text of the object named `self`.
    pub fn json(self) -> Name {
        self.derive(Branch::Json, 0)
    }

    /// The first eight hexadecimal digits, as messages show them.
    pub fn short(self) -> String {
        let short = Digits::of(self);
        short.as_str()[..SHORT_DIGITS].to_string()
    }

    fn derive(self, branch: Branch, index: u64) -> Name {
        let mut bytes = [0u8; 25];
        bytes[..16].copy_from_slice(&self.0.to_be_bytes());
        bytes[16] = branch as u8;
        bytes[17..].copy_from_slice(&index.to_be_bytes());
        Name::from_hash(blake3::hash(&bytes))
    }

    fn from_hash(hash: blake3::Hash) -> Name {
        let mut bytes = [0u8; 16];
        bytes.copy_from_slice(&hash.as_bytes()[..16]);
        Name(u128::from_be_bytes(bytes))
    }
}

/// Digits of a name that messages show.
const SHORT_DIGITS: usize = 8;

/// A name as text: every task that ends is written with three of them.
struct Digits([u8; 32]);

impl Digits {
    fn of(name: Name) -> Digits {
        let digit = |half: u8| b"0123456789abcdef"[usize::from(half & 0xf)];
        let mut digits = [0; 32];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(name.0.to_be_bytes()) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte)]);
        }
        Digits(digits)
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("digits are text")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Digits::of(*self).as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Digits::of(*self).as_str()[..SHORT_DIGITS])
    }
}

impl FromStr for Name {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Name, Self::Err> {
        u128::from_str_radix(text, 16).map(Name)
    }
}

/// A task as messages show it: `fib@3f9c12ab`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Label {
    /// The function, command or executor.
    pub what: Arc<str>,
    /// The task.
    pub name: Name,
}

impl Name {
    /// Whether its printed form begins with these digits; there must be some.
    fn begins_with(self, digits: &str) -> bool {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_written = (1..=32).contains(&digits.len()) && digits.bytes().all(is_digit);
        is_written && u128::from_str_radix(digits, 16) == Ok(self.0 >> (128 - 4 * digits.len()))
    }
}

impl Label {
    /// Whether `text`, as typed by a person, may mean this task: `fib@3f9c`, `3f9c`, `@3f9c` or
    /// `fib`.
    pub fn answers_to(&self, text: &str) -> bool {
        let (what, digits) = match text.rsplit_once('@') {
            Some((what, digits)) => (what, digits),
            None => ("", text),
        };
        let named = self.name.begins_with(digits);
        (named && (what.is_empty() || *self.what == *what)) || *self.what == *text
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        f.write_str("@")?;
        f.write_str(&Digits::of(self.name).as_str()[..SHORT_DIGITS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_with_all_of_their_digits() {
        for number in [0, 0xab, u128::MAX, 0x0123_4567_89ab_cdef << 60] {
            let name = Name(number);
            assert_eq!(name.to_string(), format!("{number:032x}"));
            assert_eq!(name.to_string().parse(), Ok(name));
            assert_eq!(name.short(), format!("{number:032x}")[..8]);
            let what = "fib".into();
            let label = Label { what, name };
            assert_eq!(label.to_string(), format!("fib@{}", name.short()));
        }
    }

    #[test]
    fn names_of_different_branches_differ_and_repeat() {
        let root = Name::of_root(b"job");
        assert_eq!(root.spawn(3), Name::of_root(b"job").spawn(3));
        let all = [
            root,
            root.spawn(0),
            root.spawn(1),
            root.output(0),
            root.construct(0),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
    }

    #[test]
    fn printed_name_reads_back() {
        let name = Name::of_root(b"x").spawn(1);
        assert_eq!(name.to_string().parse::<Name>(), Ok(name));
    }

    #[test]
    fn label_answers_to_what_people_type() {
        let label = Label {
            what: "fib".into(),
            name: Name(0x3f9c_12ab << 96),
        };
        for text in ["fib@3f9c12ab", "fib@3f9", "3f9c", "@3f", "fib"] {
            assert!(label.answers_to(text), "{text}");
        }
        for text in ["fab@3f9c12ab", "3f9d", "fi", "", "@"] {
            assert!(!label.answers_to(text), "{text}");
        }
    }
}
