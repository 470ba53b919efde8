//! One event at a time in an engine whose waiting output is bounded.

use std::sync::Arc;

use crate::house::{House, ROOT, attempt_of, finished, pooled, spawn, worker};
use ciel_engine::{Caller, Event, Pressure};
use ciel_graph::{self as graph, Continuation, Wait};
use ciel_model::{Class, Descriptor, Options, Purity};
use ciel_node::AttemptKey;
use ciel_ordered::Piece;

/// Bytes that may wait.
const BOUND: u64 = 5;

/// A house with two cores in which task 1 runs in worker 0, and the bound is in force.
fn house() -> House {
    let mut house = House::with_worker(2);
    house.engine.bound_output(BOUND);
    house
}

/// A task writes so many bytes, after so many actions.
fn write(house: &mut House, attempt: AttemptKey, after: u64, bytes: usize) {
    let strand = house.engine.graph().strand_of(attempt.task).unwrap();
    let piece = Piece::Bytes(vec![b'x'; bytes]);
    let state = house.engine.state_mut();
    state.write(strand, after, piece).unwrap();
}

/// All that is final is taken; what the engine wants done then.
fn take(house: &mut House) -> String {
    while house
        .engine
        .state_mut()
        .output_mut()
        .take_ready(1 << 20)
        .is_some()
    {}
    house.tell(Event::FrontierMoved { rests: true })
}

fn pressure(house: &House) -> Pressure {
    house.engine.pressure().unwrap()
}

/// A task in worker 0 waits for nothing.
fn yields(house: &mut House, task: u64) -> String {
    let event = graph::Event::TaskBlocked {
        task: attempt_of(task).task,
        attempt: attempt_of(task).number,
        kept: None,
        on: Vec::new(),
        wait: Wait::ALL,
        continuation: Continuation::Live,
        checkpoint: None,
    };
    house.ask(event, worker(0, None))
}

#[test]
fn task_begins_as_long_as_no_more_than_the_bound_waits() {
    let mut house = house();
    write(&mut house, ROOT, 1, BOUND as usize);
    take(&mut house);
    assert_eq!(pressure(&house).waiting_bytes, BOUND);
    assert_eq!(house.spawn(pooled(&[])), "start worker1");
    assert!(!house.engine.has_held());
}

#[test]
fn task_behind_too_much_output_is_held_until_that_is_taken() {
    let mut house = house();
    write(&mut house, ROOT, 1, BOUND as usize + 1);
    take(&mut house);
    assert_eq!(house.spawn(pooled(&[])), "deadline");
    assert!(house.engine.is_held(attempt_of(2)));
    assert_eq!(take(&mut house), "", "task 1 runs, and nothing is final");
    assert_eq!(house.exit(1, None), "", "its output may still be taken");
    assert_eq!(take(&mut house), "start 2 in worker0, deadline");
    let now = pressure(&house);
    assert_eq!((now.held, now.waiting_bytes, now.gave_way), (0, 0, 0));
}

#[test]
fn task_at_the_frontier_begins_however_much_waits() {
    let mut house = house();
    write(&mut house, ROOT, 1, 100);
    assert_eq!(house.spawn(pooled(&[])), "deadline");
    // The output of task 2 is before what the root writes now.
    write(&mut house, ROOT, 2, 100);
    assert_eq!(house.exit(1, None), "");
    assert_eq!(take(&mut house), "start 2 in worker0, deadline");
    assert_eq!(pressure(&house).waiting_bytes, 100);
}

#[test]
fn task_that_has_written_too_much_and_waits_for_nothing_resumes_at_its_turn() {
    let mut house = house();
    assert_eq!(house.spawn(pooled(&[])), "start worker1");
    assert_eq!(house.ready(1), "start 2 in worker1");
    take(&mut house);
    write(&mut house, attempt_of(2), 0, 100);
    let strand = |task| {
        house
            .engine
            .graph()
            .strand_of(attempt_of(task).task)
            .unwrap()
    };
    assert!(house.engine.should_ask(strand(2)) && !house.engine.should_ask(strand(1)));
    let event = graph::Event::TaskBlocked {
        task: attempt_of(2).task,
        attempt: attempt_of(2).number,
        kept: None,
        on: Vec::new(),
        wait: Wait::ALL,
        continuation: Continuation::Live,
        checkpoint: None,
    };
    assert_eq!(house.ask(event, worker(1, None)), "suspended, deadline");
    assert_eq!(take(&mut house), "");
    assert_eq!(house.exit(1, None), "");
    assert_eq!(take(&mut house), "start 2 in worker1, deadline");
}

#[test]
fn task_at_the_frontier_that_waits_for_nothing_goes_on() {
    let mut house = house();
    take(&mut house);
    write(&mut house, attempt_of(1), 0, 100);
    assert_eq!(yields(&mut house, 1), "begin 1");
}

fn pure() -> Descriptor {
    pooled(&[]).with(|it| it.purity = Purity::Declared)
}

/// Task 1 spawns task 3, an equal call of task 2, which is behind it and is held: the frontier
/// comes to task 3, which waits for the result of task 2.
#[test]
fn bound_gives_way_if_nothing_has_a_slot_or_is_on_its_way() {
    let mut house = house();
    write(&mut house, ROOT, 1, 100);
    take(&mut house);
    assert_eq!(house.spawn(pure()), "deadline");
    assert_eq!(house.step(attempt_of(1), spawn(0, pure())), "");
    assert_eq!(house.exit(1, None), "");
    assert_eq!(take(&mut house), "", "the root still runs");
    assert_eq!(house.block(ROOT, 1, Caller::Thread), "suspended");
    assert_eq!(take(&mut house), "start 2 in worker0, deadline");
    assert_eq!(pressure(&house).gave_way, 1);
    assert_eq!(house.exit(2, None), "offer 0");
}

/// The same while the root runs: it may run for ever.
#[test]
fn look_that_finds_the_leftmost_task_without_a_slot_lets_another_go() {
    let mut house = house();
    write(&mut house, ROOT, 1, 100);
    take(&mut house);
    assert_eq!(house.spawn(pure()), "deadline");
    house.step(attempt_of(1), spawn(0, pure()));
    house.exit(1, None);
    assert_eq!(take(&mut house), "");
    house.now = house.engine.next_deadline().unwrap();
    assert_eq!(house.tell(Event::Ticked), "start 2 in worker0, deadline");
    assert_eq!(pressure(&house).gave_way, 1);
}

#[test]
fn look_lets_nothing_go_while_the_leftmost_task_works() {
    let mut house = house();
    write(&mut house, ROOT, 1, 100);
    take(&mut house);
    assert_eq!(house.spawn(pooled(&[])), "deadline");
    for _ in 0..3 {
        house.now = house.engine.next_deadline().unwrap();
        assert_eq!(house.tell(Event::Ticked), "deadline");
    }
    assert_eq!(pressure(&house).gave_way, 0);
    assert!(house.engine.is_held(attempt_of(2)));
    let end = graph::Event::CancelRequested {
        task: attempt_of(2).task,
    };
    house.tell(end);
    assert!(!house.engine.has_held(), "what is cancelled is not held");
}

/// A task in a process of its own.
fn command() -> Descriptor {
    Descriptor::plain("shell", Class::Process, "c", b"c".as_slice())
}

/// What the engine wants done when a command has been paused, as it must be.
fn pause(house: &mut House, task: u64) -> String {
    let attempt = attempt_of(task);
    assert!(house.engine.must_pause(attempt), "task {task}");
    house.tell(Event::ProcessPaused { attempt })
}

#[test]
fn command_that_writes_too_much_pauses_until_what_waits_is_taken() {
    let mut house = house();
    assert_eq!(house.spawn(command()), "start 2");
    take(&mut house);
    assert!(!house.engine.must_pause(attempt_of(2)), "nothing waits");
    write(&mut house, attempt_of(2), 0, BOUND as usize + 1);
    assert_eq!(pause(&mut house, 2), "deadline");
    assert_eq!((pressure(&house).paused, pressure(&house).held), (1, 0));
    assert_eq!(take(&mut house), "", "task 1 runs, and nothing is final");
    assert_eq!(house.exit(1, None), "");
    assert_eq!(take(&mut house), "read on 2, deadline");
    assert!(
        !house.engine.must_pause(attempt_of(2)),
        "it is at the frontier"
    );
    assert_eq!(
        (pressure(&house).paused, pressure(&house).ever_paused),
        (0, 1)
    );
}

#[test]
fn what_a_running_command_has_written_counts_until_it_ends() {
    let mut house = house();
    assert_eq!(house.spawn(command()), "start 2");
    take(&mut house);
    let (attempt, bytes) = (attempt_of(2), BOUND + 1);
    house.tell(Event::ProcessWrote { attempt, bytes });
    assert_eq!(pressure(&house).waiting_bytes, BOUND + 1);
    assert!(house.engine.must_pause(attempt));
    let end = Some(finished(attempt));
    house.tell(Event::TurnEnded { attempt, end });
    assert_eq!(pressure(&house).waiting_bytes, 0);
}

#[test]
fn command_that_reads_or_writes_a_stream_or_has_a_time_limit_is_not_paused() {
    let mut house = House::with_worker(4);
    house.engine.bound_output(BOUND);
    let mut timed = command();
    timed.options = Arc::new(Options {
        timeout_us: Some(1_000_000),
        ..Options::default()
    });
    let mut writer = command();
    writer.streams.outputs = vec![0];
    assert_eq!(house.spawn(timed), "start 2, deadline");
    assert_eq!(house.spawn(writer), "start 3");
    assert_eq!(house.spawn(command()), "start 4");
    take(&mut house);
    write(&mut house, attempt_of(2), 0, 100);
    let pauses = [2, 3, 4].map(|task| house.engine.must_pause(attempt_of(task)));
    assert_eq!(pauses, [false, false, true]);
}

/// Task 1 spawns task 3, an equal call of command 2, which is behind it and is paused: the frontier
/// comes to task 3, which waits for the result of command 2.
#[test]
fn bound_gives_way_to_a_paused_command_if_the_leftmost_task_has_no_slot() {
    let mut house = house();
    let equal = || command().with(|it| it.purity = Purity::Declared);
    assert_eq!(house.spawn(equal()), "start 2");
    assert_eq!(house.step(attempt_of(1), spawn(0, equal())), "");
    take(&mut house);
    write(&mut house, attempt_of(2), 0, 100);
    assert_eq!(pause(&mut house, 2), "deadline");
    assert_eq!(house.exit(1, None), "");
    assert_eq!(take(&mut house), "");
    house.now = house.engine.next_deadline().unwrap();
    assert_eq!(house.tell(Event::Ticked), "read on 2, deadline");
    assert_eq!(pressure(&house).gave_way, 1);
    assert!(!house.engine.must_pause(attempt_of(2)), "it may write now");
}

#[test]
fn paused_command_that_is_cancelled_is_stopped_and_not_read() {
    let mut house = house();
    assert_eq!(house.spawn(command()), "start 2");
    take(&mut house);
    write(&mut house, attempt_of(2), 0, 100);
    assert_eq!(pause(&mut house, 2), "deadline");
    assert_eq!(house.cancel(2), "stop 2, deadline");
    assert!(!house.engine.has_held());
}
