//! Where in its program a strand is, and how far it has recorded facts to meet again.
//!
//! It does not know what a fact means. Read next: `ciel_model::ActionKey`.

use ciel_model::{ActionKey, Fact, limits};
use thiserror::Error;

use super::At;

/// The index of an action is less than that of one before it, or beyond its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it sent the index {sent} after the index {reached}")]
pub struct IndexError {
    /// The index.
    pub sent: u64,
    /// The least that it may be.
    pub reached: u64,
}

/// The index of the next action, and the parts of it so far.
#[derive(Clone, Debug)]
pub(super) struct Position {
    action: u64,
    parts: u32,
    /// The last fact that the strand does again. It does not ask again for recorded inputs: it is
    /// given them.
    again: Option<ActionKey>,
}

impl Position {
    /// Before the first action, which has that index.
    pub(super) fn starting(action: u64) -> Position {
        Position {
            action,
            parts: 0,
            again: None,
        }
    }

    /// The strand is before all of `facts`, which are in order.
    pub(super) fn rewind(&mut self, facts: &[Fact]) {
        let last = facts.iter().rev().find(|fact| !fact.act.is_taken());
        self.again = last.map(|fact| fact.at);
    }

    /// Whether one of the facts is at `at` or behind.
    pub(super) fn repeats(&self, at: ActionKey) -> bool {
        self.again.is_some_and(|last| at <= last)
    }

    /// Whether one of the facts is still ahead.
    pub(super) fn is_replaying(&self) -> bool {
        self.repeats(ActionKey::part(self.action, self.parts))
    }

    /// The strand has done so many actions.
    pub(super) fn reach(&mut self, actions: u64) -> Result<(), IndexError> {
        if actions < self.action || actions > limits::ACTIONS_MAX {
            let (sent, reached) = (actions, self.action);
            return Err(IndexError { sent, reached });
        }
        if actions > self.action {
            (self.action, self.parts) = (actions, 0);
        }
        Ok(())
    }

    /// Actions of the strand so far.
    pub(super) fn actions(&self) -> u64 {
        self.action
    }

    /// The strand does something here: where that is.
    pub(super) fn pass(&mut self, at: At) -> ActionKey {
        match at {
            At::Action => {
                self.parts = 0;
                self.action += 1;
                ActionKey::action(self.action - 1)
            }
            At::Part => {
                self.parts += 1;
                ActionKey::part(self.action, self.parts - 1)
            }
            At::Said(key) => {
                (self.action, self.parts) = (
                    key.after(),
                    key.part.map_or(0, |part| part.saturating_add(1)),
                );
                key
            }
        }
    }
}
