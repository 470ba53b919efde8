//! One event, exact actions.

use ciel_model::Digest;
use ciel_streams::{
    AbortReason, Action, ConsumerId, Event, FallBackReason, Mode, ProducerFlags, Refusal, Stream,
    Wish, Writer,
};

const DIGEST: Digest = Digest(7);
const FIRST: ConsumerId = ConsumerId(1);
const SECOND: ConsumerId = ConsumerId(2);

/// A stream that has seen these events, and what followed from the last one.
fn after(events: &[Event]) -> (Stream, Vec<Action>) {
    let mut stream = Stream::new(Writer::Task);
    let mut actions = Vec::new();
    for &event in events {
        actions.clear();
        stream.handle(event, &mut actions).expect("it can happen");
    }
    (stream, actions)
}

fn opened(single_consumer: bool) -> Event {
    Event::Opened {
        flags: ProducerFlags {
            may_stream: true,
            single_consumer,
        },
    }
}

fn attached(consumer: ConsumerId, mode: Mode, from: u64) -> Event {
    Event::ConsumerAttached {
        consumer,
        wish: Wish::Named(mode),
        from,
        granularity_bytes: Some(10),
    }
}

fn committed(length: u64) -> Event {
    Event::Committed {
        length,
        digest: DIGEST,
    }
}

fn wake(consumer: ConsumerId, from: u64, to: u64) -> Action {
    Action::Wake { consumer, from, to }
}

fn end(consumer: ConsumerId, length: u64) -> Action {
    Action::End {
        consumer,
        length,
        digest: DIGEST,
    }
}

fn abort(consumer: ConsumerId, reason: AbortReason) -> Action {
    Action::Abort { consumer, reason }
}

#[test]
fn consumer_is_woken_by_its_granularity_and_at_the_end() {
    let mut events = vec![opened(false), attached(FIRST, Mode::IndirectFile, 0)];
    events.push(Event::Wrote { length: 9 });
    assert_eq!(after(&events).1, []);
    events.push(Event::Wrote { length: 12 });
    assert_eq!(after(&events).1, [wake(FIRST, 0, 12)]);
    events.push(Event::Wrote { length: 13 });
    events.push(committed(13));
    assert_eq!(after(&events).1, [wake(FIRST, 12, 13), end(FIRST, 13)]);
    events.push(attached(SECOND, Mode::IndirectPipe, 5));
    let mode = Mode::IndirectPipe;
    let consumer = SECOND;
    assert_eq!(
        after(&events).1,
        [
            Action::Attach { consumer, mode },
            wake(SECOND, 5, 13),
            end(SECOND, 13)
        ]
    );
}

#[test]
fn consumer_that_does_not_stream_sees_nothing_before_the_whole() {
    for mode in [Mode::NoStream, Mode::Overlap] {
        let mut events = vec![opened(false), attached(FIRST, mode, 0)];
        events.push(Event::Wrote { length: 100 });
        assert_eq!(after(&events).1, [], "{mode}");
        events.push(committed(100));
        assert_eq!(
            after(&events).1,
            [wake(FIRST, 0, 100), end(FIRST, 100)],
            "{mode}"
        );
    }
}

#[test]
fn overlap_reads_a_copy_while_it_arrives() {
    let mut stream = Stream::new(Writer::Transfer);
    let mut actions = Vec::new();
    for event in [opened(false), attached(FIRST, Mode::Overlap, 0)] {
        stream.handle(event, &mut actions).unwrap();
    }
    actions.clear();
    stream
        .handle(Event::Wrote { length: 30 }, &mut actions)
        .unwrap();
    assert_eq!(actions, [wake(FIRST, 0, 30)]);
}

#[test]
fn direct_stream_is_forwarded_to_the_consumer_that_comes() {
    let mut events = vec![opened(true)];
    assert_eq!(after(&events).1, [Action::AwaitConsumer { limit_ms: 50 }]);
    events.push(attached(FIRST, Mode::Direct, 0));
    let (consumer, mode) = (FIRST, Mode::Direct);
    assert_eq!(
        after(&events).1,
        [
            Action::Attach { consumer, mode },
            Action::Forward { consumer }
        ]
    );
    events.push(Event::LimitPassed);
    assert_eq!(after(&events).1, []);
    events.push(committed(50));
    let (stream, actions) = after(&events);
    assert_eq!(actions, [end(FIRST, 50)]);
    assert!(!stream.is_stored());
    events.push(attached(SECOND, Mode::NoStream, 0));
    assert_eq!(after(&events).1, [abort(SECOND, AbortReason::NotStored)]);
}

#[test]
fn direct_stream_without_a_consumer_falls_back_and_serves_late_ones() {
    let mut events = vec![opened(true), Event::LimitPassed];
    let reason = FallBackReason::NoConsumer;
    assert_eq!(after(&events).1, [Action::FallBack { reason }]);
    events.push(attached(FIRST, Mode::Direct, 0));
    let (consumer, mode) = (FIRST, Mode::IndirectTcp);
    assert_eq!(after(&events).1, [Action::Attach { consumer, mode }]);
    events.push(committed(4));
    assert_eq!(after(&events).1, []);
    events.push(Event::Wrote { length: 4 });
    assert_eq!(after(&events).1, [wake(FIRST, 0, 4), end(FIRST, 4)]);
    assert_eq!(after(&events).0.complete(), Some((4, DIGEST)));
}

#[test]
fn direct_stream_that_ends_before_its_consumer_comes_is_stored() {
    let (stream, actions) = after(&[opened(true), committed(0)]);
    let reason = FallBackReason::ProducerEnded;
    assert_eq!(actions, [Action::FallBack { reason }]);
    assert_eq!(stream.complete(), Some((0, DIGEST)));
}

#[test]
fn consumer_that_needs_stored_bytes_makes_a_direct_stream_fall_back() {
    for (mode, from) in [(Mode::IndirectFile, 0), (Mode::Direct, 3)] {
        let (_, actions) = after(&[opened(true), attached(FIRST, mode, from)]);
        let reason = FallBackReason::StoredBytesNeeded;
        assert_eq!(actions[0], Action::FallBack { reason });
    }
}

#[test]
fn consumer_that_leaves_never_fails_the_producer() {
    let direct = [opened(true), attached(FIRST, Mode::Direct, 0)];
    let left = Event::ConsumerLeft { consumer: FIRST };
    let (mut stream, actions) = after(&[direct[0], direct[1], left]);
    assert_eq!(actions, [Action::Drain]);
    stream.handle(committed(9), &mut Vec::new()).unwrap();
    let stored = [opened(false), attached(FIRST, Mode::IndirectPipe, 0)];
    let (_, actions) = after(&[stored[0], stored[1], left, Event::Wrote { length: 99 }]);
    assert_eq!(actions, []);
}

#[test]
fn lost_producer_aborts_whoever_reads_and_ends_nobody() {
    let stored = [opened(false), attached(FIRST, Mode::IndirectFile, 0)];
    let direct = [opened(true), attached(FIRST, Mode::Direct, 0)];
    for [opened, attached] in [stored, direct] {
        let events = [
            opened,
            attached,
            Event::Wrote { length: 5 },
            Event::ProducerLost,
        ];
        let (mut stream, actions) = after(&events);
        assert_eq!(actions, [abort(FIRST, AbortReason::ProducerLost)]);
        let mut actions = Vec::new();
        assert_eq!(
            stream.handle(committed(5), &mut actions),
            Err(Refusal::OutOfTurn)
        );
        assert_eq!(actions, []);
    }
}

#[test]
fn producer_that_is_lost_when_its_stream_is_whole_takes_nothing_away() {
    let events = [
        opened(false),
        Event::Wrote { length: 5 },
        committed(5),
        Event::ProducerLost,
    ];
    let (mut stream, mut actions) = after(&events);
    assert_eq!(actions, []);
    assert_eq!(stream.complete(), Some((5, DIGEST)));
    let mode = Mode::IndirectFile;
    stream
        .handle(attached(FIRST, mode, 0), &mut actions)
        .unwrap();
    let consumer = FIRST;
    let attach = Action::Attach { consumer, mode };
    assert_eq!(actions, [attach, wake(FIRST, 0, 5), end(FIRST, 5)]);
}

#[test]
fn bytes_that_could_not_be_stored_after_the_commit_are_no_end() {
    let mut events = vec![opened(true), Event::LimitPassed];
    events.extend([attached(FIRST, Mode::Direct, 0), committed(100)]);
    events.extend([Event::Wrote { length: 60 }, Event::ProducerLost]);
    assert_eq!(after(&events).1, [abort(FIRST, AbortReason::ProducerLost)]);
}

#[test]
fn budget_holds_who_stores_and_not_who_is_forwarded() {
    let (mut stream, actions) = after(&[opened(false), Event::BudgetExceeded]);
    assert_eq!(actions, [Action::Hold]);
    let mut actions = Vec::new();
    stream.handle(Event::BudgetFree, &mut actions).unwrap();
    assert_eq!(actions, [Action::Resume]);
    let direct = [opened(true), attached(FIRST, Mode::Direct, 0)];
    let (_, actions) = after(&[direct[0], direct[1], Event::BudgetExceeded]);
    assert_eq!(actions, []);
    let (_, actions) = after(&[opened(true), Event::BudgetExceeded, Event::LimitPassed]);
    assert_eq!(actions.last(), Some(&Action::Hold));
}

#[test]
fn producer_that_ends_while_it_is_held_is_not_resumed() {
    let wrote = Event::Wrote { length: 5 };
    for end in [committed(5), Event::ProducerLost] {
        let (_, actions) = after(&[opened(false), wrote, Event::BudgetExceeded, end]);
        assert_eq!(actions, [], "{end:?}");
    }
}

#[test]
fn events_that_cannot_have_happened_are_refused_and_change_nothing() {
    let wrote = |length| Event::Wrote { length };
    let cases: [(&[Event], Event, &str); 6] = [
        (&[], wrote(1), "the output has not been opened"),
        (
            &[opened(false)],
            opened(false),
            "the producer has already done this, or has ended",
        ),
        (
            &[opened(false), wrote(5)],
            wrote(4),
            "the stream has 5 readable bytes, and can never have 4 again",
        ),
        (
            &[opened(false), wrote(5)],
            committed(4),
            "the stream has 5 readable bytes, and can never have 4 again",
        ),
        (
            &[opened(false), committed(5)],
            wrote(6),
            "the stream ends after 5 bytes, but 6 are said to be written",
        ),
        (
            &[opened(false), attached(FIRST, Mode::IndirectFile, 0)],
            attached(FIRST, Mode::IndirectFile, 0),
            "consumer-1 is already attached",
        ),
    ];
    for (before, event, message) in cases {
        let (mut stream, _) = after(before);
        let state = format!("{stream:?}");
        let mut actions = Vec::new();
        let refusal = stream.handle(event, &mut actions).unwrap_err();
        assert_eq!(refusal.to_string(), message);
        assert_eq!((format!("{stream:?}"), actions), (state, vec![]));
    }
}

#[test]
fn consumer_from_behind_the_end_is_told_so() {
    let events = [
        opened(false),
        attached(FIRST, Mode::IndirectFile, 8),
        committed(0),
    ];
    assert_eq!(after(&events).1, [abort(FIRST, AbortReason::BeyondEnd)]);
}
