//! One event at a time in an engine in which a strand has a bound of unfinished children.

use crate::house::{House, ROOT, attempt_of, pooled, spawn, worker};
use ciel_engine::{Caller, Event, Pausing};
use ciel_graph::{self as graph, Continuation, Wait};
use ciel_model::{Options, StrandKey, Streams};
use ciel_node::AttemptKey;
use std::sync::Arc;

/// Unfinished children of a strand that does not pause.
const BOUND: u32 = 2;

/// The strand of the root.
const ROOT_STRAND: StrandKey = StrandKey(0);

/// A house with one core, the bound in force, in which the root has spawned a task more than that,
/// and the first of them runs in worker 0.
fn crowded() -> House {
    let mut house = House::new(1);
    house.engine.bound_children(BOUND);
    assert_eq!(house.spawn(pooled(&[])), "start worker0");
    assert_eq!(house.ready(0), "start 1 in worker0");
    assert!(!house.engine.should_ask(ROOT_STRAND));
    assert_eq!(house.spawn(pooled(&[])), "");
    assert!(!house.engine.should_ask(ROOT_STRAND));
    assert_eq!(house.spawn(pooled(&[])), "");
    assert!(house.engine.should_ask(ROOT_STRAND));
    house
}

/// An attempt waits for nothing.
fn yields(house: &mut House, attempt: AttemptKey, caller: Caller) -> String {
    let event = graph::Event::TaskBlocked {
        task: attempt.task,
        attempt: attempt.number,
        kept: None,
        on: Vec::new(),
        wait: Wait::ALL,
        continuation: Continuation::Live,
        checkpoint: None,
    };
    house.ask(event, caller)
}

fn pausing(house: &House) -> (usize, u64, u64) {
    let Pausing {
        paused,
        ever_paused,
        gave_way,
    } = house.engine.pausing().unwrap();
    (paused, ever_paused, gave_way)
}

#[test]
fn strand_with_too_many_children_pauses_until_half_of_the_bound_is_left() {
    let mut house = crowded();
    assert_eq!(yields(&mut house, ROOT, Caller::Thread), "suspended");
    assert_eq!(house.engine.paused_for(ROOT), Some(3));
    assert_eq!(house.exit(1, None), "begin 2");
    assert_eq!(house.engine.paused_for(ROOT), Some(2));
    assert_eq!(house.exit(2, None), "begin 3, offer 0");
    assert_eq!(house.engine.paused_for(ROOT), None);
    assert_eq!(pausing(&house), (0, 1, 0));
}

#[test]
fn strand_with_as_many_children_as_the_bound_goes_on() {
    let mut house = crowded();
    assert_eq!(house.exit(1, None), "begin 2");
    assert_eq!(
        yields(&mut house, ROOT, Caller::Thread),
        "suspended, offer 0"
    );
    assert_eq!(pausing(&house), (0, 0, 0));
}

#[test]
fn wait_for_a_result_is_no_pause() {
    let mut house = crowded();
    assert_eq!(house.exit(1, None), "begin 2");
    assert_eq!(house.spawn(pooled(&[])), "");
    assert!(house.engine.should_ask(ROOT_STRAND));
    assert_eq!(house.block(ROOT, 1, Caller::Thread), "suspended");
    assert_eq!(house.exit(2, None), "begin 3, offer 0");
    assert_eq!(pausing(&house), (0, 0, 0));
}

/// A successor counts in the place of the task that handed over to it.
#[test]
fn child_that_hands_over_to_a_successor_counts_once() {
    let mut house = crowded();
    assert_eq!(yields(&mut house, ROOT, Caller::Thread), "suspended");
    let child = attempt_of(1);
    let handed_over = graph::Event::TaskTailSpawned {
        task: child.task,
        attempt: child.number,
        descriptor: Arc::new(pooled(&[])),
        after: 0,
        audit: None,
    };
    let end = ciel_engine::Event::TurnEnded {
        attempt: child,
        end: Some(handed_over),
    };
    assert_eq!(house.ask(end, worker(0, None)), "begin 4 ahead 2");
    assert_eq!(house.engine.paused_for(ROOT), Some(3));
    assert_eq!(house.exit(4, None), "begin 2");
    assert_eq!(house.exit(2, None), "begin 3, offer 0");
}

#[test]
fn lazy_children_do_not_count() {
    let mut house = House::with_worker(1);
    house.engine.bound_children(1);
    let lazy = pooled(&[]).with(|it| {
        it.options = Arc::new(Options {
            lazy: true,
            ..Options::default()
        })
    });
    for _ in 0..5 {
        assert_eq!(house.spawn(lazy.clone()), "");
    }
    assert!(!house.engine.should_ask(ROOT_STRAND));
}

#[test]
fn cancelled_strand_is_paused_no_more() {
    let mut house = House::with_worker(1);
    house.engine.bound_children(BOUND);
    for action in 0..3 {
        assert_eq!(house.step(attempt_of(1), spawn(action, pooled(&[]))), "");
    }
    let said = yields(&mut house, attempt_of(1), worker(0, None));
    assert_eq!(said, "begin 2");
    assert_eq!(house.engine.paused_for(attempt_of(1)), Some(3));
    house.cancel(1);
    assert_eq!(house.engine.paused_for(attempt_of(1)), None);
    assert_eq!(pausing(&house), (0, 1, 0));
}

/// The root of a session keeps its slot, and asks.
#[test]
fn root_that_awaits_few_children_is_paused_until_half_of_the_bound_is_left() {
    let mut house = crowded();
    assert_eq!(house.tell(Event::ChildrenAwaited { attempt: ROOT }), "");
    assert_eq!(house.engine.paused_for(ROOT), Some(3));
    assert_eq!(house.exit(1, None), "begin 2");
    assert_eq!(pausing(&house), (1, 1, 0));
    assert_eq!(house.exit(2, None), "begin 3");
    assert_eq!(house.engine.paused_for(ROOT), None);
    assert_eq!(pausing(&house), (0, 1, 0));
}

#[test]
fn root_with_few_children_is_not_paused() {
    let mut house = crowded();
    assert_eq!(house.exit(1, None), "begin 2");
    assert_eq!(house.tell(Event::ChildrenAwaited { attempt: ROOT }), "");
    assert_eq!(pausing(&house), (0, 0, 0));
}

#[test]
fn root_whose_children_are_cancelled_is_paused_no_more() {
    let mut house = crowded();
    assert_eq!(house.tell(Event::ChildrenAwaited { attempt: ROOT }), "");
    assert_eq!(pausing(&house), (1, 1, 0));
    for task in [2, 3] {
        house.cancel(task);
    }
    assert_eq!(pausing(&house), (0, 1, 0));
}

/// A task beneath it holds the slot that its children need.
#[test]
fn task_beneath_the_root_that_awaits_few_children_goes_on_at_once() {
    let mut house = House::with_worker(1);
    house.engine.bound_children(1);
    for action in 0..3 {
        assert_eq!(house.step(attempt_of(1), spawn(action, pooled(&[]))), "");
    }
    let attempt = attempt_of(1);
    assert_eq!(
        house.tell(Event::ChildrenAwaited { attempt }),
        "notify 1 in worker0"
    );
    assert_eq!(pausing(&house), (0, 0, 0));
}

/// Its children may read what it writes, and wait for it.
#[test]
fn strand_whose_output_is_a_stream_does_not_pause() {
    for outputs in [vec![], vec![0]] {
        let is_stream = !outputs.is_empty();
        let streams = Streams {
            outputs,
            ..Streams::default()
        };
        let mut house = House::new(1);
        house.engine.bound_children(1);
        let writer = pooled(&[]).with(|it| it.streams = streams.into());
        assert_eq!(house.spawn(writer), "start worker0");
        assert_eq!(house.ready(0), "start 1 in worker0");
        for action in 0..3 {
            assert_eq!(house.step(attempt_of(1), spawn(action, pooled(&[]))), "");
        }
        yields(&mut house, attempt_of(1), worker(0, None));
        assert_eq!(pausing(&house).0, usize::from(!is_stream));
    }
}
