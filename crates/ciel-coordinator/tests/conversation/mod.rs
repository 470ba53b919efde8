//! A short run in which each kind of record, event and step occurs, submitted to a coordinator.
//!
//! It does not know what is tested with it. Read next: `fold.rs`, `vectors.rs`.

#![allow(missing_docs, dead_code)]

use std::sync::{Arc, Mutex};

use ciel_coordinator::{Coordinator, Recorder};
use ciel_graph::{
    Action, Carriage, Checkpoint, Continuation, Event, Output, Policy, Step, Until, Wait,
};
use ciel_model::{
    ActionKey, AttemptNumber, Class, Descriptor, Failure, FailureKind, Form, Frame, Handle, Input,
    Label, Name, Options, Pool, Purity, RerunReason, Resources, Site, StrandKey, TaskKey, Value,
    Weights,
};
use ciel_ordered::{Extent, Piece};

/// All records, as bytes.
#[derive(Clone, Debug, Default)]
pub struct Records(Arc<Mutex<Vec<Vec<u8>>>>);

impl Recorder for Records {
    fn append(&mut self, spell: &mut dyn FnMut(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        spell(&mut bytes);
        self.0.lock().unwrap().push(bytes);
    }
}

impl Records {
    pub fn all(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().clone()
    }
}

/// A coordinator in the middle of a conversation.
pub struct Conversation {
    pub coordinator: Coordinator,
    pub records: Records,
    pub actions: Vec<Action>,
    now: u64,
}

const ROOT: TaskKey = TaskKey(0);
const CHILD: TaskKey = TaskKey(1);
const SUCCESSOR: TaskKey = TaskKey(3);

impl Conversation {
    pub fn begin() -> Conversation {
        let policy = Policy {
            keep_going: true,
            ..Policy::default()
        };
        let mut coordinator = Coordinator::new(policy, true);
        let records = Records::default();
        coordinator.record_to(Box::new(records.clone()));
        Conversation {
            coordinator,
            records,
            actions: Vec::new(),
            now: 1_000_000,
        }
    }

    pub fn tell(&mut self, event: Event) {
        self.now += 250;
        self.coordinator.tell(self.now, event, &mut self.actions);
    }

    fn place(&mut self, task: TaskKey, attempt: u32) {
        let attempt = AttemptNumber(attempt);
        self.tell(Event::TaskPlaced { task, attempt });
    }

    fn step(&mut self, step: Step) {
        self.tell(Event::TaskStepped {
            task: ROOT,
            attempt: AttemptNumber(0),
            step,
        });
    }

    fn write(&mut self, task: TaskKey, after: u64, text: &str) {
        let piece = Piece::Bytes(text.as_bytes().to_vec());
        let written = self.coordinator.write(StrandKey(task.0), after, piece);
        written.unwrap();
    }

    /// The root spawns as that action; the handle has the same number.
    fn spawn(&mut self, action: u64, descriptor: Descriptor) {
        self.step(Step::Spawn {
            action,
            first: Handle(action as u32),
            descriptor: Arc::new(descriptor),
        });
    }

    /// The root runs, makes things and spawns.
    pub fn open(&mut self) {
        let name = Name::of_root(b"vectors");
        self.tell(Event::RootSubmitted {
            name,
            descriptor: Arc::new(root()),
        });
        self.place(ROOT, 0);
        self.write(ROOT, 0, "begun\n");
        let piece = Piece::Bytes(b"a word\n".to_vec());
        self.coordinator.write_error(StrandKey(0), 0, piece);
        let sink = self.coordinator.open_file("/home/user/log");
        let piece = Piece::Bytes(b"logged\n".to_vec());
        let written = self.coordinator.write_file(StrandKey(0), 0, sink, piece);
        written.unwrap();
        self.step(Step::Construct {
            at: ActionKey::part(0, 0),
            handle: Handle(0),
            value: Value::inline(Form::Bytes, b"made".to_vec()),
        });
        self.step(Step::Input {
            at: ActionKey::action(0),
            kind: "clock".into(),
            value: b"noon".to_vec().into(),
        });
        self.spawn(1, child());
        self.spawn(
            2,
            Descriptor::plain("shell", Class::Process, "true", b"true".to_vec()).with(|it| {
                it.options = Arc::new(Options {
                    lazy: true,
                    ..Options::default()
                })
            }),
        );
        let mut value = Value::inline(Form::Json, b"[1]".to_vec());
        value.references = vec![Handle(0)];
        self.step(Step::Publish {
            at: ActionKey::part(3, 0),
            handle: Handle(3),
            index: 1,
            value,
        });
        self.tell(Event::TaskWatched {
            task: ROOT,
            attempt: AttemptNumber(0),
            handle: Handle(1),
        });
    }

    /// The child fails, is lost, and hands over; the root waits meanwhile.
    pub fn work(&mut self) {
        self.place(CHILD, 0);
        let (task, attempt) = (CHILD, AttemptNumber(0));
        let failure = failure(FailureKind::TaskError);
        self.tell(Event::TaskFailed {
            task,
            attempt,
            failure: Box::new(failure),
        });
        self.block(Continuation::Live, Wait::ALL, Some(checkpoint()));
        self.tell(Event::ContinuationLost { task: ROOT });
        self.place(CHILD, 1);
        let piece = Piece::Extent(Extent {
            blob: 1,
            offset: 2,
            length: 3,
        });
        self.coordinator.write(StrandKey(1), 0, piece).unwrap();
        let (attempt, failure) = (AttemptNumber(1), self::failure(FailureKind::WorkerLost));
        self.tell(Event::TaskLost {
            task,
            attempt,
            failure: Box::new(failure),
        });
        self.place(CHILD, 2);
        self.write(CHILD, 0, "abc");
        self.tell(Event::TaskTailSpawned {
            task,
            attempt: AttemptNumber(2),
            descriptor: Arc::new(Descriptor::plain(
                "python",
                Class::Pooled(Pool::new("python", 1)),
                "g",
                b"g".to_vec(),
            )),
            after: 0,
            audit: None,
        });
        self.place(SUCCESSOR, 0);
        self.tell(Event::TaskFinished {
            task: SUCCESSOR,
            attempt: AttemptNumber(0),
            outputs: vec![Output::Value(Value::inline(Form::Text, b"seven".to_vec()))],
            printed: true,
            audit: None,
        });
    }

    /// The engine is lost, the root resumes from its checkpoint, and the job is cancelled.
    pub fn end(&mut self) {
        self.tell(Event::EngineLost {
            policy: Policy::default(),
            lost: Vec::new(),
        });
        self.place(ROOT, 0);
        self.tell(Event::TaskRecalled {
            task: ROOT,
            attempt: AttemptNumber(0),
        });
        let wait = Wait {
            until: Until::First,
            limit_us: Some(500),
            at: ActionKey::action(90),
        };
        self.block(Continuation::Saved(b"state".to_vec().into()), wait, None);
        self.tell(Event::Ticked);
        self.tell(Event::TaskRolledBack { task: ROOT, to: 3 });
        self.tell(Event::FilesLost {
            lost: vec![Name::of_root(b"lost")],
        });
        self.tell(Event::CancelRequested { task: TaskKey(2) });
        self.tell(Event::JobCancelled {
            failure: Box::new(failure(FailureKind::Cancelled)),
        });
        // Too late: the event is stale.
        self.tell(Event::TaskRefused {
            task: TaskKey(2),
            attempt: AttemptNumber(0),
            failure: Box::new(failure(FailureKind::Refused)),
        });
        // So are these answers.
        self.tell(Event::ResultFound {
            task: TaskKey(2),
            attempt: AttemptNumber(0),
            outputs: vec![Value::inline(Form::Bytes, b"kept".to_vec())],
            printed: true,
        });
        self.tell(Event::ResultKnown {
            task: TaskKey(2),
            attempt: AttemptNumber(0),
            outputs: vec![Value::inline(Form::Bytes, b"known".to_vec())],
            printed: false,
        });
        self.tell(Event::ResultMissing {
            task: TaskKey(2),
            attempt: AttemptNumber(0),
            reason: Box::new(RerunReason::InputChanged("reads".into())),
        });
        // So is this step.
        self.step(Step::Release {
            handles: vec![Handle(2)],
        });
        self.step(Step::OpenOutput {
            index: 0,
            carriage: Carriage::Stored,
        });
        // No such attempt runs.
        self.tell(Event::TaskStepped {
            task: TaskKey(2),
            attempt: AttemptNumber(7),
            step: Step::ReadWhole,
        });
    }

    fn block(&mut self, continuation: Continuation, wait: Wait, checkpoint: Option<Checkpoint>) {
        self.tell(Event::TaskBlocked {
            task: ROOT,
            attempt: AttemptNumber(0),
            kept: Some(vec![Handle(1), Handle(0)]),
            on: vec![Handle(0)],
            wait,
            continuation,
            checkpoint: checkpoint.map(Box::new),
        });
    }

    /// The whole of it.
    pub fn hold() -> Conversation {
        let mut conversation = Conversation::begin();
        conversation.open();
        conversation.work();
        conversation.end();
        conversation
    }
}

fn root() -> Descriptor {
    Descriptor::plain(
        "skywriting",
        Class::Coordination,
        "main",
        b"program".to_vec(),
    )
    .with(|it| {
        it.outputs = 3;
        it.replayable = true;
    })
}

fn child() -> Descriptor {
    let resources = Resources {
        millicores: 500,
        memory_bytes: Some(1 << 30),
        others: [("gpu".into(), 1000)].into(),
    };
    Descriptor::plain(
        "python",
        Class::Pooled(Pool::new("python", 1)),
        "f",
        b"f".to_vec(),
    )
    .with(|it| {
        it.inputs = vec![Input::value(Handle(0))];
        it.options = Arc::new(Options {
            resources,
            retries: 2,
            timeout_us: Some(60_000_000),
            lazy: false,
            live: true,
            keep: Some(true),
            weights: Weights::new([Some(250)]).into(),
        });
        it.site = Site {
            file: "main.sw".into(),
            line: 12,
        };
        it.purity = Purity::Declared;
        it.replayable = true;
    })
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        state: b"here".to_vec().into(),
        kept: vec![Handle(0), Handle(1)],
    }
}

fn failure(kind: FailureKind) -> Failure {
    let task = Label {
        what: "f".into(),
        name: Name::of_root(b"vectors").spawn(0),
    };
    let (place, note) = ("main.sw:12".to_string(), "a note".to_string());
    Failure::new(kind, task.clone(), "it went wrong")
        .with_hint("try again")
        .through(Frame { task, place, note })
}
