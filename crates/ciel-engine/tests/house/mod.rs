//! An engine in a test: events go in by one method each, and come back as words.
//!
//! First the reply, if there is one, then each effect in order: `begin 2 ahead 3` says that task 2
//! begins in the slot of the caller, with the start of task 3 sent along. Read next: `stories`.

use std::sync::Arc;

use ciel_coordinator::Coordinator;
use ciel_engine::{Begun, Caller, Effect, Engine, Event, Reply};
use ciel_graph::{self as graph, Continuation, Output, Policy, Step, Wait};
use ciel_model::{
    AttemptNumber, Class, Descriptor, Failure, FailureKind, Form, Handle, Input, Label, Micros,
    Name, Pool, Resources, TaskKey, Value,
};
use ciel_node::{AttemptKey, Capacity, Node, WorkerKey};

pub const ROOT: AttemptKey = attempt_of(0);

pub struct House {
    pub engine: Engine,
    pub now: Micros,
    /// Spawns of the root so far.
    spawns: u64,
}

/// A spawn with one output, whose handle is the index.
pub fn spawn(action: u64, descriptor: Descriptor) -> Step {
    Step::Spawn {
        action,
        first: Handle(action as u32),
        descriptor: Arc::new(descriptor),
    }
}

pub const fn attempt_of(task: u64) -> AttemptKey {
    AttemptKey {
        task: TaskKey(task),
        number: AttemptNumber(0),
    }
}

/// A task of a pool of workers, with these inputs.
pub fn pooled(inputs: &[u32]) -> Descriptor {
    Descriptor::plain("p", Class::Pooled(Pool::new("p", 1)), "t", b"t".as_slice()).with(|it| {
        it.inputs = inputs
            .iter()
            .copied()
            .map(Handle)
            .map(Input::value)
            .collect();
        it.replayable = true;
    })
}

/// A task of a thread.
pub fn script() -> Descriptor {
    Descriptor::plain("s", Class::Coordination, "s", b"s".as_slice())
}

/// The same task, on so many cores.
pub fn on_cores(cores: u32, descriptor: Descriptor) -> Descriptor {
    descriptor.with(|it| Arc::make_mut(&mut it.options).resources.millicores = cores * 1000)
}

pub fn failure(what: &str) -> Failure {
    let what = what.to_string();
    let label = Label {
        what: what.as_str().into(),
        name: Name(0),
    };
    Failure::new(FailureKind::TaskError, label, what)
}

impl House {
    /// An engine with so many cores, in which a script runs on a thread.
    pub fn new(cores: u32) -> House {
        let capacity = Capacity {
            resources: Resources {
                millicores: cores * 1000,
                ..Resources::default()
            },
            threads: cores,
            serial: false,
        };
        let state = Coordinator::new(Policy::default(), false);
        let mut house = House {
            engine: Engine::new(state, Node::new(capacity)),
            now: 0,
            spawns: 0,
        };
        let event = graph::Event::RootSubmitted {
            name: Name::of_root(b"test"),
            descriptor: Arc::new(script()),
        };
        assert_eq!(house.tell(event), "offer 0");
        assert_eq!(house.take_turn(0), "begin 0");
        house
    }

    /// The same with a worker that has said hello, for a first task that spawned it.
    pub fn with_worker(cores: u32) -> House {
        let mut house = House::new(cores);
        assert_eq!(house.spawn(pooled(&[])), "start worker0");
        assert_eq!(house.ready(0), "start 1 in worker0");
        house
    }

    pub fn ask(&mut self, event: impl Into<Event>, caller: Caller) -> String {
        let mut effects = Vec::new();
        let reply = self.engine.tell(self.now, event, caller, &mut effects);
        self.engine.check_all();
        let reply = told(&reply).into_iter();
        let words: Vec<String> = reply.chain(effects.iter().filter_map(done)).collect();
        words.join(", ")
    }

    pub fn tell(&mut self, event: impl Into<Event>) -> String {
        self.ask(event, Caller::Nobody)
    }

    pub fn ready(&mut self, worker: u64) -> String {
        let worker = WorkerKey(worker);
        self.tell(Event::WorkerReady {
            worker,
            prefetches: true,
            slots: 1,
        })
    }

    pub fn take_turn(&mut self, task: u64) -> String {
        self.ask(
            Event::TurnTaken {
                attempt: attempt_of(task),
            },
            Caller::Thread,
        )
    }

    /// The root spawns a task; it is the next number.
    pub fn spawn(&mut self, descriptor: Descriptor) -> String {
        let action = self.spawns;
        self.spawns += 1;
        self.step(ROOT, spawn(action, descriptor))
    }

    pub fn step(&mut self, attempt: AttemptKey, step: Step) -> String {
        let AttemptKey { task, number } = attempt;
        self.tell(graph::Event::TaskStepped {
            task,
            attempt: number,
            step,
        })
    }

    /// A task spawns another one that has begun in its worker.
    pub fn spawn_begun(&mut self, attempt: AttemptKey, action: u64) -> String {
        let AttemptKey { task, number } = attempt;
        self.tell(Event::SpawnedBegun(graph::Event::TaskStepped {
            task,
            attempt: number,
            step: spawn(action, pooled(&[])),
        }))
    }

    pub fn cancel(&mut self, task: u64) -> String {
        let task = TaskKey(task);
        self.tell(graph::Event::CancelRequested { task })
    }

    /// A task waits for that handle.
    pub fn block(&mut self, attempt: AttemptKey, on: u32, caller: Caller) -> String {
        self.wait(attempt, on, Wait::ALL, caller)
    }

    /// The same, as `wait` says.
    pub fn wait(&mut self, attempt: AttemptKey, on: u32, wait: Wait, caller: Caller) -> String {
        let AttemptKey { task, number } = attempt;
        let event = graph::Event::TaskBlocked {
            task,
            attempt: number,
            kept: None,
            on: vec![Handle(on)],
            wait,
            continuation: Continuation::Live,
            checkpoint: None,
        };
        self.ask(event, caller)
    }

    /// A task in worker 0 ends with a value; perhaps that worker has begun another one by itself.
    pub fn exit(&mut self, task: u64, follows: Option<u64>) -> String {
        let attempt = attempt_of(task);
        let end = Some(finished(attempt));
        let caller = worker(0, follows.map(self::attempt_of));
        self.ask(Event::TurnEnded { attempt, end }, caller)
    }

    /// The same, when more of that worker has come.
    pub fn exit_with_more(&mut self, task: u64, next: u64) -> String {
        let attempt = attempt_of(task);
        let end = Some(finished(attempt));
        let caller = Caller::Worker {
            worker: WorkerKey(0),
            follows: Some(self::attempt_of(next)),
            is_last: false,
        };
        self.ask(Event::TurnEnded { attempt, end }, caller)
    }

    /// What worker 0 ran is out of it, and nothing follows.
    pub fn leave(&mut self, task: u64) -> String {
        let event = Event::TurnEnded {
            attempt: attempt_of(task),
            end: None,
        };
        self.ask(event, worker(0, None))
    }
}

pub fn worker(key: u64, follows: Option<AttemptKey>) -> Caller {
    Caller::Worker {
        worker: WorkerKey(key),
        follows,
        is_last: true,
    }
}

pub fn finished(attempt: AttemptKey) -> graph::Event {
    graph::Event::TaskFinished {
        task: attempt.task,
        attempt: attempt.number,
        outputs: vec![Output::Value(Value::inline(Form::Json, b"7".as_slice()))],
        printed: false,
        audit: None,
    }
}

fn begun(begun: &Begun) -> String {
    let task = begun.assignment.task.0;
    let ahead = begun.ahead.iter().map(|ahead| ahead.assignment.task.0);
    let ahead: Vec<String> = ahead.map(|task| task.to_string()).collect();
    match ahead.is_empty() {
        true => task.to_string(),
        false => format!("{task} ahead {}", ahead.join(" ")),
    }
}

fn told(reply: &Reply) -> Option<String> {
    Some(match reply {
        Reply::Nothing => return None,
        Reply::Continue { answers, .. } => format!("continue with {}", answers.len()),
        Reply::Suspended => "suspended".to_string(),
        Reply::Stopped => "stopped".to_string(),
        Reply::FollowerStopped => "follower stopped".to_string(),
        Reply::Begin(next) => format!("begin {}", begun(next)),
        Reply::Recalled(known) => format!("recalled {}", known.len()),
    })
}

/// An effect as text; reports to the observer are left out.
fn done(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::FindResult(query) => format!("look up {}", query.attempt.task.0),
        Effect::TurnOffered { attempt } => format!("offer {}", attempt.task.0),
        Effect::NextTurn { attempt } => format!("next turn {}", attempt.task.0),
        Effect::DropScript { task } => format!("drop script {}", task.0),
        Effect::StartProcess(assignment) => format!("start {}", assignment.task.0),
        Effect::ReadOn(attempt) => format!("read on {}", attempt.task.0),
        Effect::SendProcess(assignment) => format!("send {}", assignment.task.0),
        Effect::WithdrawProcess(attempt) => format!("withdraw {}", attempt.task.0),
        Effect::ProcessFollowed(assignment) => format!("followed {}", assignment.task.0),
        Effect::StopProcess(attempt) => format!("stop {}", attempt.task.0),
        Effect::StartWorker { worker, .. } => format!("start worker{}", worker.0),
        Effect::StopWorker { worker } => format!("stop worker{}", worker.0),
        Effect::StartInWorker {
            worker,
            begun: next,
        } => format!("start {} in worker{}", begun(next), worker.0),
        Effect::StopInWorker { worker, attempt } => {
            format!("stop {} in worker{}", attempt.task.0, worker.0)
        }
        Effect::NotifyWatcher {
            worker, attempt, ..
        } => {
            format!("notify {} in worker{}", attempt.task.0, worker.0)
        }
        Effect::DropParked { worker, task, .. } => format!("drop {} in worker{}", task.0, worker.0),
        Effect::DropObject(_) => "drop object".to_string(),
        Effect::ShrinkStore { bytes } => format!("shrink store to {bytes}"),
        Effect::GrowStore { bytes } => format!("grow store to {bytes}"),
        Effect::DeadlineMoved => "deadline".to_string(),
        Effect::AttemptFailed { left, .. } => format!("failed, {left} left"),
        Effect::JobEnded(_) => "job ended".to_string(),
        Effect::Quiet => "quiet".to_string(),
        Effect::ReplyLate { .. } | Effect::SendStarts { .. } => unreachable!("the home is here"),
        Effect::Compare(_) => "compare two runs".to_string(),
        Effect::TaskEnded(_) | Effect::Happened { .. } => return None,
    })
}
