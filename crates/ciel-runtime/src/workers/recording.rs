//! What a task that is run again is told, and where in its recorded facts it stands.
//!
//! Plain values only. It does not know what a fact does to the graph. Read next: `held`.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use ciel_graph::WaitEnd;
use ciel_model::Fact;
use ciel_protocol::limits::DELIVERED_HANDLE_MIN;
use ciel_protocol::wire::Observation;
use serde::{Deserialize, Serialize};

/// The kind of observation that tells how a wait ended whose end depends on time.
const FIRST: &str = "first";

/// The same, if it ended by time.
const TIMEOUT: &str = "timeout";

/// An input from outside: what was asked, and the answer.
pub(super) type Input = (Arc<str>, Bytes);

/// Where a replay stands. A replayed task says nothing about its recorded inputs, so whoever has
/// the cursor tells the graph of them as soon as what comes before them was said.
#[derive(Debug, Default)]
pub(super) struct Cursor(VecDeque<Option<Input>>);

impl Cursor {
    /// A cursor before all of `facts`.
    pub(super) fn new(facts: &[Fact]) -> Cursor {
        let input = |fact: &Fact| match fact {
            Fact::Input { kind, value } => Some((kind.clone(), value.clone())),
            Fact::Spawned { .. } | Fact::Constructed { .. } => None,
        };
        Cursor(facts.iter().map(input).collect())
    }

    /// Whether something is still to be said again.
    pub(super) fn is_replaying(&self) -> bool {
        !self.0.is_empty()
    }

    /// The inputs that come next; the cursor passes them.
    pub(super) fn inputs(&mut self) -> Vec<Input> {
        let mut passed = Vec::new();
        while let Some(Some(_)) = self.0.front() {
            passed.extend(self.0.pop_front().flatten());
        }
        passed
    }

    /// The task said something that is a fact; gives the inputs that follow it.
    pub(super) fn step(&mut self) -> Vec<Input> {
        self.0.pop_front();
        self.inputs()
    }
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
    let observation = |fact: &Fact| match fact {
        Fact::Input { kind, value } => Some(match &**kind {
            FIRST | TIMEOUT => end_told(kind, value),
            kind => plain(kind, value),
        }),
        Fact::Spawned { .. } | Fact::Constructed { .. } => None,
    };
    facts.iter().filter_map(observation).collect()
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
    use ciel_model::ObjectKey;

    fn input(kind: &str, value: &str) -> Fact {
        Fact::Input {
            kind: kind.into(),
            value: value.to_string().into(),
        }
    }

    fn made() -> Fact {
        Fact::Constructed {
            object: ObjectKey(1),
        }
    }

    #[test]
    fn inputs_are_passed_with_what_comes_before_them() {
        let facts = [input("a", ""), made(), input("b", ""), input("c", "")];
        let mut cursor = Cursor::new(&facts);
        let kinds = |inputs: Vec<Input>| inputs.into_iter().map(|(kind, _)| kind).collect();
        let before: Vec<Arc<str>> = kinds(cursor.inputs());
        assert_eq!(before, ["a".into()]);
        assert!(cursor.is_replaying());
        let after: Vec<Arc<str>> = kinds(cursor.step());
        assert_eq!(after, ["b".into(), "c".into()]);
        assert!(!cursor.is_replaying());
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
        let told = observations(&[input("first", "5"), input("timeout", "soon")]);
        let values: Vec<&[u8]> = told.iter().map(|told| &*told.value).collect();
        assert_eq!(values, [&b"5"[..], b"soon"]);
    }
}
