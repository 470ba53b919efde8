//! Starts of processes that are sent before their time, to begin where another one has ended.

use ciel_engine::{Caller, Event};
use ciel_model::{Class, Descriptor};

use super::house::{House, attempt_of, finished, on_cores};

fn process() -> Descriptor {
    Descriptor::plain("sh", Class::Process, "c", b"c".as_slice())
}

/// So many cores, and tasks 1 to `count`, each in a process of its own.
fn with_processes(cores: u32, count: u64) -> House {
    let mut house = House::new(cores);
    for task in 1..=count {
        let begins = task <= u64::from(cores);
        let effects = match begins {
            true => format!("start {task}"),
            false => String::new(),
        };
        assert_eq!(house.spawn(process()), effects);
    }
    house
}

/// A process exits well, and perhaps another one has begun where it was.
fn exit(house: &mut House, task: u64, follows: Option<u64>) -> String {
    let attempt = attempt_of(task);
    let end = Some(finished(attempt));
    let caller = follows.map(attempt_of);
    let caller = caller.map_or(Caller::Nobody, |follows| Caller::Process { follows });
    house.ask(Event::TurnEnded { attempt, end }, caller)
}

/// Nothing is left of a process, and nothing has begun where it was.
fn leave(house: &mut House, task: u64) -> String {
    let attempt = attempt_of(task);
    house.tell(Event::TurnEnded { attempt, end: None })
}

fn give_back(house: &mut House, task: u64) -> String {
    let attempt = attempt_of(task);
    house.tell(Event::ProcessReturned { attempt })
}

#[test]
fn quick_process_is_followed_by_those_that_were_sent() {
    let mut house = with_processes(1, 7);
    assert_eq!(exit(&mut house, 1, None), "start 2, send 3, send 4");
    assert_eq!(exit(&mut house, 2, Some(3)), "followed 3, send 5");
    assert_eq!(exit(&mut house, 3, Some(4)), "followed 4");
    assert_eq!(exit(&mut house, 4, Some(5)), "followed 5, send 6");
    assert_eq!(exit(&mut house, 5, Some(6)), "followed 6");
    assert_eq!(exit(&mut house, 6, None), "start 7");
    assert_eq!(exit(&mut house, 7, None), "");
}

#[test]
fn slow_process_is_followed_by_nothing() {
    let mut house = with_processes(1, 6);
    house.now = 1_000_000;
    assert_eq!(exit(&mut house, 1, None), "start 2");
    assert_eq!(exit(&mut house, 2, None), "start 3, send 4");
}

#[test]
fn what_was_sent_begins_in_serial_order_where_nothing_has_followed() {
    let mut house = with_processes(1, 5);
    assert_eq!(exit(&mut house, 1, None), "start 2, send 3");
    // The process that ends has failed, or ended before the other one was there.
    assert_eq!(exit(&mut house, 2, None), "start 3, send 4");
    assert_eq!(exit(&mut house, 3, None), "start 4");
}

#[test]
fn what_was_sent_begins_on_another_core_while_the_process_before_it_runs_on() {
    let mut house = with_processes(2, 7);
    assert_eq!(exit(&mut house, 1, None), "start 3, send 4");
    assert_eq!(exit(&mut house, 2, None), "start 4");
    assert_eq!(exit(&mut house, 4, None), "start 5");
}

#[test]
fn process_that_has_a_slot_and_has_begun_in_another_one_keeps_the_first() {
    let mut house = with_processes(2, 7);
    assert_eq!(exit(&mut house, 1, None), "start 3, send 4");
    assert_eq!(exit(&mut house, 2, None), "start 4");
    assert_eq!(exit(&mut house, 3, Some(4)), "start 5");
    assert_eq!(exit(&mut house, 4, None), "start 6");
}

#[test]
fn process_that_is_returned_begins_in_its_turn() {
    let mut house = with_processes(1, 5);
    assert_eq!(exit(&mut house, 1, None), "start 2, send 3");
    assert_eq!(give_back(&mut house, 3), "");
    assert_eq!(exit(&mut house, 2, None), "start 3, send 4");
}

#[test]
fn cancelled_process_is_withdrawn_and_stopped_if_it_has_begun_by_then() {
    let mut house = with_processes(1, 5);
    assert_eq!(exit(&mut house, 1, None), "start 2, send 3");
    let cancelled = house.cancel(3);
    assert!(cancelled.contains("withdraw 3"), "{cancelled}");
    assert_eq!(exit(&mut house, 2, Some(3)), "follower stopped");
    // Only when nothing is left of it has another one its slot.
    assert_eq!(leave(&mut house, 2), "start 4");
    assert_eq!(exit(&mut house, 4, None), "start 5");
}

#[test]
fn cancelled_process_that_is_returned_does_not_begin() {
    let mut house = with_processes(1, 5);
    assert_eq!(exit(&mut house, 1, None), "start 2, send 3");
    house.cancel(3);
    assert_eq!(give_back(&mut house, 3), "");
    assert_eq!(exit(&mut house, 2, None), "start 4");
}

#[test]
fn process_with_other_needs_is_not_sent() {
    let mut house = with_processes(2, 2);
    for _ in 3..10 {
        assert_eq!(house.spawn(on_cores(2, process())), "");
    }
    assert_eq!(exit(&mut house, 1, None), "");
    assert_eq!(exit(&mut house, 2, None), "start 3");
    assert_eq!(exit(&mut house, 3, None), "start 4");
}
