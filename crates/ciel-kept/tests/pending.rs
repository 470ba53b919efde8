//! Notes about many short tasks wait until somebody looks, and nobody can tell.

use std::path::Path;

use bytes::Bytes;
use ciel_kept::limits::{
    BEGUN_KNOWN_MAX, PENDING_BYTES_MAX, PENDING_ENTRIES_MAX, PENDING_ENTRIES_MIN, PLACES_OF_ENTRY,
};
use ciel_kept::{
    Ended, Entry, Found, KeptContent, KeptOutput, KeptResults, Notes, Parts, Printed, Removed,
    Selection,
};
use ciel_model::{Digest, Form, RerunReason};
use rusqlite::Connection;
use tempfile::TempDir;

const MANY: u128 = PENDING_ENTRIES_MIN as u128;

fn parts(number: u128) -> Parts {
    Parts {
        executor: "python".into(),
        surroundings: Digest(0),
        code: Some(Digest(1)),
        pieces: Default::default(),
        payload: Digest(number),
        arguments: vec![("n".into(), Digest(number))],
        inputs: Vec::new(),
        outputs: 1,
    }
}

/// The result of task `number`, which is at the position of that number and gave `gave`.
fn entry(number: u128, gave: u128) -> Entry {
    Entry {
        parts: parts(number),
        place: Digest(number),
        task: "square".into(),
        outputs: vec![KeptOutput {
            form: Form::Bytes,
            content: KeptContent::Inline(Bytes::copy_from_slice(&gave.to_le_bytes())),
        }],
        printed: Vec::new(),
        beneath: Vec::new(),
        read: Vec::new(),
        took_us: 0,
        run: "run".into(),
        is_marked: false,
    }
}

fn kept(numbers: impl IntoIterator<Item = u128>, gave: u128) -> Notes {
    let numbers = numbers.into_iter();
    Notes {
        kept: numbers
            .map(|number| (entry(number, gave), Vec::new()))
            .collect(),
        ..Notes::default()
    }
}

fn open(home: &TempDir) -> KeptResults {
    KeptResults::open(&home.path().join("kept")).unwrap()
}

fn count(home: &Path, table: &str) -> u64 {
    let index = Connection::open(home.join("kept/index")).unwrap();
    let query = format!("SELECT count(*) FROM {table}");
    index.query_row(&query, [], |row| row.get(0)).unwrap()
}

fn find(kept: &KeptResults, number: u128) -> Found {
    kept.find(&[parts(number)], Digest(number), 100).unwrap()
}

fn gives(kept: &KeptResults, number: u128, gave: u128) -> bool {
    find(kept, number) == Found::Entry(Box::new(entry(number, gave)))
}

#[test]
fn results_of_many_short_tasks_wait_until_another_process_looks() {
    let home = TempDir::new().unwrap();
    open(&home).note(&kept(0..MANY, 7), 50).unwrap();
    let is = |pending, entries| {
        assert_eq!(count(home.path(), "pending"), pending);
        assert_eq!(count(home.path(), "entry"), entries);
    };
    is(1, 0);
    let other = open(&home);
    assert!((0..MANY).all(|number| gives(&other, number, 7)));
    is(0, MANY as u64);
    assert_eq!(find(&other, MANY), Found::Nothing(RerunReason::New));
}

#[test]
fn whoever_counts_chooses_or_removes_sees_what_waits() {
    let home = TempDir::new().unwrap();
    open(&home).note(&kept(0..MANY, 7), 50).unwrap();
    assert_eq!(open(&home).usage().unwrap().entries, MANY as u64);
    open(&home).note(&kept(MANY..2 * MANY, 7), 60).unwrap();
    let late = Selection {
        used_before_s: Some(55),
        ..Selection::default()
    };
    let mut store = open(&home);
    let chosen = store.select(&late).unwrap();
    assert_eq!(chosen.len(), MANY as usize);
    open(&home).note(&kept(2 * MANY..3 * MANY, 7), 70).unwrap();
    assert_eq!(store.keys_of_run("run").unwrap().len(), 3 * MANY as usize);
    open(&home).note(&kept(3 * MANY..4 * MANY, 7), 70).unwrap();
    let removed = store.remove(&chosen, Removed::Entries).unwrap();
    assert_eq!(removed.entries, MANY as u64);
    assert_eq!(
        store.usage_by_run().unwrap()["run"].entries,
        3 * MANY as u64
    );
    assert_eq!(find(&store, 0), Found::Nothing(RerunReason::Evicted));
    let other = kept([5], 0);
    let changed = Parts {
        payload: Digest(9999),
        arguments: vec![("n".into(), Digest(9999))],
        ..other.kept[0].0.parts.clone()
    };
    let why = store.peek(&[changed], Digest(5)).unwrap();
    let because = RerunReason::ArgumentChanged(Some("n".into()));
    assert_eq!(why, Found::Nothing(because));
}

#[test]
fn eviction_counts_what_waits() {
    let home = TempDir::new().unwrap();
    let mut store = open(&home);
    store.note(&kept(0..MANY, 7), 50).unwrap();
    assert_eq!(store.evict(1 << 20).unwrap().entries, 0);
    assert_eq!(count(home.path(), "pending"), 1);
    assert_eq!(store.evict(0).unwrap().entries, MANY as u64);
    assert_eq!(store.usage().unwrap().bytes, 0);
}

/// A small generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005) + 1;
        (self.0 >> 33) % bound
    }
}

/// Notes about a few positions again and again, as runs after each other make them.
fn random_notes(numbers: &mut Numbers) -> Notes {
    let places = 2 * MANY as u64;
    let mut some = |length: u64| -> Vec<Digest> {
        let length = numbers.below(length);
        let place = |_| Digest(u128::from(numbers.below(places)));
        (0..length).map(place).collect()
    };
    let (begun, unkept, taken) = (some(9), some(9), some(9));
    let gave = u128::from(numbers.below(100));
    let first = u128::from(numbers.below(places - MANY as u64));
    let ended = |place: Digest| match place.0 % 2 {
        0 => Ended::Impurely,
        _ => Ended::Unkept,
    };
    let length = [3, MANY][numbers.below(2) as usize];
    Notes {
        begun,
        unkept: unkept
            .into_iter()
            .map(|place| (place, ended(place)))
            .collect(),
        taken: taken
            .into_iter()
            .map(|place| (place, parts(place.0 / 2).key()))
            .collect(),
        ..kept(first..first + length, gave)
    }
}

#[test]
fn notes_that_wait_say_the_same_as_those_that_are_put_in_at_once() {
    for seed in 0..10 {
        let (late, early) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let (mut waits, mut looks) = (open(&late), open(&early));
        find(&looks, 0);
        let mut numbers = Numbers(seed);
        waits.note(&kept(0..MANY, 100), 0).unwrap();
        looks.note(&kept(0..MANY, 100), 0).unwrap();
        for now_s in 0..1 + numbers.below(30) {
            let notes = random_notes(&mut numbers);
            waits.note(&notes, now_s).unwrap();
            looks.note(&notes, now_s).unwrap();
        }
        assert!(count(late.path(), "pending") > 0 && count(early.path(), "pending") == 0);
        for place in 0..2 * MANY {
            assert_eq!(find(&waits, place), find(&looks, place), "{seed}: {place}");
            let other = [parts(place + 1000)];
            let why = |store: &KeptResults| store.peek(&other, Digest(place)).unwrap();
            assert_eq!(why(&waits), why(&looks), "{seed}: {place}");
        }
        assert_eq!(waits.usage().unwrap(), looks.usage().unwrap(), "{seed}");
    }
}

#[test]
fn who_has_looked_has_its_notes_put_in_at_once() {
    let home = TempDir::new().unwrap();
    let mut store = open(&home);
    assert_eq!(find(&store, 0), Found::Nothing(RerunReason::New));
    store.note(&kept(0..MANY, 7), 50).unwrap();
    assert_eq!(count(home.path(), "pending"), 0);
    assert!(gives(&store, 0, 7));
}

#[test]
fn results_that_print_much_do_not_wait() {
    let home = TempDir::new().unwrap();
    let mut notes = kept(0..MANY, 7);
    for (entry, _) in &mut notes.kept {
        entry.printed = vec![Printed {
            file: None,
            bytes: vec![b'x'; 1 + PENDING_BYTES_MAX / MANY as usize].into(),
        }];
    }
    open(&home).note(&notes, 50).unwrap();
    assert_eq!(count(home.path(), "entry"), MANY as u64);
}

/// The last batch of a run is short: with it all that waited was put in.
#[test]
fn few_results_wait_behind_many() {
    let home = TempDir::new().unwrap();
    let mut store = open(&home);
    store.note(&kept(0..MANY, 7), 50).unwrap();
    store.note(&kept(0..3, 8), 60).unwrap();
    let begun = vec![Digest(1000)];
    let notes = Notes {
        begun,
        ..Notes::default()
    };
    store.note(&notes, 70).unwrap();
    assert_eq!(count(home.path(), "pending"), 3);
    let other = open(&home);
    assert!((0..3).all(|number| gives(&other, number, 8)));
    assert!((3..MANY).all(|number| gives(&other, number, 7)));
    let unfinished = Found::Nothing(RerunReason::NeverFinished);
    assert_eq!(find(&other, 1000), unfinished);
}

/// In a loop of a million tail calls each task had a row of its own, which said that it had ended
/// and was not kept: that took half as long as the loop, and nobody looked.
#[test]
fn many_notes_without_results_wait_and_count_less_than_results() {
    let home = TempDir::new().unwrap();
    let unkept = |places: std::ops::Range<u128>| Notes {
        unkept: places.map(|place| (Digest(place), Ended::Unkept)).collect(),
        ..Notes::default()
    };
    open(&home).note(&unkept(0..MANY), 50).unwrap();
    assert_eq!(count(home.path(), "begun"), 0);
    let index = Connection::open(home.path().join("kept/index")).unwrap();
    let counted = "SELECT entries FROM pending";
    let counted: u128 = index
        .query_row(counted, [], |row| row.get::<_, u64>(0))
        .unwrap()
        .into();
    assert_eq!(counted, MANY / PLACES_OF_ENTRY as u128);
    let other = open(&home);
    let unkept_before = Found::Nothing(RerunReason::NotKept);
    assert!((0..MANY).all(|number| find(&other, number) == unkept_before));
    assert_eq!(count(home.path(), "begun"), MANY as u64);
    let few = TempDir::new().unwrap();
    open(&few).note(&unkept(1..MANY), 50).unwrap();
    assert_eq!(count(few.path(), "begun"), MANY as u64 - 1);
}

#[test]
fn few_results_do_not_wait() {
    let home = TempDir::new().unwrap();
    open(&home).note(&kept(1..MANY, 7), 50).unwrap();
    assert_eq!(count(home.path(), "entry"), MANY as u64 - 1);
}

#[test]
fn damaged_notes_are_lost_as_a_whole_and_the_others_are_not() {
    let home = TempDir::new().unwrap();
    let mut store = open(&home);
    store.note(&kept(0..MANY, 7), 50).unwrap();
    store.note(&kept(MANY..2 * MANY, 7), 50).unwrap();
    let index = Connection::open(home.path().join("kept/index")).unwrap();
    let damage = "UPDATE pending SET notes = substr(notes, 1, length(notes) - 9) WHERE id = 1";
    assert_eq!(index.execute(damage, []).unwrap(), 1);
    let other = open(&home);
    let new = Found::Nothing(RerunReason::New);
    assert!((0..MANY).all(|number| find(&other, number) == new));
    assert!((MANY..2 * MANY).all(|number| gives(&other, number, 7)));
}

#[test]
fn no_more_results_wait_than_the_bound_says() {
    let home = TempDir::new().unwrap();
    let mut store = open(&home);
    let batch = 8192;
    for number in 0..=PENDING_ENTRIES_MAX as u128 / batch {
        let first = number * batch;
        store.note(&kept(first..first + batch, 7), 50).unwrap();
    }
    assert_eq!(count(home.path(), "pending"), 1);
    assert_eq!(count(home.path(), "entry"), PENDING_ENTRIES_MAX);
    assert!(gives(&store, PENDING_ENTRIES_MAX as u128, 7));
}

/// Who opened an index while another process made its tables was told that it was locked, and kept
/// and took nothing: the table of what waits was made outside of the transaction of the others.
#[test]
fn many_make_the_tables_at_the_same_time() {
    for _ in 0..20 {
        let home = TempDir::new().unwrap();
        drop(open(&home));
        let index = Connection::open(home.path().join("kept/index")).unwrap();
        index.pragma_update(None, "user_version", 0).unwrap();
        let open_and_look = || assert_eq!(open(&home).usage().unwrap().entries, 0);
        std::thread::scope(|scope| {
            (0..8).for_each(|_| drop(scope.spawn(open_and_look)));
        });
    }
}

/// To change a new index to its log needs it alone, and who came second was told at once that it is
/// locked: `sqlite` does not wait there.
#[test]
fn many_open_a_new_folder_at_the_same_time() {
    for _ in 0..20 {
        let home = TempDir::new().unwrap();
        let open_and_look = || assert_eq!(open(&home).usage().unwrap().entries, 0);
        std::thread::scope(|scope| {
            (0..8).for_each(|_| drop(scope.spawn(open_and_look)));
        });
    }
}

/// A position of each task that was not kept stayed in the index for ever, also those of jobs that
/// were gone long since.
#[test]
fn positions_of_tasks_that_were_not_kept_are_forgotten_once_very_many_others_were_noted() {
    let home = TempDir::new().unwrap();
    let mut store = open(&home);
    let unkept = |first: u64| -> Vec<_> {
        let places = first..=first + BEGUN_KNOWN_MAX;
        places
            .map(|place| (Digest(place.into()), Ended::Unkept))
            .collect()
    };
    let unkept_before = Found::Nothing(RerunReason::NotKept);
    let (first, second) = (1_000_000, 2_000_000);
    store.note_unkept(&unkept(first)).unwrap();
    store.evict(u64::MAX).unwrap();
    assert_eq!(find(&store, first.into()), unkept_before);
    store.note_unkept(&unkept(second)).unwrap();
    store.evict(u64::MAX).unwrap();
    assert_eq!(find(&store, second.into()), unkept_before);
    assert_eq!(find(&store, first.into()), Found::Nothing(RerunReason::New));
    assert_eq!(count(home.path(), "begun"), 0);
    assert_eq!(count(home.path(), "begun_before"), BEGUN_KNOWN_MAX + 1);
    store
        .keep(&kept(second.into()..(second + 1).into(), 7).kept, 60)
        .unwrap();
    assert!(gives(&store, second.into(), 7));
    assert_eq!(count(home.path(), "begun_before"), BEGUN_KNOWN_MAX);
}
