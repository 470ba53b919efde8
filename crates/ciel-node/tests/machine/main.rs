//! What the node places where, one situation at a time.

#![allow(missing_docs)]

mod caches;
mod held;
mod lending;
mod memory;
mod pairs;
mod workers;
mod world;

use ciel_model::limits;
use ciel_node::Event;

use world::{World, attempt_of};

#[test]
fn waiting_tasks_are_placed_by_their_newest_labels() {
    let mut world = World::new(1, false);
    assert_eq!(world.process(1, 1), "1:process");
    for task in [5, 6, 7] {
        assert_eq!(world.process(task, 1), "");
    }
    assert_eq!(world.relabeled(5, 90, 2), "");
    assert_eq!(world.relabeled(7, 80, 2), "");
    // One that comes late is older than what is known.
    assert_eq!(world.relabeled(7, 2, 1), "");
    assert_eq!(world.left(1), "6:process");
    assert_eq!(world.left(6), "7:process");
    assert_eq!(world.left(7), "5:process");
}

#[test]
fn freed_core_goes_to_the_earliest_in_serial_order() {
    let mut world = World::new(1, false);
    assert_eq!(world.process(9, 1), "9:process");
    assert_eq!(world.process(5, 1), "");
    assert_eq!(world.process(3, 1), "");
    assert_eq!(world.process(4, 1), "");
    assert_eq!(world.left(9), "3:process");
    assert_eq!(world.left(3), "4:process");
    assert_eq!(world.left(4), "5:process");
}

#[test]
fn scripts_do_not_wait_for_computation() {
    let mut world = World::new(1, false);
    assert_eq!(world.process(1, 1), "1:process");
    assert_eq!(world.script(2), "2:thread");
    assert_eq!(world.script(3), "");
    assert_eq!(world.left(2), "3:thread");
}

#[test]
fn task_larger_than_the_machine_is_refused() {
    let mut world = World::new(2, false);
    assert_eq!(world.process(1, 3), "1:refused");
    assert_eq!(world.node.queued(), 0);
}

#[test]
fn small_task_overtakes_one_that_does_not_fit_but_not_for_ever() {
    let mut world = World::new(2, false);
    assert_eq!(world.process(900, 1), "900:process");
    assert_eq!(world.process(0, 2), "");
    let mut overtook = 0;
    for task in 1..=u64::from(limits::OVERTAKEN_MAX) + 50 {
        if world.process(task, 1).is_empty() {
            break;
        }
        overtook += 1;
        world.left(task);
    }
    assert_eq!(overtook, limits::OVERTAKEN_MAX);
    assert!(world.left(900).starts_with("0:process"));
}

#[test]
fn withdrawn_task_is_passed_over() {
    let mut world = World::new(1, false);
    world.process(1, 1);
    world.process(2, 1);
    world.process(3, 1);
    assert_eq!(
        world.tell(Event::TaskWithdrawn {
            attempt: attempt_of(2)
        }),
        ""
    );
    assert_eq!(world.left(1), "3:process");
}

#[test]
fn task_withdrawn_in_the_instant_of_its_placing_gives_its_place_back() {
    // A task was offered, placed and cancelled in one event of the graph, which therefore never
    // began it: the place was taken for ever.
    let mut world = World::new(1, false);
    assert_eq!(world.process(1, 1), "1:process");
    assert_eq!(world.process(2, 1), "");
    assert_eq!(
        world.tell(Event::TaskWithdrawn {
            attempt: attempt_of(1)
        }),
        "2:process"
    );
}

#[test]
fn serial_mode_runs_one_thing_at_a_time_and_children_first() {
    let mut world = World::new(4, true);
    assert_eq!(world.script(9), "9:thread");
    assert_eq!(world.process(3, 1), "");
    assert_eq!(
        world.tell(Event::TaskPreempted {
            attempt: attempt_of(9)
        }),
        "3:process"
    );
    assert_eq!(world.script(5), "");
    assert_eq!(world.process(7, 4), "");
    assert_eq!(world.left(3), "5:thread");
    assert_eq!(world.left(5), "7:process");
    assert_eq!(world.left(7), "9:turn");
    assert_eq!(world.left(9), "");
}

#[test]
fn preempted_scripts_and_new_ones_go_by_turns() {
    let mut world = World::new(1, false);
    world.script(1);
    world.script(2);
    world.script(3);
    let preempt = |world: &mut World, task| {
        world.tell(Event::TaskPreempted {
            attempt: attempt_of(task),
        })
    };
    let mut turns = Vec::new();
    let mut at = 1;
    for _ in 0..7 {
        let next = preempt(&mut world, at);
        at = next.split(':').next().unwrap().parse().unwrap();
        turns.push(next);
    }
    for task in ["1:", "2:", "3:"] {
        let taken = turns.iter().filter(|turn| turn.starts_with(task)).count();
        assert!(taken >= 2, "{task} {turns:?}");
    }
}

#[test]
fn preempted_script_has_its_turn_although_new_ones_keep_coming() {
    let mut world = World::new(1, false);
    world.script(1);
    world.script(2);
    let attempt = attempt_of(1);
    assert_eq!(world.tell(Event::TaskPreempted { attempt }), "2:thread");
    let mut turns = Vec::new();
    for new in 3..5 {
        assert_eq!(world.script(new), "");
        turns.push(world.left(new - 1));
    }
    assert!(turns.contains(&"1:turn".to_string()), "{turns:?}");
}

#[test]
fn preempted_script_that_ends_loses_its_turn() {
    let mut world = World::new(1, false);
    world.script(1);
    world.script(2);
    assert_eq!(
        world.tell(Event::TaskPreempted {
            attempt: attempt_of(1)
        }),
        "2:thread"
    );
    assert_eq!(world.left(1), "");
    assert_eq!(world.left(2), "");
    assert_eq!(world.node.queued(), 0);
}

#[test]
fn strand_that_has_run_goes_before_tasks_that_have_not_begun() {
    // A strand that waited for the first of twelve tasks heard of it when all twelve had ended: it
    // is after them in serial order.
    let mut world = World::new(1, false);
    world.script(1);
    for task in [2, 3] {
        assert_eq!(world.script(task), "");
    }
    assert_eq!(world.resume_script(9), "");
    assert_eq!(world.resume_script(8), "");
    assert_eq!(world.left(1), "8:thread");
    assert_eq!(world.left(8), "9:thread");
    assert_eq!(world.left(9), "2:thread");
}

#[test]
fn strands_that_ask_for_the_time_again_and_again_do_not_hold_up_others_for_ever() {
    let mut world = World::new(1, false);
    world.script(1);
    world.script(2);
    let (mut now, mut turns) = (1, 0);
    loop {
        // Two strands that poll: one of them is always ready.
        world.resume_script(if now == 8 { 9 } else { 8 });
        let next = world.left(now);
        if next == "2:thread" {
            break;
        }
        now = if next == "8:thread" { 8 } else { 9 };
        turns += 1;
    }
    assert_eq!(turns, limits::OVERTAKEN_MAX);
}

#[test]
fn serial_mode_keeps_the_serial_order_for_strands_that_have_run() {
    let mut world = World::new(1, true);
    world.script(1);
    assert_eq!(world.script(2), "");
    assert_eq!(world.resume_script(9), "");
    assert_eq!(world.left(1), "2:thread");
}
