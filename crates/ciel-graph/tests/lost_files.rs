//! Files that are lost at random while a run lives, in a small world with seeds.
//!
//! The world is a graph, the set of files that exist, and tasks that read their inputs when they
//! begin. A root spawns commands that read files of earlier ones, waits for all, and reads them.

#![allow(missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ciel_graph::{
    Action, Assignment, Continuation, Entry, Event, Graph, JobOutcome, Output, Policy, Step, Wait,
};
use ciel_model::{
    AttemptNumber, Class, Content, Descriptor, Failure, FailureKind, Form, Handle, Input, Label,
    Name, Pool, Purity, Resolution, TaskKey, Value,
};

/// Worlds, each with a seed of its own.
const SEEDS: u64 = 400;

/// Steps after which a world is taken to be endless.
const STEPS_MAX: usize = 5000;

/// Files are lost at so many moments at most.
const LOSSES_MAX: usize = 8;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A command of the job.
#[derive(Clone)]
struct Command {
    /// The commands before it whose files it reads.
    inputs: Vec<u32>,
    is_impure: bool,
}

/// What a world has met.
#[derive(Debug, Default)]
struct Met {
    well: u64,
    impossible: u64,
    rerun: u64,
    missed: u64,
    crashes: u64,
    lost_while_recomputing: u64,
}

struct World {
    graph: Graph,
    random: Random,
    commands: Vec<Command>,
    files: BTreeSet<Name>,
    offered: Vec<(TaskKey, AttemptNumber)>,
    running: Vec<Assignment>,
    /// Whether the root has been answered by all that it waits for.
    ended: Option<JobOutcome>,
    losses_left: usize,
    /// Labels of impure commands whose files were lost.
    impure_lost: BTreeSet<String>,
    /// How often a command has made its file.
    made: BTreeMap<String, u64>,
    is_recomputing: bool,
    met: Met,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let count = 2 + random.below(9);
        let with_impure = seed.is_multiple_of(4);
        let commands = (0..count).map(|index| {
            let inputs = (0..index as u32).filter(|_| random.below(3) == 0).collect();
            let is_impure = with_impure && random.below(4) == 0;
            Command { inputs, is_impure }
        });
        let commands = commands.collect();
        let graph = Graph::new(Policy::default());
        World {
            graph,
            commands,
            files: BTreeSet::new(),
            offered: Vec::new(),
            running: Vec::new(),
            ended: None,
            losses_left: 1 + random.below(LOSSES_MAX),
            impure_lost: BTreeSet::new(),
            made: BTreeMap::new(),
            is_recomputing: false,
            met: Met::default(),
            random,
        }
    }

    fn run(&mut self) {
        let descriptor =
            Descriptor::plain("e", Class::Pooled(Pool::new("e", 1)), "root", Vec::new())
                .with(|it| it.replayable = true);
        self.tell(Event::RootSubmitted {
            name: Name::of_root(b"job"),
            descriptor: Arc::new(descriptor),
        });
        for _ in 0..STEPS_MAX {
            if self.ended.is_some() {
                return;
            }
            self.step();
            self.graph.check_all();
        }
        panic!("the job does not end");
    }

    fn step(&mut self) {
        let choices = self.offered.len() + self.running.len();
        assert!(choices > 0, "nothing can happen any more");
        match self.random.below(choices + 2) {
            0 => self.lose_some(),
            1 if self.random.below(10) == 0 => self.crash(),
            1 => {}
            other if other - 2 < self.offered.len() => {
                let (task, attempt) = self.offered.swap_remove(other - 2);
                self.tell(Event::TaskPlaced { task, attempt });
            }
            other => {
                let at = other - 2 - self.offered.len();
                let assignment = self.running.swap_remove(at);
                match assignment.label.what.as_ref() {
                    "root" => self.go_on(&assignment),
                    _ => self.finish(&assignment),
                }
            }
        }
    }

    fn tell(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.graph.handle(0, event, &mut actions);
        for action in actions {
            match action {
                Action::Offer { task, attempt, .. } => self.offered.push((task, attempt)),
                Action::Withdraw { task, attempt } => {
                    self.offered.retain(|offered| *offered != (task, attempt));
                }
                Action::Begin(assignment) => self.begin(*assignment),
                Action::Stop { task, attempt } => {
                    let is_it = |one: &Assignment| (one.task, one.attempt) == (task, attempt);
                    self.running.retain(|one| !is_it(one));
                }
                Action::DropObject(name) => {
                    self.files.remove(&name);
                }
                Action::JobEnded(ending) => self.ended = Some(*ending),
                _ => {}
            }
        }
    }

    /// A task reads what it was given.
    fn begin(&mut self, assignment: Assignment) {
        let told = match &assignment.entry {
            Entry::Start(told) | Entry::Resume(told) => told,
            Entry::Replay { inputs, .. } => inputs,
            Entry::Restore { .. } => unreachable!("nothing is saved here"),
        };
        match self.missing(told) {
            true => self.miss(&assignment),
            false => self.running.push(assignment),
        }
    }

    fn missing(&self, told: &[(Handle, Resolution)]) -> bool {
        told.iter().any(|(_, resolution)| match resolution {
            Resolution::Ready { value, .. } => {
                let file = value.content.file();
                file.is_some_and(|(name, _)| !self.files.contains(&name))
            }
            other => panic!("no task fails here: {other:?}"),
        })
    }

    /// As the runtime does: all that is lost by now is told, and then the attempt fails.
    fn miss(&mut self, assignment: &Assignment) {
        self.met.missed += 1;
        let all = self.graph.files().into_keys();
        let lost: Vec<Name> = all.filter(|name| !self.files.contains(name)).collect();
        self.met.lost_while_recomputing += u64::from(self.is_recomputing && !lost.is_empty());
        self.is_recomputing = true;
        self.tell(Event::FilesLost { lost });
        let label = assignment.label.clone();
        let failure = Failure::new(FailureKind::ObjectLost, label, "it is not there");
        self.tell(Event::TaskFailed {
            task: assignment.task,
            attempt: assignment.attempt,
            failure: Box::new(failure),
        });
    }

    /// The root spawns everything and waits for it, or ends.
    fn go_on(&mut self, assignment: &Assignment) {
        let (task, attempt) = (assignment.task, assignment.attempt);
        if matches!(assignment.entry, Entry::Resume(_)) {
            return self.tell(Event::TaskFinished {
                task,
                attempt,
                outputs: vec![Output::Value(Value::inline(Form::Bytes, b"well".to_vec()))],
                printed: false,
                audit: None,
            });
        }
        for (index, command) in self.commands.clone().into_iter().enumerate() {
            let inputs = command.inputs.into_iter().map(Handle).map(Input::value);
            let what = format!("c{index}");
            let descriptor =
                Descriptor::plain("sh", Class::Process, &what, Vec::new()).with(|it| {
                    it.inputs = inputs.collect();
                    it.purity = Purity::of(command.is_impure.then_some(false), false);
                });
            let step = Step::Spawn {
                action: index as u64,
                first: Handle(index as u32),
                descriptor: Arc::new(descriptor),
            };
            self.tell(Event::TaskStepped {
                task,
                attempt,
                step,
            });
        }
        self.wait(task, attempt, assignment);
    }

    fn wait(&mut self, task: TaskKey, attempt: AttemptNumber, assignment: &Assignment) {
        let mut actions = Vec::new();
        let event = Event::TaskBlocked {
            task,
            attempt,
            kept: None,
            on: (0..self.commands.len() as u32).map(Handle).collect(),
            wait: Wait::ALL,
            continuation: Continuation::Live,
            checkpoint: None,
        };
        self.graph.handle(0, event, &mut actions);
        let answers = actions.into_iter().find_map(|action| match action {
            Action::Continue { answers, .. } => Some(answers),
            _ => None,
        });
        if let Some(answers) = answers {
            let mut next = assignment.clone();
            next.entry = Entry::Resume(answers);
            self.begin(next);
        }
    }

    fn finish(&mut self, assignment: &Assignment) {
        let (task, attempt) = (assignment.task, assignment.attempt);
        *self
            .made
            .entry(assignment.label.what.to_string())
            .or_default() += 1;
        let name = assignment.label.name.output(0);
        self.files.insert(name);
        let content = Content::File {
            name,
            length: 2000,
            digest: None,
        };
        let value = Value {
            form: Form::Bytes,
            content,
            references: Vec::new(),
        };
        self.tell(Event::TaskFinished {
            task,
            attempt,
            outputs: vec![Output::Value(value)],
            printed: false,
            audit: None,
        });
    }

    fn lose_some(&mut self) {
        if self.losses_left == 0 || self.files.is_empty() {
            return;
        }
        self.losses_left -= 1;
        let mut left = BTreeSet::new();
        for name in std::mem::take(&mut self.files) {
            match self.random.below(3) {
                0 => self.note_lost(name),
                _ => drop(left.insert(name)),
            }
        }
        self.files = left;
    }

    fn note_lost(&mut self, name: Name) {
        let root = Name::of_root(b"job");
        let is_of = |index: usize| root.spawn(index as u64).output(0) == name;
        let index = (0..self.commands.len()).find(|index| is_of(*index));
        if let Some(index) = index.filter(|index| self.commands[*index].is_impure) {
            self.impure_lost.insert(format!("c{index}"));
        }
    }

    /// The process of the engine is lost, too.
    fn crash(&mut self) {
        if self.losses_left == 0 {
            return;
        }
        self.losses_left -= 1;
        self.met.crashes += 1;
        (self.offered, self.running) = (Vec::new(), Vec::new());
        let all = self.graph.files().into_keys();
        let lost: Vec<Name> = all.filter(|name| !self.files.contains(name)).collect();
        let policy = Policy::default();
        self.tell(Event::EngineLost { policy, lost });
    }

    fn judge(mut self, seed: u64) -> Met {
        let ended = self.ended.take().expect("it has ended");
        match ended.result {
            Ok(_) => self.met.well += 1,
            Err(failure) => {
                assert_eq!(
                    failure.kind,
                    FailureKind::ObjectLost,
                    "seed {seed}: {failure}"
                );
                let Label { what, .. } = &failure.origin;
                let (impure, told) = (&self.impure_lost, failure.to_string());
                assert!(impure.contains(what.as_ref()), "seed {seed}: {told}");
                assert!(told.contains("is impure"), "seed {seed}: {told}");
                assert!(failure.hint.is_some());
                self.met.impossible += 1;
            }
        }
        self.met.rerun += self.made.values().filter(|times| **times > 1).count() as u64;
        self.met
    }
}

#[test]
fn files_lost_at_random_are_recomputed_and_the_job_ends_well_unless_a_task_is_impure() {
    let mut all = Met::default();
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        world.run();
        let met = world.judge(seed);
        all.well += met.well;
        all.impossible += met.impossible;
        all.rerun += met.rerun;
        all.missed += met.missed;
        all.crashes += met.crashes;
        all.lost_while_recomputing += met.lost_while_recomputing;
    }
    let Met {
        well,
        impossible,
        rerun,
        missed,
        crashes,
        lost_while_recomputing,
    } = all;
    println!("{all:?}");
    let enough = [
        well,
        impossible,
        rerun,
        missed,
        crashes,
        lost_while_recomputing,
    ];
    assert!(enough.iter().all(|count| *count > 30), "{enough:?}");
}
