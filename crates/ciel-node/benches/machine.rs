//! What the node costs for each task: offered, placed, left; with few and with many in its queue.
//!
//! The graph and the runtime are not in these figures.

#![allow(missing_docs)]

use std::hint::black_box;

use ciel_model::{AttemptNumber, Class, OrderLabel, Pairing, Resources, TaskKey};
use ciel_node::{Action, AttemptKey, Capacity, Event, Kept, Node};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const CORES: u32 = 2;

/// A node, and the tasks that it has placed.
struct Driver {
    tasks: u64,
    node: Node,
    actions: Vec<Action>,
    placed: Vec<AttemptKey>,
}

impl Driver {
    fn new(tasks: u64) -> Driver {
        let resources = Resources {
            millicores: CORES * 1000,
            ..Resources::default()
        };
        let node = Node::new(Capacity {
            resources,
            threads: CORES,
            serial: false,
        });
        Driver {
            tasks,
            node,
            actions: Vec::new(),
            placed: Vec::new(),
        }
    }

    fn tell(&mut self, event: Event) {
        self.node.handle(0, [event], &mut self.actions);
        for action in self.actions.drain(..) {
            if let Action::Place { attempt, .. } = &action {
                self.placed.push(*attempt);
            }
            black_box(action);
        }
    }

    /// Offers every task, then lets each placed one go until none is left.
    fn run(&mut self, class: &Class) {
        for position in 0..self.tasks {
            let attempt = AttemptKey {
                task: TaskKey(position),
                number: AttemptNumber(0),
            };
            self.tell(Event::TaskOffered {
                attempt,
                label: OrderLabel { position, epoch: 0 },
                class: class.clone(),
                resources: Resources::default(),
                resumed: None,
                is_root: false,
                is_limited: false,
                near: Box::default(),
                pairing: Pairing::default(),
            });
        }
        while let Some(attempt) = self.placed.pop() {
            let kept = Kept::Nothing;
            self.tell(Event::TaskLeft { attempt, kept });
        }
    }
}

fn tasks(criterion: &mut Criterion) {
    for tasks in [100, 10_000] {
        let mut group = criterion.benchmark_group(format!("{tasks} tasks"));
        group.throughput(Throughput::Elements(tasks));
        for (name, class) in [
            ("scripts", Class::Coordination),
            ("processes", Class::Process),
        ] {
            group.bench_function(name, |bencher| {
                let fresh = || Driver::new(tasks);
                let run = |driver: &mut Driver| driver.run(&class);
                bencher.iter_batched_ref(fresh, run, BatchSize::LargeInput);
            });
        }
        group.finish();
    }
}

criterion_group!(benches, tasks);
criterion_main!(benches);
