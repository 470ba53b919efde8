//! Random scenarios against the serial program.

#![allow(missing_docs)]

use ciel_sim::generate::scenario;
use ciel_sim::shrink::shrink;
use ciel_sim::{World, run};

const SEEDS: u64 = 3000;

#[test]
fn random_scenarios_agree_with_the_serial_program() {
    for seed in 0..SEEDS {
        let scenario = scenario(seed);
        if run(&scenario).is_err() {
            let least = shrink(&scenario);
            let told = run(&least).unwrap_err();
            panic!("seed {seed}: {}\n\n{least}", told.0);
        }
    }
    println!("{SEEDS} random scenarios agree with the serial program");
}

#[test]
fn same_seed_gives_the_same_trace() {
    for seed in 0..200 {
        let scenario = scenario(seed);
        let trace = |keeps| {
            let mut world = World::new(&scenario, keeps);
            world.run();
            (world.trace().fingerprint(), world.output)
        };
        assert_eq!(trace(false), trace(true), "seed {seed}");
    }
}

#[test]
fn broken_promise_is_noticed_and_shrinks_to_what_matters() {
    let mut broken = scenario(3);
    let wrong = ciel_sim::program::Expectation::Output("something else".to_string());
    broken.expectations.push(wrong);
    let least = shrink(&broken);
    assert!(run(&least).is_err());
    assert!(least.tasks.iter().all(|task| task.acts.is_empty()), "{least}");
    assert!(least.faults.is_empty(), "{least}");
}
