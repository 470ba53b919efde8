//! The example executor, run as a real process against a test that plays the engine's side.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::time::Duration;

use ciel_protocol::wire::reference::State;
use ciel_protocol::wire::{
    BlockOn, Concrete, Data, EngineMessage, FailureKind, Hello, Ping, Pong, Recording, Reference,
    Refusal, Shutdown, Spawn, Start, WorkerMessage, block_on, start, worker_message,
};
use ciel_protocol::{Decoder, Framing, encode, form, limits};
use rustix::io::FdFlags;
use worker_message::Kind;

const EXECUTOR: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/executors/ciel-executor-wordfreq"
);
const ANSWER_WITHIN: Duration = Duration::from_secs(600);

/// The tasks that the executor declares, in the order of their ids.
const VERBS: [&str; 3] = ["count", "piece", "collatz"];

/// Held while a worker's end of a socket can be inherited, so that only its worker inherits it.
static SPAWNING: Mutex<()> = Mutex::new(());

struct Worker {
    process: Child,
    socket: UnixStream,
    decoder: Decoder<WorkerMessage>,
}

impl Worker {
    fn spawn() -> Self {
        let _guard = SPAWNING.lock().unwrap();
        let (socket, theirs) = UnixStream::pair().unwrap();
        socket.set_read_timeout(Some(ANSWER_WITHIN)).unwrap();
        rustix::io::fcntl_setfd(&theirs, FdFlags::empty()).unwrap();
        let descriptor = theirs.as_raw_fd().to_string();
        let process = Command::new(EXECUTOR)
            .env("CIEL_FD", descriptor)
            .spawn()
            .unwrap();
        Self {
            process,
            socket,
            decoder: Decoder::new(),
        }
    }

    fn greeted() -> Self {
        let mut worker = Self::spawn();
        let Kind::Hello(hello) = worker.receive() else {
            panic!("the first message is hello")
        };
        assert_eq!(
            (hello.protocol, &*hello.executor),
            (limits::PROTOCOL, "wordfreq")
        );
        assert_eq!(worker.decoder.framing(), Some(Framing::JsonLines));
        worker.send(EngineMessage::connection(Hello {
            protocol: limits::PROTOCOL,
            executor: hello.executor,
            ..Hello::default()
        }));
        for name in VERBS {
            let Kind::Define(define) = worker.receive() else {
                panic!("the worker declares its tasks")
            };
            let said = (&*define.executor, &*define.label, define.outputs);
            assert_eq!(said, ("wordfreq", name, 1));
        }
        worker
    }

    fn send(&mut self, message: EngineMessage) {
        self.socket
            .write_all(&encode(&message, Framing::JsonLines).unwrap())
            .unwrap();
    }

    fn receive_whole(&mut self) -> WorkerMessage {
        let mut bytes = [0; 4096];
        loop {
            if let Some(message) = self.decoder.take().unwrap() {
                return message;
            }
            let length = self.socket.read(&mut bytes).unwrap();
            assert_ne!(length, 0, "the worker has gone");
            self.decoder.push(&bytes[..length]);
        }
    }

    fn receive(&mut self) -> Kind {
        self.receive_whole()
            .kind
            .expect("a decoded message has a kind")
    }

    /// Runs a task to its end in this worker: all it says, the last word last.
    fn run(&mut self, number: u8, start: Start) -> Vec<Kind> {
        let tag = u32::from(number) + 1;
        self.send(EngineMessage::about(tag, start));
        let mut said = Vec::new();
        loop {
            let message = self.receive_whole();
            assert_eq!(message.tag, tag);
            said.extend(message.kind);
            let last = said.last().expect("just said");
            if matches!(
                last,
                Kind::Exit(_) | Kind::Error(_) | Kind::TailSpawn(_) | Kind::BlockOn(_)
            ) {
                return said;
            }
        }
    }

    fn ends_well(mut self) {
        assert_eq!(
            self.socket.read(&mut [0]).unwrap(),
            0,
            "the worker closes its socket"
        );
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn json(text: &str) -> Data {
    Data {
        data: text.to_owned().into(),
        form: form::JSON.into(),
        references: Vec::new(),
        r#type: String::new(),
    }
}

fn known(handle: u32, state: State) -> Reference {
    Reference {
        handle,
        state: Some(state),
    }
}

fn task(payload: &str, inputs: Vec<Reference>) -> Start {
    Start {
        payload: payload.to_owned().into(),
        handle: inputs.len() as u32,
        inputs,
        ..Start::default()
    }
}

fn result(said: &[Kind]) -> &Data {
    let Some(Kind::Exit(exit)) = said.last() else {
        panic!("the task ended otherwise: {said:?}")
    };
    exit.outputs[0].value.as_ref().expect("an output by value")
}

fn text_of(folder: &tempfile::TempDir, words: usize) -> Reference {
    let path = folder.path().join("object");
    let text = "tea Cup tea ".repeat(words / 3);
    std::fs::write(&path, &text).unwrap();
    known(
        0,
        State::Concrete(Concrete {
            path: path.to_str().unwrap().into(),
            length: text.len() as u64,
            ..Concrete::default()
        }),
    )
}

/// What the parent says before it waits: two objects, two tasks for them, the block.
fn parts(said: &[Kind]) -> ([&Data; 2], &Spawn, &BlockOn) {
    let [
        Kind::Construct(first),
        Kind::Construct(second),
        Kind::Spawn(spawn),
        Kind::BlockOn(block),
    ] = said
    else {
        panic!("unexpected words: {said:?}")
    };
    let pieces = [first, second].map(|piece| piece.value.as_ref().expect("an object"));
    (pieces, spawn, block)
}

/// Runs the spawned tasks and returns the references that a replay of their parent receives.
fn run_children(worker: &mut Worker, spawn: &Spawn, pieces: [&Data; 2]) -> Vec<Reference> {
    let mut children = Vec::new();
    for (index, piece) in (0..).zip(pieces) {
        let payload = str::from_utf8(&spawn.tasks[usize::from(index)].payload).unwrap();
        let input = known(0, State::Value(piece.clone()));
        let said = worker.run(index + 1, task(payload, vec![input]));
        children.push(known(
            u32::from(index) + 3,
            State::Value(result(&said).clone()),
        ));
    }
    children
}

#[test]
fn parent_blocked_by_replay_numbers_its_actions_and_handles() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::greeted();
    let text = text_of(&folder, 30_000);
    let said = worker.run(0, task(r#"{"do": "count", "top": 2}"#, vec![text]));
    let (_, spawn, block) = parts(&said);
    let inputs: Vec<u32> = spawn
        .tasks
        .iter()
        .map(|task| task.inputs[0].handle)
        .collect();
    assert_eq!(
        inputs,
        [1, 2],
        "constructs take the handles after the input"
    );
    assert_eq!(
        block.references,
        [3, 4],
        "the spawn takes the handles after the constructs"
    );
    let numbers = (spawn.action, spawn.handle, block.after);
    assert_eq!(numbers, (2, 3, 4), "the constructs are actions 0 and 1");
    assert!(matches!(
        block.continuation,
        Some(block_on::Continuation::Replay(_))
    ));
}

#[test]
fn replayed_parent_says_the_same_again_and_ends_with_the_sum() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::greeted();
    let parent = task(
        r#"{"do": "count", "top": 2}"#,
        vec![text_of(&folder, 30_000)],
    );
    let said = worker.run(0, parent.clone());
    let (pieces, spawn, _) = parts(&said);
    let references = run_children(&mut worker, spawn, pieces);

    let recording = Recording {
        references,
        observations: Vec::new(),
        ..Recording::default()
    };
    let continuation = Some(start::Continuation::Replay(recording));
    let again = worker.run(
        0,
        Start {
            continuation,
            ..parent
        },
    );
    assert_eq!(again[..3], said[..3]);
    let Kind::Write(write) = &again[3] else {
        panic!("no output: {again:?}")
    };
    assert_eq!(write.data, "2 pieces\n");
    assert_eq!(result(&again), &json(r#"[["tea", 20000], ["cup", 10000]]"#));
}

#[test]
fn loop_by_tail_spawn_ends_with_the_number_of_steps() {
    let mut worker = Worker::greeted();
    let mut payload = r#"{"do": "collatz", "at": 27, "steps": 0}"#.to_owned();
    let mut tasks = 0;
    let said = loop {
        let said = worker.run(tasks, task(&payload, Vec::new()));
        let Some(Kind::TailSpawn(tail)) = said.last() else {
            break said;
        };
        let following = tail.task.as_ref().expect("a tail-spawn has a task");
        assert_eq!(VERBS[following.definition as usize], "collatz");
        payload = str::from_utf8(&following.payload).unwrap().to_owned();
        tasks += 1;
    };
    assert_eq!((tasks, result(&said)), (111, &json("111")));
}

#[test]
fn failed_task_tells_where_and_leaves_the_worker_alive() {
    let mut worker = Worker::greeted();
    let said = worker.run(
        0,
        task(r#"{"do": "collatz", "at": "x", "steps": 0}"#, Vec::new()),
    );
    let [Kind::Error(error)] = &said[..] else {
        panic!("no failure: {said:?}")
    };
    let failure = error.failure.as_ref().unwrap();
    assert_eq!(failure.kind(), FailureKind::TaskError);
    assert_eq!(
        (&*failure.language, &*failure.type_name),
        ("python", "TypeError")
    );
    assert_eq!(failure.traceback.last().unwrap().function, "collatz");

    let nonce = u64::MAX;
    worker.send(EngineMessage::connection(Ping { nonce }));
    assert_eq!(worker.receive(), Kind::Pong(Pong { nonce }));
}

#[test]
fn failed_input_fails_the_task_that_reads_it() {
    let mut worker = Worker::greeted();
    let message = "no such thing".to_owned();
    let failure = ciel_protocol::wire::Failure {
        message,
        ..Default::default()
    };
    let input = known(0, State::Error(failure));
    let said = worker.run(0, task(r#"{"do": "piece"}"#, vec![input]));
    let [Kind::Error(error)] = &said[..] else {
        panic!("no failure: {said:?}")
    };
    assert_eq!(error.failure.as_ref().unwrap().message, "no such thing");
}

#[test]
fn shutdown_ends_the_worker() {
    let mut worker = Worker::greeted();
    worker.send(EngineMessage::connection(Shutdown::default()));
    worker.ends_well();
}

#[test]
fn refused_worker_ends() {
    let mut worker = Worker::spawn();
    assert!(matches!(worker.receive(), Kind::Hello(_)));
    worker.send(EngineMessage::connection(Refusal::default()));
    VERBS.iter().for_each(|_| drop(worker.receive()));
    worker.ends_well();
}

#[test]
fn lost_engine_ends_the_worker() {
    let worker = Worker::greeted();
    worker.socket.shutdown(std::net::Shutdown::Write).unwrap();
    worker.ends_well();
}
