//! Random trees of processes under random schedules: what is taken equals the serial elision.

use std::collections::VecDeque;

use ciel_unmodified::order::{MarkKey, ProcessKey, ProcessOrder, ROOT, Released, StreamKey};
use proptest::prelude::*;

/// What a process does, in its order.
#[derive(Debug, Clone)]
enum Act {
    Write(usize, Vec<u8>),
    Start(Vec<Act>),
}

fn programs() -> impl Strategy<Value = Vec<Act>> {
    let write = (0..2usize, prop::collection::vec(any::<u8>(), 1..5))
        .prop_map(|(stream, bytes)| Act::Write(stream, bytes));
    let leaf = prop::collection::vec(write.clone(), 0..4);
    leaf.prop_recursive(4, 60, 5, move |inner| {
        let act = prop_oneof![write.clone(), inner.prop_map(Act::Start)];
        prop::collection::vec(act, 0..6)
    })
}

/// What the program writes if each child is waited for at once.
fn serial(acts: &[Act], stream: usize, output: &mut Vec<u8>) {
    for act in acts {
        match act {
            Act::Write(to, bytes) if *to == stream => output.extend(bytes),
            Act::Write(..) => {}
            Act::Start(child) => serial(child, stream, output),
        }
    }
}

/// A process that runs: what it has yet to do, and whether its pipes outlive it for a while.
struct Live {
    key: ProcessKey,
    rest: VecDeque<Act>,
    lingers: Vec<StreamKey>,
}

/// Runs the program; `choices` say whose turn it is. The second stream is added after `late` acts.
fn parallel(program: &[Act], choices: &[u8], late: usize) -> [Vec<u8>; 2] {
    let mut order = ProcessOrder::new();
    let first = order.add_stream();
    order.attach(ROOT, first);
    let mut streams = vec![first];
    let mut output = [Vec::new(), Vec::new()];
    let mut live = vec![Live {
        key: ROOT,
        rest: program.to_vec().into(),
        lingers: Vec::new(),
    }];
    let mut turn = 0;
    let needs_second = |act: &Act| matches!(act, Act::Write(1, _));
    while !live.is_empty() {
        let choice = usize::from(choices[turn % choices.len()]) + turn / choices.len();
        let at = choice % live.len();
        if streams.len() == 1 && (turn >= late || live[at].rest.front().is_some_and(needs_second)) {
            streams.push(order.add_stream());
        }
        turn += 1;
        step(&mut order, &streams, &mut live, at);
        for (index, stream) in streams.iter().enumerate() {
            collect(&mut order, *stream, choice, &mut output[index]);
        }
    }
    for (index, stream) in streams.iter().enumerate() {
        collect(&mut order, *stream, 0, &mut output[index]);
        assert!(order.is_done(*stream), "a stream is not done at the end");
    }
    assert_eq!(order.process_count(), 0);
    output
}

/// One act of one process, or one step of its end.
fn step(order: &mut ProcessOrder, streams: &[StreamKey], live: &mut Vec<Live>, at: usize) {
    let process = &mut live[at];
    match process.rest.pop_front() {
        Some(Act::Write(stream, bytes)) => {
            order.attach(process.key, streams[stream]);
            if !process.lingers.contains(&streams[stream]) {
                process.lingers.push(streams[stream]);
            }
            order.write(process.key, streams[stream], bytes);
        }
        Some(Act::Start(child)) => {
            let key = order.start(process.key);
            live.push(Live {
                key,
                rest: child.into(),
                lingers: Vec::new(),
            });
        }
        None if !order.has_ended(process.key) => {
            order.end(process.key);
            if process.key == ROOT {
                order.detach(ROOT, streams[0]);
            }
        }
        None => match process.lingers.pop() {
            Some(stream) => order.detach(process.key, stream),
            None => drop(live.remove(at)),
        },
    }
}

fn collect(order: &mut ProcessOrder, stream: StreamKey, choice: usize, output: &mut Vec<u8>) {
    while let Some(released) = order.take(stream, 1 + choice as u64 % 7) {
        match released {
            Released::Bytes(bytes) => output.extend(bytes),
            other => panic!("nobody spilled or marked: {other:?}"),
        }
    }
}

proptest! {
    #[test]
    fn random_schedule_gives_the_serial_output_of_each_stream(
        program in programs(),
        choices in prop::collection::vec(any::<u8>(), 1..40),
        late in 0..20usize,
    ) {
        let output = parallel(&program, &choices, late);
        for (stream, output) in output.iter().enumerate() {
            let mut expected = Vec::new();
            serial(&program, stream, &mut expected);
            prop_assert_eq!(output, &expected);
        }
    }
}

#[test]
fn child_prints_before_what_its_parent_writes_after_the_start() {
    let mut order = ProcessOrder::new();
    let stream = order.add_stream();
    order.attach(ROOT, stream);
    order.write(ROOT, stream, b"before ".to_vec());
    let child = order.start(ROOT);
    order.attach(child, stream);
    order.write(ROOT, stream, b"after".to_vec());
    let mut output = Vec::new();
    collect(&mut order, stream, 6, &mut output);
    assert_eq!(output, b"before ");
    assert!(order.is_leftmost(child, stream));
    assert!(!order.is_leftmost(ROOT, stream));
    order.write(child, stream, b"child ".to_vec());
    order.end(child);
    collect(&mut order, stream, 6, &mut output);
    assert_eq!(
        output, b"before child ",
        "a pipe of the child is still open"
    );
    order.detach(child, stream);
    collect(&mut order, stream, 6, &mut output);
    assert_eq!(output, b"before child after");
}

#[test]
fn mark_is_reached_when_all_before_it_is_taken() {
    let mut order = ProcessOrder::new();
    let stream = order.add_stream();
    order.attach(ROOT, stream);
    let child = order.start(ROOT);
    order.mark(ROOT, stream, MarkKey(7));
    assert_eq!(order.take(stream, 100), None);
    order.write(child, stream, b"x".to_vec());
    assert_eq!(
        order.take(stream, 100),
        Some(Released::Bytes(b"x".to_vec()))
    );
    assert_eq!(order.take(stream, 100), None);
    order.end(child);
    assert_eq!(order.take(stream, 100), Some(Released::Mark(MarkKey(7))));
}

#[test]
fn ended_process_stays_until_its_children_have_ended() {
    let mut order = ProcessOrder::new();
    let child = order.start(ROOT);
    let grandchild = order.start(child);
    order.end(child);
    let stream = order.add_stream();
    order.attach(grandchild, stream);
    order.write(grandchild, stream, b"late".to_vec());
    order.end(ROOT);
    assert_eq!(order.process_count(), 3);
    order.end(grandchild);
    order.detach(grandchild, stream);
    assert_eq!(order.process_count(), 0);
    assert_eq!(
        order.take(stream, 100),
        Some(Released::Bytes(b"late".to_vec()))
    );
    assert_eq!(order.take(stream, 100), None);
    assert!(order.is_done(stream));
}
