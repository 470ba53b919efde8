//! The two ends of a direct stream, and their slots.

use ciel_model::{Pairing, SingleReader, TaskKey, limits};

use super::world::World;

/// Two cores and three producers, 1 to 3, whose readers, 11 to 13, wait for them.
fn with_three_pairs() -> World {
    let mut world = World::new(2, false);
    assert_eq!(world.producer(1, SingleReader::Expected), "1:process");
    assert_eq!(world.producer(2, SingleReader::Expected), "");
    assert_eq!(world.producer(3, SingleReader::Expected), "");
    for producer in 1..=3 {
        assert_eq!(world.reader_waits(producer), "");
    }
    world
}

#[test]
fn both_ends_of_one_stream_have_the_slots_before_another_producer_begins() {
    let mut world = with_three_pairs();
    for pair in 1..=3 {
        assert_eq!(
            world.reader(10 + pair, pair),
            format!("{}:process", 10 + pair)
        );
        assert_eq!(world.left(pair), "");
        let next = match pair {
            3 => String::new(),
            _ => format!("{}:process", pair + 1),
        };
        assert_eq!(world.left(10 + pair), next);
    }
}

#[test]
fn producer_begins_alone_when_the_other_stream_goes_on_with_its_reader_only() {
    let mut world = with_three_pairs();
    assert_eq!(world.reader(11, 1), "11:process");
    assert_eq!(world.left(1), "");
    assert_eq!(world.after(limits::STREAM_PRODUCER_HELD_US - 1), "");
    assert_eq!(
        world.node.next_deadline(),
        Some(limits::STREAM_PRODUCER_HELD_US)
    );
    assert_eq!(world.after(1), "2:process");
    // Its reader has the next slot.
    assert_eq!(world.reader(12, 2), "");
    assert_eq!(world.left(11), "12:process");
}

#[test]
fn slot_is_kept_from_other_tasks_until_the_reader_has_it() {
    let mut world = World::new(2, false);
    assert_eq!(world.process(9, 1), "9:process");
    assert_eq!(world.left(9), "");
    assert_eq!(world.producer(1, SingleReader::Waits), "1:process");
    assert_eq!(world.process(2, 1), "");
    assert_eq!(world.reader(11, 1), "11:process");
    assert_eq!(world.left(11), "2:process");
}

#[test]
fn slot_is_not_kept_for_a_reader_that_does_not_come() {
    let mut world = World::new(2, false);
    assert_eq!(world.producer(1, SingleReader::Expected), "1:process");
    assert_eq!(world.process(2, 1), "");
    assert_eq!(world.after(limits::STREAM_READER_EXPECTED_US), "2:process");
    let mut world = World::new(2, false);
    assert_eq!(world.producer(1, SingleReader::Waits), "1:process");
    assert_eq!(world.process(2, 1), "");
    assert_eq!(world.after(limits::STREAM_SLOT_KEPT_US), "2:process");
}

#[test]
fn slot_is_not_kept_when_the_producer_has_left() {
    let mut world = World::new(2, false);
    assert_eq!(world.producer(1, SingleReader::Waits), "1:process");
    assert_eq!(world.process(2, 1), "");
    assert_eq!(world.process(3, 1), "");
    assert_eq!(world.left(1), "2:process 3:process");
}

#[test]
fn producer_waits_for_no_slot_that_a_task_without_streams_has() {
    let mut world = World::new(2, false);
    assert_eq!(world.process(9, 1), "9:process");
    assert_eq!(world.producer(1, SingleReader::Waits), "1:process");
}

#[test]
fn producers_without_readers_begin_all_at_once_when_none_is_expected_any_more() {
    let mut world = World::new(4, false);
    for task in 1..=2 {
        assert_ne!(world.producer(task, SingleReader::Expected), "");
    }
    for task in 3..=4 {
        assert_eq!(world.producer(task, SingleReader::Expected), "");
    }
    assert_eq!(
        world.after(limits::STREAM_READER_EXPECTED_US),
        "3:process 4:process"
    );
}

#[test]
fn one_core_runs_one_end_after_the_other() {
    for serial in [false, true] {
        let mut world = World::new(1, serial);
        assert_eq!(world.producer(1, SingleReader::Waits), "1:process");
        assert_eq!(world.producer(2, SingleReader::Waits), "");
        assert_eq!(world.reader(11, 1), "");
        let next = if serial { "2:process" } else { "11:process" };
        assert_eq!(world.left(1), next);
    }
}

#[test]
fn reader_that_writes_for_another_one_is_not_held() {
    let mut world = World::new(2, false);
    assert_eq!(world.producer(1, SingleReader::Waits), "1:process");
    let middle = Pairing {
        reads: Some(TaskKey(1)),
        reader: SingleReader::Waits,
    };
    assert_eq!(world.stream_end(2, middle), "2:process");
    assert_eq!(world.reader(3, 2), "");
    assert_eq!(world.left(1), "3:process");
}
