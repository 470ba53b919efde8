//! What each message of a task leads to; of several, the last one.
//!
//! In brackets stands what the engine is told, then what is sent to the worker and shown to people.
//! The task is the first of worker 0: its tag is 1, and it has one output.

use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{
    Caches, Calls, Define, EndedInPlace, GiveBack, Hello, Options, Pong, PoolPolicy, Purity,
};

use super::messages::*;
use super::world::{World, hello};

/// A situation in words, the messages with their tags, and what the last one leads to.
type Row = (&'static str, Vec<(u32, Kind)>, &'static str);

fn check(rows: Vec<Row>) {
    check_worker(&hello(), rows);
}

fn check_worker(hello: &Hello, rows: Vec<Row>) {
    for (situation, messages, expected) in rows {
        let mut world = World::running(hello.clone());
        let mut seen = String::new();
        for (tag, kind) in messages {
            seen = world.send(tag, kind);
        }
        assert_eq!(seen, expected, "{situation}");
    }
}

/// Messages of the task, after which it has spawned one that runs as soon as it waits.
fn after_spawn(last: Kind) -> Vec<(u32, Kind)> {
    let definition = (0, define(5, "p", 1));
    vec![definition, (1, spawn(0, 0, 5, &[])), (1, last)]
}

fn after_construct(last: Kind) -> Vec<(u32, Kind)> {
    vec![(1, construct(0, 0, &[])), (1, last)]
}

#[test]
fn what_a_task_does_reaches_the_engine_or_is_answered() {
    check(vec![
        (
            "construct",
            vec![(1, construct(0, 0, &[]))],
            "[constructed]",
        ),
        ("spawn", after_spawn(spawn(1, 1, 5, &[])), "[spawned]"),
        ("publish", vec![(1, publish(0, 0, 0))], "[published]"),
        ("observed input", vec![(1, observed(0))], "[observed]"),
        (
            "question",
            after_construct(question(1, "done", 1, &[0])),
            "[observed], answer 1: [true]",
        ),
        (
            "cancellation of what is resolved",
            after_construct(question(1, "cancel", 1, &[0])),
            "[blocked], answer 1: []",
        ),
        (
            "cancellation of a child",
            after_spawn(question(1, "cancel", 1, &[0])),
            "[blocked], answer 1: [0]",
        ),
        (
            "look",
            after_construct(open_reference(1, 0, false)),
            "[blocked], answer 1: value",
        ),
        (
            "look at a future",
            after_spawn(open_reference(1, 0, false)),
            "answer 1: future",
        ),
        (
            "watch",
            after_spawn(open_reference(1, 0, true)),
            "[watched]",
        ),
        (
            "open output",
            vec![(1, open_output(1, 0))],
            "answer 1: opened",
        ),
        (
            "commit output",
            vec![(1, open_output(1, 0)), (1, commit(1, 0, 0))],
            "[published]",
        ),
        (
            "commit object",
            vec![(1, open_construct(1)), (1, commit(1, 0, 0))],
            "[constructed]",
        ),
        ("standard output", vec![(1, write(0, 0))], ""),
        (
            "standard error",
            vec![(1, write(1, 0))],
            "log stderr, show \"line\\n\"",
        ),
        ("remark", vec![(1, log(0))], "info \"hm\""),
        (
            "remark for the search of faults",
            vec![(1, log(1))],
            "log log",
        ),
        ("warning", vec![(1, log(2))], "warn \"hm\""),
    ]);
}

#[test]
fn handles_that_are_used_no_more_are_told_before_what_comes_with_them() {
    check(vec![
        (
            "spawn beside handles that are used no more, some of them unknown",
            after_spawn(releasing(spawn(1, 1, 5, &[]), &[0, 7])),
            "[released], [spawned]",
        ),
        (
            "block beside a handle that is used no more",
            after_spawn(releasing(park(1, &[]), &[0])),
            "[released], [blocked], resume 1 with ",
        ),
        (
            "use of a handle after that",
            after_spawn(releasing(spawn(1, 1, 5, &[(0, 0)]), &[0])),
            "[released], [spawned], cancel 1, interrupt",
        ),
    ]);
}

#[test]
fn end_of_a_turn_frees_the_slot_for_the_next_task() {
    check(vec![
        ("exit", vec![(1, exit(&[0], 0))], "[finished]"),
        (
            "exit without its output",
            vec![(1, exit(&[], 0))],
            "[finished]",
        ),
        (
            "exit with a task behind it",
            after_spawn(exit(&[0], 0)),
            "[finished], start 2",
        ),
        (
            "tail-spawn",
            after_spawn(tail_spawn(1, 5)),
            "[delegated], start 2",
        ),
        ("failure", vec![(1, error())], "[failed: no], [left]"),
        ("park", after_spawn(park(1, &[0])), "[blocked], start 2"),
        (
            "park on what is resolved",
            after_construct(park(1, &[0])),
            "[blocked], resume 1 with value",
        ),
        ("replay", after_spawn(replay(1, &[0])), "[blocked], start 2"),
        (
            "save",
            after_spawn(save(1, &[0], &[0])),
            "[blocked], start 2",
        ),
        (
            "limit in time",
            after_spawn(timed(1, &[0])),
            "[blocked], start 2",
        ),
    ]);
}

/// The same after any refusal: the task has failed, and is asked to end.
fn fails(why: &str) -> String {
    format!("[failed: {why}], cancel 1, interrupt")
}

#[test]
fn message_that_is_not_allowed_fails_its_task_alone() {
    let largest = "it sent the index 18446744073709551615 after the index 0";
    for (messages, why) in [
        (vec![(1, construct(u64::MAX, 0, &[]))], largest),
        (vec![(1, spawn(u64::MAX, 0, 5, &[]))], largest),
        (vec![(1, write(0, u64::MAX))], largest),
        (
            vec![(1, construct(0, 0, &[77]))],
            "it used handle 77, which it does not have",
        ),
        (
            vec![(1, open_reference(1, 0, false))],
            "it used handle 0, which it does not have",
        ),
        (
            vec![(1, question(1, "done", 0, &[3]))],
            "it used handle 3, which it does not have",
        ),
        (
            vec![(1, spawn(0, 0, 5, &[]))],
            "it named the definition 5, which it did not send",
        ),
        (
            vec![(1, construct(3, 0, &[])), (1, construct(2, 1, &[]))],
            "it sent the index 3 after the index 4",
        ),
        (
            after_spawn(spawn(1, 1, 5, &[(0, 2)])),
            "it spawned a task with a stream, but its worker and this engine did not agree to",
        ),
        (
            vec![(0, define(5, "none", 1)), (1, spawn(0, 0, 5, &[]))],
            "there is no executor \"none\"",
        ),
        (
            vec![(0, define(5, "p", u32::MAX)), (1, spawn(0, 0, 5, &[]))],
            "it spawned a task with 4294967295 outputs; the maximum is 10000",
        ),
        (vec![(1, publish(0, 0, 1))], "it gave output 1, but has 1"),
        (
            vec![(1, publish(0, 0, 0)), (1, publish(1, 1, 0))],
            "it gave output 0 twice",
        ),
        (
            vec![(1, commit(1, 0, 0))],
            "it committed request 1, which opened no file",
        ),
        (
            vec![
                (0, define(5, "p", 1)),
                (1, spawn(0, 0, 5, &[])),
                (1, open_reference(1, 0, true)),
                (1, open_reference(1, 0, true)),
            ],
            "its request 1 cannot be answered: the number of this request is in use",
        ),
    ] {
        let mut world = World::running(hello());
        let mut seen = String::new();
        for (tag, kind) in messages {
            seen = world.send(tag, kind);
        }
        assert_eq!(seen, fails(why));
    }
}

#[test]
fn children_that_ended_in_place_are_counted_by_function() {
    let mut hello = hello();
    hello.features.push("begun".to_string());
    let mut world = World::running(hello);
    world.send(0, define(5, "p", 1));
    let fib = Define {
        id: 4,
        label: "fib".to_string(),
        executor: "p".to_string(),
        ..Define::default()
    };
    world.send(0, fib);
    let calls = |definition, count| EndedInPlace {
        calls: vec![Calls { definition, count }],
    };
    for (definition, count) in [(4, 2), (5, 1), (4, 40)] {
        world.send(0, calls(definition, count));
    }
    let counted: Vec<_> = world.machines.in_place.clone().into_iter().collect();
    assert_eq!(
        counted,
        [("(unnamed)".to_string(), 1), ("fib".to_string(), 42)]
    );
    let seen = world.send(0, calls(6, 1));
    assert!(seen.contains("definition 6"), "{seen}");
}

#[test]
fn caches_are_told_by_the_paths_of_objects_and_other_paths_are_ignored() {
    let mut hello = hello();
    hello.features.push("caches".to_string());
    let mut world = World::running(hello);
    world.machines.files.insert("/o/a".into(), "four".into());
    world.machines.files.insert("/o/b".into(), "three".into());
    let caches = |held: &[&str], dropped: &[&str]| Caches {
        held: held.iter().map(ToString::to_string).collect(),
        dropped: dropped.iter().map(ToString::to_string).collect(),
    };
    let seen = world.send(0, caches(&["/o/a", "/etc/passwd"], &["/o/b", ""]));
    let (four, five) = (ciel_model::Name(4), ciel_model::Name(5));
    assert_eq!(
        seen,
        format!("[caches {:?}, not {:?}]", [(four, 4)], [five])
    );
}

#[test]
fn caches_without_the_feature_end_the_conversation() {
    let mut world = World::running(hello());
    let seen = world.send(0, Caches::default());
    assert!(seen.contains("without the feature \"caches\""), "{seen}");
}

#[test]
fn task_that_cannot_begin_inside_its_parent_fails_that_one() {
    let mut hello = hello();
    hello.features.push("begun".to_string());
    let child = || begun(spawn(0, 0, 5, &[]));
    let defined = |messages: Vec<Kind>| {
        let messages = messages.into_iter().map(|kind| (1, kind));
        let definition = (0, define(5, "p", 1));
        Vec::from_iter(std::iter::once(definition).chain(messages))
    };
    let unready = begun(spawn(1, 1, 5, &[(0, 0)]));
    for (messages, why) in [
        (
            vec![child(), begun(spawn(1, 1, 5, &[]))],
            "it spawned a second task that has begun before it parked for the first",
        ),
        (
            vec![spawn(0, 0, 5, &[]), unready],
            "it spawned a task that has begun, with an input that has not",
        ),
        (
            vec![child(), question(1, "cancel", 1, &[0])],
            "it did not park after it had spawned a task that has begun",
        ),
    ] {
        let mut world = World::running(hello.clone());
        let mut seen = String::new();
        for (tag, kind) in defined(messages) {
            seen = world.send(tag, kind);
        }
        assert_eq!(seen, fails(why));
    }
    let two_cores = [("cores".to_string(), 2000)].into();
    for other in [
        define(5, "q", 1),
        defined_with(Options {
            resources: two_cores,
            ..Options::default()
        }),
        defined_with(Options {
            timeout_ms: Some(1000),
            ..Options::default()
        }),
        defined_with(Options {
            lazy: true,
            ..Options::default()
        }),
        defined_with(Options {
            purity: Purity::Pure.into(),
            ..Options::default()
        }),
    ] {
        let mut world = World::running(hello.clone());
        world.send(0, other);
        let why = "it spawned a task that has begun, but is not like itself";
        assert_eq!(world.send(1, child()), fails(why));
    }
    for last in [exit(&[0], 0), tail_spawn(1, 5), replay(1, &[0])] {
        let mut world = World::running(hello.clone());
        let mut seen = String::new();
        for (tag, kind) in defined(vec![child(), last]) {
            seen = world.send(tag, kind);
        }
        let why = "it did not park after it had spawned a task that has begun";
        assert!(
            seen.starts_with(&format!("[failed: {why}], [left]")),
            "{seen}"
        );
    }
}

#[test]
fn what_only_the_graph_can_refuse_stops_the_task() {
    check(vec![
        (
            "handle in use",
            after_construct(construct(1, 0, &[])),
            "[constructed], cancel 1, interrupt",
        ),
        (
            "handle that the engine chooses",
            vec![(1, construct(0, u32::MAX, &[]))],
            "[constructed], cancel 1, interrupt",
        ),
        (
            "input that it does not have",
            after_spawn(spawn(1, 1, 5, &[(9, 0)])),
            "[spawned], cancel 1, interrupt",
        ),
        (
            "block on what it does not have",
            vec![(1, park(0, &[0]))],
            "[blocked], drop 1",
        ),
        (
            "successor with more outputs",
            vec![(0, define(5, "p", 2)), (1, tail_spawn(0, 5))],
            "[delegated]",
        ),
    ]);
}

#[test]
fn last_message_that_is_not_allowed_fails_the_task_and_frees_its_slot() {
    check(vec![
        (
            "output twice",
            vec![(1, exit(&[0, 0], 0))],
            "[failed: it gave output 0 twice], [left]",
        ),
        (
            "output that it does not have",
            vec![(1, exit(&[u32::MAX], 0))],
            "[failed: it gave output 4294967295, but has 1], [left]",
        ),
        (
            "tail-spawn after an output",
            vec![
                (0, define(5, "p", 1)),
                (1, publish(0, 0, 0)),
                (1, tail_spawn(1, 5)),
            ],
            "[failed: it handed its outputs on after it had published one of them], [left]",
        ),
        (
            "block without a continuation",
            vec![(1, block(0, &[], None))],
            "[failed: it blocked without a continuation], [left]",
        ),
        (
            "rest of a list that is repeated",
            vec![(1, rest(0, &[0]))],
            "[failed: it waited for the rest of a list, and \
             listed references again], [left], drop 1",
        ),
        (
            "replay for nothing",
            vec![(1, replay(0, &[]))],
            "[failed: it blocked on references that are already resolved], [left]",
        ),
    ]);
}

#[test]
fn request_that_cannot_be_granted_is_answered_and_the_task_continues() {
    check(vec![
        (
            "output that it does not have",
            vec![(1, open_output(1, 1))],
            "answer 1: there is no output 1: the task has 1",
        ),
        (
            "output that is open",
            vec![(1, open_output(1, 0)), (1, open_output(2, 0))],
            "answer 2: output 0 is open or published already",
        ),
        (
            "number in use",
            vec![(1, open_construct(1)), (1, open_construct(1))],
            "answer 1: the number of this request is in use",
        ),
        (
            "unknown question",
            vec![(1, question(1, "moon", 0, &[]))],
            "answer 1: unknown observation \"moon\"; the engine answers \"done\" and \"cancel\"",
        ),
    ]);
}

#[test]
fn worker_without_a_feature_must_not_use_it() {
    let plain = Hello {
        features: vec!["no_scratch".to_string()],
        ..hello()
    };
    check_worker(
        &plain,
        vec![
            (
                "park",
                after_spawn(park(1, &[0])),
                "[failed: it parked, but its worker and this engine did not agree to], [left], \
                 drop 1, start 2",
            ),
            (
                "limit in time",
                after_spawn(timed(1, &[0])),
                "[failed: it set a timeout, but its worker and this engine did not agree to], \
                 [left], drop 1, start 2",
            ),
            (
                "task that has begun",
                after_spawn(begun(spawn(1, 1, 5, &[]))),
                "[failed: it spawned a task that has begun, but its worker and this engine did \
                 not agree to], cancel 1",
            ),
            (
                "watch",
                after_spawn(open_reference(1, 0, true)),
                "answer 1: future",
            ),
            (
                "cancellation without a signal",
                vec![(1, commit(1, 0, 0))],
                "[failed: it committed request 1, which opened no file], cancel 1",
            ),
        ],
    );
    let keeps_nothing = Hello {
        pool: Some(PoolPolicy {
            reuse: true,
            parked_strands_max: 0,
            slots: 1,
        }),
        ..hello()
    };
    check_worker(
        &keeps_nothing,
        vec![(
            "park where nothing can park",
            after_spawn(park(1, &[0])),
            "[failed: it parked where its worker keeps 0 strands at most], [left], drop 1, start 2",
        )],
    );
}

#[test]
fn worker_that_breaks_the_protocol_ends_and_its_task_fails() {
    for (message, what) in [
        ((0, hello().into()), "it sent hello twice"),
        ((0, error()), "`error` came without a tag"),
        (
            (0, define(4096, "p", 1)),
            "it sent the definition 4096; ids are below 4096",
        ),
        (
            (1, exit(&[0], 9)),
            "it continued with a start that it never received",
        ),
    ] {
        let mut world = World::running(hello());
        let failed = format!("[failed: its worker broke the executor protocol: {what}]");
        let expected = format!("end: {what}, {failed}, [gone], [left]");
        assert_eq!(world.send(message.0, message.1), expected);
    }
}

#[test]
fn message_about_nothing_that_runs_changes_nothing() {
    check(vec![
        ("tag of no start", vec![(2, error())], ""),
        (
            "second end",
            vec![(1, exit(&[0], 0)), (1, exit(&[0], 0))],
            "",
        ),
        (
            "request after the end",
            vec![(1, error()), (1, construct(0, 0, &[]))],
            "",
        ),
        (
            "parked strand that acts",
            {
                let mut messages = after_spawn(park(1, &[0]));
                messages.push((1, construct(1, 9, &[])));
                messages
            },
            "",
        ),
        ("pong", vec![(0, Pong::default().into())], ""),
        (
            "start that was never sent",
            vec![(0, GiveBack { tags: vec![1, 7] }.into())],
            "",
        ),
    ]);
}
