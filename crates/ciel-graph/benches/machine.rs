//! What the graph costs for each task: spawned and finished, alone or one after another.
//!
//! The node, the runtime and the language are not in these figures.

#![allow(missing_docs)]

use std::hint::black_box;
use std::sync::Arc;

use ciel_graph::{Action, Continuation, Event, Graph, Output, Policy, Step, Wait};
use ciel_model::{AttemptNumber, Class, Descriptor, Form, Handle, Input, Name, TaskKey, Value};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const TASKS: u64 = 1000;

const FIRST: AttemptNumber = AttemptNumber(0);

/// A graph, and tasks that it has offered and no site has taken.
struct Driver {
    graph: Graph,
    actions: Vec<Action>,
    offered: Vec<TaskKey>,
    /// Spawns of the root so far.
    spawns: u64,
    /// The next free handle of the root.
    next_handle: u32,
}

impl Driver {
    /// A root that runs.
    fn new() -> Driver {
        let mut driver = Driver {
            graph: Graph::new(Policy::default()),
            actions: Vec::new(),
            offered: Vec::new(),
            spawns: 0,
            next_handle: 0,
        };
        driver.tell(Event::RootSubmitted {
            name: Name::of_root(b"bench"),
            descriptor: Arc::new(plain(Vec::new())),
        });
        driver.place();
        driver
    }

    fn tell(&mut self, event: Event) {
        self.graph.handle(0, event, &mut self.actions);
        for action in self.actions.drain(..) {
            if let Action::Offer { task, .. } = &action {
                self.offered.push(*task);
            }
            black_box(action);
        }
    }

    /// The task offered last begins.
    fn place(&mut self) -> TaskKey {
        let task = self.offered.pop().expect("a task is offered");
        let attempt = FIRST;
        self.tell(Event::TaskPlaced { task, attempt });
        task
    }

    fn spawn(&mut self, task: TaskKey, inputs: Vec<Handle>) {
        let step = Step::Spawn {
            action: self.spawns,
            first: Handle(self.next_handle),
            descriptor: Arc::new(plain(inputs)),
        };
        self.spawns += 1;
        self.next_handle += 1;
        let attempt = FIRST;
        self.tell(Event::TaskStepped {
            task,
            attempt,
            step,
        });
    }

    fn finish(&mut self, task: TaskKey) {
        self.tell(Event::TaskFinished {
            task,
            attempt: FIRST,
            outputs: vec![Output::Value(Value::inline(Form::Json, "1"))],
            printed: false,
            audit: None,
        });
    }

    /// The root waits for `on`; it resumes when that is resolved.
    fn wait(&mut self, on: Handle) {
        self.next_handle = 1;
        self.tell(Event::TaskBlocked {
            task: TaskKey(0),
            attempt: FIRST,
            kept: Some(vec![on]),
            on: vec![Handle(0)],
            wait: Wait::ALL,
            continuation: Continuation::Live,
            checkpoint: None,
        });
    }
}

fn plain(inputs: Vec<Handle>) -> Descriptor {
    Descriptor {
        inputs: inputs.into_iter().map(Input::reference).collect(),
        ..Descriptor::plain("script", Class::Coordination, "bench", "payload")
    }
}

/// All are spawned, then each is run.
fn wide(driver: &mut Driver) {
    for _ in 0..TASKS {
        driver.spawn(TaskKey(0), Vec::new());
    }
    for _ in 0..TASKS {
        let task = driver.place();
        driver.finish(task);
    }
}

/// Each is spawned, waited for and run before the next.
fn stepwise(driver: &mut Driver) {
    for index in 0..TASKS {
        driver.spawn(TaskKey(0), Vec::new());
        driver.wait(Handle(u32::from(index > 0)));
        let task = driver.place();
        driver.finish(task);
        driver.place();
    }
}

/// Each hands its output over to the next.
fn handed_over(driver: &mut Driver) {
    driver.spawn(TaskKey(0), Vec::new());
    for _ in 0..TASKS {
        let task = driver.place();
        driver.tell(Event::TaskTailSpawned {
            task,
            attempt: FIRST,
            descriptor: Arc::new(plain(Vec::new())),
            after: 0,
            audit: None,
        });
    }
}

/// A way of asking for tasks.
type Shape = fn(&mut Driver);

fn tasks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("task");
    group.throughput(Throughput::Elements(TASKS));
    let shapes: [(&str, Shape); 3] = [
        ("wide", wide),
        ("stepwise", stepwise),
        ("handed over", handed_over),
    ];
    for (name, shape) in shapes {
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(Driver::new, shape, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, tasks);
criterion_main!(benches);
