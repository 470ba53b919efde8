//! A root with children, for the unit tests of this crate.

use std::sync::Arc;

use ciel_model::{
    ActionKey, AttemptNumber, Class, Content, Descriptor, Failure, FailureKind, Form, Handle,
    Micros, Name, Pool, TaskKey, Value,
};

use crate::event::{Action, Continuation, Event, Output, Policy, Step, Wait};
use crate::graph::Graph;

pub(crate) const ROOT: TaskKey = TaskKey(0);
pub(crate) const FIRST: AttemptNumber = AttemptNumber(0);

pub(crate) fn tell(graph: &mut Graph, event: Event) -> Vec<Action> {
    tell_at(graph, 0, event)
}

pub(crate) fn tell_at(graph: &mut Graph, now: Micros, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    graph.handle(now, event, &mut actions);
    graph.check_all();
    actions
}

/// The tasks that are offered, in that order.
pub(crate) fn offered(actions: &[Action]) -> Vec<TaskKey> {
    let offered = actions.iter().filter_map(|action| match action {
        Action::Offer { task, .. } => Some(*task),
        _ => None,
    });
    offered.collect()
}

pub(crate) fn place(graph: &mut Graph, task: TaskKey) {
    let attempt = FIRST;
    tell(graph, Event::TaskPlaced { task, attempt });
}

fn step(graph: &mut Graph, step: Step) {
    let (task, attempt) = (ROOT, FIRST);
    let event = Event::TaskStepped {
        task,
        attempt,
        step,
    };
    tell(graph, event);
}

/// The root waits for one reference.
pub(crate) fn block_for(
    graph: &mut Graph,
    on: Handle,
    wait: Wait,
    continuation: Continuation,
) -> Vec<Action> {
    let event = Event::TaskBlocked {
        task: ROOT,
        attempt: FIRST,
        kept: None,
        on: vec![on],
        wait,
        continuation,
        checkpoint: None,
    };
    tell(graph, event)
}

pub(crate) fn finish(graph: &mut Graph, task: TaskKey) {
    tell(graph, finished(task, Content::Inline("7".into())));
}

/// The first attempt of a task has ended with this as its only output.
pub(crate) fn finished(task: TaskKey, content: Content) -> Event {
    let value = Value {
        form: Form::Bytes,
        content,
        references: Vec::new(),
    };
    Event::TaskFinished {
        task,
        attempt: FIRST,
        outputs: vec![Output::Value(value)],
        printed: false,
        audit: None,
    }
}

pub(crate) fn fail(graph: &mut Graph, task: TaskKey) {
    let label = graph.tasks[&task].label();
    let failure = Failure::new(FailureKind::TaskError, label, "no");
    let event = Event::TaskFailed {
        task,
        attempt: FIRST,
        failure: Box::new(failure),
    };
    tell(graph, event);
}

pub(crate) fn descriptor(what: &str) -> Descriptor {
    Descriptor::plain("e", Class::Pooled(Pool::new("e", 1)), what, Vec::new())
        .with(|it| it.replayable = true)
}

/// A root that runs since time 0.
pub(crate) fn root() -> Graph {
    running(descriptor("root"))
}

/// Another root that does.
pub(crate) fn running(root: Descriptor) -> Graph {
    let mut graph = Graph::new(Policy::default());
    let submitted = Event::RootSubmitted {
        name: Name::of_root(b"job"),
        descriptor: Arc::new(root),
    };
    tell(&mut graph, submitted);
    place(&mut graph, ROOT);
    graph
}

fn spawn(graph: &mut Graph, action: u64, first: Handle) {
    let spawn = Step::Spawn {
        action,
        first,
        descriptor: Arc::new(descriptor("child")),
    };
    step(graph, spawn);
}

/// A root that made an object, handle 0, and spawned two children, handles 1 and 2.
pub(crate) fn parent() -> Graph {
    let mut graph = root();
    step(
        &mut graph,
        Step::Construct {
            at: ActionKey::action(0),
            handle: Handle(0),
            value: Value::inline(Form::Bytes, "made"),
        },
    );
    for action in [1, 2] {
        spawn(&mut graph, action, Handle(action as u32));
    }
    graph
}

/// A root that spawned children, tasks from 1 on, handles from 0 on.
pub(crate) fn parent_of(children: u32) -> Graph {
    let mut graph = root();
    for number in 0..children {
        spawn(&mut graph, u64::from(number), Handle(number));
    }
    graph
}
