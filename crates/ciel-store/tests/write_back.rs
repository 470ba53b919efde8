//! Objects leave the memory for the disk, and readers notice nothing.

use std::fs;
use std::os::unix::fs::FileExt;

use ciel_store::{Object, ObjectName, ObjectStore, RunFolder, StateFolder, forget_memory};
use memmap2::Mmap;
use tempfile::TempDir;

const LIMIT: u64 = 1000;
const NO_BOUND: fn() -> u64 = || u64::MAX;

/// A run whose objects are in memory.
struct Place {
    _folder: TempDir,
    state: StateFolder,
    run: RunFolder,
}

impl Place {
    /// None, after a word about it, where there is no memory for files.
    fn new() -> Option<Place> {
        let folder = TempDir::new().unwrap();
        let state = StateFolder::open(&folder.path().join(".ciel")).unwrap();
        let run = RunFolder::create(&state, "run", u64::MAX).unwrap();
        run.use_memory(LIMIT, 0).unwrap();
        if run.objects_paths().len() != 2 {
            println!("skipped: /dev/shm is no file system in memory that can be written to");
            return None;
        }
        Some(Place {
            _folder: folder,
            state,
            run,
        })
    }

    fn make(&self, name: u128, length: usize) -> Object {
        let scratch = self.run.scratch();
        let path = scratch.file_of_length(name, 0, "out", (length as u64, false));
        let path = path.unwrap();
        fs::write(&path, vec![name as u8; length]).unwrap();
        self.run.objects().adopt(ObjectName(name), &path).unwrap()
    }

    fn is_in_memory(&self, name: u128) -> bool {
        let objects = self.run.objects();
        let (path, bytes) = (
            objects.share(ObjectName(name)).unwrap(),
            objects.map(ObjectName(name)).unwrap(),
        );
        assert_eq!(fs::read(&path).unwrap(), &*bytes);
        assert!(bytes.iter().all(|byte| *byte == name as u8));
        !path.starts_with(self.run.path())
    }

    fn shrink(&self, bytes: u64) -> u64 {
        self.run.objects().shrink_memory(bytes, NO_BOUND)
    }

    fn map(&self, name: u128) -> Mmap {
        let path = self.run.objects().share(ObjectName(name)).unwrap();
        let file = fs::File::open(path).unwrap();
        // SAFETY: nobody writes to the file of an object.
        unsafe { Mmap::map(&file).unwrap() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for run in self.state.runs().unwrap_or_default() {
            forget_memory(&run.path);
        }
    }
}

/// Whether this system says who has a file mapped; without that nobody waits for it.
fn tells_of_mappings(place: &Place) -> bool {
    let mapped = place.make(99, 1);
    let held = place.map(99);
    place.run.objects().release(mapped.name).unwrap();
    let tells = place.run.objects().memory_use().mapped == 1;
    drop(held);
    place.run.objects().settle_memory();
    if !tells {
        println!("skipped: /dev/shm gives no leases");
    }
    tells
}

#[test]
fn oldest_objects_are_written_back_until_the_rest_fits() {
    let Some(place) = Place::new() else { return };
    for name in [3, 1, 2] {
        place.make(name, 300);
    }
    assert_eq!(place.shrink(400), 400);
    let found = [1, 2, 3].map(|name| place.is_in_memory(name));
    assert_eq!(found.iter().filter(|is_there| **is_there).count(), 1);
    assert!(!place.is_in_memory(3), "it is the oldest");
    let used = place.run.objects().memory_use();
    assert_eq!(
        (used.present, used.written_back, used.mapped),
        (300, 600, 0)
    );
    assert_eq!(place.run.disk_bytes(), 600);
}

#[test]
fn nothing_new_comes_into_memory_that_was_given_back_before_it_is_lent_again() {
    let Some(place) = Place::new() else { return };
    place.make(1, 300);
    assert_eq!(place.shrink(500), 500);
    place.make(2, 300);
    assert_eq!([1, 2].map(|name| place.is_in_memory(name)), [true, false]);
    place.run.objects().grow_memory(LIMIT);
    place.make(3, 300);
    assert!(place.is_in_memory(3));
}

/// A task was told the path before, and opens it only now.
#[test]
fn path_in_memory_leads_to_the_file_on_the_disk() {
    let Some(place) = Place::new() else { return };
    place.make(1, 300);
    let path = place.run.objects().share(ObjectName(1)).unwrap();
    assert_eq!(place.shrink(0), 0);
    assert_eq!(fs::read(&path).unwrap(), vec![1; 300]);
    place.run.objects().release(ObjectName(1)).unwrap();
    assert!(fs::symlink_metadata(&path).is_err());
    assert_eq!(place.run.budget().used(), 0);
}

#[test]
fn bytes_that_a_reader_has_mapped_count_until_it_lets_them_go() {
    let Some(place) = Place::new() else { return };
    if !tells_of_mappings(&place) {
        return;
    }
    place.make(1, 300);
    place.make(2, 300);
    let reader = place.map(1);
    assert_eq!(place.shrink(300), 300);
    assert!(place.is_in_memory(1), "to write it back would free nothing");
    assert_eq!(place.shrink(0), 300);
    assert!(!place.is_in_memory(1));
    assert_eq!(&*reader, vec![1; 300]);
    assert_eq!(place.run.objects().memory_use().mapped, 300);
    drop(reader);
    assert_eq!(place.run.objects().settle_memory(), 300);
    assert_eq!(place.shrink(0), 0);
}

/// The pages of an object that was released while a reader had it mapped were there, and were
/// counted nowhere.
#[test]
fn released_object_counts_until_its_last_reader_lets_it_go() {
    let Some(place) = Place::new() else { return };
    if !tells_of_mappings(&place) {
        return;
    }
    let object = place.make(1, 900);
    let reader = place.map(1);
    place.run.objects().release(object.name).unwrap();
    place.make(2, 900);
    assert!(!place.is_in_memory(2));
    drop(reader);
    place.make(3, 900);
    assert!(place.is_in_memory(3));
}

#[test]
fn what_the_disk_has_no_room_for_stays_in_memory() {
    let Some(place) = Place::new() else { return };
    place.make(1, 300);
    assert_eq!(place.run.objects().shrink_memory(0, || 299), 300);
    assert!(place.is_in_memory(1));
}

#[test]
fn object_that_was_overwritten_is_lost_and_is_not_written_back() {
    let Some(place) = Place::new() else { return };
    let run = &place.run;
    let object = place.make(1, 300);
    let path = run.objects().share(object.name).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"changed", 0).unwrap();
    drop(file);
    assert_eq!(place.shrink(0), 0);
    assert!(run.objects().location(object.name).is_none());
}

/// The process of the run is killed after it has written objects back.
#[test]
fn next_process_of_the_run_finds_what_was_written_back() {
    let Some(place) = Place::new() else { return };
    let run = &place.run;
    run.describe(b"{}").unwrap();
    run.journal_folder().unwrap();
    run.record(false);
    let objects = [1, 2].map(|name| place.make(name, 300));
    assert_eq!(place.shrink(300), 300);
    let (before, place) = (place.is_in_memory(2), place.reopened());
    let lost = place.run.objects().retain(&objects, u64::MAX).unwrap();
    assert_eq!(lost, []);
    let found = [1, 2].map(|name| place.is_in_memory(name));
    assert_eq!(found, [false, before]);
    assert_eq!(place.run.objects().memory_use().present, 300);
}

impl Place {
    fn reopened(self) -> Place {
        let state = StateFolder::open(self.state.path()).unwrap();
        let mut place = self;
        let other = RunFolder::create(&state, "other", u64::MAX).unwrap();
        drop(std::mem::replace(&mut place.run, other));
        place.run = RunFolder::reopen(&state, "run", u64::MAX).unwrap();
        place.run.use_memory(LIMIT, 0).unwrap();
        place
    }
}
