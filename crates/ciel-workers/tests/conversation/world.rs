//! An engine in memory with workers whose conversations the tests drive.
//!
//! The engine is the real one, the store is a map. What a conversation does is put into words: what
//! it tells the engine as `[failed: …]`, and each of its effects. Read next: `messages`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use ciel_coordinator::Coordinator;
use ciel_engine::{Caller, Effect as Order, Engine, Event, Reply};
use ciel_graph::{self as graph, Assignment, Carriage, Output, Policy, Step, StreamInput};
use ciel_model::{
    AttemptNumber, Audit, Class, Content, Descriptor, Digest, Failure, Form, Handle,
    Input as TaskInput, Label, Micros, Name, Options, Pool, Purity, Refused, Resources, TaskKey,
};
use ciel_node::{AttemptKey, Capacity, Node, WorkerKey};
use ciel_protocol::wire::{Hello, PoolPolicy, WorkerMessage, worker_message::Kind};
use ciel_protocol::{Framing, encode};
use ciel_workers::{
    Callee, Conversation, Effect, Failed, Found, Gone, Host, Input, Json, Rules, Scratch,
    SpawnCall, WorkerExitReason,
};

use super::{messages::said, words};

pub const ROOT: AttemptKey = attempt_of(0);

pub const fn attempt_of(task: u64) -> AttemptKey {
    AttemptKey {
        task: TaskKey(task),
        number: AttemptNumber(0),
    }
}

/// The pool of all workers here.
pub fn pool() -> Pool {
    Pool::new("p", 1)
}

/// The engine and the store.
pub struct Machines {
    pub engine: Engine,
    now: Micros,
    told: Vec<(Option<WorkerKey>, Event)>,
    /// The worker whose conversation takes an input.
    speaker: Option<WorkerKey>,
    /// What the engine wants of workers.
    commands: VecDeque<(WorkerKey, Input)>,
    started: Vec<WorkerKey>,
    /// Memory of each worker's process, in bytes.
    pub memory: u64,
    pub files: BTreeMap<PathBuf, Bytes>,
    /// Objects whose files somebody has written to.
    pub overwritten: BTreeSet<Name>,
    tag: u32,
    stops: u64,
    /// Tasks that ended in place, by function.
    pub in_place: BTreeMap<String, u64>,
    /// Whether the root takes no core.
    pub has_root_apart: bool,
}

impl Machines {
    pub fn submit(&mut self, event: Event, caller: Caller) -> Reply {
        let mut orders = Vec::new();
        let reply = self.engine.tell(self.now, event, caller, &mut orders);
        self.engine.check_all();
        for order in orders {
            self.take(order);
        }
        reply
    }

    fn take(&mut self, order: Order) {
        let (worker, input) = match order {
            Order::StartWorker { worker, .. } => return self.started.push(worker),
            Order::StopWorker { worker } => (worker, Input::Dismiss),
            Order::StartInWorker { worker, begun } => (worker, Input::Begin(begun)),
            Order::StopInWorker { worker, attempt } => {
                self.stops += 1;
                (worker, Input::Stop(attempt))
            }
            Order::NotifyWatcher {
                worker,
                attempt,
                notice,
            } => (worker, Input::Notify(attempt, notice)),
            Order::DropParked {
                worker,
                task,
                moves,
            } => (worker, Input::DropParked { task, moves }),
            _ => return,
        };
        self.commands.push_back((worker, input));
    }

    fn path(&mut self, scratch: Scratch, what: &str, bytes: &[u8]) -> PathBuf {
        let path = PathBuf::from(format!("/scratch/{}/{what}", scratch.tag));
        let bytes = Bytes::copy_from_slice(bytes);
        self.files.insert(path.clone(), bytes);
        path
    }
}

impl Host for Machines {
    fn ask(&mut self, event: Event, caller: Caller) -> Reply {
        self.told.push((self.speaker, event.clone()));
        self.submit(event, caller)
    }

    fn tell(&mut self, events: Vec<Event>) {
        for event in events {
            self.ask(event, Caller::Nobody);
        }
    }

    fn is_overwritten(&mut self, content: &Content) -> bool {
        let file = content.file();
        file.is_some_and(|(name, _)| self.overwritten.contains(&name))
    }

    fn object_at(&mut self, path: &Path) -> Option<(Name, u64)> {
        let length = self.files.get(path)?.len() as u64;
        Some((Name(length.into()), length))
    }

    fn keep(&mut self, _: &Assignment, _: &[Output], _: Option<&Audit>) {}
    fn leave(&mut self, _: &Assignment) {}

    fn printed(&mut self, _: &Assignment) -> Option<Digest> {
        None
    }

    fn is_stopping(&mut self, attempt: AttemptKey) -> bool {
        self.engine.is_stopping(attempt)
    }

    fn stops(&self) -> u64 {
        self.stops
    }

    fn settled(&mut self, attempt: AttemptKey, handles: &[Handle]) -> Vec<Option<bool>> {
        let AttemptKey { task, number } = attempt;
        let settled = |handle: &Handle| self.engine.graph().is_settled(task, number, *handle);
        handles.iter().map(settled).collect()
    }

    fn is_ready(&mut self, attempt: AttemptKey, handle: Handle) -> bool {
        let AttemptKey { task, number } = attempt;
        self.engine.graph().is_ready(task, number, handle)
    }

    fn write(&mut self, task: &Assignment, after: u64, bytes: Vec<u8>) -> Failed<()> {
        let written = self
            .engine
            .state_mut()
            .write(task.strand, after, bytes.into());
        written.map_err(|how| {
            let kind = ciel_model::FailureKind::NonDeterministic;
            Box::new(Failure::new(kind, task.label.clone(), how))
        })
    }

    fn write_file(
        &mut self,
        task: &Assignment,
        file: &str,
        after: u64,
        bytes: Vec<u8>,
    ) -> Failed<()> {
        let state = self.engine.state_mut();
        let sink = state.open_file(file);
        let written = state.write_file(task.strand, after, sink, bytes.into());
        written.map_err(|how| {
            let kind = ciel_model::FailureKind::NonDeterministic;
            Box::new(Failure::new(kind, task.label.clone(), how))
        })
    }

    fn write_error(&mut self, _task: &Assignment, _after: u64, _bytes: Vec<u8>) {}

    fn callee(&mut self, executor: &str) -> Arc<dyn Callee> {
        Arc::new(Pooled(executor.to_string()))
    }

    fn next_tag(&mut self) -> u32 {
        self.tag += 1;
        self.tag
    }

    fn count_shown(&mut self, _task: TaskKey, _from: u64, _length: u64) -> u64 {
        0
    }

    fn forget(&mut self, _task: TaskKey) {}

    fn count_in_place(&mut self, what: &str, count: u64) {
        *self.in_place.entry(what.to_string()).or_default() += count;
    }

    fn resident_bytes(&mut self) -> u64 {
        self.memory
    }

    fn heed(&mut self, _failure: &Failure) {}

    fn put(&mut self, _task: &Label, name: Name, bytes: &Bytes) -> Failed<Content> {
        Ok(Content::File {
            name,
            length: bytes.len() as u64,
            digest: None,
        })
    }

    fn adopt(&mut self, _: &Label, _: Name, path: &Path, _repeated: bool) -> Failed<Content> {
        let bytes = self.files.remove(path);
        Ok(Content::Inline(bytes.expect("it was made")))
    }

    fn share(&mut self, _task: &Label, _content: &Content) -> Failed<PathBuf> {
        Ok(PathBuf::from("/objects/one"))
    }

    fn json(&mut self, _task: &Label, _content: &Content) -> Failed<Option<Json>> {
        Ok(Some(Json::Text("7".to_string())))
    }

    fn make_folder(&mut self, _task: &Label, scratch: Scratch) -> Failed<PathBuf> {
        Ok(self.path(scratch, "work", b""))
    }

    fn make_file(
        &mut self,
        _task: &Label,
        scratch: Scratch,
        what: &str,
        bytes: &[u8],
    ) -> Failed<PathBuf> {
        Ok(self.path(scratch, what, bytes))
    }

    fn make_file_of_length(
        &mut self,
        task: &Label,
        scratch: Scratch,
        what: &str,
        _length: (u64, bool),
    ) -> Failed<PathBuf> {
        self.make_file(task, scratch, what, b"")
    }

    fn open_stream(
        &mut self,
        task: &Assignment,
        scratch: Scratch,
        output: u32,
        _form: Form,
    ) -> Failed<PathBuf> {
        let step = Step::OpenOutput {
            index: output,
            carriage: Carriage::Stored,
        };
        let (task, attempt) = (task.task, task.attempt);
        let opened = graph::Event::TaskStepped {
            task,
            attempt,
            step,
        };
        self.tell(vec![opened.into()]);
        Ok(self.path(scratch, &format!("stream.{output}"), b""))
    }

    fn end_stream(
        &mut self,
        _task: &Label,
        scratch: Scratch,
        output: u32,
    ) -> Failed<Option<PathBuf>> {
        Ok(Some(self.path(scratch, &format!("stream.{output}"), b"x")))
    }

    fn find_stream(
        &mut self,
        _task: &Assignment,
        scratch: Scratch,
        input: StreamInput,
    ) -> Failed<Found> {
        let pipe = self.path(scratch, &format!("input.{}", input.input.0), b"");
        Ok(Found::Stream(pipe, Form::Bytes))
    }

    fn has_root_apart(&mut self, _worker: WorkerKey) -> bool {
        self.has_root_apart
    }

    fn show_stream(
        &mut self,
        _task: &Assignment,
        scratch: Scratch,
        handle: Handle,
    ) -> Failed<PathBuf> {
        Ok(self.path(scratch, &format!("shown.{}", handle.0), b""))
    }

    fn show_failed_stream(
        &mut self,
        _task: &Assignment,
        _scratch: Scratch,
        _handle: Handle,
    ) -> Failed<Option<PathBuf>> {
        Ok(None)
    }

    fn settle_stream(&mut self, scratch: Scratch, handle: Handle) {
        let path = format!("/scratch/{}/shown.{}", scratch.tag, handle.0);
        self.files.insert(path.into(), b"settled"[..].into());
    }

    fn clear(&mut self, scratch: Scratch) {
        let folder = format!("/scratch/{}/", scratch.tag);
        self.files
            .retain(|path, _| !path.to_string_lossy().starts_with(&folder));
    }
}

/// Tasks of an executor, in a pool of its name; `none` takes no call.
struct Pooled(String);

impl Callee for Pooled {
    fn task(&self, call: SpawnCall) -> Result<Arc<Descriptor>, Refused> {
        if self.0 == "none" {
            return Err(Refused::new("there is no executor \"none\""));
        }
        let inputs = call.inputs.into_iter();
        let inputs = inputs.map(|(handle, mode)| TaskInput { handle, mode });
        Ok(Arc::new(task().with(|it| {
            it.class = Class::Pooled(Pool::new(self.0.as_str(), 1));
            it.inputs = inputs.collect();
            it.outputs = call.outputs;
            it.streams = call.streams.into();
            it.options = call.options;
            it.purity = Purity::of(call.pure, false);
        })))
    }
}

/// A task of a worker, with one output.
pub fn task() -> Descriptor {
    Descriptor::plain("p", Class::Pooled(pool()), "t", b"t".as_slice())
        .with(|it| it.replayable = true)
}

/// The same task, which declares so much memory.
pub fn with_memory(bytes: u64) -> Descriptor {
    let resources = Resources {
        memory_bytes: Some(bytes),
        ..Resources::default()
    };
    task().with(|it| {
        it.options = Arc::new(Options {
            resources,
            ..Options::default()
        })
    })
}

/// What workers say in their hello here.
pub fn hello() -> Hello {
    let features = ["parked", "timeouts", "watching", "no_scratch", "interrupt"];
    Hello {
        protocol: ciel_protocol::limits::PROTOCOL,
        executor: "p".to_string(),
        features: features.map(str::to_string).to_vec(),
        pool: Some(PoolPolicy {
            reuse: true,
            parked_strands_max: 1,
            slots: 1,
        }),
        ..Hello::default()
    }
}

/// Workers and the engine between them.
pub struct World {
    pub machines: Machines,
    pub workers: BTreeMap<WorkerKey, Conversation>,
    /// Conversations that are over, and why.
    ended: BTreeMap<WorkerKey, WorkerExitReason>,
    /// What conversations have told the engine, each with who told it.
    pub told: Vec<(Option<WorkerKey>, Event)>,
    /// What conversations did since the last look, in words.
    done: Vec<String>,
    hello: Hello,
    spawns: u64,
    /// What a worker that dies has printed last.
    pub last_lines: String,
}

impl World {
    /// An engine with so many cores, whose root runs on a thread.
    pub fn new(cores: u32, hello: Hello) -> World {
        let resources = Resources {
            millicores: cores * 1000,
            memory_bytes: Some(1 << 40),
            ..Resources::default()
        };
        let node = Node::new(Capacity {
            resources,
            threads: 1,
            serial: false,
        });
        let state = Coordinator::new(Policy::default(), false);
        let machines = Machines {
            engine: Engine::new(state, node),
            now: 0,
            told: Vec::new(),
            speaker: None,
            has_root_apart: true,
            commands: VecDeque::new(),
            started: Vec::new(),
            memory: 0,
            files: BTreeMap::new(),
            overwritten: BTreeSet::new(),
            tag: 0,
            stops: 0,
            in_place: BTreeMap::new(),
        };
        let mut world = World {
            machines,
            workers: BTreeMap::new(),
            ended: BTreeMap::new(),
            told: Vec::new(),
            done: Vec::new(),
            hello,
            spawns: 0,
            last_lines: String::new(),
        };
        let root = Descriptor::plain("s", Class::Coordination, "root", b"".as_slice());
        world.submit(graph::Event::RootSubmitted {
            name: Name::of_root(b"test"),
            descriptor: root.into(),
        });
        let taken = Event::TurnTaken { attempt: ROOT };
        world.machines.submit(taken, Caller::Thread);
        world
    }

    /// Task 1 runs in worker 0, with the tag 1.
    pub fn running(hello: Hello) -> World {
        World::with_task(hello, task())
    }

    /// The same with that task.
    pub fn with_task(hello: Hello, task: Descriptor) -> World {
        let mut world = World::new(1, hello);
        world.spawn(task);
        world.look();
        world
    }

    /// What is in a file.
    pub fn text_of(&self, path: &str) -> String {
        let bytes = self.machines.files.get(Path::new(path));
        String::from_utf8_lossy(bytes.expect("the file is there")).into_owned()
    }

    /// Somebody who is no worker tells the engine something.
    pub fn submit(&mut self, event: impl Into<Event>) {
        self.machines.submit(event.into(), Caller::Nobody);
        self.settle();
    }

    /// The root spawns a task.
    pub fn spawn(&mut self, descriptor: Descriptor) {
        let action = self.spawns;
        self.spawns += 1;
        self.submit(graph::Event::TaskStepped {
            task: ROOT.task,
            attempt: ROOT.number,
            step: Step::Spawn {
                action,
                first: Handle(action as u32),
                descriptor: descriptor.into(),
            },
        });
    }

    /// Starts the workers that are wanted, and hands them what the engine wants of them.
    fn settle(&mut self) {
        loop {
            for worker in std::mem::take(&mut self.machines.started) {
                self.greet(worker);
            }
            let Some((worker, input)) = self.machines.commands.pop_front() else {
                return;
            };
            self.input(worker, input);
        }
    }

    fn greet(&mut self, worker: WorkerKey) {
        let rules = Rules {
            build: "test".to_string(),
            folder: "/program".to_string(),
            ordered_errors: false,
            options: Options::default(),
            kill_grace_ms: ciel_model::limits::KILL_GRACE_MS as u32,
        };
        let conversation = Conversation::new(worker, self.hello.clone(), false, rules);
        let mut effects = Vec::new();
        conversation.greet(&pool(), &mut self.machines, &mut effects);
        self.workers.insert(worker, conversation);
        self.note(worker, effects);
    }

    /// A conversation takes an input; nothing of one that is over.
    pub fn input(&mut self, worker: WorkerKey, input: Input) {
        let Some(conversation) = self.workers.get_mut(&worker) else {
            if let Input::Begin(begun) = input {
                ciel_workers::lose(&begun.assignment, &mut self.machines);
            }
            return;
        };
        let mut effects = Vec::new();
        self.machines.speaker = Some(worker);
        let now = self.machines.now;
        conversation.handle(now, input, &mut self.machines, &mut effects);
        self.note(worker, effects);
        self.machines.speaker = None;
    }

    /// The same of an input that is not the engine's.
    pub fn give(&mut self, worker: u64, input: Input) {
        self.input(WorkerKey(worker), input);
        self.settle();
    }

    fn note(&mut self, worker: WorkerKey, effects: Vec<Effect>) {
        let told = std::mem::take(&mut self.machines.told);
        self.done
            .extend(told.iter().filter_map(|(_, event)| words::of_event(event)));
        self.told.extend(told);
        for effect in effects {
            self.done.extend(words::of_effect(&effect));
            if let Effect::Send(message) = &effect {
                encode(&**message, Framing::LengthPrefixed).expect("a message is not too long");
            }
            if let Effect::End(reason) = effect {
                self.end(worker, reason);
            }
        }
    }

    fn end(&mut self, worker: WorkerKey, reason: WorkerExitReason) {
        let conversation = self.workers.remove(&worker);
        let mut conversation = conversation.expect("it took the input");
        let gone = Gone {
            how: "ended with exit status 1".to_string(),
            last_lines: self.last_lines.clone(),
        };
        let mut effects = Vec::new();
        conversation.close(&reason, &gone, &mut self.machines, &mut effects);
        self.ended.insert(worker, reason);
        self.note(worker, effects);
    }

    /// Worker 0 sends a message of the task with that tag.
    pub fn send(&mut self, tag: u32, kind: impl Into<Kind>) -> String {
        self.send_from(0, tag, kind)
    }

    /// Another worker does.
    pub fn send_from(&mut self, worker: u64, tag: u32, kind: impl Into<Kind>) -> String {
        let kind = Some(kind.into());
        self.give(worker, said(WorkerMessage { tag, kind }));
        self.look()
    }

    /// Time passes.
    pub fn wait(&mut self, us: Micros) -> String {
        self.machines.now += us;
        self.give(0, Input::Ticked);
        self.look()
    }

    /// The engine ends a task.
    pub fn cancel(&mut self, task: u64) -> String {
        let task = TaskKey(task);
        self.submit(graph::Event::CancelRequested { task });
        self.look()
    }

    /// What conversations did since the last look.
    pub fn look(&mut self) -> String {
        std::mem::take(&mut self.done).join(", ")
    }
}
