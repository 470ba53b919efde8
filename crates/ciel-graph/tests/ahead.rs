//! What the graph says of a task before its time is what it says when the task begins.

#![allow(missing_docs)]

use std::sync::Arc;

use ciel_graph::{Action, Ahead, Assignment, Entry, Event, Graph, Output, Policy, Step};
use ciel_model::{
    AttemptNumber, Class, Descriptor, Form, Handle, Input, Name, Options, Pool, Resources, TaskKey,
    Value,
};

const ROOT: u64 = 0;

struct Driver {
    graph: Graph,
    actions: Vec<Action>,
    /// Spawns of the root so far.
    spawns: u64,
}

/// A spawn with one output, whose handle is the index.
fn spawn(action: u64, descriptor: Descriptor) -> Step {
    Step::Spawn {
        action,
        first: Handle(action as u32),
        descriptor: Arc::new(descriptor),
    }
}

impl Driver {
    fn new() -> Driver {
        let mut driver = Driver {
            graph: Graph::new(Policy::default()),
            actions: Vec::new(),
            spawns: 0,
        };
        driver.tell(Event::RootSubmitted {
            name: Name::of_root(b"test"),
            descriptor: Arc::new(worker(&[])),
        });
        driver.begin(ROOT);
        driver
    }

    fn tell(&mut self, event: Event) {
        self.actions.clear();
        self.graph.handle(0, event, &mut self.actions);
    }

    /// The root spawns; its outputs are handles 0, 1, … in this order.
    fn spawn(&mut self, descriptor: Descriptor) {
        let step = spawn(self.spawns, descriptor);
        self.spawns += 1;
        self.tell(Event::TaskStepped {
            task: TaskKey(ROOT),
            attempt: AttemptNumber(0),
            step,
        });
    }

    fn begin(&mut self, task: u64) -> Option<Assignment> {
        self.tell(Event::TaskPlaced {
            task: TaskKey(task),
            attempt: AttemptNumber(0),
        });
        self.actions.iter().find_map(|action| match action {
            Action::Begin(assignment) => Some((**assignment).clone()),
            _ => None,
        })
    }

    fn finish(&mut self, task: u64, output: Output) {
        self.tell(Event::TaskFinished {
            task: TaskKey(task),
            attempt: AttemptNumber(0),
            outputs: vec![output],
            printed: false,
            audit: None,
        });
    }

    fn ahead(&self, before: &[u64]) -> Option<Ahead> {
        let before: Vec<TaskKey> = before.iter().map(|task| TaskKey(*task)).collect();
        self.graph.ahead(&before)
    }

    fn preview(&self, task: u64) -> Option<Ahead> {
        self.graph.preview(TaskKey(task), AttemptNumber(0))
    }
}

fn worker(inputs: &[u32]) -> Descriptor {
    Descriptor {
        inputs: inputs
            .iter()
            .map(|handle| Input::value(Handle(*handle)))
            .collect(),
        ..Descriptor::plain(
            "python",
            Class::Pooled(Pool::new("python", 1)),
            "t",
            Vec::new(),
        )
    }
}

fn text(words: &str, references: &[u32]) -> Output {
    Output::Value(Value {
        references: references.iter().map(|handle| Handle(*handle)).collect(),
        ..Value::inline(Form::Text, words.to_string())
    })
}

fn known(assignment: &Assignment) -> Vec<u32> {
    let Entry::Start(known) = &assignment.entry else {
        panic!("it has not run yet");
    };
    known.iter().map(|(handle, _)| handle.0).collect()
}

#[test]
fn chain_is_told_link_by_link_and_begins_as_it_was_told() {
    let mut driver = Driver::new();
    for inputs in [&[][..], &[0], &[0, 1], &[1, 2]] {
        driver.spawn(worker(inputs));
    }
    driver.begin(1);
    let second = driver.ahead(&[1]).expect("it needs only the first");
    assert_eq!(second.assignment.task, TaskKey(2));
    assert_eq!(known(&second.assignment), []);
    let third = driver.ahead(&[1, 2]).expect("it needs both");
    assert_eq!(third.assignment.task, TaskKey(3));
    let producers: Vec<_> = third.awaited.iter().map(|it| it.producer.0).collect();
    assert_eq!(producers, [1, 2]);

    driver.finish(1, text("one", &[]));
    let now = driver.preview(2).expect("it is ready now");
    assert_eq!(known(&now.assignment), [0]);
    assert_eq!(driver.begin(2), Some(*now.assignment));
    let third = driver.ahead(&[2]).expect("the first is there");
    assert_eq!(known(&third.assignment), [0]);
    assert_eq!(third.awaited.len(), 1);
}

#[test]
fn task_that_needs_what_nobody_before_it_makes_is_not_told() {
    let mut driver = Driver::new();
    driver.spawn(worker(&[]));
    driver.spawn(worker(&[]));
    driver.spawn(worker(&[0, 1]));
    driver.begin(1);
    assert_eq!(driver.ahead(&[1]), None);
    driver.begin(2);
    assert_eq!(driver.ahead(&[1]), None);
    driver.finish(2, text("two", &[]));
    assert!(driver.ahead(&[1]).is_some());
}

#[test]
fn task_of_another_kind_or_size_cannot_follow() {
    let large = Options {
        resources: Resources {
            millicores: 2000,
            ..Resources::default()
        },
        ..Options::default()
    };
    for other in [
        worker(&[0]).with(|it| it.class = Class::Process),
        worker(&[0]).with(|it| it.options = Arc::new(large)),
        Descriptor {
            inputs: vec![Input::reference(Handle(0))],
            ..worker(&[0])
        },
    ] {
        let mut driver = Driver::new();
        driver.spawn(worker(&[]));
        driver.spawn(other);
        driver.begin(1);
        assert_eq!(driver.ahead(&[1]), None);
    }
}

#[test]
fn value_with_references_inside_is_told_only_when_its_task_begins() {
    let mut driver = Driver::new();
    driver.spawn(worker(&[]));
    driver.spawn(worker(&[0]));
    driver.begin(1);
    driver.tell(Event::TaskStepped {
        task: TaskKey(1),
        attempt: AttemptNumber(0),
        step: spawn(0, worker(&[])),
    });
    driver.finish(1, text("[ref]", &[0]));
    assert_eq!(driver.preview(2), None);
    let begun = driver.begin(2).expect("it is ready");
    assert_eq!(known(&begun), [0]);
}

#[test]
fn task_that_has_run_before_is_not_previewed() {
    let mut driver = Driver::new();
    driver.spawn(worker(&[]));
    assert!(driver.preview(1).is_some());
    driver.begin(1);
    assert_eq!(driver.preview(1), None);
}

#[test]
fn looking_ahead_changes_nothing() {
    let mut driver = Driver::new();
    driver.spawn(worker(&[]));
    driver.spawn(worker(&[0]));
    driver.begin(1);
    let before = format!("{:?}", driver.graph);
    assert!(driver.ahead(&[1]).is_some());
    assert_eq!(format!("{:?}", driver.graph), before);
}

#[test]
fn cancelled_task_among_the_waiters_is_passed_over() {
    // The graph stopped: who waits for an output was taken to be there still. The simulator found
    // it.
    let mut driver = Driver::new();
    driver.spawn(worker(&[]));
    driver.spawn(worker(&[0]));
    driver.spawn(worker(&[0]));
    driver.begin(1);
    driver.tell(Event::CancelRequested { task: TaskKey(2) });
    let next = driver.ahead(&[1]).expect("the other one waits still");
    assert_eq!(next.assignment.task, TaskKey(3));
}
