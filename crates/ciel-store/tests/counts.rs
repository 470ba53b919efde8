//! Counted bytes agree with the files on the disk, whatever is done to a store.

use std::fs;
use std::path::Path;

use ciel_store::{Extent, Kind, ObjectName, ObjectStore, RunFolder, StateFolder};
use tempfile::TempDir;

/// A sequence of numbers from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

fn run(home: &TempDir) -> RunFolder {
    let state = StateFolder::open(&home.path().join(".ciel")).unwrap();
    RunFolder::create(&state, "run", u64::MAX).unwrap()
}

fn bytes_in(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum()
}

fn expect_agreement(run: &RunFolder, after: &str) {
    let counts = run.budget().counts();
    let objects = bytes_in(&run.path().join("objects"));
    let spilled = bytes_in(&run.path().join("spill"));
    let sum = Kind::ALL.map(|kind| counts.of(kind).present());
    assert_eq!(
        counts.made() - counts.released(),
        counts.present(),
        "{after}"
    );
    assert_eq!(sum.iter().sum::<u64>(), counts.present(), "{after}");
    assert_eq!(counts.of(Kind::Output).present(), spilled, "{after}");
    assert_eq!(counts.present(), objects + spilled, "{after}");
    assert!(counts.peak >= counts.present(), "{after}");
}

/// One random step with one of a few objects or with output.
fn step(run: &RunFolder, numbers: &mut Numbers, spilled: &mut Vec<Extent>) -> String {
    let name = ObjectName(numbers.below(6).into());
    let bytes = vec![b'x'; numbers.below(5000) as usize];
    let objects = run.objects();
    let what = numbers.below(8);
    let did = match what {
        0 => objects.put(name, &bytes).is_ok(),
        1 | 2 => {
            let path = run.scratch().write(1, 0, "output", &bytes).unwrap();
            if what == 2 {
                // A file with a second name is copied.
                run.scratch().link(&path, 1, 0, "other").unwrap();
            }
            let adopted = objects.adopt(name, &path).is_ok();
            run.scratch().clear(1, 0).unwrap();
            adopted
        }
        3 => {
            let mut draft = objects.open(name).unwrap();
            draft.append(&bytes).is_ok()
        }
        4 | 5 => objects.release(name).unwrap(),
        6 => {
            spilled.push(run.spill().append(&bytes).unwrap());
            true
        }
        _ if spilled.is_empty() => false,
        _ => {
            let extent = spilled.swap_remove(numbers.below(spilled.len() as u64) as usize);
            run.spill().release(extent).is_ok()
        }
    };
    format!("step {what} with {name}, {} bytes: {did}", bytes.len())
}

#[test]
fn made_less_released_is_present_and_on_the_disk_after_every_step() {
    for seed in 0..8 {
        let home = TempDir::new().unwrap();
        let run = run(&home);
        let (mut numbers, mut spilled) = (Numbers(seed), Vec::new());
        for _ in 0..300 {
            let did = step(&run, &mut numbers, &mut spilled);
            expect_agreement(&run, &format!("seed {seed}, {did}"));
        }
        for number in 0..6 {
            run.objects().release(ObjectName(number)).unwrap();
        }
        spilled
            .drain(..)
            .for_each(|extent| run.spill().release(extent).unwrap());
        expect_agreement(&run, "all was released");
        let counts = run.budget().counts();
        assert_eq!(counts.present(), 0);
        assert!(counts.made() > 0 && counts.made() == counts.released());
    }
}

#[test]
fn only_copies_count_as_moved() {
    let home = TempDir::new().unwrap();
    let run = run(&home);
    let moved = || run.budget().counts().moved;
    let path = run.scratch().write(1, 0, "output", &[1; 100]).unwrap();
    run.objects().adopt(ObjectName(1), &path).unwrap();
    assert_eq!(moved(), 0);
    run.objects().put(ObjectName(2), &[2; 30]).unwrap();
    assert_eq!(moved(), 30);
    let path = run.scratch().write(1, 0, "output", &[3; 7]).unwrap();
    run.scratch().link(&path, 1, 0, "other").unwrap();
    run.objects().adopt(ObjectName(3), &path).unwrap();
    assert_eq!(moved(), 37);
}
