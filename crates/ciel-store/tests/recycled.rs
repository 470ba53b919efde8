//! Long values in memory are written into the pages of those that are dead, which nobody notices.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ciel_store::{ObjectName, ObjectStore, RunFolder, StateFolder, forget_memory};
use memmap2::Mmap;
use tempfile::TempDir;

const MIB: usize = 1 << 20;
const LIMIT: u64 = 8 << 20;
const OVERWRITES: bool = true;

/// A hang is found by it, and nothing else.
const DEADLINE: Duration = Duration::from_secs(120);

/// A run whose objects are in memory.
struct Place {
    _folder: TempDir,
    state: StateFolder,
    run: RunFolder,
}

impl Place {
    /// None, after a word about it, where there is no memory for files, or nobody tells who has
    /// them open.
    fn new() -> Option<Place> {
        let folder = TempDir::new().unwrap();
        let state = StateFolder::open(&folder.path().join(".ciel")).unwrap();
        let run = RunFolder::create(&state, "run", u64::MAX).unwrap();
        run.describe(b"{}").unwrap();
        run.journal_folder().unwrap();
        run.use_memory(LIMIT, 0).unwrap();
        let place = Place {
            _folder: folder,
            state,
            run,
        };
        let is_there = place.run.objects_paths().len() == 2 && place.tells_of_mappings();
        if !is_there {
            println!("skipped: /dev/shm is no file system in memory that gives leases");
        }
        is_there.then_some(place)
    }

    fn tells_of_mappings(&self) -> bool {
        self.make(99, 1);
        let held = self.map(99);
        self.release(99);
        let tells = self.run.objects().memory_use().mapped == 1;
        drop(held);
        self.run.objects().settle_memory();
        tells
    }

    fn file(&self, name: u128, length: usize, overwrites: bool) -> PathBuf {
        let length = (length as u64, overwrites);
        let file = self.run.scratch().file_of_length(name, 0, "out", length);
        file.unwrap()
    }

    /// Makes an object as a worker does that overwrites what is there.
    fn make(&self, name: u128, length: usize) {
        let path = self.file(name, length, OVERWRITES);
        let mut file = File::options().write(true).open(&path).unwrap();
        file.write_all(&vec![name as u8; length]).unwrap();
        drop(file);
        let object = self.run.objects().adopt(ObjectName(name), &path).unwrap();
        assert_eq!(object.length, length as u64);
        self.check(name, length);
    }

    fn check(&self, name: u128, length: usize) {
        let bytes = self.run.objects().map(ObjectName(name)).unwrap();
        assert_eq!(bytes.len(), length);
        assert!(bytes.iter().all(|byte| *byte == name as u8));
    }

    fn map(&self, name: u128) -> Mmap {
        let path = self.run.objects().share(ObjectName(name)).unwrap();
        // SAFETY: nobody writes to the file of an object.
        unsafe { Mmap::map(&File::open(path).unwrap()).unwrap() }
    }

    fn release(&self, name: u128) {
        assert!(self.run.objects().release(ObjectName(name)).unwrap());
    }

    fn recycled(&self) -> u64 {
        self.run.objects().memory_use().recycled
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for run in self.state.runs().unwrap_or_default() {
            forget_memory(&run.path);
        }
    }
}

#[test]
fn values_follow_one_another_and_each_has_its_own_bytes() {
    let Some(place) = Place::new() else { return };
    for (name, length) in (1..).zip([2 * MIB, 2 * MIB - 100, 3 * MIB, MIB, 5 * MIB, 2 * MIB]) {
        place.make(name, length);
        if name > 1 {
            place.release(name - 1);
        }
        place.check(name, length);
        let used = place.run.objects().memory_use();
        assert!(used.present + used.recycled <= LIMIT);
        assert!(used.recycled <= LIMIT / 2);
    }
}

/// The reader has mapped the value, and its object goes.
#[test]
fn reader_that_has_mapped_a_dead_value_keeps_its_bytes() {
    let Some(place) = Place::new() else { return };
    place.make(1, 2 * MIB);
    let reader = place.map(1);
    place.release(1);
    assert_eq!(place.run.objects().memory_use().mapped, 2 << 20);
    place.make(2, 2 * MIB);
    assert!(reader.iter().all(|byte| *byte == 1));
    drop(reader);
    place.run.objects().settle_memory();
    place.make(3, 2 * MIB);
    place.check(2, 2 * MIB);
}

/// A worker in another language may append to the file that it is given, or write less.
#[test]
fn writer_that_does_not_overwrite_has_an_empty_file() {
    let Some(place) = Place::new() else { return };
    place.make(1, 2 * MIB);
    place.release(1);
    let path = place.file(2, 2 * MIB, false);
    assert_eq!(fs::metadata(path).unwrap().len(), 0);
}

#[test]
fn value_that_is_half_written_is_no_object_and_goes_with_its_attempt() {
    let Some(place) = Place::new() else { return };
    place.make(1, 2 * MIB);
    place.release(1);
    let path = place.file(2, 2 * MIB, OVERWRITES);
    let mut file = File::options().write(true).open(&path).unwrap();
    file.write_all(b"half").unwrap();
    assert!(place.run.objects().map(ObjectName(2)).is_err());
    place.run.scratch().clear(2, 0).unwrap();
    assert!(!path.exists());
    place.make(2, 2 * MIB);
}

#[test]
fn room_that_something_else_needs_is_there_at_once() {
    let Some(place) = Place::new() else { return };
    place.make(1, 4 * MIB);
    place.release(1);
    place.make(2, 8 * MIB);
    assert!(place.run.disk_bytes() == 0, "it is in memory");
    place.release(2);
    assert_eq!(place.run.objects().shrink_memory(0, || u64::MAX), 0);
    assert_eq!(place.recycled(), 0);
}

#[test]
fn nothing_waits_for_long() {
    let Some(place) = Place::new() else { return };
    place.make(1, 4 * MIB);
    place.release(1);
    let begun = Instant::now();
    while place.recycled() > 0 {
        assert!(begun.elapsed() < DEADLINE, "it waits for ever");
        std::thread::yield_now();
    }
}

/// The process of the run is killed.
#[test]
fn next_process_of_the_run_finds_no_files_that_waited() {
    let Some(mut place) = Place::new() else {
        return;
    };
    place.make(1, 2 * MIB);
    place.release(1);
    let waiting = place
        .run
        .objects_paths()
        .remove(1)
        .with_file_name("recycled");
    let other = StateFolder::open(place.state.path()).unwrap();
    place.run = {
        let run = RunFolder::create(&other, "second", u64::MAX).unwrap();
        drop(std::mem::replace(&mut place.run, run));
        RunFolder::reopen(&other, "run", u64::MAX).unwrap()
    };
    fs::write(waiting.join("77"), vec![7; MIB]).unwrap();
    place.run.use_memory(LIMIT, 0).unwrap();
    assert_eq!(fs::read_dir(waiting).unwrap().count(), 0);
}
