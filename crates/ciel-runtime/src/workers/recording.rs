//! What a task that is run again is told, and where in its recorded facts it stands.
//!
//! Plain values only. It does not know what a fact does to the graph. Read next: `held`.

use std::collections::VecDeque;
use std::sync::Arc;

use ciel_model::Fact;
use ciel_protocol::limits::DELIVERED_HANDLE_MIN;
use ciel_protocol::wire::Observation;
use serde::{Deserialize, Serialize};

/// The kind of observation that answers a block for the first of several references.
pub(super) const FIRST: &str = "first";

/// An input from outside: what was asked, and the answer.
pub(super) type Input = (Arc<str>, Arc<[u8]>);

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

/// The answer to a block for the first of several references, as it is recorded.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct First {
    /// Places in the block's list.
    pub(super) places: Vec<u32>,
    /// Their numbers.
    pub(super) numbers: Vec<u32>,
}

/// The observations among `facts`, as the worker is told them.
pub(super) fn observations(facts: &[Fact]) -> Vec<Observation> {
    let observation = |fact: &Fact| match fact {
        Fact::Input { kind, value } => Some(match &**kind {
            FIRST => first(value),
            kind => Observation {
                kind: kind.to_string(),
                value: value.to_vec().into(),
                references: Vec::new(),
            },
        }),
        Fact::Spawned { .. } | Fact::Constructed { .. } => None,
    };
    facts.iter().filter_map(observation).collect()
}

/// Numbers given by the engine may be others next time; then only the places are told.
fn first(value: &[u8]) -> Observation {
    let first: First = serde_json::from_slice(value).expect("it was written as JSON");
    let own = first
        .numbers
        .iter()
        .all(|number| *number < DELIVERED_HANDLE_MIN);
    Observation {
        kind: FIRST.to_string(),
        value: serde_json::to_vec(&first.places)
            .expect("numbers are JSON")
            .into(),
        references: if own { first.numbers } else { Vec::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ciel_model::ObjectKey;

    fn input(kind: &str, value: &str) -> Fact {
        Fact::Input {
            kind: kind.into(),
            value: value.as_bytes().into(),
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
    fn first_tells_numbers_only_if_they_are_the_tasks_own() {
        let own = first(br#"{"places":[1],"numbers":[7]}"#);
        assert_eq!((&*own.value, &*own.references), (&b"[1]"[..], &[7][..]));
        let delivered = first(br#"{"places":[0],"numbers":[2147483648]}"#);
        assert_eq!(
            (&*delivered.value, delivered.references.len()),
            (&b"[0]"[..], 0)
        );
    }
}
