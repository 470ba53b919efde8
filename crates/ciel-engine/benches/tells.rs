//! How long the engine is locked: each call of its door in jobs of a million tasks, one after the
//! other, with the longest and the 99.9th percentile of them.
//!
//! Waiting for the lock is not in these figures, nor what the runtime does under it. Each call is
//! measured by the processor time of its thread, so that a busy machine does not show in it, and by
//! the clock. `SHOW_NS=200000` lists the calls that take longer than that.

#![allow(missing_docs)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use ciel_coordinator::{Coordinator, Recorder};
use ciel_engine::{Caller, Effect, Engine, Event, Reply};
use ciel_graph::{self as graph, Output, Policy, Step};
use ciel_model::{
    AttemptNumber, Class, Content, Descriptor, Form, Handle, Input, Name, Pool, Purity, Resources,
    TaskKey, Value,
};
use ciel_node::{AttemptKey, Capacity, Node, WorkerKey};

/// That of the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TASKS: u32 = 1_000_000;

const CORES: u32 = 2;

/// Records as the journal takes them: spelled into memory, and gone when they have been written.
#[derive(Debug, Default)]
struct Spelled(Vec<u8>);

impl Recorder for Spelled {
    fn append(&mut self, spell: &mut dyn FnMut(&mut Vec<u8>)) {
        self.0.clear();
        spell(&mut self.0);
    }
}

struct Job {
    engine: Engine,
    effects: Vec<Effect>,
    /// Attempts in workers.
    running: VecDeque<(WorkerKey, AttemptKey)>,
    took: Vec<Took>,
    /// Longer calls are listed.
    show_ns: u64,
}

/// Nanoseconds of one call.
#[derive(Clone, Copy)]
struct Took {
    processor: u64,
    clock: u64,
}

/// Nanoseconds of processor time of this thread.
fn processor_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Job {
    /// A job in which a script has begun.
    fn new() -> Job {
        let capacity = Capacity {
            resources: Resources {
                millicores: CORES * 1000,
                ..Resources::default()
            },
            threads: CORES,
            serial: false,
        };
        let mut state = Coordinator::new(Policy::default(), false);
        state.record_to(Box::new(Spelled::default()));
        let mut job = Job {
            engine: Engine::new(state, Node::new(capacity)),
            effects: Vec::new(),
            running: VecDeque::new(),
            took: Vec::with_capacity(2 * TASKS as usize + 10),
            show_ns: std::env::var("SHOW_NS").map_or(u64::MAX, |limit| {
                limit.parse().expect("SHOW_NS is a number of nanoseconds")
            }),
        };
        let event = graph::Event::RootSubmitted {
            name: Name::of_root(b"bench"),
            descriptor: Arc::new(Descriptor::plain(
                "s",
                Class::Coordination,
                "s",
                b"s".as_slice(),
            )),
        };
        job.tell(event, Caller::Nobody);
        job.tell(
            Event::TurnTaken {
                attempt: attempt_of(0),
            },
            Caller::Thread,
        );
        job
    }

    fn tell(&mut self, event: impl Into<Event>, caller: Caller) {
        let event = event.into();
        let (start, before) = (Instant::now(), processor_ns());
        let reply = self.engine.tell(0, event, caller, &mut self.effects);
        let processor = processor_ns() - before;
        let clock = start.elapsed().as_nanos() as u64;
        if processor > self.show_ns {
            println!("call {}: {processor} ns", self.took.len());
        }
        self.took.push(Took { processor, clock });
        if let (Caller::Worker { worker, .. }, Reply::Begin(begun)) = (caller, reply) {
            self.running
                .push_back((worker, attempt_of(begun.assignment.task.0)));
        }
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::StartWorker { worker, .. } => {
                    let ready = Event::WorkerReady {
                        worker,
                        prefetches: false,
                        slots: 1,
                    };
                    self.tell(ready, Caller::Nobody);
                }
                Effect::StartInWorker { worker, begun } => {
                    self.running
                        .push_back((worker, attempt_of(begun.assignment.task.0)));
                }
                _ => {}
            }
        }
    }

    fn spawn(&mut self, number: u32, inputs: Vec<Handle>) {
        let descriptor = pooled(b"payload").with(|it| {
            it.inputs = inputs.into_iter().map(Input::value).collect();
            it.replayable = true;
        });
        self.spawn_as(number, descriptor);
    }

    /// A call that no other one equals, and of which the result may be shared.
    fn spawn_pure(&mut self, number: u32) {
        let descriptor = pooled(&number.to_le_bytes());
        self.spawn_as(number, descriptor.with(|it| it.purity = Purity::Declared));
    }

    fn spawn_as(&mut self, number: u32, descriptor: Descriptor) {
        let AttemptKey {
            task,
            number: attempt,
        } = attempt_of(0);
        let step = Step::Spawn {
            action: u64::from(number),
            first: Handle(number),
            descriptor: Arc::new(descriptor),
        };
        self.tell(
            graph::Event::TaskStepped {
                task,
                attempt,
                step,
            },
            Caller::Nobody,
        );
    }

    /// Ends the task that has run for longest; false if none runs.
    fn end_one(&mut self) -> bool {
        self.end_with(|_| Value::inline(Form::Json, b"7".as_slice()))
    }

    /// The same, with a file as its result.
    fn end_with_file(&mut self) -> bool {
        self.end_with(|attempt| {
            let name = Name::of_root(&attempt.task.0.to_le_bytes());
            let content = Content::File {
                name,
                length: 1 << 20,
                digest: None,
            };
            Value {
                form: Form::Json,
                content,
                references: Vec::new(),
            }
        })
    }

    fn end_with(&mut self, result: impl FnOnce(AttemptKey) -> Value<Handle>) -> bool {
        let Some((worker, attempt)) = self.running.pop_front() else {
            return false;
        };
        let end = Some(graph::Event::TaskFinished {
            task: attempt.task,
            attempt: attempt.number,
            outputs: vec![Output::Value(result(attempt))],
            printed: false,
            audit: None,
        });
        let follows = None;
        self.tell(
            Event::TurnEnded { attempt, end },
            Caller::Worker {
                worker,
                follows,
                is_last: true,
            },
        );
        true
    }

    fn show(&mut self, what: &str) {
        println!("{what}: {} calls", self.took.len());
        self.show_by("processor time", |took| took.processor);
        self.show_by("the clock", |took| took.clock);
    }

    fn show_by(&mut self, what: &str, ns: impl Fn(&Took) -> u64) {
        self.took.sort_unstable_by_key(|took| ns(took));
        let at = |share: f64| ns(&self.took[((self.took.len() - 1) as f64 * share) as usize]);
        println!(
            "  by {what}: {} ns median, {} ns at 99.9 %, {} ns the longest",
            at(0.5),
            at(0.999),
            at(1.0)
        );
    }
}

fn pooled(payload: &[u8]) -> Descriptor {
    Descriptor::plain("p", Class::Pooled(Pool::new("p", 1)), "t", payload.to_vec())
}

const fn attempt_of(task: u64) -> AttemptKey {
    AttemptKey {
        task: TaskKey(task),
        number: AttemptNumber(0),
    }
}

fn main() {
    let mut job = Job::new();
    for number in 0..TASKS {
        job.spawn(number, Vec::new());
    }
    job.show("spawn a million tasks");
    job.took.clear();
    while job.end_one() {}
    job.show("end a million tasks");

    let mut job = Job::new();
    for number in 0..TASKS {
        let inputs = number.checked_sub(1).map(Handle);
        job.spawn(number, inputs.into_iter().collect());
        job.end_one();
    }
    job.show("spawn and end a chain of a million tasks");

    let mut job = Job::new();
    for number in 0..TASKS {
        job.spawn_pure(number);
        job.end_with_file();
    }
    job.show("spawn and end a million pure calls of which the results are files");
}
