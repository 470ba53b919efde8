//! Maps with counted keys: entries with successive keys are adjacent in memory.
//!
//! Tasks and objects get their keys from a counter, and are mostly looked up in about that order. A
//! hash that scatters them costs a cache miss each time; this one keeps the count in its low bits,
//! which select the bucket of a table, and scatters only those that distinguish neighbours. It is
//! not for keys that a program chooses.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from keys that are counted up.
pub type KeyMap<K, V> = HashMap<K, V, BuildHasherDefault<CountHasher>>;

/// The bits that distinguish neighbours.
const TAG_BITS: u64 = 0x7f << 57;

/// An odd number with its bits well mixed: 2^64 divided by the golden ratio.
const MIXER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where a second number of a key goes, such as that of an attempt.
const SECOND_SHIFT: u32 = 40;

/// Keeps a count unchanged in the low bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountHasher(u64);

impl Hasher for CountHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = match self.0 {
            0 => number,
            first => first ^ number.rotate_left(SECOND_SHIFT),
        };
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0.wrapping_mul(MIXER) & TAG_BITS)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::*;

    fn hash(key: impl std::hash::Hash) -> u64 {
        BuildHasherDefault::<CountHasher>::default().hash_one(key)
    }

    #[test]
    fn neighbours_stay_neighbours_and_differ_in_their_tags() {
        for key in 1..1_000u64 {
            let (one, next) = (hash(key), hash(key + 1));
            assert_eq!((one & !TAG_BITS) + 1, next & !TAG_BITS);
            assert_ne!(one & TAG_BITS, next & TAG_BITS);
        }
    }

    #[test]
    fn second_number_leaves_the_first_where_it_was() {
        let (first, second) = (hash((7u64, 0u32)), hash((7u64, 1u32)));
        assert_ne!(first, second);
        assert_eq!(first as u32, second as u32);
    }
}
