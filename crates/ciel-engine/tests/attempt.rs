//! An attempt on its own: what it does becomes events, what it receives is kept. No engine takes
//! part.

use std::sync::Arc;

use bytes::Bytes;
use ciel_engine::{
    Act, Action, At, Attempt, Event, IndexError, Kept, OutputError, Reply, Waited, saved_state,
};
use ciel_graph::{self as graph, Assignment, Continuation, Entry, Output, Step, Wait};
use ciel_model::{
    ActionKey, AttemptNumber, Class, Descriptor, Fact, FactAct, Failure, FailureKind, Form, Handle,
    Label, Name, ObjectKey, Resolution, StrandKey, TaskKey, Value,
};
use ciel_node::AttemptKey;

const RUN: AttemptKey = AttemptKey {
    task: TaskKey(3),
    number: AttemptNumber(1),
};

/// An assignment of a task with two inputs, as the fifth action of its strand.
fn assignment(entry: Entry) -> Assignment {
    Assignment {
        task: RUN.task,
        attempt: RUN.number,
        strand: StrandKey(2),
        label: label("f"),
        position: Name(7),
        next_action: 5,
        next_handle: Handle(2),
        descriptor: Arc::new(descriptor(1)),
        entry,
        streams: Vec::new(),
        ended: None,
    }
}

fn attempt() -> Attempt {
    Attempt::new(&assignment(Entry::Start(Vec::new())))
}

fn label(what: &str) -> Label {
    Label {
        what: what.into(),
        name: Name(9 << 96),
    }
}

fn descriptor(outputs: u32) -> Descriptor {
    Descriptor::plain("e", Class::Coordination, "t", b"t".as_slice())
        .with(|it| it.outputs = outputs)
}

fn value() -> Value<Handle> {
    Value::inline(Form::Json, "7")
}

fn spawn(outputs: u32) -> Action {
    Action::Spawn {
        at: At::Action,
        first: None,
        descriptor: Arc::new(descriptor(outputs)),
    }
}

fn construct(at: At) -> Action {
    let handle = None;
    Action::Construct {
        at,
        handle,
        value: value(),
    }
}

fn observe(at: At) -> Action {
    Action::Observe {
        at,
        kind: "clock".into(),
        value: Bytes::new(),
    }
}

/// The position of a step, and the handle that it says.
fn position(act: &Act) -> (ActionKey, Option<Handle>) {
    let Event::Graph(graph::Event::TaskStepped {
        task,
        attempt,
        step,
    }) = &act.event
    else {
        panic!("a step: {act:?}");
    };
    assert_eq!((*task, *attempt), (RUN.task, RUN.number));
    match step {
        Step::Spawn { action, first, .. } => (ActionKey::action(*action), Some(*first)),
        Step::Construct { at, handle, .. } => (*at, Some(*handle)),
        Step::Input { at, .. } => (*at, None),
        Step::Publish { at, handle, .. } => (*at, Some(*handle)),
        Step::Release { .. } | Step::OpenOutput { .. } | Step::ReadWhole => {
            unreachable!("it is no action")
        }
    }
}

fn end(act: Act) -> graph::Event {
    match act.event {
        Event::TurnEnded {
            attempt: RUN,
            end: Some(end),
        } => end,
        other => panic!("an end: {other:?}"),
    }
}

#[test]
fn actions_and_their_parts_share_one_index_and_take_handles_in_order() {
    let mut attempt = attempt();
    let table = [
        (spawn(3), ActionKey::action(5), Some(2)),
        (construct(At::Part), ActionKey::part(6, 0), Some(5)),
        (observe(At::Part), ActionKey::part(6, 1), None),
        (construct(At::Action), ActionKey::action(6), Some(6)),
        (construct(At::Part), ActionKey::part(7, 0), Some(7)),
        (observe(At::Action), ActionKey::action(7), None),
        (spawn(0), ActionKey::action(8), Some(8)),
        (spawn(1), ActionKey::action(9), Some(8)),
    ];
    for (action, at, first) in table {
        let what = format!("{action:?}");
        let act = attempt.act(action);
        assert_eq!(act.first, first.map(Handle), "{what}");
        assert_eq!(position(&act), (at, first.map(Handle)), "{what}");
    }
}

#[test]
fn output_stands_after_the_actions_before_it_and_is_told_with_the_end() {
    for writes in [false, true] {
        let mut attempt = attempt();
        attempt.act(spawn(1));
        if writes {
            assert_eq!(attempt.write(), 6);
        }
        let outputs = vec![Output::Value(value())];
        let finished = graph::Event::TaskFinished {
            task: RUN.task,
            attempt: RUN.number,
            outputs: outputs.clone(),
            printed: writes,
            audit: None,
        };
        assert_eq!(end(attempt.act(Action::Finish(outputs))), finished);
    }
}

#[test]
fn every_end_leaves_the_slot() {
    let failure = || Failure::new(FailureKind::TaskError, label("f"), "no");
    let (task, number) = (RUN.task, RUN.number);
    let mut attempt = attempt();
    attempt.act(construct(At::Action));
    let tail = graph::Event::TaskTailSpawned {
        task,
        attempt: number,
        descriptor: Arc::new(descriptor(1)),
        after: 6,
        audit: None,
    };
    assert_eq!(
        end(attempt.act(Action::TailSpawn(Arc::new(descriptor(1))))),
        tail
    );
    let failed = graph::Event::TaskFailed {
        task,
        attempt: number,
        failure: Box::new(failure()),
    };
    assert_eq!(end(attempt.act(Action::Fail(failure()))), failed);
    let lost = Some(graph::Event::TaskLost {
        task,
        attempt: number,
        failure: Box::new(failure()),
    });
    let key = RUN;
    assert_eq!(
        attempt.left_with(attempt.lost(failure())),
        Event::TurnEnded {
            attempt: key,
            end: lost
        }
    );
    assert_eq!(
        attempt.left(),
        Event::TurnEnded {
            attempt: key,
            end: None
        }
    );
}

/// The event of a wait for those handles: what is kept, and what it waits for.
fn blocked(attempt: &mut Attempt, on: &[u32], keep: Kept) -> (Option<Vec<Handle>>, Vec<Handle>) {
    let on = on.iter().copied().map(Handle).collect();
    let event = attempt.block(on, Wait::ALL, keep).event(None);
    let Event::Graph(graph::Event::TaskBlocked { kept, on, .. }) = event else {
        panic!("a wait: {event:?}");
    };
    (kept, on)
}

#[test]
fn kept_references_are_numbered_anew_and_new_ones_follow_them() {
    let delivered = |index| Handle(Handle::DELIVERED_MIN + index);
    let kept = vec![Handle(1), Handle(4), delivered(2)];
    let mut attempt = attempt();
    let on = [Handle::DELIVERED_MIN + 2, 1];
    let told = blocked(&mut attempt, &on, Kept::Only(kept.clone()));
    assert_eq!(told, (Some(kept), vec![Handle(2), Handle(0)]));
    let act = attempt.act(spawn(1));
    assert_eq!(act.first, Some(Handle(3)));
}

#[test]
fn saved_strand_finds_its_references_delivered_and_counts_on() {
    let delivered = |index| Handle(Handle::DELIVERED_MIN + index);
    let mut attempt = attempt();
    let keep = Kept::State(b"frames".to_vec(), vec![Handle(1)]);
    let (kept, on) = blocked(&mut attempt, &[0, 1, 0], keep);
    assert_eq!(kept, Some(vec![Handle(1), Handle(0)]));
    assert_eq!(on, [delivered(1), delivered(0), delivered(1)]);
    let act = attempt.act(spawn(1));
    assert_eq!(act.first, Some(Handle(2)));
}

#[test]
fn what_is_not_renumbered_stays_as_it_was() {
    for (keep, how) in [
        (Kept::All, Continuation::Live),
        (Kept::Facts, Continuation::Replay),
    ] {
        let event = attempt()
            .block(vec![Handle(1)], Wait::ALL, keep)
            .event(None);
        let expected = graph::Event::TaskBlocked {
            task: RUN.task,
            attempt: RUN.number,
            kept: None,
            on: vec![Handle(1)],
            wait: Wait::ALL,
            continuation: how,
            checkpoint: None,
        };
        assert_eq!(event, Event::Graph(expected));
    }
}

#[test]
fn state_comes_back_as_it_was_saved_with_whether_the_attempt_has_printed() {
    for prints in [false, true] {
        let mut attempt = attempt();
        if prints {
            attempt.write();
        }
        let checkpoint = attempt.checkpoint(b"state".to_vec(), vec![Handle(0)]);
        assert_eq!(checkpoint.kept, [Handle(0)]);
        let assignment = assignment(Entry::Restore {
            bytes: checkpoint.state,
            answers: Vec::new(),
            facts: Vec::new(),
        });
        let state = saved_state(&assignment.entry);
        assert_eq!(state.as_deref(), Some(&b"state"[..]));
        let finish = Attempt::new(&assignment).act(Action::Finish(Vec::new()));
        let graph::Event::TaskFinished { printed, .. } = end(finish) else {
            panic!("it finished");
        };
        assert_eq!(printed, prints);
    }
}

#[test]
fn attempt_without_saved_state_begins_from_nothing() {
    assert_eq!(saved_state(&Entry::Start(Vec::new())), None);
    let empty = Entry::Restore {
        bytes: Bytes::new(),
        answers: Vec::new(),
        facts: Vec::new(),
    };
    assert_eq!(saved_state(&empty), Some(Bytes::new()));
}

/// A failure of another task, as this one receives it.
fn received(message: &str) -> (Handle, Resolution) {
    let failure = Failure::new(FailureKind::OutOfMemory, label("g"), message);
    (Handle(0), Resolution::Failed(Arc::new(failure)))
}

#[test]
fn failure_is_handed_on_whichever_way_it_was_received() {
    let mut attempt = attempt();
    let task = label("g").to_string();
    assert_eq!(attempt.received().find(&task, "first"), None);
    attempt.enter(Entry::Start(vec![received("first")]));
    attempt.waited(Reply::Continue {
        answers: vec![received("second")],
        ended: None,
    });
    for message in ["first", "second"] {
        let failure = attempt
            .received()
            .find(&task, message)
            .expect("it was received");
        assert_eq!(failure.kind, FailureKind::OutOfMemory);
    }
    assert_eq!(attempt.received().find("f", "first"), None);
}

#[test]
fn wait_is_over_suspended_or_stopped() {
    let mut attempt = attempt();
    let over = Reply::Continue {
        answers: Vec::new(),
        ended: None,
    };
    let (answers, ended) = (Vec::new(), None);
    assert_eq!(attempt.waited(over), Waited::Over { answers, ended });
    assert_eq!(attempt.waited(Reply::Suspended), Waited::Suspended);
    for reply in [Reply::Stopped, Reply::Nothing] {
        assert_eq!(attempt.waited(reply), Waited::Stopped);
    }
}

#[test]
fn replay_lasts_until_the_last_action_that_is_done_again() {
    let constructed = |at| Fact {
        at,
        act: FactAct::Constructed {
            handle: Handle(0),
            object: ObjectKey(1),
        },
    };
    let input = |at| Fact {
        at,
        act: FactAct::Input {
            kind: "clock".into(),
            value: Bytes::new(),
        },
    };
    let facts = vec![
        input(ActionKey::action(5)),
        constructed(ActionKey::part(7, 0)),
        input(ActionKey::action(7)),
    ];
    let mut attempt = attempt();
    assert!(!attempt.is_replaying());
    attempt.enter(Entry::Replay {
        inputs: Vec::new(),
        facts,
        until: 7,
    });
    for _ in 5..7 {
        assert!(attempt.is_replaying());
        attempt.act(observe(At::Action));
    }
    assert!(attempt.is_replaying());
    attempt.act(construct(At::Part));
    assert!(!attempt.is_replaying());
}

#[test]
fn position_that_is_said_is_passed_on_and_counted_from() {
    let mut attempt = attempt();
    let construct_said = Action::Construct {
        at: At::Said(ActionKey::part(7, 2)),
        handle: Some(Handle(20)),
        value: value(),
    };
    let publish = Action::Publish {
        at: At::Said(ActionKey::action(8)),
        handle: Some(Handle(30)),
        index: 0,
        value: value(),
    };
    let table = [
        (construct_said, ActionKey::part(7, 2), Some(20)),
        (publish, ActionKey::action(8), Some(30)),
        (observe(At::Action), ActionKey::action(9), None),
        (construct(At::Part), ActionKey::part(10, 0), Some(2)),
    ];
    for (action, at, first) in table {
        let act = attempt.act(action);
        assert_eq!(position(&act), (at, first.map(Handle)));
    }
    assert_eq!(attempt.write(), 10);
}

#[test]
fn count_of_actions_only_grows() {
    let mut attempt = attempt();
    assert_eq!(attempt.reach(7), Ok(()));
    assert_eq!(attempt.reach(7), Ok(()));
    let (sent, reached) = (6, 7);
    assert_eq!(attempt.reach(6), Err(IndexError { sent, reached }));
    assert_eq!(attempt.write(), 7);
}

#[test]
fn output_is_given_once_and_only_if_there_is_one() {
    let mut attempt = attempt();
    let (output, count) = (1, 1);
    assert!(!attempt.has_given());
    assert_eq!(attempt.give(1), Err(OutputError::Unknown { output, count }));
    assert_eq!(attempt.give(0), Ok(()));
    assert!(attempt.has_given());
    let twice = Err(OutputError::Twice { output: 0 });
    assert_eq!((attempt.may_give(0), attempt.give(0)), (twice, twice));
}
