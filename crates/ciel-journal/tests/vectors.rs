//! Golden files: what was written once must stay readable, and is still written so.
//!
//! The files under `vectors/` are never changed or deleted; another format gets others beside
//! them. Read next: `README.md`, which explains their bytes.

mod support;

use std::sync::Arc;

use ciel_journal::{Durability, Journal, MemoryDisk, Sequence};
use support::{append_next, by_caller, last_of, write_snapshot};

const FILES: [(&str, &[u8]); 2] = [
    (
        "snapshot-0000000001",
        include_bytes!("vectors/snapshot-0000000001"),
    ),
    ("log-0000000001", include_bytes!("vectors/log-0000000001")),
];

/// The life that the golden files come from.
fn lived() -> MemoryDisk {
    let disk = MemoryDisk::new();
    let options = by_caller(Durability::Process);
    let journal = Journal::create_on(Arc::new(disk.clone()), options).unwrap();
    for _ in 0..3 {
        append_next(&journal);
    }
    let snapshot = journal.begin_snapshot().unwrap();
    for _ in 0..3 {
        append_next(&journal);
    }
    write_snapshot(snapshot).unwrap();
    journal.sync().unwrap();
    append_next(&journal);
    journal.close().unwrap();
    disk
}

#[test]
fn golden_files_are_read_as_what_was_written() {
    let disk = MemoryDisk::new();
    for (name, bytes) in FILES {
        disk.put_file(name, bytes);
    }
    let options = by_caller(Durability::Process);
    let (_, recorded) = Journal::open_on(Arc::new(disk), options).unwrap();
    assert_eq!(recorded.snapshot_until, Sequence(3));
    assert_eq!(last_of(&recorded), 7);
    assert_eq!(recorded.cut, None);
    assert!(recorded.is_closed);
}

#[test]
fn writer_of_today_makes_the_golden_files() {
    let disk = lived();
    for (name, bytes) in FILES {
        assert_eq!(disk.file(name).as_deref(), Some(bytes), "{name}");
    }
    assert_eq!(disk.file("log-0000000000"), None);
}
