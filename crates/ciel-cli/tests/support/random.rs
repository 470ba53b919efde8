//! Chance that can be had again: numbers from a seed, and what the environment says of both.
//!
//! It does not know what it decides.

use std::time::{SystemTime, UNIX_EPOCH};

/// Numbers that look random, the same for the same seed.
pub struct Random(u64);

impl Random {
    /// Those of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next one, below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// How often to kill: as `CIEL_KILLS` says, or as usual.
pub fn kills(usual: u64) -> u64 {
    number("CIEL_KILLS").unwrap_or(usual)
}

/// The seed to begin with: as `CIEL_KILL_SEED` says, or another one every time.
pub fn first_seed() -> u64 {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    number("CIEL_KILL_SEED").unwrap_or_else(|| now().as_secs())
}

/// The number that a variable of the environment holds, if it is set.
pub fn number(variable: &str) -> Option<u64> {
    let told = std::env::var(variable).ok()?;
    Some(told.parse().expect("the variable holds a number"))
}
