//! A journal whose records are known by their numbers, and a disk that remembers how it looked
//! after every act.
//!
//! It knows nothing of the crate's insides. Read next: the tests that use it.
#![allow(
    dead_code,
    reason = "each file of tests is a program of its own and uses a part of this"
)]

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ciel_journal::{
    Disk, DiskFile, Journal, MemoryDisk, Options, Recorded, Sequence, Snapshot, Upkeep,
};

/// The payload of the record with this number.
pub fn payload(number: u64) -> Vec<u8> {
    let filler = (number * 7 % 41) as usize;
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(8 + filler, b'a' + (number % 26) as u8);
    bytes
}

/// The payload of a snapshot that covers everything up to this number.
pub fn snapshot_payload(until: Sequence) -> Vec<u8> {
    format!("all up to {until}").into_bytes()
}

/// Appends the record that comes next.
pub fn append_next(journal: &Journal) -> Sequence {
    let next = journal.appended().0 + 1;
    let given = journal.append(|into| into.extend_from_slice(&payload(next)));
    assert_eq!(given, Sequence(next));
    given
}

/// Writes the payload of a snapshot that was begun.
pub fn write_snapshot(snapshot: Snapshot) -> Result<(), ciel_journal::JournalError> {
    let until = snapshot.until();
    snapshot.write(&snapshot_payload(until))
}

/// Checks that what is recorded is a whole beginning of what was appended; gives its last number.
pub fn last_of(recorded: &Recorded) -> u64 {
    let expected = recorded.snapshot.as_ref();
    let expected = expected.map(|_| snapshot_payload(recorded.snapshot_until));
    assert_eq!(recorded.snapshot, expected);
    let mut last = recorded.snapshot_until.0;
    for (sequence, bytes) in recorded.records.iter() {
        last += 1;
        assert_eq!((sequence, bytes), (Sequence(last), &payload(last)[..]));
    }
    last
}

/// Options of a journal without threads.
pub fn by_caller(durability: ciel_journal::Durability) -> Options {
    Options {
        durability,
        upkeep: Upkeep::Caller,
        on_failure: None,
    }
}

/// The disk after an act, and what had been promised and appended by then.
pub struct Moment {
    pub disk: MemoryDisk,
    pub promised: u64,
    pub appended: u64,
}

/// A disk that remembers how it looked after every act.
#[derive(Default)]
pub struct WatchedDisk {
    pub inner: MemoryDisk,
    watch: Arc<Watch>,
}

#[derive(Default)]
struct Watch {
    promised: AtomicU64,
    appended: AtomicU64,
    moments: Mutex<Vec<Moment>>,
}

impl Watch {
    fn look(&self, disk: &MemoryDisk) {
        // Other threads go on: what is promised from here on may be on the disk or not.
        let promised = self.promised.load(Ordering::SeqCst);
        let moment = Moment {
            disk: disk.after_kill(),
            promised,
            appended: self.appended.load(Ordering::SeqCst),
        };
        self.moments.lock().unwrap().push(moment);
    }
}

impl WatchedDisk {
    pub fn on(inner: MemoryDisk) -> Arc<WatchedDisk> {
        let watch = Arc::default();
        Arc::new(WatchedDisk { inner, watch })
    }

    pub fn set_promised(&self, number: Sequence) {
        self.watch.promised.fetch_max(number.0, Ordering::SeqCst);
    }

    pub fn set_appended(&self, number: Sequence) {
        self.watch.appended.fetch_max(number.0, Ordering::SeqCst);
    }

    /// All moments since the last call.
    pub fn take_moments(&self) -> Vec<Moment> {
        self.watch.look(&self.inner);
        std::mem::take(&mut self.watch.moments.lock().unwrap())
    }

    fn seen<T>(&self, outcome: T) -> T {
        self.watch.look(&self.inner);
        outcome
    }

    fn file(&self, inner: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let watch = Arc::clone(&self.watch);
        let disk = self.inner.clone();
        Arc::new(WatchedFile { inner, disk, watch })
    }
}

impl Disk for WatchedDisk {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.inner.names()
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.inner.read(name)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.seen(self.inner.create(name))?;
        Ok(self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(self.inner.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.seen(self.inner.rename(from, to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.seen(self.inner.remove(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.seen(self.inner.sync_names())
    }
}

struct WatchedFile {
    inner: Arc<dyn DiskFile>,
    disk: MemoryDisk,
    watch: Arc<Watch>,
}

impl WatchedFile {
    fn seen<T>(&self, outcome: T) -> T {
        self.watch.look(&self.disk);
        outcome
    }
}

impl DiskFile for WatchedFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.seen(self.inner.append(bytes))
    }

    fn sync(&self) -> io::Result<()> {
        self.seen(self.inner.sync())
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.seen(self.inner.cut(bytes))
    }
}
