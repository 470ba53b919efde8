//! A worker that runs several tasks at once.

use ciel_model::Name;
use ciel_protocol::wire::{Hello, PoolPolicy};
use ciel_workers::{Input, Overdrawn};

use super::messages::*;
use super::world::{World, attempt_of, hello, task, with_memory};

fn with_slots(slots: u32, reuse: bool) -> Hello {
    Hello {
        pool: Some(PoolPolicy {
            reuse,
            parked_strands_max: 4,
            slots,
        }),
        ..hello()
    }
}

/// Worker 0 runs the tasks 1, 2 and 3, with their numbers as tags.
fn three_at_once(reuse: bool) -> World {
    let mut world = World::new(3, with_slots(3, reuse));
    world.spawn(task());
    world.look();
    world.spawn(task());
    world.spawn(task());
    assert_eq!(world.look(), "start 2, start 3");
    world
}

#[test]
fn messages_of_its_tasks_may_be_mixed() {
    let mut world = three_at_once(true);
    world.send(0, define(5, "p", 1));
    assert_eq!(world.send(2, construct(0, 0, &[])), "[constructed]");
    assert_eq!(world.send(3, construct(0, 0, &[])), "[constructed]");
    assert_eq!(world.send(1, open_construct(1)), "answer 1: opened");
    assert_eq!(world.send(2, open_construct(1)), "answer 1: opened");
    assert_eq!(world.send(3, exit(&[0], 0)), "[finished]");
    assert_eq!(world.send(1, commit(1, 0, 0)), "[constructed]");
    assert_eq!(world.send(1, exit(&[0], 0)), "[finished]");
    assert_eq!(world.send(2, exit(&[0], 0)), "[finished]");
}

#[test]
fn task_that_fails_leaves_the_others_alone() {
    let mut world = three_at_once(true);
    let why = "it committed request 1, which opened no file";
    assert_eq!(
        world.send(2, commit(1, 0, 0)),
        format!("[failed: {why}], cancel 2")
    );
    assert_eq!(world.send(1, construct(0, 0, &[])), "[constructed]");
    assert_eq!(world.send(2, error()), "[left]");
    assert_eq!(world.send(1, exit(&[0], 0)), "[finished]");
}

#[test]
fn free_slot_is_taken_by_the_next_task() {
    let mut world = three_at_once(true);
    world.spawn(task());
    assert_eq!(world.look(), "");
    assert_eq!(world.send(2, exit(&[0], 0)), "[finished], start 4");
}

#[test]
fn task_that_parks_frees_its_slot_and_resumes_beside_the_others() {
    let mut world = three_at_once(true);
    world.send(0, define(5, "p", 1));
    assert_eq!(world.send(1, spawn(0, 0, 5, &[])), "[spawned]");
    // Its child begins beside the others. The only worker keeps a strand now: a spare one starts.
    assert_eq!(
        world.send(1, park(1, &[0])),
        "[blocked], start 4, [ready], hello"
    );
    assert_eq!(
        world.send(4, exit(&[0], 0)),
        "[finished], resume 1 with value"
    );
    assert_eq!(world.send(2, exit(&[0], 0)), "[finished]");
    assert_eq!(world.send(1, exit(&[0], 0)), "[finished]");
}

#[test]
fn death_of_the_worker_loses_all_of_its_tasks() {
    let mut world = three_at_once(true);
    world.give(0, Input::Closed);
    let lost = ["[lost: its worker ended with exit status 1]"; 3].join(", ");
    let left = ["[left]"; 3].join(", ");
    let seen = world.look();
    assert!(
        seen.starts_with(&format!("end: died, {lost}, [gone], {left}, ")),
        "{seen}"
    );
    assert!(
        seen.ends_with("start 4, [recalled], start 5, [recalled], start 6"),
        "{seen}"
    );
}

#[test]
fn breach_of_the_protocol_fails_all_of_its_tasks() {
    let mut world = three_at_once(true);
    let seen = world.send(0, hello());
    assert_eq!(seen.matches("it sent hello twice]").count(), 3, "{seen}");
    for task in 1..=3 {
        assert_eq!(world.machines.engine.slot_of(attempt_of(task)), None);
    }
}

#[test]
fn worker_that_is_used_up_ends_after_the_last_of_its_tasks() {
    let mut world = three_at_once(false);
    assert_eq!(world.send(1, exit(&[0], 0)), "[retired], [finished]");
    world.send(2, exit(&[0], 0));
    let seen = world.send(3, exit(&[0], 0));
    assert_eq!(seen, "[retired], [finished], end: dismissed, [gone]");
}

#[test]
fn memory_of_the_process_is_compared_with_what_all_tasks_declared() {
    let mut world = World::new(3, with_slots(2, true));
    world.spawn(with_memory(5 << 20));
    world.spawn(with_memory(5 << 20));
    world.look();
    world.machines.memory = 9 << 20;
    assert_eq!(world.wait(60_000_000), "");
    assert_eq!(world.send(1, exit(&[0], 0)), "[finished]");
    let failed = "[failed: it used 9 MiB of memory, but declared 5 MiB]";
    let expected = format!("end: 9437184 bytes, {failed}, [gone], [left]");
    assert_eq!(world.wait(60_000_000), expected);
}

/// What the first of two tasks of a worker is told of itself, which is ended with its process.
fn overdrawn(action: u64, tag: u32) -> Input {
    Input::Overdrawn(Box::new(Overdrawn {
        task: Name::of_root(b"test").spawn(action),
        tag,
        message: "it wrote too much".to_string(),
        hint: "write less".to_string(),
    }))
}

#[test]
fn task_without_room_fails_with_its_process_and_those_beside_it_run_again() {
    let mut world = World::new(2, with_slots(2, true));
    world.spawn(task());
    world.spawn(task());
    world.look();
    world.give(0, overdrawn(0, 2));
    world.give(0, overdrawn(2, 1));
    assert_eq!(world.look(), "", "none of its attempts");
    world.give(0, overdrawn(0, 1));
    let (failed, lost) = (
        "[failed: it wrote too much]",
        "[lost: its worker ended with exit status 1]",
    );
    let next = "[ready], hello, [recalled], define 0, start 3";
    assert_eq!(
        world.look(),
        format!("end: overdrawn, {failed}, {lost}, [gone], [left], [left], {next}")
    );
}

#[test]
fn number_of_slots_is_bounded() {
    let hello = with_slots(u32::MAX, true);
    let mut world = World::new(2000, hello);
    for _ in 0..1100 {
        world.spawn(task());
    }
    let seen = world.look();
    assert_eq!(
        seen.matches("[ready]").count(),
        2,
        "a second worker was started"
    );
}
