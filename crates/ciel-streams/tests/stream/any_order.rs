//! Any order of events: what a consumer sees is each byte once, in order, and no false end.

use std::collections::BTreeMap;

use ciel_model::Digest;
use ciel_streams::{
    Action, ConsumerFlags, ConsumerId, Event, Mode, ProducerFlags, Stream, Wish, Writer,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// What one consumer has seen.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Seen {
    Reading { to: u64 },
    Forwarded,
    Over,
}

/// What an oracle keeps beside the machine.
#[derive(Default)]
struct Oracle {
    committed: Option<u64>,
    is_forwarded: bool,
    is_stored: bool,
    seen: BTreeMap<ConsumerId, Seen>,
}

impl Oracle {
    fn take(&mut self, action: Action, readable: u64) {
        match action {
            Action::Wake { consumer, from, to } => {
                let seen = self.seen.get_mut(&consumer).expect("it is attached");
                assert_eq!(*seen, Seen::Reading { to: from }, "a gap or a repetition");
                assert!(from < to && to <= readable, "bytes that are not there");
                *seen = Seen::Reading { to };
            }
            Action::End {
                consumer, length, ..
            } => {
                assert_eq!(self.committed, Some(length), "an end that is none");
                let seen = self.seen.get_mut(&consumer).expect("it is attached");
                let saw_all = matches!(*seen, Seen::Forwarded | Seen::Reading { .. });
                assert!(saw_all, "ended twice");
                if let Seen::Reading { to } = *seen {
                    assert_eq!(to, length, "an end before the last byte");
                }
                *seen = Seen::Over;
            }
            Action::Abort { consumer, .. } => {
                let seen = self.seen.entry(consumer).or_insert(Seen::Forwarded);
                assert_ne!(*seen, Seen::Over, "ended, and then aborted");
                *seen = Seen::Over;
            }
            Action::Forward { consumer } => {
                assert!(!self.is_forwarded && !self.is_stored, "two courses");
                self.is_forwarded = true;
                self.seen.insert(consumer, Seen::Forwarded);
            }
            Action::Store | Action::FallBack { .. } => {
                assert!(!self.is_forwarded && !self.is_stored, "two courses");
                self.is_stored = true;
            }
            Action::Drain => assert!(self.is_forwarded, "discards what it could store"),
            Action::AwaitConsumer { .. }
            | Action::Attach { .. }
            | Action::Hold
            | Action::Resume => {}
        }
    }
}

fn wishes() -> impl Strategy<Value = Wish> {
    let flags = any::<(bool, bool, bool)>().prop_map(|(may_stream, must_block, no_store)| {
        Wish::Flags(ConsumerFlags {
            may_stream,
            must_block,
            no_store,
        })
    });
    prop_oneof![
        flags,
        proptest::sample::select(&Mode::ALL[..]).prop_map(Wish::Named),
    ]
}

fn events() -> impl Strategy<Value = Event> {
    let flags = any::<(bool, bool)>().prop_map(|(may_stream, single_consumer)| Event::Opened {
        flags: ProducerFlags {
            may_stream,
            single_consumer,
        },
    });
    let attached = (0..4u64, wishes(), 0..20u64, proptest::option::of(0..20u64)).prop_map(
        |(consumer, wish, from, granularity_bytes)| Event::ConsumerAttached {
            consumer: ConsumerId(consumer),
            wish,
            from: from.saturating_sub(15),
            granularity_bytes,
        },
    );
    let left = (0..4u64).prop_map(|consumer| Event::ConsumerLeft {
        consumer: ConsumerId(consumer),
    });
    let committed = (0..60u64).prop_map(|length| Event::Committed {
        length,
        digest: Digest(length.into()),
    });
    prop_oneof![
        3 => flags,
        6 => (0..60u64).prop_map(|length| Event::Wrote { length }),
        5 => attached,
        2 => left,
        2 => committed,
        1 => Just(Event::ProducerLost),
        2 => Just(Event::LimitPassed),
        1 => Just(Event::BudgetExceeded),
        1 => Just(Event::BudgetFree),
    ]
}

/// What the event means for the oracle, if the machine accepts it.
fn note(oracle: &mut Oracle, event: Event) {
    match event {
        Event::Committed { length, .. } => oracle.committed = Some(length),
        Event::ConsumerAttached { consumer, from, .. } => {
            oracle.seen.insert(consumer, Seen::Reading { to: from });
        }
        Event::ConsumerLeft { consumer } => {
            oracle.seen.remove(&consumer);
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_order_of_events_shows_each_byte_once_and_no_false_end(
        is_transfer: bool,
        first in events(),
        rest in vec(events(), 0..40),
    ) {
        let writer = if is_transfer { Writer::Transfer } else { Writer::Task };
        let mut stream = Stream::new(writer);
        let mut oracle = Oracle::default();
        for event in std::iter::once(first).chain(rest) {
            let mut actions = Vec::new();
            if stream.handle(event, &mut actions).is_err() {
                prop_assert!(actions.is_empty(), "refused, and yet: {actions:?}");
                continue;
            }
            note(&mut oracle, event);
            for action in actions {
                oracle.take(action, stream.readable_bytes());
            }
        }
        if stream.complete().is_some() {
            let waiting = oracle.seen.values().filter(|seen| **seen != Seen::Over);
            prop_assert_eq!(waiting.count(), 0, "nobody waits for a stream that has ended");
        }
    }

    #[test]
    fn stream_that_commits_is_read_whole_by_whoever_stays(
        single_consumer: bool,
        wish in wishes(),
        is_late: bool,
        steps in vec(1..50u64, 0..10),
    ) {
        let flags = ProducerFlags { may_stream: true, single_consumer };
        let attached = Event::ConsumerAttached {
            consumer: ConsumerId(1),
            wish,
            from: 0,
            granularity_bytes: Some(8),
        };
        let length = steps.iter().sum();
        let mut events = vec![Event::Opened { flags }];
        events.push(if is_late { Event::LimitPassed } else { attached });
        events.extend(steps.iter().scan(0, |sum, step| {
            *sum += step;
            Some(Event::Wrote { length: *sum })
        }));
        events.push(Event::Committed { length, digest: Digest(3) });
        events.extend(is_late.then_some(attached));
        let mut stream = Stream::new(Writer::Task);
        let mut actions = Vec::new();
        for event in events {
            stream.handle(event, &mut actions).expect("it can happen");
        }
        let ended = |action: &&Action| matches!(action, Action::End { .. });
        prop_assert_eq!(actions.iter().filter(ended).count(), 1);
        let woken: u64 = actions.iter().map(|action| match action {
            Action::Wake { from, to, .. } => to - from,
            _ => 0,
        }).sum();
        prop_assert!(woken == length || !stream.is_stored());
    }
}
