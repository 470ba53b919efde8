//! Random scenarios at three sites, over a bad network, against the serial program.

#![allow(missing_docs)]

use ciel_model::limits::WEIGHT_PERCENT_MAX;
use ciel_sim::generate::scenario_at_sites;
use ciel_sim::shrink::shrink_at_sites;
use ciel_sim::{Scenario, SitesMet, SitesWorld, run_at_sites};

const SEEDS: u64 = 1000;

#[test]
fn random_scenarios_at_sites_agree_with_the_serial_program() {
    let mut met = [0; 13];
    for seed in 0..SEEDS {
        let scenario = scenario_at_sites(seed);
        match run_at_sites(&scenario) {
            Ok((_, one)) => met
                .iter_mut()
                .zip(counts(&one))
                .for_each(|(all, one)| *all += one),
            Err(_) => {
                let least = shrink_at_sites(&scenario);
                let told = run_at_sites(&least).unwrap_err();
                panic!("seed {seed}: {}\n\n{least}", told.0);
            }
        }
    }
    println!("{SEEDS} random scenarios at sites agree with the serial program: {met:?}");
    assert!(met.iter().all(|count| *count > 50), "{met:?}");
}

fn counts(met: &SitesMet) -> [u64; 13] {
    [
        met.lost,
        met.repeated,
        met.reordered,
        met.killed,
        met.cut,
        met.fenced,
        met.followed,
        met.passed_on,
        met.refused,
        met.restored,
        met.resumed,
        met.near_bytes,
        met.moved_bytes,
    ]
}

#[test]
fn same_seed_gives_the_same_trace_at_sites() {
    for seed in 0..50 {
        let scenario = scenario_at_sites(seed);
        let trace = |keeps| {
            let mut world = SitesWorld::new(&scenario, keeps);
            world.run();
            (world.trace().fingerprint(), world.output)
        };
        assert_eq!(trace(false), trace(true), "seed {seed}");
    }
}

/// A cancelled task was undone with its canceller, which then came too late: the task ended with a
/// value, and the oracle took it for cancelled.
#[test]
fn task_that_ends_after_its_cancel_was_undone_counts() {
    let scenario = "\
seed 238867
slots 1
serial
task 0 thread replay live: print 0a,; spawn 1; print 0b,; spawn 1 0; print 0b,; cancel 1 1; get 1
task 1 thread replay live: print 1a,; spawn 3 0 1; print 1b,; construct 0; \
    construct 0 1; print 1c,
task 2 thread replay live:
task 3 pool-b replay live: print 3a,; print 3c,
at 340 roll-back 89
at 846 roll-back 56
at 1663 roll-back 67
at 2249 roll-back 60
";
    let scenario: Scenario = scenario.parse().expect("a scenario");
    run_at_sites(&scenario).map(drop).unwrap();
}

/// A task had begun at its site when the site was told in the same call that it was placed and that
/// it was withdrawn: the place stayed, and the task was placed there a second time.
#[test]
fn task_that_is_withdrawn_where_it_began_gives_back_its_place() {
    let scenario = "\
seed 2703
slots 2
checkpoints
ahead
task 0 thread replay live: construct; construct; construct; construct; spawn 3 0; spawn 1 1; \
    spawn 1 2; spawn 3 3; get 7
task 1 pool-a replay live: print 1a,; spawn 5; spawn 5; get 2
task 2 thread replay live:
task 3 pool-a replay live: print 3a,; spawn 6; first 1
task 4 thread replay live:
task 5 pool-a replay live:
task 6 pool-a replay live:
at 1583 kill-process
at 2376 roll-back 15
";
    let scenario: Scenario = scenario.parse().expect("a scenario");
    run_at_sites(&scenario).map(drop).unwrap();
}

/// A task spawned one that had begun after another task had failed the job: the home failed the
/// spawner for it, and the worker waited for an answer for ever.
#[test]
fn child_that_has_begun_when_the_job_fails_is_cancelled_with_it() {
    let scenario = "\
seed 1710
slots 4
task 0 thread replay live: construct; construct 0; spawn 1 2; print 0f,; construct 2 0; \
    spawn 3 0
task 1 thread replay live: spawn 8; print 1b,; spawn 5 1; spawn 4 0; construct 0 4; print 1f,; \
    spawn 3 0 3; release 1; spawn 4 3; spawn 2 6
task 2 thread replay live lazy:
task 3 process replay live cores 2: spawn 7
task 4 pool-a replay live: spawn 8 0 1; get 0; return 0 1
task 5 process replay live: pause 211; fail 5
task 6 thread replay live:
task 7 pool-d replay live:
task 8 pool-a replay: spawn 9 1 0; release 3 1; spawn 9; tail 9 3
task 9 pool-a replay live: pause 854; pause 872; print 9h,; print 9i,
";
    let scenario: Scenario = scenario.parse().expect("a scenario");
    run_at_sites(&scenario).map(drop).unwrap();
}

/// A task takes two files, which were made at two sites, and which have other lengths with each
/// shift. It begins where the longer one is, whatever the order in which frames come, but for some
/// whose site was busy, or had joined alone.
#[test]
fn task_begins_where_most_bytes_of_its_inputs_are() {
    let (mut longer, mut shorter) = (0, 0);
    for seed in (0..400).filter(|seed| seed % 4 < 2) {
        for shift in 0..4 {
            let met = run_at_sites(&reader_of_two(seed, shift)).unwrap().1;
            match (met.near_bytes, met.moved_bytes) {
                (0, _) | (_, 0) => {}
                (near, moved) if near > moved => longer += 1,
                _ => shorter += 1,
            }
        }
    }
    assert!(longer > 100 && shorter * 8 < longer, "{longer}, {shorter}");
}

/// The same task with a locality weight for the first of the files: it begins where the other one
/// is if that is 0, and where the first one is if that outweighs every length.
#[test]
fn task_begins_where_the_input_is_that_its_program_weighs_more() {
    let (mut followed, mut others) = (0, 0);
    for seed in (0..400).filter(|seed| seed % 4 < 2) {
        for shift in 0..4 {
            let [none, all] = [0, WEIGHT_PERCENT_MAX].map(|weight| {
                let met = run_at_sites(&weighed_reader_of_two(seed, shift, weight));
                met.unwrap().1
            });
            let bytes = [none, all].map(|met| (met.near_bytes, met.moved_bytes));
            match bytes {
                [(0, _) | (_, 0), _] | [_, (0, _) | (_, 0)] => {}
                [(near, moved), other] if other == (moved, near) => followed += 1,
                _ => others += 1,
            }
        }
    }
    assert!(
        followed > 100 && others * 4 < followed,
        "{followed}, {others}"
    );
}

/// Two tasks make files, of other lengths with each shift, and a third one takes both.
fn reader_of_two(seed: u64, shift: usize) -> Scenario {
    weighed_reader_of_two(seed, shift, 100)
}

/// The same; the bytes of the first file count so many percent.
fn weighed_reader_of_two(seed: u64, shift: usize, weight: u32) -> Scenario {
    let constructs = "construct; ".repeat(shift);
    let (second, third) = (shift + 1, shift + 2);
    let text = format!(
        "seed {seed}\nslots 1\n\
         task 0 thread replay live: {constructs}spawn 1; spawn 1; spawn 2 {shift} {second}; \
         get {third}\n\
         task 1 process replay live: pause 2000\n\
         task 2 process replay live needs weight {weight}: get 0; get 1\n"
    );
    text.parse().expect("a scenario")
}
