//! What joins cost, whoever steals what: the table of bounds of the design, by counters.
//!
//! Read next: `host`, which sums up what the workers count.

use std::io::Write;
use std::path::Path;

use proptest::prelude::*;

use crate::appended;
use crate::elision::elided;
use crate::file::File;
use crate::host;
use crate::join::join;
use crate::part::BUFFER_BYTES;
use crate::program::{Act, FILES, Program, beneath, bytes_of, config, programs_of_joins, shown};

/// A program of joins that runs.
struct Run {
    files: [File; FILES],
    workers: u64,
}

impl Run {
    fn all(&self, program: &Program, place: u64) {
        for (number, act) in program.iter().enumerate() {
            host::pause();
            self.one(act, beneath(place, number));
            self.expect_few_live_nodes();
        }
        host::pause();
    }

    fn one(&self, act: &Act, place: u64) {
        match act {
            Act::Write { file, bytes } => {
                host::note_write();
                (&self.files[*file])
                    .write_all(&bytes_of(place, *bytes))
                    .unwrap();
            }
            Act::Join(first, second) => {
                join(
                    || self.all(first, beneath(place, 0)),
                    || self.all(second, beneath(place, 1)),
                );
            }
            _ => unreachable!("these programs append and join"),
        }
    }

    /// At each moment there are no more nodes than joins on the stacks of all workers.
    fn expect_few_live_nodes(&self) {
        let counts = host::counts();
        let live = counts.gauges.nodes - counts.gauges.nodes_freed;
        let most = self.workers * counts.depth_max as u64;
        assert!(live <= most, "{live} nodes, {most} open joins");
    }
}

fn expect_bounds(program: &Program, seed: u64, workers: usize, folder: &Path) {
    let wanted = elided(program).files;
    host::run(seed, workers, || {
        let files = appended(folder);
        let run = Run {
            files,
            workers: workers as u64,
        };
        for (number, act) in program.iter().enumerate() {
            run.one(act, beneath(1, number));
            let gauges = host::counts().gauges;
            assert_eq!(
                gauges.nodes, gauges.nodes_freed,
                "all is one strand behind a join"
            );
        }
        for file in run.files {
            file.close().unwrap();
        }
        let counts = host::counts();
        let gauges = counts.gauges;
        assert!(gauges.nodes <= counts.migrated_that_wrote, "{gauges:?}");
        // Each of them is joined once, whatever is nested.
        assert!(gauges.strands_joined <= gauges.nodes, "{gauges:?}");
        let bytes: usize = wanted.iter().map(Vec::len).sum();
        let most = bytes.div_ceil(BUFFER_BYTES) as u64 + 2 * counts.migrated + 1;
        assert!(gauges.spilled_pieces <= most, "{gauges:?}");
        assert!(gauges.spilled_bytes <= bytes as u64, "{gauges:?}");
        assert!(gauges.extents_appended <= gauges.extents_kept, "{gauges:?}");
    });
    for (number, wanted) in wanted.iter().enumerate() {
        assert!(&shown(folder, number) == wanted, "file {number}");
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn program_of_joins_stays_within_the_bounds_whoever_steals_what(
        program in programs_of_joins(),
        seed in any::<u64>(),
        workers in 1..6usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        expect_bounds(&program, seed, workers, folder.path());
    }
}
