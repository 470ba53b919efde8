//! A store that shares the memory of the machine with the tasks of a scenario.
//!
//! It does not know what it keeps there, nor when it is asked. Read next: `giving_back`.

use crate::program::{Kind, Scenario};
use crate::random::Random;

/// Bytes of memory of the machine.
pub const MEMORY_BYTES: u64 = 100;

/// The least that a task declares, of those that declare any.
const DECLARED_MIN: u64 = 20;

/// What the world knows of the store.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) chance: Random,
    /// What it was asked to shrink to.
    pub(crate) asked: Option<u64>,
    /// Requests so far, and those that it could not fulfil.
    pub(crate) requests: u64,
    pub(crate) refusals: u64,
}

impl Store {
    pub(crate) fn new(seed: u64) -> Store {
        Store {
            chance: Random::new(seed ^ 0x6d65_6d6f),
            asked: None,
            requests: 0,
            refusals: 0,
        }
    }

    /// The engine that has asked is gone.
    pub(crate) fn forget(&mut self) {
        self.asked = None;
    }
}

/// What a task declares, in bytes: never more than there are.
pub(crate) fn declared(scenario: &Scenario, definition: usize) -> Option<u64> {
    let is_thread = scenario.tasks[definition].kind == Kind::Thread;
    let declares = scenario.memory.is_some() && !is_thread && !definition.is_multiple_of(3);
    let range = MEMORY_BYTES - DECLARED_MIN + 1;
    declares.then(|| DECLARED_MIN + (scenario.seed + 37 * definition as u64) % range)
}
