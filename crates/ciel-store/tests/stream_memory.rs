//! Memory that streams share: it counts until nobody has it, and leaves room for who needs it.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ciel_store::{ObjectName, ObjectStore, RunFolder, StateFolder};
use ciel_streams::layout::{FREE, OVER, OWNER, WORD_BYTES};
use ciel_streams::limits::SHARED_BYTES;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 64 * MIB;
const FIRST: (u128, u32) = (1, 1);
const NEXT: (u128, u32) = (2, 2);

/// A run whose memory is bounded: that of objects and streams together, or of streams alone.
struct Place {
    run: RunFolder,
    _told: OwnedFd,
    _folder: TempDir,
}

impl Place {
    fn new(objects: u64, streams: u64) -> Place {
        let folder = TempDir::new().unwrap();
        let state = StateFolder::open(&folder.path().join(".ciel")).unwrap();
        let run = RunFolder::create(&state, "run", u64::MAX).unwrap();
        run.use_memory(objects, streams).unwrap();
        Place {
            _told: run.objects().watch_stream_memory().unwrap(),
            run,
            _folder: folder,
        }
    }

    fn grant(&self, task: (u128, u32)) -> Option<PathBuf> {
        self.run.objects().grant_stream_memory(task, MIB)
    }

    fn end(&self, task: (u128, u32)) {
        self.run.objects().end_stream_memory(task);
    }

    /// Bytes of pages of streams, now and at most.
    fn pages(&self) -> (u64, u64) {
        let found = self.run.objects().memory_use();
        (found.streams, found.streams_peak)
    }
}

/// As the task that was granted it.
fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

fn bytes_of(file: &File) -> u64 {
    file.metadata().unwrap().len() - WORD_BYTES as u64
}

fn say_owner(file: &File, owner: u64) {
    let at = OWNER * size_of::<u64>();
    file.write_all_at(&owner.to_ne_bytes(), at as u64).unwrap();
}

fn fill(file: &File, bytes: u64) {
    file.write_all_at(&vec![1; bytes as usize], WORD_BYTES as u64)
        .unwrap();
}

#[test]
fn stream_has_all_that_it_can_use_or_half_of_what_is_free() {
    let place = Place::new(0, 1000 * MIB);
    assert_eq!(bytes_of(&open(&place.grant(FIRST).unwrap())), SHARED_BYTES);
    let place = Place::new(0, LIMIT);
    let halves: Vec<u64> = (0..3)
        .map(|_| bytes_of(&open(&place.grant(FIRST).unwrap())))
        .collect();
    assert!(
        halves[0] <= LIMIT / 2 && halves[0] > LIMIT / 2 - MIB,
        "{halves:?}"
    );
    assert!(
        halves[1] <= LIMIT / 4 && halves[1] > LIMIT / 4 - MIB,
        "{halves:?}"
    );
    let rest = LIMIT - halves.iter().sum::<u64>() - 3 * WORD_BYTES as u64;
    assert!(rest < LIMIT / 8 + MIB);
    while place.grant(NEXT).is_some() {}
    let all = place.run.objects().grant_stream_memory(NEXT, 4 * MIB);
    assert_eq!(all, None);
}

#[test]
fn memory_counts_until_its_task_has_ended_and_no_process_has_it() {
    let place = Place::new(0, 5 * MIB);
    let file = open(&place.grant(FIRST).unwrap());
    fill(&file, MIB);
    assert_eq!(place.grant(NEXT), None);
    place.end(FIRST);
    assert_eq!(place.run.objects().settle_memory(), 0);
    assert_eq!(place.grant(NEXT), None);
    assert!(place.pages().0 >= MIB);
    drop(file);
    assert!(place.run.objects().settle_memory() > 4 * MIB);
    assert!(place.grant(NEXT).is_some());
    let (now, most) = place.pages();
    assert_eq!(now, 0);
    assert!((MIB..2 * MIB).contains(&most), "{most}");
}

#[test]
fn memory_that_was_granted_and_never_opened_is_free_when_its_task_has_ended() {
    let place = Place::new(0, 5 * MIB);
    place.grant(FIRST).unwrap();
    place.end(FIRST);
    assert!(place.grant(NEXT).is_some());
}

#[test]
fn memory_that_is_kept_for_a_next_stream_is_taken_back_for_another_one() {
    let place = Place::new(0, 5 * MIB);
    let kept = open(&place.grant(FIRST).unwrap());
    fill(&kept, MIB);
    say_owner(&kept, FREE);
    let next = open(&place.grant(NEXT).unwrap());
    assert!(bytes_of(&next) >= 4 * MIB);
    let mut word = [1; 8];
    kept.read_exact_at(&mut word, (OWNER * size_of::<u64>()) as u64)
        .unwrap();
    assert_ne!(u64::from_ne_bytes(word), FREE, "two streams could have it");
    assert_eq!(place.pages().0, 0, "its pages are gone");
}

#[test]
fn only_the_pages_count_of_memory_that_no_stream_will_have_again() {
    let place = Place::new(0, 5 * MIB);
    let held = open(&place.grant(FIRST).unwrap());
    fill(&held, MIB / 2);
    assert_eq!(place.grant(NEXT), None);
    say_owner(&held, OVER);
    assert_eq!(
        place.run.objects().grant_stream_memory(NEXT, MIB * 5 / 4),
        None
    );
    assert!(place.grant(NEXT).is_some());
}

#[test]
fn objects_and_streams_have_one_budget() {
    let place = Place::new(LIMIT, 0);
    if place.run.objects_paths().len() != 2 {
        println!("skipped: /dev/shm is no file system in memory that can be written to");
        return;
    }
    let make = |name: u128, length: u64| {
        let scratch = place.run.scratch();
        let path = scratch.file_of_length(name, 0, "out", (length, false));
        let path = path.unwrap();
        fs::write(&path, vec![1; length as usize]).unwrap();
        let object = place.run.objects().adopt(ObjectName(name), &path).unwrap();
        !place.run.objects().is_on_disk(object.name)
    };
    assert!(make(1, 50 * MIB));
    let shared = open(&place.grant(FIRST).unwrap());
    assert!(bytes_of(&shared) <= 7 * MIB);
    assert!(!make(2, 10 * MIB), "the stream has that memory");
    fill(&shared, MIB);
    let peak = place.run.objects().memory_use().peak;
    assert!((51 * MIB..53 * MIB).contains(&peak), "{peak}");
    say_owner(&shared, FREE);
    assert!(make(3, 10 * MIB), "what is kept was not reclaimed");
}
