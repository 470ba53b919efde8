//! Random scenarios against the serial program.

#![allow(missing_docs)]

use ciel_sim::generate::scenario;
use ciel_sim::judge::Shown;
use ciel_sim::shrink::shrink;
use ciel_sim::{World, run};

const SEEDS: u64 = 7200;

#[test]
fn random_scenarios_agree_with_the_serial_program() {
    let mut met = Met::default();
    for seed in 0..SEEDS {
        let scenario = scenario(seed);
        match run(&scenario) {
            Ok(shown) => met.add(&shown),
            Err(_) => {
                let least = shrink(&scenario);
                let told = run(&least).unwrap_err();
                panic!("seed {seed}: {}\n\n{least}", told.0);
            }
        }
    }
    println!("{SEEDS} random scenarios agree with the serial program: {met:?}");
    met.assert_enough();
}

/// What the swarm has met; one that never meets a thing proves nothing about it.
#[derive(Debug, Default)]
struct Met {
    well: u64,
    failed: u64,
    tasks: u64,
    shared: u64,
    /// Tasks that took a kept result.
    kept: u64,
    retried: u64,
    lost: u64,
    cancelled: u64,
    /// Tasks that other tasks cancelled.
    cut: u64,
    /// Races in which not all had come in, or none.
    races: u64,
    /// Waits for the rest of a list that the graph kept.
    rests: u64,
    /// Engines lost.
    crashes: u64,
    /// Strands that resumed from a checkpoint.
    restored: u64,
    /// Prefetched starts that workers began.
    followed: u64,
    /// Processes that began where others had ended.
    passed_on: u64,
    /// Values that were read as streams, and those of them that were not stored.
    streams: [u64; 2],
    /// Tasks that began in a worker that ran another one.
    together: u64,
    /// Tasks that had begun and took over the slots of their spawners.
    taken_over: u64,
    /// Tasks whose summary says that they handed over to a successor.
    handed_over: u64,
    /// Answers that replays began with.
    recalled: u64,
    /// Strands that resumed with their live copies in workers.
    resumed: u64,
    /// Strands of pure tasks that were replayed although their processes lived.
    moved: u64,
    /// Strands that were rolled back.
    rolled_back: u64,
    /// Retries that spawned tasks again which had failed.
    repeated: u64,
    /// Times that a task released handles.
    released: u64,
    /// Tasks of whose kept results only the digest was there, and did not run.
    known: u64,
    /// Such tasks that ran because the bytes were needed.
    recomputed: u64,
    /// Children that ran in place.
    called: u64,
    /// Pure tasks that ran twice for a check.
    checked: u64,
    /// Pure tasks that ran for long, so that a second run was started.
    duplicated: u64,
    /// Of those, tasks whose second run ended first.
    overtaken: u64,
}

impl Met {
    fn add(&mut self, shown: &Shown) {
        match shown.result {
            Ok(_) => self.well += 1,
            Err(_) => self.failed += 1,
        }
        self.tasks += shown.counts.spawned;
        self.shared += shown.counts.shared;
        self.kept += shown.counts.kept;
        self.retried += shown.counts.retried;
        self.lost += shown.counts.lost;
        self.cancelled += shown.counts.cancelled;
        self.cut += shown.told.cut.len() as u64;
        let races = shown.told.races.values().flatten();
        self.crashes += shown.crashes;
        self.restored += shown.restored;
        self.followed += shown.followed;
        self.passed_on += shown.passed_on;
        self.streams = [0, 1].map(|at| self.streams[at] + shown.streams[at]);
        self.together += shown.together;
        self.taken_over += shown.taken_over;
        self.handed_over += shown.handed_over;
        self.recalled += shown.recalled;
        self.resumed += shown.resumed;
        self.moved += shown.moved;
        self.rolled_back += shown.rolled_back;
        self.repeated += shown.repeated;
        self.released += shown.released;
        self.known += shown.counts.known;
        self.recomputed += shown.counts.recomputed;
        self.called += shown.called;
        self.checked += shown.counts.checked;
        self.duplicated += shown.counts.duplicated;
        self.overtaken += shown.counts.overtaken;
        self.rests += races.clone().filter(|ended| ended.rest).count() as u64;
        self.races += races.clone().filter(|ended| ended.places.len() < 2).count() as u64;
    }

    fn assert_enough(&self) {
        let all = [
            self.well,
            self.failed,
            self.shared,
            self.kept,
            self.checked,
            self.duplicated,
            self.overtaken,
            self.retried,
            self.lost,
            self.cancelled,
            self.cut,
            self.races,
            self.rests,
            self.crashes,
            self.restored,
            self.followed,
            self.passed_on,
            self.together,
            self.taken_over,
            self.handed_over,
            self.recalled,
            self.resumed,
            self.rolled_back,
            self.released,
            self.called,
            self.known,
            self.streams[0],
            self.streams[1],
        ];
        assert!(all.iter().all(|count| *count > 50), "{self:?}");
        // Few wait as long as a replay takes while a worker is idle.
        assert!(self.moved > 0, "{self:?}");
        assert!(self.recomputed > 0, "{self:?}");
        // Few with retries left fail after a task that they have spawned.
        assert!(self.repeated > 10, "{self:?}");
    }
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
    assert!(
        least.tasks.iter().all(|task| task.acts.is_empty()),
        "{least}"
    );
    assert!(least.faults.is_empty(), "{least}");
}
