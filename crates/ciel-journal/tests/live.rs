//! Journals with their threads, in real folders and on disks that fill up.
//!
//! Read next: `crashes`, where they are killed.

mod support;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use ciel_journal::{
    Disk, DiskFile, Durability, Journal, JournalError, MemoryDisk, Options, Sequence, Snapshot,
    Upkeep, limits,
};
use support::{append_next, by_caller, last_of, write_snapshot};

const DEADLINE: Duration = Duration::from_secs(600);

#[test]
fn closed_journal_of_a_folder_holds_everything_when_opened() {
    for durability in [Durability::Process, Durability::Power] {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::create(folder.path(), durability).unwrap();
        for _ in 0..50 {
            let number = append_next(&journal);
            journal.wait_for(number).unwrap();
        }
        write_snapshot(journal.begin_snapshot().unwrap()).unwrap();
        for _ in 0..50 {
            append_next(&journal);
        }
        assert!(journal.grown().log_bytes > 50 * 25);
        assert!(journal.grown().snapshot_bytes > 0);
        journal.close().unwrap();
        let (journal, recorded) = Journal::open(folder.path(), durability).unwrap();
        assert_eq!(recorded.snapshot_until, Sequence(50));
        assert_eq!((last_of(&recorded), recorded.cut.as_ref()), (100, None));
        assert!(recorded.is_closed);
        assert_eq!(append_next(&journal), Sequence(101));
    }
}

#[test]
fn dropped_journal_has_written_what_was_appended() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), Durability::Process).unwrap();
    append_next(&journal);
    drop(journal);
    let (_, recorded) = Journal::open(folder.path(), Durability::Process).unwrap();
    assert_eq!(last_of(&recorded), 1);
    assert!(!recorded.is_closed);
}

#[test]
fn second_journal_made_in_a_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), Durability::Process).unwrap();
    let error = Journal::create(folder.path(), Durability::Process).unwrap_err();
    assert_eq!(error.code(), "journal.taken");
    journal.close().unwrap();
}

#[test]
fn empty_folder_is_opened_as_a_journal_without_records() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, recorded) = Journal::open(folder.path(), Durability::Process).unwrap();
    assert_eq!((last_of(&recorded), recorded.snapshot), (0, None));
    append_next(&journal);
    journal.close().unwrap();
}

#[test]
fn record_nobody_waits_for_is_written_and_what_was_put_off_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), Durability::Process).unwrap();
    let (tell, told) = mpsc::channel();
    for _ in 0..3 {
        let number = append_next(&journal);
        let (reader, tell) = (journal.clone(), tell.clone());
        let act = move || tell.send(reader.safe() >= number).unwrap();
        journal.after(number, Box::new(act));
        assert!(told.recv_timeout(DEADLINE).unwrap());
    }
    journal.close().unwrap();
}

#[test]
fn act_put_off_until_power_is_safe_waits_for_the_sync() {
    let disk = MemoryDisk::new();
    let shared = Arc::new(disk.clone());
    let journal = Journal::create_on(shared, by_caller(Durability::Power)).unwrap();
    let number = append_next(&journal);
    let done = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&done);
    let act = move || {
        count.fetch_add(1, Ordering::SeqCst);
    };
    journal.after(number, Box::new(act));
    journal.tend().unwrap();
    assert_eq!(done.load(Ordering::SeqCst), 0);
    journal.sync().unwrap();
    journal.tend().unwrap();
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

#[test]
fn many_threads_wait_and_each_finds_its_records_on_the_disk() {
    let disk = MemoryDisk::new();
    let journal = Journal::create_on(Arc::new(disk.clone()), Durability::Power).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (journal, disk) = (&journal, &disk);
            scope.spawn(move || {
                for round in 0..100u8 {
                    let text = [b'<', thread, round, b'>'];
                    let number = journal.append(|into| into.extend_from_slice(&text));
                    journal.wait_for(number).unwrap();
                    let lost = disk.after_power_failure(|_| 0);
                    let (_, recorded) =
                        Journal::open_on(Arc::new(lost), by_caller(Durability::Process)).unwrap();
                    let mut records = recorded.records.iter();
                    assert!(records.any(|record| record == (number, &text[..])));
                }
            });
        }
    });
    journal.close().unwrap();
}

#[test]
fn appended_after_the_close_is_told_to_be_unwritten() {
    let journal = Journal::create_on(Arc::new(MemoryDisk::new()), Durability::Process).unwrap();
    let other = journal.clone();
    append_next(&journal);
    journal.close().unwrap();
    other.wait_for(Sequence(1)).unwrap();
    let number = append_next(&other);
    let error = other.wait_for(number).unwrap_err();
    assert_eq!(error.code(), "journal.closed");
}

#[test]
fn record_over_the_bound_fails_the_journal_and_tells_at_once() {
    let (tell, told) = mpsc::channel();
    let options = Options {
        on_failure: Some(Box::new(move |error| tell.send(error.code()).unwrap())),
        ..Options::default()
    };
    let journal = Journal::create_on(Arc::new(MemoryDisk::new()), options).unwrap();
    let long = limits::PAYLOAD_BYTES_MAX + 1;
    let number = journal.append(|into| into.resize(into.len() + long, 0));
    assert_eq!(told.recv_timeout(DEADLINE), Ok("journal.record-too-long"));
    let error = journal.wait_for(number).unwrap_err();
    assert!(matches!(error, JournalError::RecordTooLong { bytes, .. } if bytes == long));
}

/// Only records were counted that the disk had not taken yet: long ones filled the memory.
#[test]
fn bytes_that_are_not_written_are_counted_until_they_are() {
    let disk = Arc::new(MemoryDisk::new());
    let journal = Journal::create_on(disk, by_caller(Durability::Process)).unwrap();
    assert_eq!(journal.unwritten_bytes(), 0);
    for count in 1..=3 {
        journal.append(|into| into.resize(into.len() + 1000, 0));
        let bytes = journal.unwritten_bytes();
        assert!((1000 * count..1100 * count).contains(&bytes), "{bytes}");
    }
    journal.tend().unwrap();
    assert_eq!(journal.unwritten_bytes(), 0);
}

#[test]
fn sync_that_fails_once_is_told_to_everybody_who_waits_for_it() {
    let disk = MemoryDisk::new();
    let shared = Arc::new(disk.clone());
    let journal = Journal::create_on(shared, by_caller(Durability::Power)).unwrap();
    let safe = append_next(&journal);
    journal.wait_for(safe).unwrap();
    disk.break_sync();
    for _ in 0..2 {
        let error = journal.wait_for(append_next(&journal)).unwrap_err();
        assert_eq!(error.code(), "journal.system");
    }
    journal.wait_for(safe).unwrap();
    assert_eq!(
        journal.failed().map(JournalError::code),
        Some("journal.system")
    );
    let lost = disk.after_power_failure(|_| 0);
    let options = by_caller(Durability::Power);
    let (_, recorded) = Journal::open_on(Arc::new(lost), options).unwrap();
    assert_eq!(last_of(&recorded), safe.0);
}

/// Dropping the acts that would never be done, with the lock of the buffer held, once would have
/// waited for itself: an act may own the last of a journal.
#[test]
fn act_that_owns_the_journal_is_dropped_with_it_after_a_failure() {
    let disk = MemoryDisk::new();
    let journal = Journal::create_on(Arc::new(disk.clone()), Durability::Process).unwrap();
    disk.set_room(Some(0));
    let (tell, told) = mpsc::channel();
    let (owned, number) = (journal.clone(), append_next(&journal));
    let act = move || {
        tell.send(owned.appended()).unwrap();
    };
    journal.after(number, Box::new(act));
    drop(journal);
    assert_eq!(
        told.recv_timeout(DEADLINE),
        Err(mpsc::RecvTimeoutError::Disconnected)
    );
}

#[test]
fn snapshot_that_does_not_fit_is_given_up_and_the_journal_goes_on() {
    let disk = MemoryDisk::new();
    let shared = Arc::new(disk.clone());
    let journal = Journal::create_on(shared, by_caller(Durability::Process)).unwrap();
    append_next(&journal);
    let snapshot = journal.begin_snapshot().unwrap();
    assert!(journal.begin_snapshot().is_none());
    journal.tend().unwrap();
    disk.set_room(Some(60));
    let error = write_snapshot(snapshot).unwrap_err();
    assert_eq!(error.code(), "journal.disk-full");
    disk.set_room(None);
    append_next(&journal);
    assert!(journal.begin_snapshot().is_some());
    append_next(&journal);
    journal.close().unwrap();
    let options = by_caller(Durability::Process);
    let (_, recorded) = Journal::open_on(Arc::new(disk), options).unwrap();
    assert_eq!((recorded.snapshot.as_ref(), last_of(&recorded)), (None, 3));
}

/// A life with logs, snapshots and waiting; gives the last record that was safe at its end.
fn life(disk: &MemoryDisk) -> (u64, Result<(), JournalError>) {
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    let options = Options {
        on_failure: Some(Box::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        })),
        upkeep: Upkeep::Caller,
        durability: Durability::Process,
    };
    let journal = match Journal::create_on(Arc::new(disk.clone()), options) {
        Ok(journal) => journal,
        Err(error) => return (0, Err(error)),
    };
    let outcome = live_on(&journal);
    let failure = journal.failed().map(JournalError::code);
    let failed = failure.is_some_and(|code| code != "journal.closed");
    assert_eq!(told.load(Ordering::SeqCst), usize::from(failed));
    (journal.safe().0, outcome)
}

fn live_on(journal: &Journal) -> Result<(), JournalError> {
    for round in 0..4 {
        append_next(journal);
        append_next(journal);
        journal.wait_for(append_next(journal))?;
        if round % 2 == 1 {
            let snapshot: Snapshot = journal.begin_snapshot().unwrap();
            append_next(journal);
            write_snapshot(snapshot)?;
        }
    }
    journal.sync()?;
    journal.clone().close()
}

#[test]
fn disk_full_at_any_byte_leaves_a_beginning_to_go_on_from() {
    let disk = MemoryDisk::new();
    let (written, outcome) = life(&disk);
    outcome.unwrap();
    assert_eq!(written, 14);
    for room in 0.. {
        let disk = MemoryDisk::new();
        disk.set_room(Some(room));
        let (safe, outcome) = life(&disk);
        let Err(error) = outcome else {
            assert!(room > 500);
            break;
        };
        assert_eq!(
            (error.code(), error.is_retryable()),
            ("journal.disk-full", true)
        );
        for disk in [disk.clone(), disk.after_kill()] {
            disk.set_room(None);
            let options = || by_caller(Durability::Process);
            let (journal, recorded) = Journal::open_on(Arc::new(disk.clone()), options()).unwrap();
            assert_eq!(last_of(&recorded), safe);
            assert_eq!(
                recorded.cut, None,
                "the file was cut to whole frames at once"
            );
            append_next(&journal);
            journal.close().unwrap();
            let (_, recorded) = Journal::open_on(Arc::new(disk), options()).unwrap();
            assert_eq!(last_of(&recorded), safe + 1);
        }
    }
}

/// A disk that is only looked at. When its names are listed first, the journal on it writes a
/// snapshot before the files are read.
struct Meanwhile {
    disk: MemoryDisk,
    journal: Journal,
    has_listed: AtomicBool,
}

impl Disk for Meanwhile {
    fn path(&self) -> &Path {
        self.disk.path()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let names = self.disk.names();
        if !self.has_listed.swap(true, Ordering::SeqCst) {
            write_snapshot(self.journal.begin_snapshot().unwrap()).unwrap();
        }
        names
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.disk.read(name)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        panic!("{name} is made")
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        panic!("{name} is opened to be written")
    }

    fn rename(&self, from: &str, _: &str) -> io::Result<()> {
        panic!("{from} gets another name")
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        panic!("{name} is removed")
    }

    fn sync_names(&self) -> io::Result<()> {
        panic!("names are synced")
    }
}

#[test]
fn journal_that_writes_a_snapshot_while_it_is_read_is_read_whole_and_not_changed() {
    let disk = MemoryDisk::new();
    let options = by_caller(Durability::Process);
    let journal = Journal::create_on(Arc::new(disk.clone()), options).unwrap();
    for _ in 0..5 {
        append_next(&journal);
    }
    journal.tend().unwrap();
    let has_listed = AtomicBool::new(false);
    let disk = Meanwhile {
        disk,
        journal,
        has_listed,
    };
    let recorded = Journal::read_on(&disk).unwrap();
    assert_eq!(recorded.snapshot_until, Sequence(5));
    assert_eq!(last_of(&recorded), 5);
}
