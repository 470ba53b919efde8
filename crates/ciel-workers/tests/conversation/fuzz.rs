//! Whatever a worker sends: it never panics the engine, and harms no task but its own.

use ciel_engine::Event;
use ciel_graph as graph;
use ciel_model::TaskKey;
use ciel_node::{AttemptKey, Slot, WorkerKey};
use ciel_protocol::wire::{
    Caches, Calls, EndedInPlace, GiveBack, Pong, WorkerMessage, worker_message::Kind,
};
use ciel_protocol::{Decoder, Framing, encode};
use ciel_workers::Input;
use proptest::prelude::*;

use super::messages::*;
use super::world::{World, attempt_of, hello, task};

/// The task of the other worker.
const INNOCENT: AttemptKey = attempt_of(2);

/// A small number, which often means something, or an extreme one.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![30 => 0..4_u32, 1 => Just(u32::MAX), 1 => Just(1 << 31)]
}

/// The index of an action: most often the next one.
fn index(at: u32) -> impl Strategy<Value = u64> {
    let next = u64::from(at);
    prop_oneof![30 => Just(next), 2 => 0..next + 2, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1)]
}

/// A handle for a new object: most often a new one.
fn fresh(at: u32) -> impl Strategy<Value = u32> {
    prop_oneof![30 => Just(at), 1 => number()]
}

fn numbers() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(number(), 0..3)
}

fn action(at: u32) -> BoxedStrategy<Kind> {
    let inputs = prop::collection::vec((number(), 0..4), 0..3);
    prop_oneof![
        (index(at), fresh(at), numbers())
            .prop_map(|(at, handle, with)| construct(at, handle, &with)),
        (index(at), fresh(at), 0..2_u32, inputs)
            .prop_map(|(at, handle, id, inputs)| spawn(at, handle, id, &inputs)),
        (index(at), fresh(at), 0..2_u32).prop_map(|(at, handle, id)| begun(spawn(
            at,
            handle,
            id,
            &[]
        ))),
        (index(at), fresh(at), number())
            .prop_map(|(at, handle, output)| publish(at, handle, output)),
        index(at).prop_map(observed),
        (0..3, index(at)).prop_map(|(sink, after)| write(sink, after)),
        (0..4).prop_map(log),
    ]
    .boxed()
}

fn request(at: u32) -> BoxedStrategy<Kind> {
    prop_oneof![
        (number(), number(), any::<bool>())
            .prop_map(|(request, handle, watch)| open_reference(request, handle, watch)),
        (number(), number()).prop_map(|(request, output)| open_output(request, output)),
        number().prop_map(open_construct),
        (number(), any::<u64>()).prop_map(|(request, length)| open_shared(request, length)),
        (number(), any::<u64>()).prop_map(|(output, bytes)| stream_shared(output, bytes)),
        (number(), index(at), fresh(at))
            .prop_map(|(request, at, handle)| commit(request, at, handle)),
        (number(), index(at), numbers())
            .prop_map(|(request, at, on)| question(request, "done", at, &on)),
    ]
    .boxed()
}

fn last(at: u32) -> BoxedStrategy<Kind> {
    prop_oneof![
        (index(at), numbers()).prop_map(|(after, on)| park(after, &on)),
        (index(at), numbers()).prop_map(|(after, on)| replay(after, &on)),
        (index(at), numbers(), numbers()).prop_map(|(after, on, needs)| save(after, &on, &needs)),
        (index(at), numbers()).prop_map(|(after, on)| timed(after, &on)),
        (index(at), numbers()).prop_map(|(after, on)| rest(after, &on)),
        (index(at), number()).prop_map(|(after, id)| tail_spawn(after, id)),
        (numbers(), 0..3_u32).prop_map(|(outputs, next)| exit(&outputs, next)),
        Just(error()),
    ]
    .boxed()
}

fn about_the_connection() -> BoxedStrategy<Kind> {
    prop_oneof![
        4 => (0..3_u32, 0..3_u32).prop_map(|(id, outputs)| define(id, "p", outputs)),
        2 => numbers().prop_map(|tags| GiveBack { tags }.into()),
        1 => (0..3_u32, any::<u64>()).prop_map(|(definition, count)| EndedInPlace {
            calls: vec![Calls { definition, count: count % 1000 }],
        }
        .into()),
        1 => Just(Pong::default().into()),
        1 => Just(Caches { held: vec!["/etc/passwd".to_string()], dropped: vec![] }.into()),
    ]
    .boxed()
}

/// Any message, most often of a start that the worker has.
fn message(at: u32) -> impl Strategy<Value = WorkerMessage> {
    let tag = prop_oneof![30 => Just(1_u32), 4 => 1..8_u32, 1 => any::<u32>()];
    let kind = prop_oneof![12 => action(at), 4 => request(at), 1 => last(at)];
    let task = (tag, kind);
    let connection = (Just(0), about_the_connection());
    let message = prop_oneof![6 => task, 1 => connection];
    message.prop_map(|(tag, kind)| {
        let kind = Some(kind);
        WorkerMessage { tag, kind }
    })
}

/// Some messages in a row.
fn messages() -> impl Strategy<Value = Vec<WorkerMessage>> {
    (1..40_u32).prop_flat_map(|count| (0..count).map(message).collect::<Vec<_>>())
}

/// Two workers with a task each, of which the second only runs.
fn two_workers() -> World {
    let mut hello = hello();
    hello.features.push("begun".to_string());
    let mut world = World::new(2, hello);
    world.spawn(task());
    world.spawn(task());
    world.look();
    world.send_from(0, 0, define(0, "p", 1));
    world.send_from(0, 0, define(1, "p", 2));
    world
}

/// The attempt that a conversation tells the engine about.
fn about(event: &Event) -> Vec<AttemptKey> {
    let of = |task: &TaskKey, number: &ciel_model::AttemptNumber| AttemptKey {
        task: *task,
        number: *number,
    };
    match event {
        Event::TurnEnded { attempt, .. } => vec![*attempt],
        Event::PrefetchReturned { attempts, .. } => attempts.clone(),
        Event::SpawnedBegun(graph::Event::TaskStepped { task, attempt, .. })
        | Event::Graph(
            graph::Event::TaskStepped { task, attempt, .. }
            | graph::Event::TaskBlocked { task, attempt, .. }
            | graph::Event::TaskWatched { task, attempt, .. }
            | graph::Event::TaskFailed { task, attempt, .. }
            | graph::Event::TaskLost { task, attempt, .. }
            | graph::Event::TaskRecalled { task, attempt },
        ) => vec![of(task, attempt)],
        _ => Vec::new(),
    }
}

/// Gives inputs to the first worker until its conversation is over; the other one must not notice.
fn survive(inputs: impl IntoIterator<Item = Input>) {
    let mut world = two_workers();
    let other = WorkerKey(1);
    for input in inputs {
        if !world.workers.contains_key(&WorkerKey(0)) {
            break;
        }
        world.give(0, input);
        world.give(0, Input::Ticked);
        for (_, event) in world.told.drain(..).filter(|(who, _)| *who != Some(other)) {
            assert!(!about(&event).contains(&INNOCENT), "{event:?}");
        }
        assert!(world.workers.contains_key(&other));
        let slot = world.machines.engine.slot_of(INNOCENT);
        assert_eq!(slot, Some(Slot::Worker(other)));
        assert!(!world.machines.engine.is_stopping(INNOCENT));
    }
    world.look();
    assert_eq!(
        world.send_from(1, 2, exit(&[0], 0)).split(", ").next(),
        Some("[finished]")
    );
}

/// The messages in bytes, of which some are other bytes.
fn decoded(messages: &[WorkerMessage], changes: &[(usize, u8)]) -> Vec<Input> {
    let framing = Framing::LengthPrefixed;
    let encoded = messages
        .iter()
        .map(|message| encode(message, framing).expect("short"));
    let mut bytes: Vec<u8> = encoded.flatten().collect();
    for (at, byte) in changes {
        let at = at % bytes.len().max(1);
        if let Some(old) = bytes.get_mut(at) {
            *old = *byte;
        }
    }
    let mut decoder = Decoder::<WorkerMessage>::with_framing(framing);
    decoder.push(&bytes);
    let mut inputs = Vec::new();
    loop {
        match decoder.take() {
            Ok(Some(message)) => inputs.push(said(message)),
            Ok(None) => return inputs,
            Err(error) => {
                inputs.push(Input::Invalid(error.to_string()));
                return inputs;
            }
        }
    }
}

proptest! {
    #[test]
    fn any_messages_harm_no_task_but_those_of_their_worker(
        messages in messages()
    ) {
        survive(messages.into_iter().map(said));
    }

    #[test]
    fn any_bytes_harm_no_task_but_those_of_their_worker(
        messages in messages(),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6),
    ) {
        survive(decoded(&messages, &changes));
    }
}
