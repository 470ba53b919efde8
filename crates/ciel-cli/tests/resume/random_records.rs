//! Random trees of tasks, some of which fail, killed at random records again and again.
//!
//! Read first: `trial`; `support/trees.rs`, which writes the scripts.

use crate::random::{Random, first_seed, kills};
use crate::support::Tree;
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
            environment: Vec::new(),
        };
        // All work is done whatever fails, so that all of the output is known.
        let options = [["-q", "-k", "-j1"], ["-q", "-k", "-j2"]][random.below(2) as usize];
        let expected = trial.in_peace(&options);
        assert_eq!(expected.shown.1, tree.shown(), "seed {seed}");
        let moments = moments(&mut random);
        if let Some((seen, _)) = trial.killed_at(&moments, &options) {
            assert_eq!(seen, expected, "seed {seed}, {moments:?}, {options:?}");
        }
    }
}
