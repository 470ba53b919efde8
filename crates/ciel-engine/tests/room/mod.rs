//! One event at a time in an engine whose files have a budget.

use crate::house::{House, ROOT, attempt_of, pooled, spawn, worker};
use ciel_engine::{Caller, Event, SerialUse};
use ciel_graph::{self as graph, Output};
use ciel_model::{Content, Form, Name, Value};

/// Bytes of the disk that files may take.
const BUDGET: u64 = 100;

/// More of them than the mark.
const MUCH: u64 = 76;

/// A house with one core in which task 1 runs in worker 0, and the budget is in force.
fn house() -> House {
    let mut house = House::with_worker(1);
    house.engine.bound_room(BUDGET);
    house
}

fn name_of(house: &House, task: u64) -> Name {
    house
        .engine
        .graph()
        .view(attempt_of(task).task)
        .unwrap()
        .label
        .name
}

/// A task ends with a file of so many bytes.
fn exit_with_file(house: &mut House, task: u64, length: u64) -> String {
    let name = name_of(house, task).output(0);
    let content = Content::File {
        name,
        length,
        digest: None,
    };
    let value = Value {
        form: Form::Bytes,
        content,
        references: Vec::new(),
    };
    let attempt = attempt_of(task);
    let end = Some(graph::Event::TaskFinished {
        task: attempt.task,
        attempt: attempt.number,
        outputs: vec![Output::Value(value)],
        printed: false,
        audit: None,
    });
    house.ask(Event::TurnEnded { attempt, end }, worker(0, None))
}

/// What the serial program would hold, with all of it on the disk.
fn serial_use(house: &mut House, task: Name) -> Option<SerialUse> {
    house.engine.serial_use(task, |_| true)
}

/// The frontier is looked at.
fn look(house: &mut House) -> String {
    let output = house.engine.state_mut().output_mut();
    assert!(output.take_ready(1 << 20).is_none());
    house.tell(Event::FrontierMoved { rests: true })
}

#[test]
fn offered_tasks_are_withdrawn_when_room_becomes_scarce_and_go_when_there_is_some() {
    let mut house = house();
    assert_eq!(house.spawn(pooled(&[])), "");
    assert_eq!(house.spawn(pooled(&[])), "");
    house.engine.note_present(MUCH);
    assert!(house.engine.is_held(attempt_of(2)) && house.engine.is_held(attempt_of(3)));
    // No script of theirs is kept.
    let told = "drop script 2, drop script 3, deadline";
    assert_eq!(exit_with_file(&mut house, 1, 50), told);
    // Task 2 is the first now.
    assert_eq!(look(&mut house), "start 2 in worker0");
    assert!(house.engine.is_held(attempt_of(3)));
    house.engine.note_present(0);
    assert_eq!(look(&mut house), "deadline");
    assert!(!house.engine.has_held());
    assert_eq!(house.exit(2, None), "begin 3");
}

#[test]
fn first_task_begins_however_little_room_there_is() {
    let mut house = house();
    house.engine.note_present(u64::MAX);
    assert_eq!(house.exit(1, None), "");
    assert_eq!(house.spawn(pooled(&[])), "deadline");
    assert_eq!(look(&mut house), "start 2 in worker0, deadline");
    let now = house.engine.pressure().unwrap();
    assert_eq!((now.held, now.gave_way, now.room_is_scarce), (0, 0, true));
}

#[test]
fn files_of_later_tasks_are_not_counted_against_the_first_one() {
    let mut house = house();
    assert_eq!(house.spawn(pooled(&[])), "");
    assert_eq!(house.step(attempt_of(1), spawn(0, pooled(&[]))), "");
    let (first, second, third) = (1, 2, 3);
    // The child of task 1 comes before task 2 in serial order, and nothing else before the child.
    let name = name_of(&house, third);
    assert_eq!(serial_use(&mut house, name).unwrap().bytes, 0);
    assert_eq!(exit_with_file(&mut house, first, 40), "begin 3");
    let used = serial_use(&mut house, name).unwrap();
    assert_eq!((used.bytes, used.outputs), (40, 1));
    assert_eq!(used.largest.len(), 1);
    let name_of_second = name_of(&house, second);
    assert_eq!(serial_use(&mut house, name_of_second), None);
    assert_eq!(house.block(ROOT, 1, Caller::Thread), "suspended");
    exit_with_file(&mut house, third, 30);
    // Nobody holds what task 3 has made.
    let name = name_of_second;
    assert_eq!(serial_use(&mut house, name).unwrap().bytes, 40);
}

#[test]
fn files_that_are_not_on_the_disk_are_not_counted_against_the_first_one() {
    let mut house = house();
    assert_eq!(house.spawn(pooled(&[])), "");
    let (made, second) = (name_of(&house, 1).output(0), name_of(&house, 2));
    exit_with_file(&mut house, 1, 40);
    assert_eq!(serial_use(&mut house, second).unwrap().bytes, 40);
    let used = house
        .engine
        .serial_use(second, |name| name != made)
        .unwrap();
    assert_eq!((used.bytes, used.largest), (0, Vec::new()));
}
