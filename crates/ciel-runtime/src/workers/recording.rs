//! What a task that is run again is told, and where in its recorded facts it stands.
//!
//! Plain values only. It does not know what a fact does to the graph. Read next: `held`.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use ciel_graph::WaitEnd;
use ciel_model::{ActionKey, Fact, FactAct};
use ciel_protocol::limits::DELIVERED_HANDLE_MIN;
use ciel_protocol::wire::Observation;
use serde::{Deserialize, Serialize};

/// The kind of observation that tells how a wait ended whose end depends on time.
const FIRST: &str = "first";

/// The same, if it ended by time.
const TIMEOUT: &str = "timeout";

/// An input from outside: what was asked, and the answer.
pub(super) type Input = (Arc<str>, Bytes);

/// Which action a task has come to, and where in its recorded facts that is.
///
/// Only spawns are counted; what comes between them are parts of the next one. A replayed task says
/// nothing about its recorded inputs, so these are passed by.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// The index of the next action.
    action: u64,
    /// Parts of it so far.
    parts: u32,
    /// Facts ahead, and whether the task says them again.
    ahead: VecDeque<(ActionKey, bool)>,
    /// How many of those it says again.
    again: usize,
    /// How a wait ended, to be recorded when all facts are met.
    end: Option<Input>,
}

impl Cursor {
    /// That of a task whose first action has that index.
    pub(super) fn starting(action: u64) -> Cursor {
        Cursor {
            action,
            ..Cursor::default()
        }
    }

    /// Goes before all of `facts`, after which a wait ended.
    pub(super) fn rewind(&mut self, facts: &[Fact], end: Option<Input>) {
        let ahead = facts.iter().map(|fact| (fact.at, !is_input(fact)));
        self.ahead = ahead.collect();
        self.again = self.ahead.iter().filter(|(_, again)| *again).count();
        self.end = end;
    }

    /// Whether something is still to be said again.
    pub(super) fn is_replaying(&self) -> bool {
        self.again > 0
    }

    /// Actions of the strand so far.
    pub(super) fn actions(&self) -> u64 {
        self.action
    }

    /// The task spawns: which action that is.
    pub(super) fn spawn(&mut self) -> u64 {
        let recorded = self.pass_to_recorded();
        let action = recorded.map_or(self.action, |at| at.action);
        self.reach(ActionKey::action(action));
        action
    }

    /// The task makes an object or observes something: where that is.
    pub(super) fn part(&mut self) -> ActionKey {
        let recorded = self.pass_to_recorded();
        let at = recorded.unwrap_or(ActionKey::part(self.action, self.parts));
        self.reach(at);
        at
    }

    /// How a wait ended, if all that was recorded before has been met.
    pub(super) fn due(&mut self) -> Option<(ActionKey, Input)> {
        let end = self.end.take_if(|_| self.again == 0)?;
        while let Some((at, _)) = self.ahead.pop_front() {
            self.reach(at);
        }
        Some((self.part(), end))
    }

    /// The next fact that the task says again; the cursor passes it and the inputs before it.
    fn pass_to_recorded(&mut self) -> Option<ActionKey> {
        while let Some((at, again)) = self.ahead.pop_front() {
            self.reach(at);
            if again {
                self.again -= 1;
                return Some(at);
            }
        }
        None
    }

    fn reach(&mut self, at: ActionKey) {
        (self.action, self.parts) = (at.after(), at.part.map_or(0, |part| part + 1));
    }
}

fn is_input(fact: &Fact) -> bool {
    matches!(fact.act, FactAct::Input { .. })
}

/// What was there when a wait ended, as it is recorded.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct There {
    /// Places in the block's list.
    places: Vec<u32>,
    /// Their numbers, if they are still known.
    numbers: Vec<u32>,
}

/// The end of a wait as an input. `waits` are the worker's numbers of all that was waited for;
/// empty if they are not known any more.
pub(super) fn end_of_wait(ended: &WaitEnd, waits: &[u32]) -> Input {
    let number = |place: &u32| waits.get(*place as usize).copied();
    let there = There {
        places: ended.places.clone(),
        numbers: ended.places.iter().filter_map(number).collect(),
    };
    let value = serde_json::to_vec(&there).expect("numbers are JSON");
    let kind = if ended.timed_out { TIMEOUT } else { FIRST };
    (kind.into(), value.into())
}

/// The observations among `facts`, as the worker is told them.
pub(super) fn observations(facts: &[Fact]) -> Vec<Observation> {
    let input = |fact: &Fact| match &fact.act {
        FactAct::Input { kind, value } => Some(observation(kind, value)),
        FactAct::Spawned { .. } | FactAct::Constructed { .. } => None,
    };
    facts.iter().filter_map(input).collect()
}

/// An input as the worker is told it.
pub(super) fn observation(kind: &str, value: &[u8]) -> Observation {
    match kind {
        FIRST | TIMEOUT => end_told(kind, value),
        kind => plain(kind, value),
    }
}

fn plain(kind: &str, value: &[u8]) -> Observation {
    Observation {
        kind: kind.to_string(),
        value: value.to_vec().into(),
        references: Vec::new(),
    }
}

/// Numbers given by the engine may be others next time; then only the places are told. A worker
/// may use the name of such an observation for one of its own.
fn end_told(kind: &str, value: &[u8]) -> Observation {
    let Ok(There { places, numbers }) = serde_json::from_slice(value) else {
        return plain(kind, value);
    };
    let own = numbers.iter().all(|number| *number < DELIVERED_HANDLE_MIN);
    let places = serde_json::to_vec(&places).expect("numbers are JSON");
    Observation {
        references: if own { numbers } else { Vec::new() },
        ..plain(kind, &places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciel_model::{Handle, ObjectKey};

    fn input(part: u32, kind: &str, value: &str) -> Fact {
        Fact {
            at: ActionKey::part(0, part),
            act: FactAct::Input {
                kind: kind.into(),
                value: value.to_string().into(),
            },
        }
    }

    fn made(part: u32) -> Fact {
        Fact {
            at: ActionKey::part(0, part),
            act: FactAct::Constructed {
                handle: Handle(0),
                object: ObjectKey(1),
            },
        }
    }

    #[test]
    fn recorded_inputs_are_passed_by() {
        let facts = [input(0, "a", ""), made(1), input(2, "b", "")];
        let mut cursor = Cursor::starting(0);
        cursor.rewind(&facts, Some(("first".into(), "[]".into())));
        assert_eq!(cursor.due(), None);
        assert!(cursor.is_replaying());
        assert_eq!(cursor.part(), ActionKey::part(0, 1));
        assert!(!cursor.is_replaying());
        let (at, _) = cursor.due().expect("all else is met");
        assert_eq!(at, ActionKey::part(0, 3));
        assert_eq!(cursor.part(), ActionKey::part(0, 4));
        assert_eq!(cursor.spawn(), 0);
        assert_eq!(cursor.part(), ActionKey::part(1, 0));
        assert_eq!(cursor.actions(), 1);
    }

    /// A task that was killed after it had recorded an input, and nothing else after that, gave its
    /// next input the index of the one before, and failed as nondeterministic.
    #[test]
    fn what_is_new_comes_after_inputs_that_were_recorded_last() {
        let facts = [made(0), input(1, "first", "[0]")];
        let mut cursor = Cursor::starting(0);
        cursor.rewind(&facts, None);
        assert_eq!(cursor.part(), ActionKey::part(0, 0));
        assert_eq!(cursor.part(), ActionKey::part(0, 2));
    }

    #[test]
    fn end_of_a_wait_tells_numbers_only_if_they_are_the_tasks_own() {
        let ended = WaitEnd {
            places: vec![1],
            timed_out: false,
        };
        let told = |waits: &[u32]| {
            let (kind, value) = end_of_wait(&ended, waits);
            end_told(&kind, &value)
        };
        let own = told(&[6, 7]);
        assert_eq!((&*own.kind, &*own.value), ("first", &b"[1]"[..]));
        assert_eq!(own.references, [7]);
        for waits in [&[6, DELIVERED_HANDLE_MIN][..], &[]] {
            let other = told(waits);
            assert_eq!((&*other.value, other.references.len()), (&b"[1]"[..], 0));
        }
    }

    #[test]
    fn wait_that_ended_by_time_says_so() {
        let ended = WaitEnd {
            places: Vec::new(),
            timed_out: true,
        };
        let (kind, value) = end_of_wait(&ended, &[3]);
        let told = end_told(&kind, &value);
        assert_eq!((&*told.kind, &*told.value), ("timeout", &b"[]"[..]));
    }

    /// A worker may observe whatever it likes under any name; it once stopped the engine.
    #[test]
    fn observation_that_only_sounds_like_the_end_of_a_wait_is_told_as_it_is() {
        let told = observations(&[input(0, "first", "5"), input(1, "timeout", "soon")]);
        let values: Vec<&[u8]> = told.iter().map(|told| &*told.value).collect();
        assert_eq!(values, [&b"5"[..], b"soon"]);
    }
}
