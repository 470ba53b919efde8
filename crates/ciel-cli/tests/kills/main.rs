//! Jobs of all kinds whose processes are killed at random moments, and resumed until they have
//! ended: what they show in the end is what they show undisturbed, and nothing is left of them.
//!
//! `CIEL_KILLS` says how often to kill, `CIEL_KILL_SEED` with which seed to begin; each seed is one
//! job from its beginning to its end and is printed when it fails. Kills at chosen records are
//! tested in `resume`. Read first: `support`; then `jobs`, `sinks`, `victims`, `round`.

mod jobs;
mod round;
mod sinks;
#[path = "../support/mod.rs"]
mod support;
mod victims;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use jobs::{Known, jobs};
use round::{Round, Tried};
use support::random::{first_seed, kills};

/// Kills in the usual run of the tests.
const KILLS: u64 = 50;

/// Jobs at once: each waits for processes most of the time.
const THREADS: usize = 2;

/// Counts by job, sink and victim.
#[derive(Default)]
struct Tally(BTreeMap<String, u64>);

impl Tally {
    fn add(&mut self, tried: &Tried) {
        let mut count = |what: String| *self.0.entry(what).or_default() += 1;
        count(format!("to {:?}", tried.sink));
        for victim in &tried.killed {
            count(format!("{victim:?}"));
            count(format!("in {}", tried.job));
        }
    }
}

#[test]
fn jobs_killed_at_random_moments_end_as_if_undisturbed() {
    let (kills, first) = (kills(KILLS), first_seed());
    let known: Vec<Known> = jobs(first).into_iter().map(Known::new).collect();
    eprintln!("{kills} kills from seed {first} on");
    let (next, done) = (AtomicU64::new(first), AtomicU64::new(0));
    let tally = Mutex::new(Tally::default());
    let work = || {
        while done.load(Ordering::Relaxed) < kills {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let known = &known[(seed % known.len() as u64) as usize];
            let tried = Round::new(known, seed).run();
            done.fetch_add(tried.killed.len() as u64, Ordering::Relaxed);
            tally.lock().unwrap().add(&tried);
        }
    };
    std::thread::scope(|scope| {
        for thread in [(); THREADS].map(|()| scope.spawn(work)) {
            thread.join().unwrap();
        }
    });
    for (what, count) in tally.into_inner().unwrap().0 {
        eprintln!("{count:6} {what}");
    }
    assert!(done.into_inner() >= kills);
}
