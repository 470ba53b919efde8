//! Ready tasks that a busy worker begins by itself.

use ciel_model::{Class, Pool};
use ciel_node::{Event, Kept, WorkerKey};

use super::world::{ROOT, World, attempt_of, cores_of};

#[test]
fn lent_task_that_was_relabeled_returns_to_its_new_place_in_the_queue() {
    let mut world = World::new(1, false);
    assert_eq!(world.pooled(1, "p"), "start0(p)");
    assert_eq!(world.ready(0), "1:worker0");
    for task in [2, 3, 4, 5] {
        assert_eq!(world.pooled(task, "p"), "");
    }
    assert_eq!(world.lend(1), Some(2));
    assert_eq!(world.relabeled(2, 9, 1), "");
    assert_eq!(world.returned(2), "");
    assert_eq!(world.left(1), "3:worker0");
}

#[test]
fn lent_task_takes_the_place_of_the_one_before_it() {
    let mut world = World::busy(&[5, 3, 4]);
    assert_eq!(world.lend(1), Some(3));
    assert!(world.node.is_lent(attempt_of(3)));
    assert_eq!(world.followed(1, 3), "3:worker0");
    assert!(!world.node.is_lent(attempt_of(3)));
    assert_eq!(world.left(3), "4:worker0");
    assert_eq!(world.left(4), "5:worker0");
}

#[test]
fn task_that_was_offered_and_begun_at_once_has_the_place_without_a_queue() {
    let mut world = World::busy(&[5]);
    assert_eq!(world.followed(1, 2), "2:worker0");
    assert_eq!(world.left(2), "5:worker0");
    assert_eq!(world.left(5), "");
    assert_eq!(world.node.placed(), 0);
}

#[test]
fn task_that_began_inside_a_strand_takes_over_its_slot_before_what_waits() {
    let mut world = World::busy(&[2]);
    assert_eq!(world.begun(5, 1), "");
    assert!(world.node.is_lent(attempt_of(5)));
    assert_eq!(world.taken_over(1, 5), "5:worker0");
    assert!(world.node.keeps_strands(WorkerKey(0)));
    // The strand resumes where it is kept.
    assert_eq!(world.resume(1, "p"), "");
    assert_eq!(world.left(5), "1:worker0");
    assert_eq!(world.left(1), "2:worker0");
}

#[test]
fn task_that_began_inside_another_goes_to_no_other_worker_before_it_is_returned() {
    let mut world = World::new(2, false);
    world.pooled(1, "p");
    world.pooled(2, "p");
    world.ready(0);
    world.ready(1);
    assert_eq!(world.begun(3, 1), "");
    assert_eq!(world.left(2), "");
    assert_eq!(world.unreserved(3, 1), "3:worker1");
}

/// It was not reserved, since it needs another slot than its spawner; when that ended, it was taken
/// from the worker that it had been lent to, and lent to a second one.
#[test]
fn task_that_began_inside_one_of_another_size_stays_with_the_worker_that_it_is_lent_to() {
    for takes_over in [false, true] {
        let mut world = World::new(3, false);
        let pool = Class::Pooled(Pool::new("p", 1));
        world.offer(1, pool, cores_of(2));
        world.pooled(2, "p");
        assert_eq!(world.ready(0), "1:worker0");
        assert_eq!(world.ready(1), "2:worker1");
        assert_eq!(world.begun(3, 1), "");
        assert_eq!(world.lend(2), Some(3));
        match takes_over {
            true => assert_eq!(world.taken_over(1, 3), ""),
            false => assert_eq!(world.unreserved(3, 1), ""),
        }
        assert!(world.node.is_lent(attempt_of(3)));
        assert_eq!(world.followed(2, 3), "3:worker1");
    }
}

#[test]
fn task_that_began_inside_another_and_was_withdrawn_leaves_the_slot_to_what_waits() {
    let mut world = World::busy(&[2]);
    assert_eq!(world.begun(5, 1), "");
    let attempt = attempt_of(5);
    assert_eq!(world.tell(Event::TaskWithdrawn { attempt }), "");
    assert_eq!(world.taken_over(1, 5), "2:worker0");
}

#[test]
fn returned_task_is_placed_elsewhere_in_its_order() {
    let mut world = World::new(2, false);
    world.pooled(1, "p");
    world.pooled(2, "p");
    world.ready(0);
    world.ready(1);
    world.pooled(3, "p");
    world.pooled(4, "p");
    assert_eq!((world.lend(1), world.lend(1)), (Some(3), Some(4)));
    assert_eq!(world.left(2), "");
    assert_eq!(world.returned(4), "4:worker1");
    assert_eq!(world.returned(3), "");
    assert_eq!(world.left(4), "3:worker1");
    assert_eq!(world.returned(3), "");
}

#[test]
fn lent_tasks_are_ready_again_when_their_worker_is_gone() {
    let mut world = World::busy(&[3, 4, 5]);
    assert_eq!((world.lend(1), world.lend(1)), (Some(3), Some(4)));
    let worker = WorkerKey(0);
    assert_eq!(world.tell(Event::WorkerGone { worker }), "");
    assert_eq!(world.left(1), "start1(p)");
    assert_eq!(world.ready(1), "3:worker1");
    assert_eq!(world.left(3), "4:worker1");
}

#[test]
fn withdrawn_task_that_was_lent_is_not_ready_any_more() {
    let mut world = World::busy(&[3, 4]);
    assert_eq!(world.lend(1), Some(3));
    assert_eq!(
        world.tell(Event::TaskWithdrawn {
            attempt: attempt_of(3)
        }),
        ""
    );
    assert_eq!(world.returned(3), "");
    assert_eq!(world.left(1), "4:worker0");
    assert_eq!(world.node.queued(), 0);
}

#[test]
fn what_needs_something_else_than_the_running_task_is_not_lent() {
    let mut world = World::busy(&[]);
    assert_eq!(world.process(3, 1), "");
    assert_eq!(world.lend(1), None);
    let mut world = World::busy(&[]);
    assert_eq!(world.resume(3, "p"), "");
    assert_eq!(world.lend(1), None);
    let mut world = World::busy(&[]);
    assert_eq!(world.pooled(3, "q"), "");
    assert_eq!(world.lend(1), None);
    assert_eq!(World::busy(&[]).lend(1), None);
}

#[test]
fn task_of_another_size_than_the_running_one_is_not_lent() {
    let mut world = World::pair();
    let pool = Class::Pooled(Pool::new("py", 1));
    assert_eq!(world.offer(3, pool, cores_of(2)), "");
    assert_eq!(world.lend(1), None);
    world.left(1);
    assert_eq!(world.left(2), "3:worker1");
    assert_eq!(world.node.free().millicores, 0);
}

#[test]
fn task_that_was_to_follow_and_is_withdrawn_in_the_same_instant_has_no_place() {
    let mut world = World::busy(&[3, 4]);
    assert_eq!(world.lend(1), Some(3));
    let (attempt, next) = (attempt_of(1), attempt_of(3));
    let kept = Kept::Nothing;
    let followed = Event::TaskFollowed {
        attempt,
        next,
        kept,
    };
    let withdrawn = Event::TaskWithdrawn { attempt: next };
    assert_eq!(world.tell_all([followed, withdrawn]), "4:worker0");
}

#[test]
fn one_worker_is_lent_a_share_of_what_waits_and_a_serial_one_nothing() {
    let waiting: Vec<u64> = (2..42).collect();
    assert_eq!(World::busy(&waiting).node.share(), 20);
    assert_eq!(World::busy(&[2]).node.share(), 0);
    let mut serial = World::new(1, true);
    for task in 1..42 {
        serial.pooled(task, "p");
    }
    assert_eq!(serial.node.share(), 0);
}

#[test]
fn worker_for_which_a_strand_waits_is_lent_nothing() {
    let mut world = World::new(1, false);
    world.pooled(1, "p");
    world.ready(0);
    world.parked(1);
    world.pooled(2, "p");
    for task in 3..9 {
        world.pooled(task, "p");
    }
    assert_eq!(world.lend(2), Some(3));
    assert_eq!(world.resume(1, "p"), "");
    assert_eq!(world.lend(2), None);
    assert_eq!(world.left(2), "1:worker0");
}

/// The slot of a root has no core, so what had begun inside it was taken for a task of another
/// size, and begun a second time elsewhere.
#[test]
fn task_that_began_inside_the_root_goes_on_there_and_nothing_else_does() {
    for other_cores_are_free in [true, false] {
        let mut world = World::new(2, false);
        world.root_of("p", None);
        assert_eq!(world.ready(0), format!("{ROOT}:worker0"));
        if !other_cores_are_free {
            world.pooled(1, "p");
            world.pooled(2, "p");
            assert_eq!(world.ready(1), "1:worker1");
            assert_eq!(world.ready(2), "2:worker2");
        }
        let free = world.node.free().millicores;
        assert_eq!(world.begun(3, ROOT), "");
        assert_eq!(world.taken_over(ROOT, 3), "3:worker0");
        let taken = if other_cores_are_free { 1000 } else { 0 };
        assert_eq!(world.node.free().millicores, free - taken);
        assert_eq!(world.left(3), "");
        assert_eq!(world.node.free().millicores, free);
        assert!(
            !world.node.takes_starts(WorkerKey(0)),
            "the root waits there"
        );
    }
}

/// The root, which takes no core, hid all idle cores from what ran in its worker.
#[test]
fn root_that_waits_for_its_busy_worker_takes_no_idle_core() {
    let mut world = World::new(3, false);
    world.root_of("p", None);
    assert_eq!(world.ready(0), format!("{ROOT}:worker0"));
    assert_eq!(world.begun(3, ROOT), "");
    assert_eq!(world.taken_over(ROOT, 3), "3:worker0");
    assert_eq!(world.root_of("p", Some(u64::MAX)), "");
    assert_eq!(world.node.idle_cores(), 2);
    assert_eq!(world.left(3), format!("{ROOT}:worker0"));
    assert_eq!(world.node.idle_cores(), 3);
}
