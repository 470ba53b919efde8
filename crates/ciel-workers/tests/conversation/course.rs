//! The course of a conversation: what the engine and time want of it, between two messages.

use ciel_engine::{Caller, Event};
use ciel_graph as graph;
use ciel_model::TaskKey;
use ciel_model::limits::KILL_GRACE_MS;
use ciel_node::{Slot, WorkerKey};
use ciel_protocol::limits::ANSWERS_BYTES_MAX;
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{Audit, Exit, FileRead, Hello, PoolPolicy, TailSpawn, WorkerMessage};
use ciel_workers::{Input, accept};

use super::messages::*;
use super::world::{World, attempt_of, hello, task, with_memory};

#[test]
fn first_message_is_a_hello_that_fits() {
    let refused = |hello: Hello| {
        let unfit = accept("p", WorkerMessage::connection(hello)).expect_err("it does not fit");
        (unfit.message, unfit.refusal.is_some())
    };
    assert!(accept("p", WorkerMessage::connection(hello())).is_ok());
    let other = Hello {
        protocol: 1,
        ..hello()
    };
    let why = "speaks protocol 1, this engine speaks 2";
    assert_eq!(refused(other), (why.to_string(), true));
    let other = Hello {
        executor: "q".to_string(),
        ..hello()
    };
    let why = "identifies itself as \"q\" instead of \"p\"";
    assert_eq!(refused(other), (why.to_string(), true));
    let unfit = accept("p", WorkerMessage::about(1, error())).expect_err("it is no hello");
    assert_eq!(unfit.message, "began with `error` instead of `hello`");
    assert_eq!(unfit.refusal, None);
}

#[test]
fn parked_task_resumes_with_what_it_waited_for() {
    let mut world = World::running(hello());
    world.send(0, define(5, "p", 1));
    world.send(1, spawn(0, 0, 5, &[]));
    assert_eq!(world.send(1, park(1, &[0])), "[blocked], start 2");
    assert_eq!(
        world.send(2, exit(&[0], 0)),
        "[finished], resume 1 with value"
    );
    assert_eq!(world.send(1, exit(&[0], 0)), "[finished]");
}

/// Task 1 has spawned three children and parked for them. They failed with more than a message
/// holds.
fn with_much_behind_three_children() -> World {
    let mut world = World::running(hello());
    world.send(0, define(5, "p", 1));
    for child in 0..3 {
        world.send(1, spawn(child.into(), child, 5, &[]));
    }
    assert_eq!(world.send(1, park(3, &[0, 1, 2])), "[blocked], start 2");
    let long = || error_with("x".repeat(ANSWERS_BYTES_MAX / 2));
    world.send(2, long());
    world.send(3, long());
    let told = world.send(4, long());
    let (_, told) = told.rsplit_once("], ").expect("it failed");
    assert_eq!(told, "resume 1 with error error");
    world
}

/// A task that waited for 200,000 children which had failed was sent their failures in one message
/// of 72 MB. It was longer than a message may be, and the worker was ended for that.
#[test]
fn answers_that_are_more_than_a_message_come_when_they_are_asked_for_again() {
    let mut world = with_much_behind_three_children();
    assert_eq!(
        world.send(1, park(3, &[2])),
        "[blocked], resume 1 with error"
    );
}

/// Only answers of a wait for all were divided: one for the first of such children that had failed,
/// or a replay, ended the worker for a message that was too long.
#[test]
fn references_that_are_more_than_a_message_are_named_in_an_observation_and_left_out_of_a_replay() {
    let mut world = with_much_behind_three_children();
    assert_eq!(
        world.send(1, wait_first(3, &[0, 1, 2])),
        "[blocked], resume 1 with error error future"
    );
    world.send(1, park(3, &[2]));
    world.give(0, Input::Closed);
    let replayed = world.look();
    assert!(
        replayed.ends_with("[recalled], define 0, start 5"),
        "{replayed}"
    );
    world.send_from(1, 0, define(5, "p", 1));
    for child in 0..3 {
        world.send_from(1, 5, spawn(child.into(), child, 5, &[]));
    }
    assert_eq!(
        world.send_from(1, 5, park(3, &[2])),
        "[blocked], resume 5 with error"
    );
}

/// References inside a value are delivered with it, so it cannot be left out of a message.
#[test]
fn value_with_references_is_in_a_file_behind_more_than_a_message() {
    let mut world = World::running(hello());
    world.send(0, define(5, "p", 1));
    world.send(1, spawn(0, 0, 5, &[]));
    world.send(1, spawn(1, 1, 5, &[]));
    world.send(1, construct(2, 2, &[0]));
    world.send(1, park(3, &[0, 1, 2]));
    let long = || error_with("x".repeat(ANSWERS_BYTES_MAX / 2));
    world.send(2, long());
    let told = world.send(3, long());
    assert!(told.ends_with("resume 1 with error error file"), "{told}");
}

/// A task cannot start without an input that it takes by value. Small ones by the ten thousand were
/// more than a message, and the worker was ended for that.
#[test]
fn inputs_by_value_that_are_more_than_a_message_are_in_files() {
    const BYTES: usize = 1000;
    let mut world = World::running(hello());
    world.send(0, define(5, "p", 1));
    world.send(1, construct_of(&[b'x'; BYTES], 0, 0, &[]));
    let inputs = vec![(0, 0); ANSWERS_BYTES_MAX / BYTES + 9];
    world.send(1, spawn(1, 1, 5, &inputs));
    assert_eq!(world.send(1, park(2, &[1])), "[blocked], start 2");
    let mut in_files = world.machines.files.values();
    assert!(in_files.len() >= 9 && in_files.all(|bytes| bytes.len() == BYTES));
}

/// Nothing that a task has observed can be left out of its replay. Of very much the failure said
/// that the worker had broken the protocol, which the engine was about to do.
#[test]
fn replay_of_a_task_that_has_observed_more_than_a_message_fails_and_says_so() {
    let mut world = World::running(hello());
    for action in 0..3 {
        let much = vec![b'x'; ANSWERS_BYTES_MAX];
        world.send(1, observed_as(much, action));
    }
    world.give(0, Input::Closed);
    let seen = world.look();
    let failed =
        "[failed: what it has observed takes 96 MiB, and a replay receives 64 MiB at most]";
    assert!(seen.contains(failed), "{seen}");
}

/// What a worker says that runs tasks inside the ones that spawn them.
fn running_children() -> Hello {
    let mut hello = hello();
    hello.features.push("begun".to_string());
    hello
}

/// Task 1 runs in worker 0, and has spawned task 3, which has begun inside it; task 2 waits.
fn begun_inside() -> World {
    let mut world = World::running(running_children());
    world.spawn(task());
    world.send(0, define(5, "p", 1));
    assert_eq!(world.send(1, begun(spawn(0, 0, 5, &[]))), "[spawned begun]");
    world
}

#[test]
fn task_that_began_inside_its_parent_takes_over_the_slot_when_that_parks() {
    let mut world = begun_inside();
    assert_eq!(world.send(1, spawn(1, 1, 5, &[])), "[spawned]");
    assert_eq!(world.send(1, park(2, &[0])), "[blocked], start 2");
    assert_eq!(
        world.machines.engine.slot_of(attempt_of(3)),
        Some(Slot::Worker(WorkerKey(0)))
    );
    // The parent resumes before the task that waits.
    assert_eq!(
        world.send(2, exit(&[0], 0)),
        "[finished], resume 1 with value"
    );
}

#[test]
fn task_that_began_inside_its_parent_and_is_cancelled_is_the_end_of_its_wait() {
    let mut world = begun_inside();
    assert_eq!(world.cancel(3), "");
    assert_eq!(
        world.send(1, park(1, &[0])),
        "[blocked], resume 1 with error"
    );
    assert_eq!(world.send(1, exit(&[0], 0)), "[finished], start 2");
}

#[test]
fn task_that_began_inside_a_cancelled_one_goes_with_it() {
    let mut world = begun_inside();
    assert_eq!(world.cancel(1), "cancel 1, interrupt");
    assert_eq!(world.send(1, park(1, &[0])), "[left], drop 1, start 2");
    assert!(world.machines.engine.graph().view(TaskKey(3)).is_none());
}

/// The child in place computed for ever and so did the run: its strand had become a task just when
/// the parent was cancelled, and the signal beside `cancel` was not sent.
#[test]
fn what_runs_inside_a_cancelled_task_that_has_parked_is_interrupted() {
    let cancelled = || graph::Event::CancelRequested { task: TaskKey(1) };
    let mut world = begun_inside();
    // The worker hears of it after what it has said before.
    world
        .machines
        .submit(Event::Graph(cancelled()), Caller::Nobody);
    let seen = world.send(1, park(1, &[0]));
    assert_eq!(seen, "[left], drop 1, interrupt, start 2");

    let mut world = World::running(running_children());
    world.spawn(task());
    world.send(0, define(5, "p", 1));
    world
        .machines
        .submit(Event::Graph(cancelled()), Caller::Nobody);
    let sent = said(WorkerMessage {
        tag: 1,
        kind: Some(begun(spawn(0, 0, 5, &[]))),
    });
    world.input(WorkerKey(0), sent);
    let seen = world.send(1, park(1, &[0]));
    assert_eq!(seen, "[left], drop 1, interrupt, start 2");
}

#[test]
fn task_that_began_inside_one_whose_worker_dies_starts_anywhere() {
    let mut world = begun_inside();
    world.give(0, Input::Closed);
    assert!(world.look().contains("[lost: "));
    assert!(world.machines.engine.graph().view(TaskKey(3)).is_some());
}

#[test]
fn parent_that_fails_leaves_what_began_inside_it() {
    let mut world = begun_inside();
    assert_eq!(world.send(1, error()), "[failed: no], [left], start 2");
}

#[test]
fn watched_reference_is_answered_when_it_is_resolved() {
    let mut world = World::new(2, hello());
    world.spawn(task());
    world.look();
    world.send(0, define(5, "p", 1));
    assert_eq!(
        world.send(1, spawn(0, 0, 5, &[])),
        "[spawned], [ready], hello, define 0, start 2"
    );
    world.send(1, open_reference(3, 0, true));
    world.send(1, open_reference(4, 0, true));
    assert_eq!(
        world.send_from(1, 2, exit(&[0], 0)),
        "[finished], [blocked], [blocked], answer 3: value, answer 4: value"
    );
    assert_eq!(world.send(1, open_construct(3)), "answer 3: opened");
}

/// Its children need the core; what it has asked has no index and is no observation.
#[test]
fn task_beneath_the_root_is_not_kept_waiting_until_few_children_are_left() {
    for has_root_apart in [false, true] {
        let mut asking = hello();
        asking.features.push("children".to_string());
        let mut world = World::running(asking);
        world.machines.has_root_apart = has_root_apart;
        world.machines.engine.bound_children(1);
        world.send(0, define(5, "p", 1));
        for action in 0..3 {
            let first = action as u32;
            world.send(1, spawn(action, first, 5, &[]));
        }
        let asked = question(3, "few_children", 0, &[]);
        assert_eq!(world.send(1, asked), "answer 3: ");
        assert_eq!(world.send(1, spawn(3, 3, 5, &[])), "[spawned]");
    }
}

#[test]
fn worker_that_has_not_named_the_feature_is_refused_few_children() {
    let mut world = World::running(hello());
    let answer = world.send(1, question(3, "few_children", 0, &[]));
    assert!(
        answer.starts_with("answer 3: unknown observation"),
        "{answer}"
    );
}

/// Who writes may need the core, and its reader would keep it for ever.
#[test]
fn task_that_takes_a_core_is_not_shown_what_is_not_resolved() {
    let mut streaming = hello();
    streaming.features.push("streams".to_string());
    let mut world = World::running(streaming);
    world.machines.has_root_apart = false;
    world.send(0, define(5, "p", 1));
    world.send(1, spawn(0, 0, 5, &[]));
    assert_eq!(world.send(1, look_on(3, 0)), "answer 3: future");
}

#[test]
fn worker_that_has_not_named_the_feature_is_refused_shared_memory() {
    let mut world = World::running(hello());
    let answer = world.send(1, open_shared(3, 1000));
    assert!(
        answer.starts_with("answer 3: the worker has not"),
        "{answer}"
    );
    assert_eq!(world.send(1, stream_shared(0, 1000)), "");
}

#[test]
fn request_for_shared_memory_is_answered_at_once_and_is_over_then() {
    let mut sharing = hello();
    sharing.features.push("shared".to_string());
    let mut world = World::running(sharing);
    for length in [1000, 1 << 30, 1000] {
        assert_eq!(world.send(1, open_shared(3, length)), "answer 3: opened");
    }
    // The root has no stream, so nobody is to know of it.
    assert_eq!(world.send(1, stream_shared(0, 1000)), "");
}

/// A wait ends all watches, so the end of a stream that is settled meanwhile would not be noticed.
#[test]
fn stream_that_a_task_looks_at_is_settled_although_the_task_has_waited() {
    let mut streaming = hello();
    streaming.features.push("streams".to_string());
    let mut world = World::running(streaming);
    world.send(0, define(5, "p", 1));
    world.send(1, spawn(0, 0, 5, &[]));
    world.send(1, spawn(1, 1, 5, &[]));
    assert_eq!(world.send(1, look_on(3, 0)), "[watched], answer 3: stream");
    let settled = |world: &World| world.text_of("/scratch/1/shown.0");
    assert_eq!(world.send(1, park(2, &[1])), "[blocked], start 2");
    assert_eq!(world.send(2, exit(&[0], 0)), "[finished], start 3");
    assert_eq!(settled(&world), "");
    assert_eq!(
        world.send(3, exit(&[0], 0)),
        "[finished], [watched], resume 1 with value"
    );
    assert_eq!(settled(&world), "settled");
    assert_eq!(world.send(1, look_on(4, 0)), "[blocked], answer 4: value");
}

#[test]
fn stopped_task_has_some_time_to_end_and_is_not_listened_to() {
    let mut world = World::running(hello());
    assert_eq!(world.cancel(1), "cancel 1, interrupt");
    assert_eq!(world.cancel(1), "");
    assert_eq!(world.send(1, construct(0, 0, &[99])), "");
    assert_eq!(world.send(1, error()), "[left]");
    assert_eq!(world.wait(KILL_GRACE_MS * 1000), "");
}

#[test]
fn worker_whose_stopped_task_does_not_end_is_killed() {
    let mut world = World::running(hello());
    world.cancel(1);
    assert_eq!(world.wait(KILL_GRACE_MS * 1000 - 1), "");
    assert_eq!(world.wait(1), "end: overdue, [gone], [left]");
}

#[test]
fn process_that_grows_beyond_what_its_task_declared_ends() {
    let mut world = World::with_task(hello(), with_memory(5 << 20));
    world.machines.memory = 5 << 20;
    assert_eq!(world.wait(0), "");
    world.machines.memory = 9 << 20;
    let failed = "[failed: it used 9 MiB of memory, but declared 5 MiB]";
    let expected = format!("end: 9437184 bytes, {failed}, [gone], [left]");
    assert_eq!(world.wait(60_000_000), expected);
}

#[test]
fn task_whose_worker_dies_is_lost_and_restarts_in_another() {
    let mut world = World::running(hello());
    world.give(0, Input::Closed);
    let lost = "[lost: its worker ended with exit status 1]";
    let next = "[ready], hello, [recalled], define 0, start 2";
    assert_eq!(
        world.look(),
        format!("end: died, {lost}, [gone], [left], {next}")
    );
}

/// The stack of a crash was shown among the messages of the run, and could not be found later.
#[test]
fn last_lines_of_a_worker_that_dies_are_in_the_log_of_its_task() {
    let mut world = World::running(hello());
    world.last_lines = "Fatal Python error: Segmentation fault".to_string();
    world.give(0, Input::Closed);
    let seen = world.look();
    let lost = "[lost: its worker ended with exit status 1]";
    assert!(
        seen.starts_with(&format!("end: died, {lost}, [gone], [left], log stderr, ")),
        "{seen}"
    );
}

#[test]
fn strand_parked_in_a_worker_that_dies_is_replayed_in_another() {
    let mut world = World::running(hello());
    world.send(0, define(5, "p", 1));
    world.send(1, spawn(0, 0, 5, &[]));
    world.send(1, park(1, &[0]));
    world.give(0, Input::Closed);
    world.look();
    assert_eq!(
        world.send_from(1, 3, exit(&[0], 0)),
        "[finished], [recalled], start 4"
    );
}

/// A call into C that did not return after a cancel was ended with its process, and the strands
/// that waited beside it ran a second time without a word.
#[test]
fn strands_that_waited_in_a_worker_that_dies_are_named() {
    let mut world = World::running(hello());
    world.send(0, define(5, "p", 1));
    world.send(1, spawn(0, 0, 5, &[]));
    world.send(1, park(1, &[0]));
    world.give(0, Input::Closed);
    let seen = world.look();
    let warning = "its worker ended with exit status 1 while it waited there; it is replayed from \
                   its start";
    assert!(seen.contains(&format!("warn {warning:?}")), "{seen}");
}

#[test]
fn worker_that_runs_one_task_ends_after_it() {
    let once = Hello {
        pool: Some(PoolPolicy::default()),
        ..hello()
    };
    let mut world = World::running(once);
    let seen = world.send(1, exit(&[0], 0));
    assert_eq!(seen, "[retired], [finished], end: dismissed, [gone]");
}

/// What the worker of a parked strand receives when the task is cancelled, with what it spawned.
fn cancelled_while_parked(hello: Hello) -> String {
    let mut world = World::running(hello);
    world.send(0, define(5, "p", 1));
    world.send(1, spawn(0, 0, 5, &[]));
    world.send(1, park(1, &[0]));
    world.cancel(1)
}

#[test]
fn strand_that_nobody_wants_is_dropped_where_it_is_parked() {
    let seen = cancelled_while_parked(hello());
    assert_eq!(seen, "cancel 2, interrupt, drop 1");
}

#[test]
fn strand_that_is_cancelled_where_it_is_parked_cleans_up_if_its_worker_can() {
    // It was dropped always: no `finally` of a task that waited was ever run.
    let mut hello = hello();
    hello.features.push("unwind".to_string());
    let seen = cancelled_while_parked(hello);
    assert_eq!(seen, "cancel 2, interrupt, cancel 1");
}

/// What a task was seen to do; the digest of what it read has so many bytes.
fn audit(effects: &[&str], digest_bytes: usize) -> Option<Audit> {
    let file = FileRead {
        path: "/t".to_string(),
        length: 7,
        digest: vec![1; digest_bytes].into(),
    };
    Some(Audit {
        effects: effects.iter().map(ToString::to_string).collect(),
        read: vec![file],
    })
}

fn exit_with(audit: Option<Audit>) -> Kind {
    match exit(&[0], 0) {
        Kind::Exit(exit) => Kind::Exit(Exit { audit, ..exit }),
        other => other,
    }
}

#[test]
fn what_a_task_was_seen_to_do_comes_with_its_end() {
    let tail = || match tail_spawn(0, 0) {
        Kind::TailSpawn(tail) => Kind::TailSpawn(TailSpawn {
            audit: audit(&["wrote"], 32),
            ..tail
        }),
        other => other,
    };
    for (last, expected) in [
        (exit_with(None), "[finished]"),
        (
            exit_with(Some(Audit::default())),
            "[finished with () and read]",
        ),
        (
            exit_with(audit(&["wrote"], 32)),
            "[finished with (wrote) and read /t:7]",
        ),
        (
            exit_with(audit(&[], 31)),
            "[failed: it read /t, and sent no digest of that], [left]",
        ),
        (tail(), "[delegated with (wrote) and read /t:7], start 2"),
    ] {
        let mut world = World::running(hello());
        world.send(0, define(0, "p", 1));
        assert_eq!(world.send(1, last), expected);
    }
}
