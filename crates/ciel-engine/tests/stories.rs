//! One event, its reply and all of its effects: a story for each rule of the engine.

#![allow(missing_docs)]

mod backpressure;
mod children;
mod house;
mod pairs;
mod processes;
mod room;

use std::ops::RangeInclusive;

use ciel_engine::{Alive, Caller, Event};
use ciel_graph as graph;
use ciel_model::{ActionKey, Form, Handle, Value};
use ciel_node::WorkerKey;
use house::{House, ROOT, attempt_of, failure, finished, on_cores, pooled, script, spawn, worker};

#[test]
fn task_made_ready_by_one_that_ends_begins_in_its_slot_with_the_reply() {
    let mut house = House::with_worker(1);
    assert_eq!(house.spawn(pooled(&[])), "");
    assert_eq!(house.spawn(pooled(&[0])), "");
    // Task 2 comes first in serial order, though task 3 was made ready by the one that ends.
    assert_eq!(house.exit(1, None), "begin 2");
    assert_eq!(house.exit(2, None), "begin 3");
    assert_eq!(house.exit(3, None), "");
}

#[test]
fn task_that_begins_without_its_workers_call_is_sent_to_the_worker() {
    let mut house = House::with_worker(1);
    assert_eq!(house.exit(1, None), "");
    assert_eq!(house.spawn(pooled(&[])), "start 2 in worker0");
}

#[test]
fn chain_of_quick_tasks_is_prefetched_and_followed() {
    let mut house = House::with_worker(1);
    for input in 0..3 {
        assert_eq!(house.spawn(pooled(&[input])), "");
    }
    assert_eq!(house.exit(1, None), "begin 2 ahead 3 4");
    assert_eq!(house.exit(2, Some(3)), "begin 3");
    assert_eq!(house.exit(3, Some(4)), "begin 4");
    assert_eq!(house.exit(4, None), "");
}

#[test]
fn worker_receives_no_more_starts_while_it_has_enough() {
    // It received one with each task that ended, for which home and site took as long as for many.
    let mut house = House::with_worker(1);
    for _ in 0..100 {
        assert_eq!(house.spawn(pooled(&[])), "");
    }
    assert_eq!(house.exit(1, None), begin_ahead(2, 3..=34));
    for task in 2..=16 {
        let next = format!("begin {}", task + 1);
        assert_eq!(house.exit(task, Some(task + 1)), next);
    }
    assert_eq!(house.exit(17, Some(18)), begin_ahead(18, 35..=50));
}

#[test]
fn worker_that_has_sent_more_receives_starts_when_its_last_message_says_what_it_needs() {
    // Where a worker ended its tasks faster than the engine heard of it, it was sent further starts
    // when it had begun all others, and could not follow them: each start was sent twice.
    let mut house = House::with_worker(1);
    for _ in 0..100 {
        assert_eq!(house.spawn(pooled(&[])), "");
    }
    assert_eq!(house.exit(1, None), begin_ahead(2, 3..=34));
    for task in 2..=32 {
        let next = format!("begin {}", task + 1);
        assert_eq!(house.exit_with_more(task, task + 1), next);
    }
    assert_eq!(house.exit_with_more(33, 34), "begin 34");
    assert_eq!(house.exit(34, None), begin_ahead(35, 36..=67));
    for task in 35..=59 {
        let next = format!("begin {}", task + 1);
        assert_eq!(house.exit_with_more(task, task + 1), next);
    }
    assert_eq!(house.exit(60, Some(61)), begin_ahead(61, 68..=84));
}

fn begin_ahead(task: u64, ahead: RangeInclusive<u64>) -> String {
    let ahead: Vec<String> = ahead.map(|task| task.to_string()).collect();
    format!("begin {task} ahead {}", ahead.join(" "))
}

#[test]
fn nothing_is_prefetched_after_a_task_that_took_long() {
    let mut house = House::with_worker(1);
    for input in 0..2 {
        assert_eq!(house.spawn(pooled(&[input])), "");
    }
    house.now = 2000;
    assert_eq!(house.exit(1, None), "begin 2");
    assert_eq!(house.exit(2, None), "begin 3");
}

/// A wait for the first of several, after four spawns.
const FIRST_OF: graph::Wait = graph::Wait {
    until: graph::Until::First,
    at: ActionKey {
        action: 4,
        part: None,
    },
    ..graph::Wait::ALL
};

/// A worker with a task that has spawned four and waits for one of them, as `wait` says.
fn strand_in_worker(on: u32, wait: graph::Wait) -> House {
    let mut house = House::with_worker(1);
    for action in 0..4 {
        assert_eq!(house.step(attempt_of(1), spawn(action, pooled(&[]))), "");
    }
    let replied = house.wait(attempt_of(1), on, wait, worker(0, None));
    assert_eq!(replied, "begin 2");
    house
}

#[test]
fn nothing_is_prefetched_after_a_task_whose_end_resumes_a_strand_of_its_worker() {
    // Task 4 followed task 3 in the worker, took long, and held up task 1, which was ready.
    let mut house = strand_in_worker(1, graph::Wait::ALL);
    assert_eq!(house.exit(2, None), "begin 3");
    assert_eq!(house.exit(3, None), "begin 1");
    let mut house = strand_in_worker(2, graph::Wait::ALL);
    assert_eq!(house.exit(2, None), "begin 3 ahead 4");
    assert_eq!(house.exit(3, Some(4)), "begin 4");
    assert_eq!(house.exit(4, None), "begin 1");
}

#[test]
fn nothing_is_prefetched_into_a_worker_that_keeps_a_strand_with_a_question_of_time() {
    // Strands that waited for the first of several resumed after prefetched tasks.
    let mut house = strand_in_worker(3, FIRST_OF);
    assert_eq!(house.exit(2, None), "begin 3");
}

#[test]
fn task_that_has_begun_in_its_spawner_takes_over_the_slot_when_that_waits() {
    let mut house = House::with_worker(2);
    assert_eq!(house.spawn_begun(attempt_of(1), 0), "");
    // Another task finds another worker; nothing else gets the one that has begun.
    assert_eq!(house.spawn(pooled(&[])), "start worker1");
    assert_eq!(house.ready(1), "start 3 in worker1");
    assert_eq!(house.block(attempt_of(1), 0, worker(0, None)), "begin 2");
    assert_eq!(house.exit(2, None), "begin 1");
    assert_eq!(house.exit(1, None), "");
}

#[test]
fn task_that_has_begun_goes_before_all_that_is_ready() {
    let mut house = House::with_worker(1);
    assert_eq!(house.spawn(pooled(&[])), "");
    assert_eq!(house.spawn_begun(attempt_of(1), 0), "");
    assert_eq!(house.block(attempt_of(1), 0, worker(0, None)), "begin 3");
    assert_eq!(house.exit(3, None), "begin 1");
    assert_eq!(house.exit(1, None), "begin 2");
}

#[test]
fn task_that_has_begun_is_an_ordinary_one_when_its_spawner_ends_or_is_lost() {
    let mut house = House::with_worker(1);
    assert_eq!(house.spawn_begun(attempt_of(1), 0), "");
    assert_eq!(house.exit(1, None), "begin 2");

    let mut house = House::with_worker(1);
    assert_eq!(house.spawn_begun(attempt_of(1), 0), "");
    let worker = WorkerKey(0);
    assert_eq!(house.tell(Event::WorkerGone { worker }), "");
    let end = Some(graph::Event::TaskLost {
        task: attempt_of(1).task,
        attempt: attempt_of(1).number,
        failure: Box::new(failure("gone")),
    });
    let attempt = attempt_of(1);
    assert_eq!(
        house.tell(Event::TurnEnded { attempt, end }),
        "start worker1"
    );
    assert_eq!(house.ready(1), "start 1 in worker1");
}

#[test]
fn task_that_has_begun_is_cancelled_alone_or_with_its_spawner() {
    let mut house = House::with_worker(1);
    assert_eq!(house.spawn_begun(attempt_of(1), 0), "");
    assert_eq!(house.cancel(2), "drop script 2");
    assert_eq!(
        house.block(attempt_of(1), 0, worker(0, None)),
        "continue with 1"
    );

    let mut house = House::with_worker(1);
    assert_eq!(house.spawn_begun(attempt_of(1), 0), "");
    assert_eq!(house.cancel(1), "stop 1 in worker0, drop script 2");
    assert_eq!(house.block(attempt_of(1), 0, worker(0, None)), "stopped");
}

#[test]
fn ready_tasks_are_lent_in_shares_and_given_back() {
    let mut house = House::with_worker(1);
    for _ in 0..5 {
        assert_eq!(house.spawn(pooled(&[])), "");
    }
    // Four wait when task 2 has begun; a worker gets half of them.
    assert_eq!(house.exit(1, None), "begin 2 ahead 3 4");
    let event = Event::PrefetchReturned {
        worker: WorkerKey(0),
        attempts: vec![attempt_of(3)],
    };
    assert_eq!(house.tell(event), "");
    assert_eq!(house.exit(2, None), "begin 3 ahead 4");
}

#[test]
fn follower_that_was_cancelled_meanwhile_is_stopped_before_the_slot_is_free() {
    let mut house = House::with_worker(1);
    for _ in 0..3 {
        assert_eq!(house.spawn(pooled(&[])), "");
    }
    assert_eq!(house.exit(1, None), "begin 2 ahead 3");
    assert_eq!(house.cancel(3), "drop script 3");
    assert_eq!(house.exit(2, Some(3)), "follower stopped");
    // Task 3 is out of the worker: the slot of task 2 is free only now.
    assert_eq!(house.leave(2), "begin 4");
}

#[test]
fn start_behind_a_task_that_was_stopped_goes_back_to_the_queue() {
    // The worker continued with the start, its message was lost, and the task was never offered
    // again.
    let mut house = House::with_worker(1);
    for _ in 0..3 {
        assert_eq!(house.spawn(pooled(&[])), "");
    }
    assert_eq!(house.exit(1, None), "begin 2 ahead 3");
    assert_eq!(house.cancel(2), "stop 2 in worker0");
    assert_eq!(house.leave(2), "begin 3");
}

#[test]
fn start_that_its_worker_never_got_to_goes_to_another_when_the_worker_is_gone() {
    let mut house = House::with_worker(1);
    for _ in 0..3 {
        assert_eq!(house.spawn(pooled(&[])), "");
    }
    assert_eq!(house.exit(1, None), "begin 2 ahead 3");
    let worker = WorkerKey(0);
    assert_eq!(house.tell(Event::WorkerGone { worker }), "");
    let end = Some(graph::Event::TaskLost {
        task: attempt_of(2).task,
        attempt: attempt_of(2).number,
        failure: Box::new(failure("gone")),
    });
    let lost = Event::TurnEnded {
        attempt: attempt_of(2),
        end,
    };
    assert_eq!(house.tell(lost), "start worker1");
    assert_eq!(house.ready(1), "start 2 in worker1");
}

#[test]
fn retired_worker_gets_neither_tasks_nor_starts() {
    let mut house = House::with_worker(1);
    assert_eq!(house.spawn(pooled(&[])), "");
    let worker = WorkerKey(0);
    assert_eq!(house.tell(Event::WorkerRetired { worker }), "");
    assert_eq!(house.exit(1, None), "start worker1");
}

#[test]
fn task_that_no_machine_of_this_size_can_run_fails_without_having_begun() {
    let mut house = House::new(1);
    assert_eq!(house.spawn(on_cores(2, pooled(&[]))), "");
    assert_eq!(house.engine.graph().counts().failed, 1);
    assert_eq!(house.block(ROOT, 0, Caller::Thread), "continue with 1");
}

#[test]
fn thread_that_comes_too_late_for_a_task_gets_nothing() {
    let mut house = House::new(2);
    assert_eq!(house.spawn(script()), "offer 1");
    assert_eq!(house.cancel(1), "drop script 1");
    assert_eq!(house.take_turn(1), "");
    // No task took over its slot: the next one gets it.
    assert_eq!(house.spawn(script()), "offer 2");
}

#[test]
fn script_knows_all_that_is_ready_when_its_thread_comes() {
    let mut house = House::with_worker(2);
    assert_eq!(house.spawn(script()), "offer 2");
    assert_eq!(house.engine.slot_of(attempt_of(2)), None);
    assert_eq!(house.take_turn(2), "begin 2");
}

#[test]
fn preempted_script_that_is_stopped_leaves_at_once() {
    let mut house = House::new(1);
    assert_eq!(house.spawn(script()), "");
    // One thread: the root steps aside for its child.
    assert_eq!(
        house.tell(Event::TaskPreempted { attempt: ROOT }),
        "offer 1"
    );
    let cancelled = graph::Event::JobCancelled {
        failure: Box::new(failure("interrupted")),
    };
    let told = house.tell(cancelled);
    assert!(told.contains("drop script 0"), "{told}");
    assert!(told.contains("job ended"), "{told}");
    assert_eq!(house.take_turn(1), "");
    assert!(house.engine.is_quiet());
}

#[test]
fn preempted_script_has_its_next_turn_when_nothing_else_waits() {
    let mut house = House::new(1);
    let event = Event::TaskPreempted { attempt: ROOT };
    assert_eq!(house.tell(event), "next turn 0");
}

#[test]
fn waiting_task_frees_its_slot_and_what_begins_there_is_the_reply() {
    let mut house = House::with_worker(1);
    let child = spawn(0, pooled(&[]));
    assert_eq!(house.step(attempt_of(1), child), "");
    assert_eq!(house.block(attempt_of(1), 0, worker(0, None)), "begin 2");
    // The one that waited is ready, and its worker is where its copy is.
    assert_eq!(house.exit(2, None), "begin 1");
}

#[test]
fn wait_for_what_is_ready_keeps_the_slot() {
    let mut house = House::new(1);
    let made = graph::Step::Construct {
        at: ActionKey::action(0),
        handle: Handle(0),
        value: Value::inline(Form::Json, b"1".as_slice()),
    };
    assert_eq!(house.step(ROOT, made), "");
    assert_eq!(house.block(ROOT, 0, Caller::Thread), "continue with 1");
    assert!(house.engine.slot_of(ROOT).is_some());
}

#[test]
fn wait_for_what_the_task_does_not_have_stops_it_and_frees_its_slot() {
    let mut house = House::with_worker(1);
    // The reply says so, and its worker is not requested to stop it once more.
    assert_eq!(house.block(attempt_of(1), 9, worker(0, None)), "stopped");
    assert_eq!(house.engine.slot_of(attempt_of(1)), None);
}

#[test]
fn event_of_an_attempt_that_was_stopped_only_frees_its_slot() {
    let mut house = House::with_worker(1);
    assert_eq!(house.cancel(1), "stop 1 in worker0");
    assert!(house.engine.is_stopping(attempt_of(1)));
    let finished_before = house.engine.graph().counts().finished;
    assert_eq!(house.exit(1, None), "");
    assert_eq!(house.engine.graph().counts().finished, finished_before);
    assert_eq!(house.engine.slot_of(attempt_of(1)), None);
}

#[test]
fn watcher_in_a_worker_is_notified() {
    let mut house = House::with_worker(2);
    let child = spawn(0, pooled(&[]));
    assert_eq!(house.step(attempt_of(1), child), "start worker1");
    assert_eq!(house.ready(1), "start 2 in worker1");
    let watched = graph::Event::TaskWatched {
        task: attempt_of(1).task,
        attempt: attempt_of(1).number,
        handle: Handle(0),
    };
    assert_eq!(house.tell(watched), "");
    let end = Some(finished(attempt_of(2)));
    let ended = Event::TurnEnded {
        attempt: attempt_of(2),
        end,
    };
    assert_eq!(house.ask(ended, worker(1, None)), "notify 1 in worker0");
}

#[test]
fn job_that_has_ended_is_quiet_when_the_last_slot_is_free() {
    let mut house = House::with_worker(1);
    let cancelled = graph::Event::JobCancelled {
        failure: Box::new(failure("interrupted")),
    };
    assert_eq!(house.tell(cancelled), "stop 1 in worker0, job ended");
    let root = Event::TurnEnded {
        attempt: ROOT,
        end: None,
    };
    assert_eq!(house.tell(root), "");
    assert_eq!(house.leave(1), "quiet");
}

#[test]
fn job_from_which_nothing_can_come_any_more_is_a_stall_and_names_what_waits() {
    // A script that was resumed had failed, nothing ran and nothing was ready, and the job stood
    // for ever; no signal ended it.
    let mut house = House::with_worker(1);
    assert_eq!(house.engine.stall(Alive::ALL), None);
    let nobody = Alive {
        threads: false,
        processes: false,
    };
    assert_eq!(house.engine.stall(nobody), None, "a worker runs task 1");
    assert_eq!(house.exit(1, None), "");
    assert_eq!(
        house.engine.stall(Alive::ALL),
        None,
        "the root is in its slot"
    );
    let stall = house.engine.stall(nobody).expect("no thread runs the root");
    assert_eq!((stall.pending, stall.lost), (1, 1));
    let (label, situation) = &stall.first[0];
    assert_eq!(
        (&*label.what, situation),
        ("s", &graph::Situation::Running(0))
    );
    house.leave(0);
    let stall = house.engine.stall(Alive::ALL);
    assert_eq!(stall.map(|stall| (stall.pending, stall.lost)), Some((1, 0)));
}
