//! The joins and scopes of `ciel-files` on a work stealing in which a seed decides everything.
//!
//! The modules are compiled again here on `host`, which stands in for rayon: who takes which
//! closure, who runs what while it waits, and who is next at each act all follow from a seed. What
//! is checked: files are those of the serial elision, and at each act those that are appended to
//! have a prefix of it; `bounds` checks what that costs. A failed case prints program and seed.
//! Read next: `host`.

#![allow(
    dead_code,
    reason = "the modules of the crate serve more than joins and scopes"
)]

mod bounds;
#[path = "../programs/elision.rs"]
mod elision;
#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/extent.rs"]
mod extent;
#[path = "../../src/file.rs"]
mod file;
#[path = "../../src/flat.rs"]
mod flat;
#[path = "../../src/fork.rs"]
mod fork;
#[path = "../../src/form.rs"]
mod form;
#[path = "../../src/gauges.rs"]
mod gauges;
mod host;
#[path = "../../src/join.rs"]
mod join;
#[path = "../../src/line.rs"]
mod line;
#[path = "../../src/meeting.rs"]
mod meeting;
#[path = "../../src/panics.rs"]
mod panics;
#[path = "../../src/part.rs"]
mod part;
#[path = "../programs/program.rs"]
mod program;
#[path = "../../src/scope.rs"]
mod scope;
#[path = "../../src/strand.rs"]
mod strand;
#[path = "../../src/structured.rs"]
mod structured;
#[path = "../../src/sync.rs"]
mod sync;
#[path = "../../src/target.rs"]
mod target;
#[path = "../../src/thread.rs"]
mod thread;

use std::io::{Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use proptest::prelude::*;

use crate::elision::{Elided, elided};
use crate::file::{File, Mode, Options};
use crate::join::join;
use crate::program::{
    Act, FILES, Program, beneath, bytes_of, config, position_of, programs, programs_of_all_modes,
    shown,
};
use crate::scope::scope;

/// Marks panics of programs, which are not shown.
struct Wanted;

/// A program that runs, and what it has to write.
struct Run<'a> {
    folder: &'a Path,
    wanted: &'a Elided,
    appended: [File; FILES],
    local: File,
    global: File,
}

/// The files to which a program appends; the last one is structured.
fn appended(folder: &Path) -> [File; FILES] {
    std::array::from_fn(|number| {
        let options = Options::new().create(true).structured(number == FILES - 1);
        let path = folder.join(number.to_string());
        options.open(path, Mode::SerialAppend).unwrap()
    })
}

impl Run<'_> {
    fn new<'a>(folder: &'a Path, wanted: &'a Elided) -> Run<'a> {
        let options = Options::new().create(true);
        Run {
            folder,
            wanted,
            appended: appended(folder),
            local: options.open(folder.join("local"), Mode::Local).unwrap(),
            global: options.open(folder.join("global"), Mode::Global).unwrap(),
        }
    }

    fn all(&self, program: &Program, place: u64) {
        for (number, act) in program.iter().enumerate() {
            host::pause();
            self.one(act, beneath(place, number));
        }
        host::pause();
    }

    fn one(&self, act: &Act, place: u64) {
        match act {
            Act::Write { file, bytes } => self.append(*file, &bytes_of(place, *bytes)),
            Act::Join(first, second) => {
                join(
                    || self.all(first, beneath(place, 0)),
                    || self.all(second, beneath(place, 1)),
                );
            }
            Act::Scope(spawned) => scope(|scope| {
                for (number, (child, after)) in spawned.iter().enumerate() {
                    scope.spawn(move |_| self.all(child, beneath(place, 2 * number)));
                    self.all(after, beneath(place, 2 * number + 1));
                }
            }),
            Act::Items { file, sizes } => self.items(*file, sizes, 0, place),
            Act::Panic => resume_unwind(Box::new(Wanted)),
            Act::Catch(caught) => {
                expect_wanted(catch_unwind(AssertUnwindSafe(|| self.all(caught, place))));
            }
            Act::Move { by } => {
                let at = (&self.local).stream_position().unwrap();
                self.append(0, &position_of(place, at));
                let by = SeekFrom::Current(i64::try_from(*by).unwrap());
                (&self.local).seek(by).unwrap();
            }
            Act::Note => (&self.global).write_all(&bytes_of(place, 0)).unwrap(),
        }
    }

    fn append(&self, file: usize, bytes: &[u8]) {
        (&self.appended[file]).write_all(bytes).unwrap();
        let written = shown(self.folder, file);
        assert!(self.wanted.files[file].starts_with(&written), "file {file}");
    }

    /// A parallel loop over the sizes, of which the first one has this number.
    fn items(&self, file: usize, sizes: &[usize], first: usize, place: u64) {
        match sizes {
            [] => {}
            [size] => self.append(file, &bytes_of(beneath(place, first), *size)),
            _ => {
                let (left, right) = sizes.split_at(sizes.len() / 2);
                join(
                    || self.items(file, left, first, place),
                    || self.items(file, right, first + left.len(), place),
                );
            }
        }
    }

    fn close(self) {
        for file in self.appended {
            file.close().unwrap();
        }
        for (number, wanted) in self.wanted.files.iter().enumerate() {
            assert!(&shown(self.folder, number) == wanted, "file {number}");
        }
        let mut notes = std::fs::read_to_string(self.folder.join("global")).unwrap();
        notes = notes.replace('>', ">\n");
        let mut notes: Vec<_> = notes.lines().map(|note| note.as_bytes().to_vec()).collect();
        notes.sort();
        assert_eq!(notes, self.wanted.notes);
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

fn expect_elision(program: &Program, seed: u64, workers: usize) {
    let wanted = elided(program);
    let folder = tempfile::tempdir().unwrap();
    host::run(seed, workers, || {
        let run = Run::new(folder.path(), &wanted);
        let ended = catch_unwind(AssertUnwindSafe(|| run.all(program, 1)));
        assert_eq!(expect_wanted(ended), wanted.panics);
        run.close();
    });
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn program_of_all_modes_equals_its_elision_whoever_steals_what(
        program in programs_of_all_modes(),
        seed in any::<u64>(),
        workers in 1..5usize,
    ) {
        expect_elision(&program, seed, workers);
    }

    #[test]
    fn program_that_panics_equals_its_elision_whoever_steals_what(
        program in programs(true),
        seed in any::<u64>(),
        workers in 1..5usize,
    ) {
        expect_elision(&program, seed, workers);
    }
}
