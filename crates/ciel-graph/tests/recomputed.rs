//! Files that are recomputed under other names than the lost ones had, as workers leave them.

#![allow(missing_docs)]

use std::sync::Arc;

use ciel_graph::{Action, Event, Graph, Output, Policy, Step};
use ciel_model::{
    ActionKey, AttemptNumber, Class, Content, Descriptor, Form, Handle, Name, Pool, TaskKey, Value,
};

const ROOT: TaskKey = TaskKey(0);
const FIRST: AttemptNumber = AttemptNumber(0);

fn tell(graph: &mut Graph, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    graph.handle(0, event, &mut actions);
    graph.check_all();
    actions
}

fn place(graph: &mut Graph, task: TaskKey, attempt: u32) {
    let attempt = AttemptNumber(attempt);
    tell(graph, Event::TaskPlaced { task, attempt });
}

fn step(graph: &mut Graph, task: TaskKey, step: Step) -> Vec<Action> {
    let attempt = FIRST;
    tell(
        graph,
        Event::TaskStepped {
            task,
            attempt,
            step,
        },
    )
}

/// A root that runs and has spawned a task, which runs, too.
fn parent_and_child() -> Graph {
    let mut graph = Graph::new(Policy::default());
    let root = Descriptor::plain("e", Class::Pooled(Pool::new("e", 1)), "root", Vec::new())
        .with(|it| it.replayable = true);
    let name = Name::of_root(b"job");
    let descriptor = Arc::new(root);
    tell(&mut graph, Event::RootSubmitted { name, descriptor });
    place(&mut graph, ROOT, 0);
    let child = Descriptor::plain("sh", Class::Process, "child", Vec::new());
    let spawn = Step::Spawn {
        action: 0,
        first: Handle(0),
        descriptor: Arc::new(child),
    };
    step(&mut graph, ROOT, spawn);
    place(&mut graph, TaskKey(1), 0);
    graph
}

/// The task ends with a file of that name, which it publishes before or gives with its end.
fn give(
    graph: &mut Graph,
    (task, attempt): (TaskKey, u32),
    name: Name,
    is_published: bool,
) -> Vec<Action> {
    let content = Content::File {
        name,
        length: 7,
        digest: None,
    };
    let value = Value {
        form: Form::Bytes,
        content,
        references: Vec::new(),
    };
    let attempt = AttemptNumber(attempt);
    let mut actions = Vec::new();
    let output = match is_published {
        false => Output::Value(value),
        true => {
            let (at, handle) = (ActionKey::action(0), Handle(0));
            let publish = Step::Publish {
                at,
                handle,
                index: 0,
                value,
            };
            actions = step(graph, task, publish);
            Output::Published
        }
    };
    let event = Event::TaskFinished {
        task,
        attempt,
        outputs: vec![output],
        printed: false,
        audit: None,
    };
    actions.extend(tell(graph, event));
    actions
}

fn lose(graph: &mut Graph, lost: &[Name]) -> Vec<TaskKey> {
    let (policy, lost) = (Policy::default(), lost.to_vec());
    offered(&tell(graph, Event::EngineLost { policy, lost }))
}

fn offered(actions: &[Action]) -> Vec<TaskKey> {
    let offered = actions.iter().filter_map(|action| match action {
        Action::Offer { task, .. } => Some(*task),
        _ => None,
    });
    offered.collect()
}

fn files(graph: &Graph) -> Vec<Name> {
    graph.files().into_keys().collect()
}

/// A worker leaves each result in a file of a new name, also one that it publishes: another run of
/// the task was not known to recompute the first file, and the job failed.
#[test]
fn file_of_another_name_takes_the_place_of_the_lost_one() {
    let [lost, now] = [b"one", b"two"].map(|name| Name::of_root(name));
    for is_published in [false, true] {
        let mut graph = parent_and_child();
        give(&mut graph, (TaskKey(1), 0), lost, is_published);
        assert_eq!(lose(&mut graph, &[lost]), [TaskKey(2)]);
        place(&mut graph, TaskKey(2), 0);
        let actions = give(&mut graph, (TaskKey(2), 0), now, is_published);
        assert_eq!(offered(&actions), [ROOT]);
        let dropped = actions.iter().filter_map(|action| match action {
            Action::DropObject(name) => Some(*name),
            _ => None,
        });
        assert_eq!(dropped.collect::<Vec<Name>>(), [lost]);
        assert_eq!(files(&graph), [now], "published: {is_published}");
        // That one can be lost, too.
        assert_eq!(lose(&mut graph, &[now]), [TaskKey(3)]);
    }
}

/// The lost file is missing until another one has taken its place: a second crash before that
/// forgot what the first resume had begun, and whose objects nobody released.
#[test]
fn second_crash_goes_on_with_what_is_recomputed_unless_more_is_lost() {
    let [lost, now] = [b"one", b"two"].map(|name| Name::of_root(name));
    let mut graph = parent_and_child();
    give(&mut graph, (TaskKey(1), 0), lost, false);
    lose(&mut graph, &[lost]);
    place(&mut graph, TaskKey(2), 0);
    assert_eq!(lose(&mut graph, &[lost]), [TaskKey(2)]);
    let other = Name::of_root(b"other");
    assert_eq!(lose(&mut graph, &[lost, other]), [TaskKey(3)]);
    place(&mut graph, TaskKey(3), 0);
    let actions = give(&mut graph, (TaskKey(3), 0), now, false);
    assert_eq!(offered(&actions), [ROOT, TaskKey(2)]);
    assert_eq!(files(&graph), [now]);
}
