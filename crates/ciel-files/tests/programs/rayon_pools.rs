//! Programs on pools of rayon's threads.

use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use ciel_files::{AppendTo, File, Gauges, Mode, join, scope};
use proptest::prelude::*;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::elision::{Elided, elided};
use crate::program::{Act, FILES, Program, beneath, bytes_of, config, create, programs, shown};

/// Marks panics of programs, which are not shown.
struct Wanted;

fn all(program: &Program, place: u64, files: &[File; FILES]) {
    for (number, act) in program.iter().enumerate() {
        one(act, beneath(place, number), files);
    }
}

fn one(act: &Act, place: u64, files: &[File; FILES]) {
    match act {
        Act::Write { file, bytes } => {
            (&files[*file]).write_all(&bytes_of(place, *bytes)).unwrap();
        }
        Act::Join(first, second) => {
            join(
                || all(first, beneath(place, 0), files),
                || all(second, beneath(place, 1), files),
            );
        }
        Act::Scope(spawned) => scope(|scope| {
            for (number, (child, after)) in spawned.iter().enumerate() {
                scope.spawn(move |_| all(child, beneath(place, 2 * number), files));
                all(after, beneath(place, 2 * number + 1), files);
            }
        }),
        Act::Items { file, sizes } => {
            let items = sizes.par_iter().enumerate().with_max_len(1);
            let write = |(number, size): (usize, &usize), mut file: &File| {
                file.write_all(&bytes_of(beneath(place, number), *size))
            };
            items.append_to(&files[*file], write).unwrap();
        }
        Act::Move { .. } | Act::Note => unreachable!("these programs only append"),
        Act::Panic => resume_unwind(Box::new(Wanted)),
        Act::Catch(caught) => {
            let ended = catch_unwind(AssertUnwindSafe(|| all(caught, place, files)));
            expect_wanted(ended);
        }
    }
}

/// Whether a program has panicked; a failed assertion continues.
fn expect_wanted(ended: Result<(), Box<dyn std::any::Any + Send>>) -> bool {
    match ended {
        Ok(()) => false,
        Err(panic) if panic.is::<Wanted>() => true,
        Err(panic) => resume_unwind(panic),
    }
}

/// Runs a program in a folder; gives whether it panicked.
fn run(program: &Program, folder: &Path) -> bool {
    let files: [File; FILES] = std::array::from_fn(|number| create(folder, number));
    let panicked = expect_wanted(catch_unwind(AssertUnwindSafe(|| all(program, 1, &files))));
    for file in files {
        file.close().unwrap();
    }
    panicked
}

fn contents(folder: &Path) -> [Vec<u8>; FILES] {
    std::array::from_fn(|number| shown(folder, number))
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap()
}

fn expect_elision(program: &Program, pool: Option<&ThreadPool>) {
    let folder = tempfile::tempdir().unwrap();
    let panicked = match pool {
        Some(pool) => pool.install(|| run(program, folder.path())),
        None => run(program, folder.path()),
    };
    let Elided { files, panics, .. } = elided(program);
    assert_eq!(panicked, panics);
    let written = contents(folder.path());
    for (written, wanted) in written.iter().zip(&files) {
        let differs = written.iter().zip(wanted).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{} and {}", written.len(), wanted.len());
        assert_eq!(written.len(), wanted.len());
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn program_writes_what_its_elision_writes(program in programs(false), threads in 1..5usize) {
        expect_elision(&program, Some(&pool(threads)));
    }

    #[test]
    fn program_that_panics_has_written_what_its_elision_has(
        program in programs(true),
        threads in 1..5usize,
    ) {
        expect_elision(&program, Some(&pool(threads)));
    }

    #[test]
    fn program_that_begins_outside_of_the_pool_does_the_same(program in programs(true)) {
        expect_elision(&program, None);
    }
}

#[test]
fn one_thread_forks_without_nodes_and_spills_nothing() {
    fn tree(file: &File, depth: u32, place: u64) {
        match depth {
            0 => (&*file).write_all(&bytes_of(place, 40)).unwrap(),
            _ => drop(join(
                || tree(file, depth - 1, beneath(place, 0)),
                || tree(file, depth - 1, beneath(place, 1)),
            )),
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    pool(1).install(|| {
        let file = File::create(&path, Mode::SerialAppend).unwrap();
        let before = Gauges::of_this_thread();
        tree(&file, 14, 1);
        assert_eq!(Gauges::of_this_thread(), before);
        file.close().unwrap();
    });
    assert_eq!(fs::metadata(&path).unwrap().len(), 40 << 14);
}
