//! Starts that a worker receives before their time.

use ciel_protocol::wire::{GiveBack, WorkerMessage};
use ciel_workers::Input;

use super::messages::*;
use super::world::{World, hello, task};

/// Worker 0 runs the task 2, and has received the starts of tasks 3, 4 and 5; three more are ready.
fn three_ahead() -> World {
    let mut hello = hello();
    hello.features.push("ahead".to_string());
    let mut world = World::new(1, hello);
    for _ in 1..=8 {
        world.spawn(task());
    }
    world.look();
    assert_eq!(
        world.send(1, exit(&[0], 0)),
        "[finished], start 2, start 3, start 4, start 5"
    );
    world
}

#[test]
fn worker_continues_with_the_start_that_it_names() {
    let mut world = three_ahead();
    assert_eq!(world.send(2, exit(&[0], 3)), "[finished], start 6");
    assert_eq!(world.send(3, construct(0, 0, &[])), "[constructed]");
}

#[test]
fn message_that_is_not_the_last_one_of_its_worker_brings_no_further_starts() {
    let mut world = three_ahead();
    let message = WorkerMessage {
        tag: 2,
        kind: Some(exit(&[0], 3)),
    };
    let sent = Input::Message {
        message: Box::new(message),
        is_last: false,
    };
    world.give(0, sent);
    assert_eq!(world.look(), "[finished]");
    assert_eq!(world.send(3, exit(&[0], 4)), "[finished], start 6");
}

#[test]
fn start_that_is_given_back_begins_later_with_another_tag() {
    let mut world = three_ahead();
    assert_eq!(world.send(0, GiveBack { tags: vec![3] }), "[3 returned]");
    let seen = world.send(2, exit(&[0], 0));
    assert!(seen.starts_with("[finished], start 6"), "{seen}");
    assert_eq!(world.send(3, construct(0, 0, &[])), "");
}

#[test]
fn task_that_was_cancelled_before_its_worker_continued_with_it_is_stopped() {
    let mut world = three_ahead();
    assert_eq!(world.cancel(3), "");
    assert_eq!(
        world.send(2, exit(&[0], 3)),
        "[finished], cancel 3, interrupt"
    );
    let seen = world.send(3, error());
    assert!(seen.starts_with("[left], start 6"), "{seen}");
}

#[test]
fn worker_without_the_feature_receives_no_start_before_its_time() {
    let mut world = World::new(1, hello());
    for _ in 1..=8 {
        world.spawn(task());
    }
    world.look();
    assert_eq!(world.send(1, exit(&[0], 0)), "[finished], start 2");
}
