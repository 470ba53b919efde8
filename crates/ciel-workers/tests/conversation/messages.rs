//! Messages of workers, as short as tests want them.

use ciel_protocol::wire::block_on::Continuation;
use ciel_protocol::wire::worker_message::Kind;
use ciel_protocol::wire::{
    BlockOn, Commit, Construct, Data, Define, Descriptor, Error, Exit, Failure, Input, Log,
    Observe, OpenConstruct, OpenOutput, OpenReference, OpenShared, Options, Output, Parked,
    Publish, Replay, Saved, Spawn, StreamShared, TailSpawn, Wait, WorkerMessage, Write,
};

fn data(bytes: &'static [u8], references: &[u32]) -> Option<Data> {
    Some(Data {
        data: bytes.into(),
        references: references.to_vec(),
        ..Data::default()
    })
}

/// A construct at an action, under a handle, with references inside.
pub fn construct(action: u64, handle: u32, references: &[u32]) -> Kind {
    construct_of(b"x", action, handle, references)
}

pub fn construct_of(bytes: &'static [u8], action: u64, handle: u32, references: &[u32]) -> Kind {
    let value = data(bytes, references);
    Kind::Construct(Construct {
        value,
        action,
        part: None,
        handle,
    })
}

pub fn define(id: u32, executor: &str, outputs: u32) -> Kind {
    Kind::Define(Define {
        id,
        executor: executor.to_string(),
        outputs,
        ..Define::default()
    })
}

/// Definition 5, of one output, with options.
pub fn defined_with(options: Options) -> Kind {
    Kind::Define(Define {
        id: 5,
        executor: "p".to_string(),
        outputs: 1,
        options: Some(options),
        ..Define::default()
    })
}

fn asked(definition: u32, inputs: &[(u32, i32)]) -> Descriptor {
    let input = |(handle, mode): &(u32, i32)| Input {
        handle: *handle,
        mode: *mode,
        wish: None,
        locality_percent: None,
    };
    Descriptor {
        definition,
        inputs: inputs.iter().map(input).collect(),
        ..Descriptor::default()
    }
}

/// A spawn at an action of a task of a definition, with inputs in their modes.
pub fn spawn(action: u64, handle: u32, definition: u32, inputs: &[(u32, i32)]) -> Kind {
    Kind::Spawn(Spawn {
        tasks: vec![asked(definition, inputs)],
        action,
        handle,
        released: Vec::new(),
        begun: false,
    })
}

/// The same of a task that has begun inside the one that spawns it.
pub fn begun(kind: Kind) -> Kind {
    match kind {
        Kind::Spawn(spawn) => Kind::Spawn(Spawn {
            begun: true,
            ..spawn
        }),
        other => unreachable!("{other:?} spawns nothing"),
    }
}

/// The same message, which also says that the task uses these handles no more.
pub fn releasing(kind: Kind, released: &[u32]) -> Kind {
    let released = released.to_vec();
    match kind {
        Kind::Spawn(spawn) => Kind::Spawn(Spawn { released, ..spawn }),
        Kind::BlockOn(block) => Kind::BlockOn(BlockOn { released, ..block }),
        other => unreachable!("{other:?} releases nothing"),
    }
}

pub fn tail_spawn(after: u64, definition: u32) -> Kind {
    let task = Some(asked(definition, &[]));
    let audit = None;
    Kind::TailSpawn(TailSpawn { task, after, audit })
}

pub fn publish(action: u64, handle: u32, output: u32) -> Kind {
    Kind::Publish(Publish {
        output,
        value: data(b"x", &[]),
        action,
        handle,
    })
}

pub fn open_reference(request: u32, handle: u32, must_block: bool) -> Kind {
    Kind::OpenReference(OpenReference {
        request,
        handle,
        must_block,
        as_stream: false,
    })
}

pub fn open_output(request: u32, output: u32) -> Kind {
    Kind::OpenOutput(OpenOutput {
        request,
        output,
        form: "frames".to_string(),
        length: 0,
    })
}

pub fn open_shared(request: u32, length: u64) -> Kind {
    Kind::OpenShared(OpenShared { request, length })
}

pub fn stream_shared(output: u32, bytes: u64) -> Kind {
    Kind::StreamShared(StreamShared { output, bytes })
}

pub fn open_construct(request: u32) -> Kind {
    Kind::OpenConstruct(OpenConstruct { request, length: 0 })
}

pub fn commit(request: u32, action: u64, handle: u32) -> Kind {
    Kind::Commit(Commit {
        request,
        action,
        handle,
        ..Commit::default()
    })
}

/// A block on handles that parks.
pub fn park(after: u64, references: &[u32]) -> Kind {
    block(after, references, Some(Continuation::Parked(Parked {})))
}

pub fn block(after: u64, references: &[u32], continuation: Option<Continuation>) -> Kind {
    Kind::BlockOn(BlockOn {
        references: references.to_vec(),
        after,
        continuation,
        ..BlockOn::default()
    })
}

/// A block whose strand is replayed.
pub fn replay(after: u64, references: &[u32]) -> Kind {
    block(after, references, Some(Continuation::Replay(Replay {})))
}

/// A block whose strand continues from bytes, which need these handles.
pub fn save(after: u64, references: &[u32], needs: &[u32]) -> Kind {
    let saved = Saved {
        references: needs.to_vec(),
        ..Saved::default()
    };
    block(after, references, Some(Continuation::Saved(saved)))
}

/// A block with a limit in time.
pub fn timed(after: u64, references: &[u32]) -> Kind {
    let Kind::BlockOn(block) = park(after, references) else {
        unreachable!("it is a block");
    };
    let timeout_ms = Some(5);
    Kind::BlockOn(BlockOn {
        timeout_ms,
        ..block
    })
}

/// A block for the first of these.
pub fn wait_first(after: u64, references: &[u32]) -> Kind {
    let Kind::BlockOn(block) = park(after, references) else {
        unreachable!("it is a block");
    };
    let wait = Wait::First.into();
    Kind::BlockOn(BlockOn { wait, ..block })
}

/// A block for the rest of a list, which it must not repeat.
pub fn rest(after: u64, references: &[u32]) -> Kind {
    let Kind::BlockOn(block) = park(after, references) else {
        unreachable!("it is a block");
    };
    let wait = Wait::Rest.into();
    Kind::BlockOn(BlockOn { wait, ..block })
}

/// A write of a line to standard output (0) or standard error (1).
pub fn write(sink: i32, after: u64) -> Kind {
    let data = b"line\n".as_slice().into();
    Kind::Write(Write {
        sink,
        data,
        after,
        ..Write::default()
    })
}

/// A question of that kind about handles.
pub fn question(request: u32, kind: &str, action: u64, references: &[u32]) -> Kind {
    Kind::Observe(Observe {
        request,
        kind: kind.to_string(),
        references: references.to_vec(),
        action,
        ..Observe::default()
    })
}

/// An input from the environment.
pub fn observed(action: u64) -> Kind {
    observed_as(b"7".to_vec(), action)
}

pub fn observed_as(value: Vec<u8>, action: u64) -> Kind {
    Kind::Observe(Observe {
        kind: "clock".to_string(),
        value: Some(value.into()),
        action,
        ..Observe::default()
    })
}

pub fn log(level: i32) -> Kind {
    let message = "hm".to_string();
    Kind::Log(Log { level, message })
}

pub fn error() -> Kind {
    error_with("no")
}

pub fn error_with(message: impl Into<String>) -> Kind {
    let failure = Some(Failure {
        message: message.into(),
        ..Failure::default()
    });
    Kind::Error(Error { failure })
}

/// An exit with these outputs, after which the worker continues with the start of that tag.
pub fn exit(outputs: &[u32], next: u32) -> Kind {
    let output = |output: &u32| Output {
        output: *output,
        value: data(b"x", &[]),
    };
    Kind::Exit(Exit {
        outputs: outputs.iter().map(output).collect(),
        next,
        ..Exit::default()
    })
}

pub fn look_on(request: u32, handle: u32) -> Kind {
    Kind::OpenReference(OpenReference {
        request,
        handle,
        must_block: false,
        as_stream: true,
    })
}

/// A worker sends a message, and nothing more of it has come.
pub fn said(message: WorkerMessage) -> ciel_workers::Input {
    ciel_workers::Input::Message {
        message: Box::new(message),
        is_last: true,
    }
}
