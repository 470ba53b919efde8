//! What a run recorded of its environment, and how the oracle marks what is not decided by it.
//!
//! Plain values. Read next: `oracle`.

use std::collections::{BTreeMap, BTreeSet};

use ciel_model::{Name, WaitEnd};

/// The inputs from the environment that a run recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// How races and cancellations ended.
    pub races: Races,
    /// The tasks that were cancelled.
    pub cut: BTreeSet<Name>,
}

/// Marks where the output of a cancelled strand begins.
pub const CUT_BEGINS: char = '\u{1}';

/// Marks where it ends.
pub const CUT_ENDS: char = '\u{2}';

/// How the races of each task ended, by its name.
pub type Races = BTreeMap<Name, Vec<WaitEnd>>;
