//! Digests: hashes that distinguish contents.
//!
//! A [`Digest`] is made of bytes, a [`crate::Name`] of a position; neither determines the other.
//! Read next: `call`, which compares calls by digests.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The digest of bytes: BLAKE3, cut to 128 bits like a [`crate::Name`].
///
/// Printed as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest(pub u128);

impl Digest {
    /// The digest of bytes that are all in memory.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest::from_hash(blake3::hash(bytes))
    }

    /// The digest that a whole BLAKE3 hash is cut to; none if these are not its 32 bytes.
    pub fn read(hash: &[u8]) -> Option<Digest> {
        let whole: [u8; blake3::OUT_LEN] = hash.try_into().ok()?;
        Some(Digest::from_hash(whole.into()))
    }

    fn from_hash(hash: blake3::Hash) -> Digest {
        let (half, _) = hash.as_bytes().split_first_chunk().expect("32 bytes");
        Digest(u128::from_be_bytes(*half))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0 >> 96)
    }
}

/// A digest of bytes that arrive piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all pieces so far.
    pub fn finish(&self) -> Digest {
        Digest::from_hash(self.0.finalize())
    }
}

/// Takes what a value says of itself for maps; two values with one digest are equal.
impl std::hash::Hasher for Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.update(bytes);
    }

    fn finish(&self) -> u64 {
        Hasher::finish(self).0 as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_pieces_is_that_of_the_whole() {
        let whole: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        let mut hasher = Hasher::default();
        for piece in whole.chunks(777) {
            hasher.update(piece);
        }
        assert_eq!(hasher.finish(), Digest::of(&whole));
        let hash = blake3::hash(&whole);
        assert_eq!(Digest::read(hash.as_bytes()), Some(Digest::of(&whole)));
        assert_eq!(Digest::read(&hash.as_bytes()[1..]), None);
        assert_ne!(Digest::of(&whole), Digest::of(&whole[1..]));
    }
}
