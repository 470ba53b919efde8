//! What the graph keeps does not grow with what it has done, and little with what is to be done.

#![allow(missing_docs)]

use std::sync::Arc;

use allocation_counter::measure;
use ciel_graph::{Action, Continuation, Event, Graph, Output, Policy, Step, Wait};
use ciel_model::{
    AttemptNumber, Class, Descriptor, Form, Handle, Input, Name, Options, TaskKey, Value,
};

/// Debug builds check every invariant after every event, so they take a tenth of the way.
const LOOPS: u64 = if cfg!(debug_assertions) {
    100_000
} else {
    1_000_000
};

const PENDING: u64 = 100_000;

struct Driver {
    graph: Graph,
    actions: Vec<Action>,
    /// The task that spawned last, and its spawns so far.
    spawns: (u64, u32),
}

impl Driver {
    fn with_root(replayable: bool) -> Driver {
        let mut driver = Driver {
            graph: Graph::new(Policy::default()),
            actions: Vec::new(),
            spawns: (0, 0),
        };
        let descriptor = plain().with(|it| it.replayable = replayable);
        driver.tell(Event::RootSubmitted {
            name: Name::of_root(b"test"),
            descriptor: Arc::new(descriptor),
        });
        driver.place(0);
        driver
    }

    fn tell(&mut self, event: Event) {
        self.actions.clear();
        self.graph.handle(0, event, &mut self.actions);
    }

    fn place(&mut self, task: u64) {
        self.tell(Event::TaskPlaced {
            task: TaskKey(task),
            attempt: AttemptNumber(0),
        });
    }

    fn spawn(&mut self, task: u64, descriptor: Descriptor) {
        let (last, spawns) = self.spawns;
        let spawns = if last == task { spawns } else { 0 };
        let step = Step::Spawn {
            action: u64::from(spawns),
            first: Handle(spawns),
            descriptor: Arc::new(descriptor),
        };
        self.spawns = (task, spawns + 1);
        self.tell(Event::TaskStepped {
            task: TaskKey(task),
            attempt: AttemptNumber(0),
            step,
        });
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

    fn assert_small(&self) {
        assert!(self.graph.pending() <= 2, "{} tasks", self.graph.pending());
        assert!(
            self.graph.order().len() <= 8,
            "{} marks",
            self.graph.order().len()
        );
    }

    fn assert_ended_well(&self) {
        let ended = self
            .actions
            .iter()
            .any(|action| matches!(action, Action::JobEnded(ending) if ending.result.is_ok()));
        assert!(ended, "{:?}", self.actions);
    }
}

fn plain() -> Descriptor {
    Descriptor::plain("test", Class::Coordination, "f", "f")
}

fn value() -> Output {
    Output::Value(Value::inline(Form::Bytes, vec![1]))
}

#[test]
fn what_is_kept_stays_bounded() {
    loop_of_delegations_stays_flat();
    loop_of_tail_spawns_stays_flat();
    chain_of_lazy_tasks_is_woken_without_recursion();
    for (what, replayable) in [("", false), (" of a replayable parent", true)] {
        let each = bytes_of_pending_tasks(replayable);
        println!("{PENDING} pending tasks{what}: {each} bytes each");
        assert!(each <= 832, "{each} bytes each");
    }
}

fn loop_of_delegations_stays_flat() {
    let mut driver = Driver::with_root(true);
    assert_flat("delegations", || {
        for task in 0..LOOPS {
            driver.spawn(task, replayable());
            driver.finish(task, Output::Delegate(Handle(0)));
            driver.place(task + 1);
            driver.assert_small();
        }
    });
    driver.finish(LOOPS, value());
    driver.assert_ended_well();
}

fn loop_of_tail_spawns_stays_flat() {
    let mut driver = Driver::with_root(true);
    assert_flat("tail-spawns", || {
        for task in 0..LOOPS {
            driver.tell(Event::TaskTailSpawned {
                task: TaskKey(task),
                attempt: AttemptNumber(0),
                descriptor: Arc::new(replayable()),
                after: 0,
                audit: None,
            });
            driver.place(task + 1);
            driver.assert_small();
        }
    });
    driver.finish(LOOPS, value());
    driver.assert_ended_well();
}

fn replayable() -> Descriptor {
    plain().with(|it| it.replayable = true)
}

fn assert_flat(what: &str, act: impl FnOnce()) {
    let grown = measure(act).bytes_current;
    println!("{LOOPS} {what}: {grown} bytes more");
    assert!(grown < 64 << 10, "{grown} bytes more after {LOOPS} {what}");
}

fn chain_of_lazy_tasks_is_woken_without_recursion() {
    let mut driver = Driver::with_root(false);
    let options = Options {
        lazy: true,
        ..Options::default()
    };
    for task in 0..PENDING {
        let inputs = task.checked_sub(1).map(|before| Handle(before as u32));
        driver.spawn(
            0,
            plain().with(|it| {
                it.inputs = inputs.into_iter().map(Input::value).collect();
                it.options = options.clone().into();
            }),
        );
    }
    driver.tell(Event::TaskBlocked {
        task: TaskKey(0),
        attempt: AttemptNumber(0),
        kept: None,
        on: vec![Handle(PENDING as u32 - 1)],
        wait: Wait::ALL,
        continuation: Continuation::Live,
        checkpoint: None,
    });
    let offered = driver.actions.iter().any(|action| {
        matches!(
            action,
            Action::Offer {
                task: TaskKey(1),
                ..
            }
        )
    });
    assert!(offered, "the first of the chain can run");
}

fn bytes_of_pending_tasks(replayable: bool) -> i64 {
    let mut driver = Driver::with_root(replayable);
    let held = measure(|| {
        for _ in 0..PENDING {
            driver.spawn(0, plain().with(|it| it.replayable = replayable));
        }
    });
    assert_eq!(driver.graph.pending() as u64, PENDING + 1);
    held.bytes_current / PENDING as i64
}

/// `ciel ps` on a hundred thousand live tasks once stopped the engine for the sort of them all.
#[test]
fn look_at_few_of_many_tasks_finds_the_first_and_passes_no_more_marks_than_said() {
    let mut driver = Driver::with_root(false);
    for _ in 0..PENDING {
        driver.spawn(0, plain());
    }
    let graph = &driver.graph;
    assert_eq!(
        graph.in_order_after(None, 9),
        (0..5).map(TaskKey).collect::<Vec<_>>()
    );
    let next = graph.in_order_after(Some(TaskKey(4)), 9);
    assert_eq!(next, (5..9).map(TaskKey).collect::<Vec<_>>());
    let label = graph.view(TaskKey(777)).unwrap().label.to_string();
    let found = (0..)
        .step_by(1000)
        .map_while(|from| graph.find(&label, from..from + 1000));
    assert_eq!(found.flatten().collect::<Vec<_>>(), [TaskKey(777)]);
    let functions = graph.functions();
    let spawned: u64 = functions.iter().map(|(_, counts)| counts.spawned).sum();
    assert_eq!(spawned, PENDING + 1);
}

#[test]
fn functions_beyond_their_bound_are_counted_together() {
    let mut driver = Driver::with_root(false);
    for number in 0..5_000 {
        let what = format!("function{number}").into();
        driver.spawn(0, plain().with(|it| it.what = what));
    }
    let functions = driver.graph.functions();
    assert_eq!(
        functions.len(),
        ciel_model::limits::FUNCTIONS_COUNTED_MAX + 1
    );
    let spawned: u64 = functions.iter().map(|(_, counts)| counts.spawned).sum();
    assert_eq!(spawned, 5_001);
}
