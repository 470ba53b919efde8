//! Workers: how many there are, and the strands that they keep.

use ciel_model::{Class, Pool, TaskKey, limits};
use ciel_node::{Event, WorkerKey};

use super::world::{RAN_US, World, attempt_of, cores_of, label};

#[test]
fn workers_are_started_together_as_far_as_cores_reach_and_used_again() {
    let mut world = World::new(2, false);
    assert_eq!(world.pooled(1, "py"), "start0(py)");
    assert_eq!(world.pooled(2, "py"), "start1(py)");
    assert_eq!(world.pooled(4, "py"), "");
    assert_eq!(world.ready(0), "1:worker0");
    assert_eq!(world.left(1), "2:worker0");
    assert_eq!(world.left(2), "4:worker0");
    assert_eq!(world.ready(1), "");
    assert_eq!(world.left(4), "");
    assert_eq!(world.pooled(3, "py"), "3:worker0");
}

#[test]
fn parked_strand_goes_on_in_its_worker_and_waits_for_it() {
    let mut world = World::new(2, false);
    world.pooled(1, "py");
    assert_eq!(world.ready(0), "1:worker0");
    assert_eq!(world.parked(1), "");
    assert_eq!(world.pooled(2, "py"), "2:worker0");
    assert_eq!(world.resume(1, "py"), "");
    assert_eq!(world.left(2), "1:worker0");
}

#[test]
fn worker_gone_is_told_for_each_strand_parked_there() {
    let mut world = World::new(1, false);
    world.pooled(1, "py");
    world.ready(0);
    world.parked(1);
    assert_eq!(world.pooled(2, "py"), "2:worker0");
    assert_eq!(
        world.tell(Event::WorkerGone {
            worker: WorkerKey(0)
        }),
        "lost1"
    );
    assert_eq!(world.left(2), "");
    assert_eq!(world.resume(1, "py"), "start1(py)");
    assert_eq!(world.ready(1), "1:worker1");
}

#[test]
fn forgotten_strand_is_dropped_where_it_is_parked() {
    let mut world = World::new(1, false);
    world.pooled(1, "py");
    world.ready(0);
    world.parked(1);
    assert_eq!(
        world.tell(Event::TaskForgotten { task: TaskKey(1) }),
        "drop0(1)"
    );
    assert_eq!(
        world.tell(Event::WorkerGone {
            worker: WorkerKey(0)
        }),
        ""
    );
}

#[test]
fn withdrawn_strand_is_dropped_where_it_is_parked() {
    // Withdrawing forgot the home without a word, so the copy stayed in the worker.
    let mut world = World::new(1, false);
    world.pooled(1, "py");
    world.ready(0);
    world.parked(1);
    assert_eq!(world.pooled(2, "py"), "2:worker0");
    assert_eq!(world.resume(1, "py"), "");
    assert_eq!(
        world.tell(Event::TaskWithdrawn {
            attempt: attempt_of(1)
        }),
        "drop0(1)"
    );
    assert_eq!(world.left(2), "");
}

#[test]
fn idle_worker_of_another_kind_makes_room() {
    let mut world = World::new(1, false);
    for (task, executor) in [(1, "a"), (2, "b"), (3, "c")] {
        world.pooled(task, executor);
        world.ready(task - 1);
        world.left(task);
    }
    assert_eq!(world.pooled(4, "d"), "stop0 start3(d)");
}

#[test]
fn worker_that_keeps_a_strand_gives_way_when_nothing_else_can() {
    // One slot allows three workers. When each kept a strand that waited for a task of a fourth
    // kind, that one could never start and the job never ended.
    let mut world = World::new(1, false);
    for (task, executor) in [(1, "a"), (2, "b"), (3, "c")] {
        world.pooled(task, executor);
        world.ready(task - 1);
        world.parked(task);
    }
    assert_eq!(world.pooled(4, "d"), "lost1 stop0 start3(d)");
    assert_eq!(world.ready(3), "4:worker3");
}

#[test]
fn worker_that_retires_gets_nothing_new_and_goes_on_with_what_it_keeps() {
    let mut world = World::new(1, false);
    let retired = |worker| Event::WorkerRetired {
        worker: WorkerKey(worker),
    };
    world.pooled(1, "py");
    world.ready(0);
    world.parked(1);
    assert_eq!(world.pooled(2, "py"), "2:worker0");
    assert_eq!(world.tell(retired(0)), "");
    assert_eq!(world.left(2), "");
    assert_eq!(world.pooled(3, "py"), "start1(py)");
    assert_eq!(world.ready(1), "3:worker1");
    assert_eq!(world.resume(1, "py"), "");
    assert_eq!(world.left(3), "1:worker0");
}

#[test]
fn workers_that_have_retired_take_no_room_and_are_not_kept_without_bound() {
    let mut world = World::new(1, false);
    let mut told = Vec::new();
    for worker in 0..5 {
        world.pooled(2 * worker, "py");
        world.ready(worker);
        world.parked(2 * worker);
        world.pooled(2 * worker + 1, "py");
        told.push(world.tell(Event::WorkerRetired {
            worker: WorkerKey(worker),
        }));
        world.left(2 * worker + 1);
    }
    assert_eq!(told, ["", "", "", "lost0 stop0", "lost2 stop1"]);
}

#[test]
fn strand_whose_worker_is_busy_goes_on_elsewhere_when_waiting_would_cost_more() {
    let mut world = World::new(2, false);
    world.pooled(1, "py");
    world.pooled(2, "py");
    world.ready(0);
    world.ready(1);
    assert_eq!(world.parked(1), "");
    assert_eq!(world.pooled(3, "py"), "3:worker0");
    assert_eq!(world.left(2), "");
    assert_eq!(world.resume(1, "py"), "");
    let patience = RAN_US + limits::RESUME_PATIENCE_US;
    assert_eq!(world.node.next_deadline(), Some(patience));
    world.now = patience;
    assert_eq!(world.tell(Event::Ticked), "drop0(1) lost1 1:worker1");
    assert_eq!(world.node.next_deadline(), None);
}

#[test]
fn strand_that_cannot_be_replayed_waits_for_its_worker_however_long() {
    let mut world = World::new(2, false);
    world.pooled(1, "py");
    world.pooled(2, "py");
    world.ready(0);
    world.ready(1);
    world.parked(1);
    world.pooled(3, "py");
    world.left(2);
    let resumed = Some(u64::MAX);
    let offered = Event::TaskOffered {
        attempt: attempt_of(1),
        label: label(1, 0),
        class: Class::Pooled(Pool::new("py", 1)),
        resources: cores_of(1),
        resumed,
    };
    assert_eq!(world.tell(offered), "");
    world.now = u64::MAX / 2;
    assert_eq!(world.tell(Event::Ticked), "");
    assert_eq!(world.left(3), "1:worker0");
}

#[test]
fn worker_with_slots_runs_as_many_tasks_at_once() {
    let mut world = World::new(4, false);
    assert_eq!(world.pooled(1, "p"), "start0(p)");
    assert_eq!(world.ready_with_slots(0, 3), "1:worker0");
    assert_eq!(world.pooled(2, "p"), "2:worker0");
    assert_eq!(world.pooled(3, "p"), "3:worker0");
    assert_eq!(world.pooled(4, "p"), "start1(p)");
    assert_eq!(world.left(2), "4:worker0");
}

#[test]
fn no_more_workers_are_started_than_those_with_slots_for_all() {
    let mut world = World::new(4, false);
    world.pooled(1, "p");
    world.ready_with_slots(0, 2);
    assert_eq!(world.pooled(2, "p"), "2:worker0");
    assert_eq!(world.pooled(3, "p"), "start1(p)");
    assert_eq!(world.pooled(4, "p"), "");
    assert_eq!(world.ready_with_slots(1, 2), "3:worker1 4:worker1");
}

#[test]
fn worker_that_runs_something_makes_no_room_for_others() {
    // Two slots of the machine allow four workers.
    let mut world = World::new(2, false);
    world.pooled(1, "a");
    world.ready_with_slots(0, 2);
    for (task, executor) in [(2, "b"), (3, "c"), (4, "d")] {
        world.pooled(task, executor);
        world.ready(task - 1);
        world.left(task);
    }
    assert_eq!(world.pooled(5, "e"), "stop1 start4(e)");
}

#[test]
fn strand_resumes_in_a_slot_of_its_worker_beside_other_tasks() {
    let mut world = World::new(4, false);
    world.pooled(1, "py");
    world.ready_with_slots(0, 2);
    world.pooled(2, "py");
    assert_eq!(world.parked(1), "");
    assert_eq!(world.resume(1, "py"), "1:worker0");
    assert_eq!(world.parked(1), "");
    assert_eq!(world.pooled(3, "py"), "3:worker0");
    assert_eq!(world.resume(1, "py"), "");
    assert_eq!(world.left(3), "1:worker0");
}
