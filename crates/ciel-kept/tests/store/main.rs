//! The folder of kept results: what is kept is found, what is damaged or removed is not.

mod reasons;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use ciel_kept::{
    Entry, Found, Input, KeptContent, KeptOutput, KeptResults, Parts, Printed, Removed, Selection,
};
use ciel_model::{Digest, Form, FunctionCode, Reached, RerunReason, Site};
use tempfile::TempDir;

fn function(name: &str, line: u32, digest: u128) -> FunctionCode {
    let file = "job.py".into();
    FunctionCode {
        name: name.into(),
        place: Site { file, line },
        digest: Digest(digest),
    }
}

fn parts(number: u128) -> Parts {
    Parts {
        executor: "shell".into(),
        surroundings: Digest(0),
        code: Reached::of(vec![function("f", 3, 1)]).digest(),
        pieces: [function("f", 3, 1)].into(),
        payload: Digest(number),
        arguments: vec![("command".into(), Digest(number)), ("n".into(), Digest(0))],
        inputs: vec![Input {
            name: "reads".into(),
            digest: Digest(5),
            form: Form::Bytes,
        }],
        outputs: 1,
    }
}

fn entry(number: u128, content: KeptContent) -> Entry {
    Entry {
        parts: parts(number),
        place: Digest(number),
        task: if number.is_multiple_of(2) {
            "even"
        } else {
            "odd"
        }
        .into(),
        outputs: vec![KeptOutput {
            form: Form::Bytes,
            content,
        }],
        printed: vec![Printed {
            file: None,
            bytes: Bytes::from_static(b"hello\n"),
        }],
        beneath: Vec::new(),
        read: Vec::new(),
        took_us: 7,
        run: Arc::from("run"),
        is_marked: false,
    }
}

fn small(number: u128) -> (Entry, Vec<PathBuf>) {
    let content = KeptContent::Inline(Bytes::from_static(b"result"));
    (entry(number, content), Vec::new())
}

/// An entry with an object of so many bytes, and the run's file of it.
fn large(folder: &Path, number: u128, length: usize) -> (Entry, Vec<PathBuf>) {
    let bytes = vec![number as u8; length];
    let file = folder.join(format!("file-{number}"));
    fs::write(&file, &bytes).unwrap();
    let digest = Digest::of(&bytes);
    let length = length as u64;
    (
        entry(number, KeptContent::Object { digest, length }),
        vec![file],
    )
}

fn found(kept: &KeptResults, number: u128) -> Found {
    kept.find(&[parts(number)], Digest(number), 100).unwrap()
}

fn object_of(entry: &Entry) -> (Digest, u64) {
    match entry.outputs[0].content {
        KeptContent::Object { digest, length } => (digest, length),
        KeptContent::Inline(_) => panic!("it is an object"),
    }
}

fn place() -> (TempDir, KeptResults) {
    let home = tempfile::tempdir().unwrap();
    let kept = KeptResults::open(&home.path().join("kept")).unwrap();
    (home, kept)
}

/// The one object file of the folder.
fn only_object(home: &TempDir) -> Option<PathBuf> {
    let folders = fs::read_dir(home.path().join("kept/objects")).unwrap();
    let mut files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.next().map(|file| file.unwrap().path())
}

#[test]
fn what_is_kept_is_found_by_another_process_with_its_object() {
    let (home, mut kept) = place();
    let batch = [small(1), large(home.path(), 2, 5_000)];
    kept.keep(&batch, 100).unwrap();
    fs::remove_file(&batch[1].1[0]).unwrap();
    drop(kept);
    let kept = KeptResults::open(&home.path().join("kept")).unwrap();
    for (entry, _) in &batch {
        let number = entry.place.0;
        assert_eq!(found(&kept, number), Found::Entry(Box::new(entry.clone())));
    }
    let (digest, length) = object_of(&batch[1].0);
    let target = home.path().join("taken");
    assert!(kept.take(digest, length, &target).unwrap());
    assert_eq!(fs::read(target).unwrap(), vec![2; 5_000]);
    assert_eq!(kept.usage().unwrap().entries, 2);
}

#[test]
fn held_lookups_see_one_state_while_another_process_writes() {
    let (home, mut kept) = place();
    let mut other = KeptResults::open(&home.path().join("kept")).unwrap();
    kept.keep(&[small(1)], 100).unwrap();
    kept.hold().unwrap();
    assert!(matches!(found(&kept, 1), Found::Entry(_)));
    other.keep(&[small(2)], 100).unwrap();
    assert_eq!(found(&kept, 2), Found::Nothing(RerunReason::New));
    kept.let_go().unwrap();
    assert!(matches!(found(&kept, 2), Found::Entry(_)));
    kept.hold().unwrap();
    assert!(matches!(found(&kept, 2), Found::Entry(_)));
    other.keep(&[small(3)], 100).unwrap();
    // What this process changes is added to what there is by then, not to what it saw.
    kept.keep(&[small(4)], 100).unwrap();
    assert!(matches!(found(&kept, 3), Found::Entry(_)));
    assert_eq!(kept.usage().unwrap().entries, 4);
}

#[test]
fn files_are_noted_while_lookups_are_held_and_another_process_writes() {
    let (home, kept) = place();
    let mut other = KeptResults::open(&home.path().join("kept")).unwrap();
    // One that was changed a moment ago would not be noted.
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    kept.hold().unwrap();
    assert_eq!(found(&kept, 1), Found::Nothing(RerunReason::New));
    other.keep(&[small(1)], 100).unwrap();
    let digest = kept.digest_of_file(&file).unwrap();
    assert_eq!(digest, Some(Digest::of(&fs::read(&file).unwrap())));
    assert_eq!(kept.digest_of_file(&file).unwrap(), digest);
}

#[test]
fn uses_are_written_down_together_and_spare_their_entries() {
    let (home, mut kept) = place();
    kept.keep(&[small(1), small(2), small(3)], 100).unwrap();
    let bytes = kept.usage().unwrap().bytes;
    for number in [1, 2] {
        kept.find(&[parts(number)], Digest(number), 1_000).unwrap();
    }
    kept.note_uses().unwrap();
    let mut other = KeptResults::open(&home.path().join("kept")).unwrap();
    other.evict(bytes - 1).unwrap();
    assert_eq!(found(&other, 3), Found::Nothing(RerunReason::Evicted));
    for number in [1, 2] {
        assert!(matches!(found(&other, number), Found::Entry(_)));
    }
}

/// A use is written down when the last one that was is a minute old: each costs a change.
#[test]
fn use_within_the_minute_of_the_last_one_is_not_written_down() {
    let (_home, mut kept) = place();
    kept.keep(&[small(1)], 100).unwrap();
    kept.keep(&[small(2)], 120).unwrap();
    let bytes = kept.usage().unwrap().bytes;
    for (now_s, evicted) in [(159, 1), (160, 2)] {
        kept.find(&[parts(1)], Digest(1), now_s).unwrap();
        kept.evict(bytes - 1).unwrap();
        let reason = Found::Nothing(RerunReason::Evicted);
        assert_eq!(found(&kept, evicted), reason, "{now_s}");
        kept.keep(&[small(evicted)], 100 + 20 * (evicted as u64 - 1))
            .unwrap();
    }
}

#[test]
fn damaged_object_is_not_taken_and_leaves_no_file() {
    let (home, mut kept) = place();
    let (entry, files) = large(home.path(), 1, 5_000);
    kept.keep(&[(entry.clone(), files.clone())], 100).unwrap();
    fs::write(&files[0], vec![9; 5_000]).unwrap();
    let (digest, length) = object_of(&entry);
    let target = home.path().join("taken");
    assert!(!kept.take(digest, length, &target).unwrap());
    assert!(!target.exists());
    assert_eq!(kept.verify().unwrap(), 1);
    assert_eq!(only_object(&home), None);
    assert_eq!(kept.usage().unwrap(), Default::default());
}

#[test]
fn entry_whose_bytes_changed_is_never_used() {
    let (home, mut kept) = place();
    kept.keep(&[small(1), small(2)], 100).unwrap();
    let index = rusqlite::Connection::open(home.path().join("kept/index")).unwrap();
    let foreign = "UPDATE entry SET body = (SELECT body FROM entry WHERE id = 2) WHERE id = 1";
    index.execute(foreign, []).unwrap();
    assert_eq!(found(&kept, 1), Found::Nothing(RerunReason::Damaged));
    // Also if whoever wrote it has made the digest fit: its own parts are another key's.
    let fitting = "UPDATE entry SET check_digest =
        (SELECT check_digest FROM entry WHERE id = 2) WHERE id = 1";
    index.execute(fitting, []).unwrap();
    assert_eq!(found(&kept, 1), Found::Nothing(RerunReason::Damaged));
    assert!(matches!(found(&kept, 2), Found::Entry(_)));
}

#[test]
fn longest_unused_results_lose_their_bytes_first_and_then_their_entries() {
    let (home, mut kept) = place();
    let mut entries = Vec::new();
    for number in 1..=4 {
        let batch = [large(home.path(), number, 10_000)];
        kept.keep(&batch, 100 * number as u64).unwrap();
        entries.extend(batch.map(|(entry, _)| entry));
    }
    // The first is used again, after all others.
    kept.find(&[parts(1)], Digest(1), 1_000).unwrap();
    let evicted = kept.evict(25_000).unwrap();
    assert_eq!(evicted.entries, 2);
    assert!(kept.usage().unwrap().bytes <= 25_000);
    for (entry, is_dropped) in entries.iter().zip([false, true, true, false]) {
        assert_eq!(kept.has_dropped_bytes(entry).unwrap(), is_dropped);
        assert_eq!(kept.has_objects(entry), !is_dropped);
        assert_eq!(kept.entry(entry.parts.key()).unwrap().as_ref(), Some(entry));
    }
    kept.evict(0).unwrap();
    assert_eq!(kept.usage().unwrap(), Default::default());
    for number in 1..=4 {
        assert_eq!(found(&kept, number), Found::Nothing(RerunReason::Evicted));
    }
    kept.keep(&[large(home.path(), 2, 10_000)], 2_000).unwrap();
    assert!(matches!(found(&kept, 2), Found::Entry(_)));
}

#[test]
fn object_of_two_entries_stays_until_both_are_gone() {
    let (home, mut kept) = place();
    let (first, files) = large(home.path(), 1, 10_000);
    let second = entry(2, first.outputs[0].content.clone());
    kept.keep(&[(first, files.clone())], 100).unwrap();
    kept.keep(&[(second, files)], 200).unwrap();
    kept.evict(15_000).unwrap();
    assert!(only_object(&home).is_some());
    kept.evict(0).unwrap();
    assert_eq!(only_object(&home), None);
    assert_eq!(kept.usage().unwrap(), Default::default());
}

#[test]
fn entry_without_files_is_kept_by_its_digests() {
    let (home, mut kept) = place();
    let (entry, _) = large(home.path(), 1, 10_000);
    kept.keep(&[(entry.clone(), Vec::new())], 100).unwrap();
    assert_eq!(found(&kept, 1), Found::Entry(Box::new(entry.clone())));
    assert!(kept.has_dropped_bytes(&entry).unwrap() && !kept.has_objects(&entry));
    assert!(kept.usage().unwrap().bytes < 1_000);
    assert_eq!(kept.verify().unwrap(), 0);
}

/// Once, the object of a result that was replaced by another one stayed for good.
#[test]
fn object_of_a_result_that_was_replaced_is_removed() {
    let (home, mut kept) = place();
    let (first, files) = large(home.path(), 1, 10_000);
    kept.keep(&[(first, files)], 100).unwrap();
    let (_, files) = large(home.path(), 2, 10_000);
    let other = KeptContent::Object {
        digest: KeptResults::digest_of(&files[0]).unwrap(),
        length: 10_000,
    };
    let other = entry(1, other);
    for _ in 0..2 {
        kept.keep(&[(other.clone(), files.clone())], 200).unwrap();
        let (digest, _) = object_of(&other);
        assert_eq!(only_object(&home), Some(kept.object(digest)));
    }
    kept.keep(&[(other.clone(), Vec::new())], 300).unwrap();
    assert_eq!(only_object(&home), None);
    assert!(kept.has_dropped_bytes(&other).unwrap());
}

#[test]
fn batch_with_a_missing_file_is_not_kept_at_all() {
    let (home, mut kept) = place();
    let (entry, _) = large(home.path(), 2, 5_000);
    let batch = [small(1), (entry, vec![home.path().join("nothing")])];
    assert!(kept.keep(&batch, 100).is_err());
    assert_eq!(found(&kept, 1), Found::Nothing(RerunReason::New));
    kept.keep(&[small(1)], 100).unwrap();
    assert!(matches!(found(&kept, 1), Found::Entry(_)));
}

#[test]
fn two_processes_keep_and_take_while_a_third_evicts() {
    let (home, kept) = place();
    drop(kept);
    let folder = home.path().join("kept");
    let work = |first: u128| {
        let mut kept = KeptResults::open(&folder).unwrap();
        for number in (first..).step_by(2).take(60) {
            let batch = [large(home.path(), number, 3_000)];
            kept.keep(&batch, number as u64).unwrap();
            let target = home.path().join(format!("taken-{number}"));
            let (digest, length) = object_of(&batch[0].0);
            if kept.take(digest, length, &target).unwrap() {
                assert_eq!(fs::read(target).unwrap(), vec![number as u8; 3_000]);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| work(1));
        scope.spawn(|| work(2));
        let mut kept = KeptResults::open(&folder).unwrap();
        for _ in 0..40 {
            kept.evict(20_000).unwrap();
        }
    });
    let mut kept = KeptResults::open(&folder).unwrap();
    assert_eq!(kept.verify().unwrap(), 0);
    kept.evict(0).unwrap();
    assert_eq!(only_object(&home), None);
}

#[test]
fn index_of_another_format_is_emptied() {
    let (home, mut kept) = place();
    kept.keep(&[small(1)], 100).unwrap();
    drop(kept);
    let index = rusqlite::Connection::open(home.path().join("kept/index")).unwrap();
    index.pragma_update(None, "user_version", 99).unwrap();
    let kept = KeptResults::open(&home.path().join("kept")).unwrap();
    assert_eq!(found(&kept, 1), Found::Nothing(RerunReason::New));
}

#[test]
fn file_is_read_once_as_long_as_it_stays_the_same() {
    let (home, kept) = place();
    let path = home.path().join("reads");
    fs::write(&path, "one").unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    let digest = |kept: &KeptResults| kept.digest_of_file(&path).unwrap();
    assert_eq!(digest(&kept), Some(Digest::of(b"one")));
    // Changed at once, with the same length and the same times.
    fs::write(&path, "two").unwrap();
    fs::File::open(&path)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    assert_eq!(digest(&kept), Some(Digest::of(b"two")));
    assert_eq!(kept.digest_of_file(home.path()).unwrap(), None);
    assert_eq!(kept.digest_of_file(&home.path().join("no")).unwrap(), None);
}

#[test]
fn selection_means_what_all_of_its_conditions_mean() {
    let (home, mut kept) = place();
    for number in 1..=4 {
        kept.keep(&[small(number)], 100 * number as u64).unwrap();
    }
    let mut other = small(5);
    other.0.run = "other".into();
    kept.keep(&[other], 500).unwrap();
    let used = |kept: &KeptResults, selection: Selection| {
        let chosen = kept.select(&selection).unwrap();
        chosen.iter().map(|one| one.used_s).collect::<Vec<u64>>()
    };
    let none = Selection::default;
    let older = Selection {
        used_before_s: Some(300),
        ..none()
    };
    let even = Selection {
        task: Some("even".into()),
        ..none()
    };
    let both = Selection {
        used_before_s: Some(300),
        ..even.clone()
    };
    let of_run = Selection {
        run: Some("other".into()),
        ..none()
    };
    let spared = Selection {
        spared_since_s: Some(200),
        ..none()
    };
    let each = kept.usage().unwrap().bytes / 5;
    let beyond = Selection {
        bytes_max: Some(each * 3 + 5),
        ..none()
    };
    let cases = [
        (none(), vec![100, 200, 300, 400, 500]),
        (older, vec![100, 200]),
        (even.clone(), vec![200, 400]),
        (both, vec![200]),
        (of_run, vec![500]),
        (spared, vec![100]),
        (beyond, vec![100, 200]),
    ];
    for (selection, expected) in cases {
        assert_eq!(used(&kept, selection.clone()), expected, "{selection:?}");
    }
    drop(home);
}

#[test]
fn removed_selection_leaves_the_rest_and_says_evicted() {
    let (home, mut kept) = place();
    kept.keep(&[small(1), large(home.path(), 2, 5_000)], 100)
        .unwrap();
    let even = Selection {
        task: Some("even".into()),
        ..Selection::default()
    };
    let chosen = kept.select(&even).unwrap();
    let removed = kept.remove(&chosen, Removed::Entries).unwrap();
    assert_eq!((removed.entries, removed.bytes > 5_000), (1, true));
    assert_eq!(only_object(&home), None);
    assert!(matches!(found(&kept, 1), Found::Entry(_)));
    assert_eq!(found(&kept, 2), Found::Nothing(RerunReason::Evicted));
    assert_eq!(kept.usage_by_run().unwrap()["run"], kept.usage().unwrap());
    // What is gone already is not counted again.
    assert_eq!(kept.remove(&chosen, Removed::Entries).unwrap().entries, 0);
}

/// Bytes that this thread has read.
fn bytes_read() -> u64 {
    let counts = fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = counts.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.unwrap().parse().unwrap()
}

/// The file is this program, which is older than the two seconds for which a file counts as new, or
/// soon is.
#[test]
fn file_that_stays_the_same_is_read_once() {
    let folder = TempDir::new().unwrap();
    let kept = KeptResults::open(folder.path()).unwrap();
    let file = std::env::current_exe().unwrap();
    let length = fs::metadata(&file).unwrap().len();
    let read_now = || {
        let before = bytes_read();
        let digest = kept.digest_of_file(&file).unwrap().unwrap();
        (bytes_read() - before, digest)
    };
    let (bytes, digest) = read_now();
    assert!(bytes >= length, "{bytes} of {length}");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(600);
    loop {
        let (bytes, again) = read_now();
        assert_eq!(again, digest);
        if bytes < length / 2 {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "it is read each time");
    }
}
