//! Tasks that name objects of which a worker keeps something.

use ciel_model::{Class, Name, Near, Pool, limits};
use ciel_node::{Action, Event, Slot, WorkerKey};
use proptest::prelude::*;

use super::world::{World, cores_of};

impl World {
    /// A task that names these objects.
    fn naming(&mut self, task: u64, objects: &[u128]) -> String {
        let pool = Class::Pooled(Pool::new("py", 1));
        let mut event = self.offered(task, pool, cores_of(1));
        if let Event::TaskOffered { near, .. } = &mut event {
            *near = objects.iter().copied().map(named).collect();
        }
        self.tell(event)
    }

    /// The same, with the weights that its program gives them, in percent.
    fn weighing(&mut self, task: u64, objects: &[(u128, u32)]) -> String {
        let pool = Class::Pooled(Pool::new("py", 1));
        let mut event = self.offered(task, pool, cores_of(1));
        if let Event::TaskOffered { near, .. } = &mut event {
            let weighed = objects.iter().map(|(name, percent)| Near {
                percent: *percent,
                ..named(*name)
            });
            *near = weighed.collect();
        }
        self.tell(event)
    }

    fn holds(&mut self, worker: u64, held: &[(u128, u64)]) -> String {
        let held = held.iter().map(|(name, bytes)| (Name(*name), *bytes));
        self.tell(Event::WorkerCaches {
            worker: WorkerKey(worker),
            held: held.collect(),
            dropped: Vec::new(),
        })
    }

    fn drops(&mut self, worker: u64, name: u128) -> String {
        self.tell(Event::WorkerCaches {
            worker: WorkerKey(worker),
            held: Vec::new(),
            dropped: vec![Name(name)],
        })
    }
}

fn named(object: u128) -> Near {
    Near::from(Name(object))
}

/// Two free workers, of which the first was left last.
fn two_free() -> World {
    let mut world = World::pair();
    assert_eq!((world.left(2), world.left(1)), Default::default());
    world
}

/// Two busy workers, each with a cache: of object 7 in worker 0, of object 8 in worker 1.
fn busy_pair() -> World {
    let mut world = World::pair();
    world.holds(0, &[(7, 10)]);
    world.holds(1, &[(8, 10)]);
    world
}

#[test]
fn of_two_free_workers_the_task_gets_the_one_with_the_heaviest_caches() {
    let mut world = two_free();
    world.holds(0, &[(7, 10), (8, 5)]);
    world.holds(1, &[(9, 16)]);
    assert_eq!(world.naming(5, &[7, 8, 9]), "5:worker1");
    assert_eq!(world.left(5), "");
    world.drops(1, 9);
    assert_eq!(world.naming(6, &[7, 8, 9]), "6:worker0");
}

#[test]
fn of_two_free_workers_the_task_gets_the_one_with_what_its_program_weighs_most() {
    let mut world = two_free();
    world.holds(0, &[(7, 10)]);
    world.holds(1, &[(8, 5)]);
    assert_eq!(world.weighing(5, &[(7, 100), (8, 100)]), "5:worker0");
    assert_eq!(world.left(5), "");
    assert_eq!(world.weighing(6, &[(7, 100), (8, 300)]), "6:worker1");
    assert_eq!(world.left(6), "");
    assert_eq!(world.weighing(7, &[(7, 10), (8, 100)]), "7:worker1");
}

#[test]
fn task_whose_caches_are_in_a_busy_worker_lets_one_go_whose_are_in_the_free_one() {
    let mut world = busy_pair();
    assert_eq!(world.naming(5, &[7]), "");
    assert_eq!(world.pooled(6, "py"), "");
    assert_eq!(world.naming(9, &[8]), "");
    assert_eq!(world.left(2), "9:worker1");
    assert_eq!(world.left(1), "5:worker0");
    assert_eq!(world.left(9), "6:worker1");
}

#[test]
fn task_without_caches_that_comes_first_lets_nobody_go() {
    let mut world = World::pair();
    world.holds(1, &[(8, 10)]);
    assert_eq!(world.pooled(5, "py"), "");
    assert_eq!(world.naming(6, &[8]), "");
    assert_eq!(world.left(2), "5:worker1");
}

#[test]
fn task_whose_caches_are_in_a_busy_worker_begins_elsewhere_at_once_if_a_slot_is_left_over() {
    let mut world = World::pair();
    world.holds(0, &[(7, 10)]);
    assert_eq!(world.left(2), "");
    assert_eq!(world.naming(5, &[7]), "5:worker1");
}

#[test]
fn caches_of_a_worker_that_is_gone_attract_nothing() {
    let mut world = two_free();
    world.holds(1, &[(7, 10)]);
    let worker = WorkerKey(1);
    assert_eq!(world.tell(Event::WorkerGone { worker }), "");
    assert_eq!(world.holds(1, &[(8, 10)]), "");
    assert_eq!(world.naming(5, &[7, 8]), "5:worker0");
}

#[test]
fn task_is_not_lent_to_another_worker_than_that_with_its_caches() {
    let mut world = World::pair();
    world.holds(0, &[(7, 10)]);
    assert_eq!(world.naming(5, &[7]), "");
    assert_eq!(world.lend(2), None);
    assert_eq!(world.lend(1), Some(5));
}

#[test]
fn task_whose_worker_stays_busy_is_not_overtaken_for_ever() {
    let mut world = busy_pair();
    assert_eq!(world.naming(3, &[7]), "");
    let (mut running, mut next) = (2, 4);
    for _ in 0..limits::OVERTAKEN_MAX {
        assert_eq!(world.naming(next, &[8]), "");
        assert_eq!(world.left(running), format!("{next}:worker1"));
        (running, next) = (next, next + 1);
    }
    assert_eq!(world.naming(next, &[8]), "");
    assert_eq!(world.left(running), "3:worker1");
}

#[test]
fn worker_that_claims_more_than_the_bound_is_heeded_up_to_it() {
    let mut world = two_free();
    let claimed: Vec<(u128, u64)> = (0..=limits::CACHES_MAX as u128).map(|it| (it, 1)).collect();
    world.holds(1, &claimed);
    assert_eq!(world.naming(5, &[limits::CACHES_MAX as u128]), "5:worker0");
    assert_eq!(world.left(5), "");
    assert_eq!(world.naming(6, &[0]), "6:worker1");
}

proptest! {
    /// Whatever is kept where, and whatever tasks name: as many run as there are workers, or all.
    #[test]
    fn no_task_waits_while_a_worker_is_free(
        steps in prop::collection::vec((0u8..4, 0u64..3, 0u128..6), 1..120),
    ) {
        let mut world = World::new(3, false);
        for task in 1..=3 {
            world.pooled(task, "py");
        }
        (0..3).for_each(|worker| drop(world.ready(worker)));
        (1..=3).for_each(|task| drop(world.left(task)));
        let (mut next, mut open, mut running) = (4, 0_usize, Vec::new());
        for (kind, worker, object) in steps {
            let mut actions = Vec::new();
            let (worker, name) = (WorkerKey(worker), Name(object));
            let event = match kind {
                0 if !running.is_empty() => {
                    let attempt = running.remove(object as usize % running.len());
                    open -= 1;
                    Event::TaskLeft { attempt, kept: ciel_node::Kept::Nothing }
                }
                1 => Event::WorkerCaches { worker, held: vec![(name, 8)], dropped: vec![] },
                2 => Event::WorkerCaches { worker, held: vec![], dropped: vec![name] },
                _ => {
                    let pool = Class::Pooled(Pool::new("py", 1));
                    let mut event = world.offered(next, pool, cores_of(1));
                    if let Event::TaskOffered { near, .. } = &mut event {
                        *near = [name.into()].into();
                    }
                    next += 1;
                    open += 1;
                    event
                }
            };
            world.node.handle(0, [event], &mut actions);
            for action in actions {
                let Action::Place { attempt, slot: Slot::Worker(_) } = action else {
                    panic!("{action:?}: nothing but places is wanted");
                };
                running.push(attempt);
            }
            prop_assert_eq!(running.len(), open.min(3));
        }
    }
}
