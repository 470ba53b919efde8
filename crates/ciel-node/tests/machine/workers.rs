//! Workers: how many there are, and the strands that they keep. Read next: `held`.

use ciel_model::{Class, Pool, TaskKey, limits};
use ciel_node::{Event, Kept, WorkerKey};

use super::world::{RAN_US, ROOT, World, attempt_of, cores_of};

#[test]
fn task_made_ready_by_one_that_ends_gets_its_worker() {
    // A chain of tasks went from worker to worker, and each link had to wake the other process.
    let mut world = World::new(2, false);
    assert_eq!(world.pooled(1, "p"), "start0(p)");
    assert_eq!(world.ready(0), "1:worker0");
    assert_eq!(world.pooled(2, "p"), "start1(p)");
    assert_eq!(world.ready(1), "2:worker1");
    assert_eq!(world.left(1), "");
    let offered = world.offered(3, Class::Pooled(Pool::new("p", 1)), cores_of(1));
    let left = Event::TaskLeft {
        attempt: attempt_of(2),
        kept: Kept::Nothing,
    };
    assert_eq!(world.tell_all([offered, left]), "3:worker1");
}

#[test]
fn process_is_placed_behind_tasks_that_only_wait_for_a_worker() {
    let mut world = World::new(2, false);
    assert_eq!(world.pooled(5, "p"), "start0(p)");
    assert_eq!(world.pooled(6, "p"), "start1(p)");
    assert_eq!(world.pooled(3, "p"), "");
    assert_eq!(world.process(7, 1), "7:process");
    assert_eq!(world.pooled(4, "p"), "");
    assert_eq!(world.ready(0), "3:worker0");
    assert_eq!(world.left(7), "");
    assert_eq!(world.ready(1), "4:worker1");
}

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
    assert_eq!(world.pooled(2, "py"), "start1(py) 2:worker0");
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
        "cancel0(1)"
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
        "cancel0(1)"
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
fn task_of_a_kind_that_finds_no_room_gets_a_worker_beside_those_that_keep_strands() {
    // One slot allows three workers. When each kept a strand that waited for a task of a fourth
    // kind, that one could never start and the job never ended; then one of the strands was
    // replayed although nothing had failed.
    let mut world = World::new(1, false);
    for (task, executor) in [(1, "a"), (2, "b"), (3, "c")] {
        world.pooled(task, executor);
        world.ready(task - 1);
        world.parked(task);
    }
    assert_eq!(world.pooled(4, "d"), "start3(d)");
    assert_eq!(world.ready(3), "4:worker3");
    assert_eq!(world.pooled(5, "d"), "");
    assert_eq!(world.left(4), "5:worker3");
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
fn strand_of_a_pure_task_goes_on_elsewhere_when_waiting_would_cost_more() {
    let mut world = World::pair();
    assert_eq!(world.parked(1), "");
    assert_eq!(world.parked(2), "");
    for (task, words) in [(3, "start2(py) 3:worker1"), (4, "4:worker0")] {
        assert_eq!(world.pooled(task, "py"), words);
    }
    world.ready(2);
    world.left(3);
    assert_eq!(world.resume_pure(1, "py"), "");
    let patience = RAN_US + limits::RESUME_PATIENCE_US;
    assert_eq!(world.node.next_deadline(), Some(patience));
    world.now = patience;
    assert_eq!(world.tell(Event::Ticked), "drop0(1) lost1 1:worker2");
    assert_eq!(world.node.next_deadline(), None);
}

#[test]
fn new_task_goes_to_a_worker_that_keeps_nothing_and_a_spare_one_is_started() {
    let mut world = World::pair();
    world.parked(1);
    assert_eq!(world.pooled(3, "py"), "start2(py) 3:worker0");
    world.left(2);
    assert_eq!(world.pooled(4, "py"), "4:worker1");
    world.ready(2);
    world.left(3);
    assert_eq!(world.pooled(5, "py"), "5:worker2");
    world.parked(5);
    world.parked(4);
    // Four workers are the most for two slots.
    assert_eq!(world.pooled(6, "py"), "start3(py) 6:worker1");
    assert_eq!(world.pooled(7, "py"), "7:worker0");
    world.ready(3);
    world.parked(6);
    assert_eq!(world.pooled(8, "py"), "8:worker3");
    world.parked(7);
    world.parked(8);
    assert_eq!(world.pooled(9, "py"), "9:worker3");
}

#[test]
fn strand_that_waits_for_the_first_gets_no_new_task_above_it_while_spares_last() {
    let mut world = World::pair();
    world.parked_timely(1);
    assert_eq!(world.pooled(3, "py"), "start2(py)");
    assert_eq!(world.ready(2), "3:worker2");
    world.parked_timely(2);
    assert_eq!(world.pooled(4, "py"), "start3(py)");
    assert_eq!(world.ready(3), "4:worker3");
    world.parked_timely(3);
    world.parked(4);
    // None is left: the one that asks nothing is held up first.
    assert_eq!(world.pooled(5, "py"), "5:worker3");
    assert_eq!(world.pooled(6, "py"), "6:worker0");
}

#[test]
fn task_with_a_limit_begins_where_no_strand_is_kept_while_spares_last() {
    // With one slot it ran above the strand that had spawned it, and when its memory exceeded the
    // limit, the worker was killed with that strand in it.
    let mut world = World::new(1, false);
    world.pooled(1, "py");
    world.ready(0);
    world.parked(1);
    assert_eq!(world.limited(2, "py"), "start1(py)");
    assert_eq!(world.ready(1), "2:worker1");
    world.parked(2);
    assert_eq!(world.limited(3, "py"), "start2(py)");
    assert_eq!(world.ready(2), "3:worker2");
    world.parked(3);
    assert_eq!(world.limited(4, "py"), "4:worker2");
}

#[test]
fn task_with_a_limit_is_not_lent_to_a_worker_that_keeps_a_strand() {
    let mut world = World::new(1, false);
    world.pooled(1, "py");
    world.ready(0);
    world.parked(1);
    assert_eq!(world.pooled(2, "py"), "2:worker0");
    assert_eq!(world.limited(3, "py"), "");
    assert_eq!(world.node.lend(attempt_of(2)), None);
    assert_eq!(world.left(2), "start1(py)");
}

#[test]
fn root_has_a_worker_of_its_own_and_takes_no_core() {
    let mut world = World::new(2, false);
    assert_eq!(world.root(None), "start0(py) start1(py)");
    assert_eq!(world.ready(0), format!("{ROOT}:worker0"));
    assert_eq!(world.pooled(1, "py"), "");
    assert_eq!(world.pooled(2, "py"), "start2(py)");
    assert_eq!(world.ready(1), "1:worker1");
    assert_eq!(world.parked_timely(ROOT), "");
    assert_eq!(world.ready(2), "2:worker2");
    assert_eq!(world.pooled(3, "py"), "");
    // Both cores are busy, and it continues.
    assert_eq!(world.root(Some(u64::MAX)), format!("{ROOT}:worker0"));
    world.left(ROOT);
    assert_eq!(world.left(1), "3:worker1");
    // The worker is one of all others now.
    assert_eq!(world.pooled(4, "py"), "");
    assert_eq!(world.left(3), "4:worker1");
}

/// A root that asked for the results of a list one after the other was switched to for each of
/// them, which took four times as long as to ask for all at once.
#[test]
fn root_lets_ready_tasks_go_on_for_a_moment() {
    let mut world = World::new(2, false);
    world.root(None);
    world.ready(0);
    world.pooled(1, "py");
    world.pooled(2, "py");
    world.ready(1);
    world.ready(2);
    for task in [3, 4] {
        assert_eq!(world.pooled(task, "py"), "");
    }
    world.parked(ROOT);
    assert_eq!(world.root(Some(u64::MAX)), "");
    assert_eq!(world.left(1), "3:worker1");
    let until = limits::ROOT_PATIENCE_US;
    assert_eq!(world.node.next_deadline(), Some(until));
    world.now = until - 1;
    assert_eq!(world.tell(Event::Ticked), "");
    world.now = until;
    assert_eq!(world.tell(Event::Ticked), format!("{ROOT}:worker0"));
    assert_eq!(world.node.next_deadline(), None);
    world.parked(ROOT);
    assert_eq!(world.root(Some(u64::MAX)), "");
    // With the last of the others placed, nobody gains from its waiting.
    assert_eq!(world.left(2), format!("4:worker2 {ROOT}:worker0"));
}

#[test]
fn root_whose_worker_is_gone_goes_on_in_another_one() {
    let mut world = World::new(2, false);
    world.root(None);
    world.ready(0);
    world.parked(ROOT);
    let worker = WorkerKey(0);
    let lost = format!("lost{ROOT}");
    assert_eq!(world.tell(Event::WorkerGone { worker }), lost);
    assert_eq!(world.root(Some(u64::MAX)), "");
    assert_eq!(world.ready(1), format!("{ROOT}:worker1"));
    let worker = WorkerKey(1);
    world.parked(ROOT);
    assert_eq!(world.tell(Event::WorkerGone { worker }), lost);
    assert_eq!(world.root(Some(u64::MAX)), "start2(py) start3(py)");
}

/// The first task of a root waited for a whole start of a worker, after that of the root's.
#[test]
fn worker_for_the_first_task_starts_together_with_that_of_the_root() {
    let mut world = World::new(2, false);
    assert_eq!(world.root(None), "start0(py) start1(py)");
    assert_eq!(world.ready(1), format!("{ROOT}:worker1"));
    assert_eq!(world.pooled(1, "py"), "");
    assert_eq!(world.ready(0), "1:worker0");
}

#[test]
fn on_one_core_only_the_worker_of_the_root_starts() {
    let mut world = World::new(1, false);
    assert_eq!(world.root(None), "start0(py)");
}

/// When a root was replayed of which a live copy was kept, nothing used its worker ever again.
#[test]
fn worker_whose_root_is_not_kept_any_more_is_like_any_other() {
    let mut world = World::new(2, false);
    world.root(None);
    world.ready(0);
    world.parked(ROOT);
    let task = TaskKey(ROOT);
    assert_eq!(
        world.tell(Event::TaskForgotten { task }),
        format!("cancel0({ROOT})")
    );
    assert_eq!(world.root(Some(u64::MAX)), format!("{ROOT}:worker0"));
}

/// The root that ran again was in danger as soon as what had begun inside it had ended.
#[test]
fn root_in_a_worker_with_several_slots_stays_by_itself_when_another_task_leaves() {
    let mut world = World::new(2, false);
    world.root_of("p", None);
    assert_eq!(world.ready_with_slots(0, 2), format!("{ROOT}:worker0"));
    assert_eq!(world.begun(3, ROOT), "");
    assert_eq!(world.taken_over(ROOT, 3), "3:worker0");
    assert_eq!(
        world.root_of("p", Some(u64::MAX)),
        format!("{ROOT}:worker0")
    );
    assert_eq!(world.left(3), "");
    assert!(world.node.has_root_apart(WorkerKey(0)));
}

#[test]
fn with_one_slot_the_root_shares_worker_and_core_with_all_others() {
    let mut world = World::new(1, false);
    assert_eq!(world.root(None), "start0(py)");
    assert_eq!(world.ready(0), format!("{ROOT}:worker0"));
    assert_eq!(world.pooled(1, "py"), "");
    assert_eq!(world.parked_timely(ROOT), "1:worker0");
    assert_eq!(world.root(Some(u64::MAX)), "");
    assert_eq!(world.pooled(2, "py"), "");
    assert_eq!(world.left(1), format!("{ROOT}:worker0"));
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
    // It takes the last slot, above a strand.
    assert_eq!(world.pooled(3, "py"), "start1(py) 3:worker0");
    assert_eq!(world.resume(1, "py"), "");
    assert_eq!(world.left(3), "1:worker0");
}

#[test]
fn worker_with_a_task_to_stop_gets_no_other_before_that_one_has_left() {
    // A task that exceeded its time began again beside its first attempt, in the worker that was
    // killed for that, and counted as lost.
    let mut world = World::new(3, false);
    world.pooled(1, "py");
    assert_eq!(world.ready_with_slots(0, 2), "1:worker0");
    assert_eq!(world.stopping(1), "");
    assert_eq!(world.pooled(2, "py"), "start1(py)");
    assert_eq!(world.left(1), "2:worker0");
}

#[test]
fn strands_whose_worker_has_a_task_to_stop_resume_when_that_one_has_left() {
    let mut world = World::new(3, false);
    world.pooled(1, "py");
    world.ready_with_slots(0, 3);
    world.pooled(2, "py");
    world.pooled(3, "py");
    assert_eq!(world.parked(1), "");
    assert_eq!(world.parked(2), "");
    assert_eq!(world.stopping(3), "");
    assert_eq!(world.resume(1, "py"), "");
    assert_eq!(world.resume(2, "py"), "");
    assert_eq!(world.left(3), "1:worker0 2:worker0");
}
