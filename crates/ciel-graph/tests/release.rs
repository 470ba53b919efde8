//! Handles that a task releases: what nobody else can name goes with its file, and what a replay
//! receives stays.

#![allow(missing_docs)]

use std::collections::BTreeSet;
use std::sync::Arc;

use ciel_graph::{Action, Continuation, Entry, Event, Graph, Output, Policy, Step, Wait};
use ciel_model::{
    AttemptNumber, Class, Content, Descriptor, Failure, FailureKind, Form, Handle, Input, Label,
    Name, Pool, Purity, Resolution, TaskKey, Value, limits,
};

const ROOT: TaskKey = TaskKey(0);

/// A root that runs, and what the graph has said so far of files that can go.
struct World {
    graph: Graph,
    attempt: AttemptNumber,
    dropped: Vec<Name>,
    /// Tasks that were offered last.
    offered: Vec<TaskKey>,
    /// Answers that a replay of the root has received.
    recalled: Vec<(Handle, Resolution)>,
    failed: Option<Failure>,
}

impl World {
    fn new() -> World {
        World::with(true)
    }

    /// A root that records what it does, so that it can be replayed, or one that does not.
    fn with(replayable: bool) -> World {
        let mut world = World {
            graph: Graph::new(Policy::default()),
            attempt: AttemptNumber(0),
            dropped: Vec::new(),
            offered: Vec::new(),
            recalled: Vec::new(),
            failed: None,
        };
        let pool = Class::Pooled(Pool::new("e", 1));
        let root =
            Descriptor::plain("e", pool, "root", Vec::new()).with(|it| it.replayable = replayable);
        world.tell(Event::RootSubmitted {
            name: Name::of_root(b"job"),
            descriptor: Arc::new(root),
        });
        world.place(ROOT);
        world
    }

    fn tell(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.graph.handle(0, event, &mut actions);
        self.graph.check_all();
        self.offered.clear();
        for action in actions {
            match action {
                Action::Offer { task, .. } => self.offered.push(task),
                Action::DropObject(name) => self.dropped.push(name),
                Action::Recalled { known, .. } => self.recalled = known,
                Action::Ended(ended) if &*ended.label.what == "root" => {
                    self.failed = ended.failure.map(|failure| (*failure).clone());
                }
                Action::Begin(assignment) if assignment.task == ROOT => {
                    self.attempt = assignment.attempt;
                    let begins = matches!(assignment.entry, Entry::Start(_) | Entry::Replay { .. });
                    assert!(begins || matches!(assignment.entry, Entry::Resume(_)));
                }
                _ => {}
            }
        }
    }

    fn place(&mut self, task: TaskKey) {
        let attempt = match task {
            ROOT => self.graph.view(ROOT).unwrap().attempts - 1,
            _ => 0,
        };
        let attempt = AttemptNumber(attempt);
        self.tell(Event::TaskPlaced { task, attempt });
    }

    fn step(&mut self, step: Step) {
        let (task, attempt) = (ROOT, self.attempt);
        self.tell(Event::TaskStepped {
            task,
            attempt,
            step,
        });
    }

    /// The root spawns a task as that action, whose output has the handle of that number.
    fn spawn(&mut self, action: u64, inputs: &[u64]) {
        self.spawn_as(action, inputs, false);
    }

    fn spawn_as(&mut self, action: u64, inputs: &[u64], pure: bool) {
        let inputs = inputs.iter().map(|input| Input::value(handle(*input)));
        let descriptor = Descriptor::plain("sh", Class::Process, "step", Vec::new()).with(|it| {
            it.purity = Purity::of(pure.then_some(true), false);
            it.inputs = inputs.collect();
        });
        self.step(Step::Spawn {
            action,
            first: handle(action),
            descriptor: Arc::new(descriptor),
        });
    }

    fn release(&mut self, handles: &[u64]) {
        let handles = handles.iter().map(|number| handle(*number)).collect();
        self.step(Step::Release { handles });
    }

    /// The task of the root's action `action` runs and leaves a file, whose name is returned.
    fn finish(&mut self, action: u64) -> Name {
        let task = TaskKey(action + 1);
        self.finish_task(task)
    }

    fn finish_task(&mut self, task: TaskKey) -> Name {
        let name = self.graph.view(task).unwrap().label.name.output(0);
        self.place(task);
        self.tell(Event::TaskFinished {
            task,
            attempt: AttemptNumber(0),
            outputs: vec![Output::Value(file(name))],
            printed: false,
            audit: None,
        });
        name
    }

    fn wait(&mut self, number: u64) {
        self.tell(Event::TaskBlocked {
            task: ROOT,
            attempt: self.attempt,
            kept: None,
            on: vec![handle(number)],
            wait: Wait::ALL,
            continuation: Continuation::Live,
            checkpoint: None,
        });
    }

    /// The worker of the root is lost, and another one replays it.
    fn lose(&mut self) {
        let label = Label {
            what: "root".into(),
            name: Name(0),
        };
        let failure = Failure::new(FailureKind::WorkerLost, label, "it died");
        self.tell(Event::TaskLost {
            task: ROOT,
            attempt: self.attempt,
            failure: Box::new(failure),
        });
        self.place(ROOT);
    }

    fn files(&self) -> BTreeSet<Name> {
        self.graph.files().into_keys().collect()
    }
}

fn handle(number: u64) -> Handle {
    Handle(number as u32)
}

fn file(name: Name) -> Value<Handle> {
    Value {
        form: Form::Bytes,
        content: Content::File {
            name,
            length: 1 << 20,
            digest: None,
        },
        references: Vec::new(),
    }
}

/// `f = step.spawn(f)` in a loop once kept the files of all rounds until the task ended.
fn chain() -> usize {
    let mut world = World::new();
    let mut most = 0;
    let mut made = BTreeSet::new();
    for round in 0..40u64 {
        let before: Vec<u64> = round.checked_sub(1).into_iter().collect();
        world.spawn(round, &before);
        // The next message after the handle was dropped brings it.
        if let Some(gone) = round.checked_sub(2) {
            world.release(&[gone]);
        }
        made.insert(world.finish(round));
        most = most.max(world.files().len());
    }
    let kept = world.files();
    let dropped: BTreeSet<Name> = world.dropped.iter().copied().collect();
    assert_eq!(dropped.len(), world.dropped.len(), "each file goes once");
    assert!(dropped.is_disjoint(&kept));
    assert_eq!(dropped.union(&kept).count(), made.len());
    world.wait(39);
    assert!(world.failed.is_none());
    most
}

#[test]
fn chain_of_released_references_keeps_the_last_files_and_one_source() {
    assert!(chain() <= 3, "{}", chain());
}

#[test]
fn chain_that_was_spawned_at_once_keeps_as_few_files() {
    let mut world = World::new();
    for round in 0..40u64 {
        let before: Vec<u64> = round.checked_sub(1).into_iter().collect();
        world.spawn(round, &before);
    }
    world.release(&(0..39).collect::<Vec<_>>());
    let mut most = 0;
    for round in 0..40 {
        world.finish(round);
        most = most.max(world.files().len());
    }
    assert!(most <= 3, "{most}");
}

#[test]
fn many_released_results_are_dropped_as_each_is_ready() {
    let mut world = World::new();
    (0..300).for_each(|action| world.spawn(action, &[]));
    world.release(&(0..300).collect::<Vec<_>>());
    for action in 0..300 {
        let name = world.finish(action);
        assert_eq!(world.dropped.last(), Some(&name));
    }
    assert!(world.files().is_empty());
}

#[test]
fn demanded_value_stays_for_the_replay() {
    let mut world = World::new();
    world.spawn(0, &[]);
    world.spawn(1, &[]);
    world.wait(0);
    let (first, second) = (world.finish(0), world.finish(1));
    world.place(ROOT);
    world.release(&[0, 1]);
    assert_eq!(world.dropped, [second]);
    assert_eq!(world.files(), BTreeSet::from([first]));
    world.lose();
    let (task, attempt) = (ROOT, world.attempt);
    world.tell(Event::TaskRecalled { task, attempt });
    let told: Vec<Handle> = world.recalled.iter().map(|(handle, _)| *handle).collect();
    assert_eq!(told, [Handle(0)]);
}

#[test]
fn replay_repeats_spawns_with_values_that_are_gone() {
    let mut world = World::new();
    world.spawn(0, &[]);
    world.spawn(1, &[0]);
    world.release(&[0]);
    let gone = world.finish(0);
    world.finish(1);
    assert_eq!(world.dropped, [gone]);
    world.lose();
    world.spawn(0, &[]);
    world.spawn(1, &[0]);
    world.release(&[0]);
    world.spawn(2, &[1]);
    assert!(world.failed.is_none());
    assert_eq!(world.dropped, [gone]);
    assert!(!world.files().contains(&gone));
}

#[test]
fn replay_that_uses_a_dropped_value_anew_fails() {
    let mut world = World::new();
    world.spawn(0, &[]);
    world.finish(0);
    world.release(&[0]);
    world.lose();
    world.spawn(0, &[]);
    world.spawn(1, &[0]);
    let failure = world.failed.expect("the root has failed");
    assert_eq!(failure.kind, FailureKind::NonDeterministic);
}

#[test]
fn strand_is_not_rolled_back_to_where_it_could_name_a_dropped_value() {
    let mut world = World::new();
    (0..3).for_each(|action| world.spawn(action, &[]));
    assert_eq!(world.graph.rollback_min(ROOT), Some(0));
    world.release(&[0]);
    assert_eq!(world.graph.rollback_min(ROOT), Some(0));
    world.finish(0);
    assert_eq!(world.graph.rollback_min(ROOT), Some(3));
}

/// A rollback to a point before a release must not drop what the strand names there again.
#[test]
fn rolled_back_strand_names_again_what_it_had_released() {
    let mut world = World::new();
    (0..2).for_each(|action| world.spawn(action, &[]));
    world.release(&[0]);
    world.tell(Event::TaskRolledBack { task: ROOT, to: 1 });
    world.finish(0);
    world.place(ROOT);
    world.spawn(0, &[]);
    assert!(world.dropped.is_empty());
    world.spawn(1, &[0]);
    assert!(world.failed.is_none());
}

/// The files of the last two rounds are lost with the engine; those between them and the nearest
/// source were dropped before, and are recomputed on the way.
#[test]
fn lost_file_is_recomputed_through_files_that_were_dropped() {
    let mut world = World::new();
    let mut made = Vec::new();
    for round in 0..14u64 {
        let before: Vec<u64> = round.checked_sub(1).into_iter().collect();
        world.spawn(round, &before);
        if let Some(gone) = round.checked_sub(2) {
            world.release(&[gone]);
        }
        made.push(world.finish(round));
    }
    let dropped = world.dropped.clone();
    world.tell(Event::EngineLost {
        policy: Policy::default(),
        lost: made[12..].to_vec(),
    });
    let mut again = Vec::new();
    while world.offered != [ROOT] {
        let task = world.offered[0];
        again.push(world.finish_task(task));
    }
    assert!(made.ends_with(&again), "in order: {again:?}");
    let before = &again[..again.len() - 2];
    assert!(!before.is_empty() && before.iter().all(|name| dropped.contains(name)));
}

/// The child that a rollback cancels is the last that holds what was released after its spawn: the
/// value was dropped with it, although the strand will spawn that child again.
#[test]
fn value_stays_that_only_an_undone_task_holds() {
    let mut world = World::new();
    world.spawn(0, &[]);
    world.spawn(1, &[0]);
    world.release(&[0]);
    world.finish(0);
    world.tell(Event::TaskRolledBack { task: ROOT, to: 1 });
    world.place(ROOT);
    world.spawn(0, &[]);
    world.spawn(1, &[0]);
    assert!(world.dropped.is_empty() && world.failed.is_none());
}

#[test]
fn equal_call_runs_again_when_the_shared_result_is_gone() {
    let mut world = World::new();
    world.spawn_as(0, &[], true);
    world.finish(0);
    world.spawn_as(1, &[], true);
    world.release(&[0, 1]);
    assert_eq!(world.dropped.len(), 1, "both are one file");
    world.spawn_as(2, &[], true);
    assert_eq!(world.graph.counts().shared, 1);
    world.finish(2);
    assert_eq!(world.files().len(), 1);
}

#[test]
fn unknown_handles_are_ignored_and_released_ones_stay_taken() {
    let mut world = World::new();
    world.spawn(0, &[]);
    world.release(&[
        0,
        0,
        7,
        u64::from(Handle::DELIVERED_MIN),
        u64::from(u32::MAX),
    ]);
    assert!(world.failed.is_none());
    let again = Descriptor::plain("sh", Class::Process, "step", Vec::new());
    world.step(Step::Spawn {
        action: 1,
        first: Handle(0),
        descriptor: Arc::new(again),
    });
    let failure = world.failed.expect("the root has failed");
    assert_eq!(failure.kind, FailureKind::Refused);
}

#[test]
fn task_that_records_nothing_lets_go_of_what_it_releases() {
    let mut world = World::with(false);
    world.spawn(0, &[]);
    world.spawn(1, &[0]);
    world.release(&[0]);
    let first = world.finish(0);
    assert!(world.dropped.is_empty(), "a task needs it");
    world.finish(1);
    assert_eq!(world.dropped, [first]);
}

#[test]
fn watched_reference_is_not_released() {
    for replayable in [true, false] {
        let mut world = World::with(replayable);
        world.spawn(0, &[]);
        world.tell(Event::TaskWatched {
            task: ROOT,
            attempt: world.attempt,
            handle: Handle(0),
        });
        world.release(&[0]);
        world.finish(0);
        assert!(world.dropped.is_empty());
    }
}

/// "Each file keeps its lineage up to eight steps back": one that is further back is taken as it
/// is, so it stays, although nobody can name it.
#[test]
fn file_behind_more_steps_than_would_be_rerun_stays_with_what_was_made_of_it() {
    let mut world = World::new();
    let steps = u64::from(limits::LINEAGE_DEPTH_MAX);
    let mut files = Vec::new();
    for action in 0..steps + 3 {
        let inputs: Vec<u64> = action.checked_sub(1).into_iter().collect();
        world.spawn(action, &inputs);
        files.push(world.finish(action));
        world.release(&inputs);
    }
    let [deep, last] = [steps, steps + 2].map(|action| files[action as usize]);
    assert_eq!(world.files(), BTreeSet::from([deep, last]));
    assert_eq!(world.dropped.len(), files.len() - 2);
    world.release(&[steps + 2]);
    let dropped: BTreeSet<Name> = world.dropped.iter().copied().collect();
    assert_eq!(dropped, files.into_iter().collect());
}
