//! Random programs, some of which fail, killed at random records again and again.
//!
//! Read first: `trial`; `support/trees.rs`, which writes the scripts; `programs.py` among the tests
//! of the Python package, which makes the programs in Python.

use crate::support::programs::{python, runs_python};
use crate::support::random::{Random, first_seed, kills};
use crate::support::{Tree, repository};
use crate::trial::{Moment, Trial};

/// Trees in the usual run of the tests.
const TREES: u64 = 12;

/// Moments in a row.
const MOMENTS_MAX: u64 = 4;

/// Records between two moments; a tree makes some hundreds.
const RECORDS_BETWEEN: u64 = 60;

fn moments(random: &mut Random) -> Vec<Moment> {
    let mut at = 0;
    let count = 1 + random.below(MOMENTS_MAX);
    let moment = |_| {
        at += 1 + random.below(RECORDS_BETWEEN);
        let written = random.below(2) == 0;
        Moment { at, written }
    };
    (0..count).map(moment).collect()
}

#[test]
fn random_trees_killed_at_random_records_end_as_if_undisturbed() {
    let first = first_seed();
    for seed in first..first + kills(TREES) {
        let mut random = Random::new(seed);
        let tree = Tree::new(seed, random.below(2) == 0);
        let trial = Trial {
            files: vec![("job.sw", tree.script.clone())],
            job: "job.sw",
            arguments: Vec::new(),
            environment: Vec::new(),
        };
        // All work is done whatever fails, so that all of the output is known.
        let options = [["-q", "-k", "-j1"], ["-q", "-k", "-j2"]][random.below(2) as usize];
        let expected = trial.in_peace(&options);
        assert_eq!(expected.shown.1, tree.shown(), "seed {seed}");
        let moments = moments(&mut random);
        if let Some((seen, _)) = trial.killed_at(&moments, &options) {
            seen.expect(&expected, &format!("seed {seed}, {moments:?}, {options:?}"));
        }
    }
}

/// Programs in Python in the usual run of the tests.
const PROGRAMS: u64 = 4;

#[test]
fn random_python_programs_killed_at_random_records_end_as_if_undisturbed() {
    if !runs_python("random programs in Python that are killed", "") {
        return;
    }
    let programs = repository().join("sdk/python/tests/programs.py");
    let first = first_seed();
    for seed in first..first + kills(PROGRAMS) {
        let mut random = Random::new(seed);
        let trial = Trial {
            files: vec![("job.py", std::fs::read_to_string(&programs).unwrap())],
            job: "job.py",
            arguments: vec![seed.to_string(), "3".to_string()],
            environment: vec![("CIEL_PYTHON", python().display().to_string())],
        };
        let options = [["-q", "-j1"], ["-q", "-j2"]][random.below(2) as usize];
        let expected = trial.in_peace(&options);
        assert_eq!(expected.shown.0, Some(0), "seed {seed}: {expected:?}");
        let moments = moments(&mut random);
        if let Some((seen, _)) = trial.killed_at(&moments, &options) {
            seen.expect(&expected, &format!("seed {seed}, {moments:?}, {options:?}"));
        }
    }
}
