//! Strands that are ready, and wait for the worker that keeps them.

use ciel_model::TaskKey;
use ciel_node::{Event, WorkerKey};

use super::world::{World, attempt_of};

/// Two cores with a worker more: task 4 runs in the worker that keeps strand 1, task 3 elsewhere.
fn above_strands() -> World {
    let mut world = World::pair();
    world.parked(1);
    world.parked(2);
    for task in [3, 4] {
        world.pooled(task, "py");
    }
    world.ready(2);
    world
}

#[test]
fn strand_held_for_its_worker_takes_no_idle_core() {
    // One strand whose worker was busy hid all idle cores of the machine from those who had work
    // for them.
    let mut world = above_strands();
    assert_eq!(world.node.idle_cores(), 0);
    world.left(3);
    assert_eq!(world.resume(1, "py"), "");
    assert_eq!(world.node.held_behind(attempt_of(1)), Some(TaskKey(4)));
    assert_eq!(world.node.idle_cores(), 1);
}

#[test]
fn strand_waits_for_its_worker_however_long() {
    // A strand whose worker was busy was replayed in another one: parents that append a line to a
    // file wrote it twice although nothing had failed.
    let mut world = above_strands();
    world.left(3);
    assert_eq!(world.resume(1, "py"), "");
    assert_eq!(world.node.held_behind(attempt_of(1)), Some(TaskKey(4)));
    assert_eq!(world.node.next_deadline(), None);
    world.now = u64::MAX / 2;
    assert_eq!(world.tell(Event::Ticked), "");
    assert_eq!(world.pooled(0, "py"), "0:worker2");
    assert_eq!(world.left(4), "1:worker0");
}

#[test]
fn twenty_strands_in_one_worker_that_are_ready_at_once_go_on_one_after_the_other() {
    // The worst case: the worker started long before any other, and keeps all of them.
    let mut world = World::new(2, false);
    world.pooled(1, "py");
    world.ready(0);
    for task in 1..20 {
        assert_eq!(world.parked(task), "");
        assert!(world.pooled(task + 1, "py").contains("worker0"));
    }
    world.parked(20);
    for worker in [1, 2] {
        world.ready(worker);
    }
    assert_eq!(world.resume(20, "py"), "20:worker0");
    for task in (1..20).rev() {
        assert_eq!(world.resume(task, "py"), "");
    }
    // Another slot does what else there is.
    assert!(world.pooled(0, "py").starts_with("0:worker"));
    for task in 1..20 {
        let before = if task == 1 { 20 } else { task - 1 };
        assert_eq!(world.left(before), format!("{task}:worker0"));
    }
    world.left(19);
    assert_eq!(world.node.queued(), 0);
}

#[test]
fn withdrawn_strand_lets_the_next_one_of_its_worker_go_first() {
    let mut world = World::new(1, false);
    world.pooled(1, "py");
    world.ready(0);
    world.parked(1);
    world.pooled(2, "py");
    world.parked(2);
    assert_eq!(world.process(0, 1), "0:process");
    for task in [1, 2] {
        assert_eq!(world.resume(task, "py"), "");
    }
    assert_eq!(
        world.tell(Event::TaskWithdrawn {
            attempt: attempt_of(1)
        }),
        "cancel0(1)"
    );
    assert_eq!(world.left(0), "2:worker0");
}

#[test]
fn withdrawn_strand_that_waits_for_a_core_lets_the_one_go_that_was_held_behind_it() {
    let mut world = World::new(1, false);
    world.pooled(0, "other");
    world.ready(0);
    world.parked(0);
    world.pooled(1, "py");
    world.ready(1);
    for task in [1, 2] {
        world.parked(task);
        assert_eq!(
            world.pooled(task + 1, "py"),
            format!("{}:worker1", task + 1)
        );
    }
    for task in [1, 2] {
        assert_eq!(world.resume(task, "py"), "");
    }
    assert_eq!(world.resume(0, "other"), "");
    // The first of the two waits for the core now, the second one for the first.
    assert_eq!(world.left(3), "0:worker0");
    let attempt = attempt_of(1);
    assert_eq!(world.tell(Event::TaskWithdrawn { attempt }), "cancel1(1)");
    assert_eq!(world.left(0), "2:worker1");
}

#[test]
fn strands_that_were_held_for_a_worker_that_is_gone_go_on_elsewhere() {
    let mut world = World::new(1, false);
    world.pooled(1, "py");
    world.ready(0);
    for task in [1, 2] {
        world.parked(task);
        world.pooled(task + 1, "py");
    }
    for task in [2, 1] {
        assert_eq!(world.resume(task, "py"), "");
    }
    let worker = WorkerKey(0);
    assert_eq!(world.tell(Event::WorkerGone { worker }), "lost1 lost2");
    assert_eq!(world.left(3), "start1(py)");
    assert_eq!(world.ready(1), "1:worker1");
    assert_eq!(world.left(1), "2:worker1");
}
