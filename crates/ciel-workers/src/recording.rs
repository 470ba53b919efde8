//! What a task that is replayed receives: its observations and spawns, as they were recorded.
//!
//! Plain values only. It does not know what a fact does to the graph. Read next: `start`.

use ciel_model::{Fact, FactAct, WaitEnd};
use ciel_protocol::wire::Observation;

/// The observations among `facts`, as the worker receives them.
pub(crate) fn observations(facts: &[Fact]) -> Vec<Observation> {
    let observation = |fact: &Fact| match &fact.act {
        FactAct::Waited(ended) => Some(end_of_wait(ended)),
        FactAct::Input { kind, value } => Some(Observation {
            kind: kind.to_string(),
            value: value.clone(),
        }),
        FactAct::Spawned { .. } | FactAct::Constructed { .. } => None,
    };
    facts.iter().filter_map(observation).collect()
}

/// The indices of the spawns among `facts`.
pub(crate) fn spawned(facts: &[Fact]) -> Vec<u64> {
    let spawned = |fact: &Fact| {
        let is_spawn = matches!(fact.act, FactAct::Spawned { .. });
        is_spawn.then_some(fact.at.action)
    };
    facts.iter().filter_map(spawned).collect()
}

fn end_of_wait(ended: &WaitEnd) -> Observation {
    let kind = match (ended.timed_out, ended.rest) {
        _ if ended.cancels => "cancel",
        (true, _) => "timeout",
        (false, false) => "first",
        (false, true) => "rest",
    };
    let places = serde_json::to_vec(&ended.places).expect("numbers are JSON");
    Observation {
        kind: kind.to_string(),
        value: places.into(),
    }
}

#[cfg(test)]
mod tests {
    use ciel_model::{
        ActionKey, Class, Descriptor, Handle, ObjectKey, RecordedCall, SerialOrder, TaskKey,
    };

    use super::*;

    fn waited(action: u64, timed_out: bool, rest: bool) -> Fact {
        let places = vec![1];
        Fact {
            at: ActionKey::action(action),
            act: FactAct::Waited(WaitEnd {
                places,
                timed_out,
                rest,
                cancels: false,
            }),
        }
    }

    #[test]
    fn spawns_have_their_indices() {
        let called = Descriptor::plain("p", Class::Process, "t", b"t".as_slice());
        let spawn = |action| Fact {
            at: ActionKey::action(action),
            act: FactAct::Spawned {
                child: TaskKey(action),
                before: SerialOrder::default().push_last(),
                call: RecordedCall::of(&called, &[], None),
                first: Handle(0),
                outputs: Box::default(),
            },
        };
        let facts = [spawn(2), waited(3, false, false), spawn(7)];
        assert_eq!(spawned(&facts), [2, 7]);
        assert!(spawned(&[]).is_empty());
    }

    #[test]
    fn observations_come_in_order_and_say_how_waits_ended() {
        let made = Fact {
            at: ActionKey::part(3, 0),
            act: FactAct::Constructed {
                handle: Handle(0),
                object: ObjectKey(1),
            },
        };
        let clock = Fact {
            at: ActionKey::action(4),
            act: FactAct::Input {
                kind: "clock".into(),
                value: "7".into(),
            },
        };
        let mut cancelled = waited(0, false, false);
        if let FactAct::Waited(ended) = &mut cancelled.act {
            ended.cancels = true;
        }
        let facts = [
            cancelled,
            waited(0, false, false),
            waited(1, false, true),
            waited(2, true, true),
            made,
            clock,
        ];
        let sent = observations(&facts);
        let sent: Vec<_> = sent
            .iter()
            .map(|one| (&*one.kind, &one.value[..]))
            .collect();
        let expected: [(&str, &[u8]); 5] = [
            ("cancel", b"[1]"),
            ("first", b"[1]"),
            ("rest", b"[1]"),
            ("timeout", b"[1]"),
            ("clock", b"7"),
        ];
        assert_eq!(sent, expected);
    }
}
