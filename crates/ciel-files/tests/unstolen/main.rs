//! Joins of which nobody takes the second closure: no allocation, no node, no atomic operation.
//!
//! The modules are compiled again here on `host`, which is nothing but two calls, and on `sync`,
//! which counts; so whatever is counted is the crate's own. Read next: `sync`.

#![allow(
    dead_code,
    reason = "the modules of the crate serve more than plain joins"
)]

#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/extent.rs"]
mod extent;
#[path = "../../src/file.rs"]
mod file;
#[path = "../../src/flat.rs"]
mod flat;
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
#[path = "../../src/part.rs"]
mod part;
#[path = "../../src/strand.rs"]
mod strand;
#[path = "../../src/structured.rs"]
mod structured;
mod sync;
#[path = "../../src/target.rs"]
mod target;
#[path = "../../src/thread.rs"]
mod thread;

use std::fs;
use std::io::{Seek, SeekFrom, Write};

use allocation_counter::measure;

use crate::file::{File, Mode};
use crate::gauges::Gauges;
use crate::join::join;

/// What was done on this thread so far: atomic writes, and what the gauges count.
fn counts() -> (u64, Gauges) {
    (sync::atomic_writes(), Gauges::of_this_thread())
}

fn tree(depth: u32, place: u64, leaf: &(impl Fn(u64) + Sync)) {
    match depth {
        0 => leaf(place),
        _ => drop(join(
            || tree(depth - 1, 2 * place, leaf),
            || tree(depth - 1, 2 * place + 1, leaf),
        )),
    }
}

/// Levels of a tree of more than a million joins.
const DEPTH: u32 = 20;

#[test]
fn million_joins_that_nobody_takes_allocate_nothing_and_do_no_atomic_operation() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("a"), Mode::SerialAppend).unwrap();
    // The first write makes the buffer.
    (&file).write_all(b"first\n").unwrap();
    let before = counts();
    let allocated = measure(|| tree(DEPTH, 1, &|_| ()));
    assert_eq!(allocated.count_total, 0);
    assert_eq!(counts(), before);
    file.close().unwrap();
}

/// The design's bound: what one buffer holds costs a bounded number of atomic operations.
#[test]
fn million_writes_between_joins_cost_atomic_operations_for_full_buffers_only() {
    const LINE: &[u8; 16] = b"a line of a leaf";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let fill = [b'f'; part::BUFFER_BYTES];
    (&file).write_all(&fill[..1]).unwrap();
    (&file).write_all(&fill[1..]).unwrap();
    let before = counts();
    // As many joins as lines fit the buffer, which is full.
    let allocated = measure(|| tree(DEPTH, 1, &|_| (&file).write_all(LINE).unwrap()));
    let after = counts();
    let bytes = LINE.len() as u64 * (1 << DEPTH);
    let full_buffers = bytes / part::BUFFER_BYTES as u64;
    assert!(full_buffers >= 256);
    assert_eq!(allocated.count_total, 0);
    assert_eq!(after.1, before.1);
    let atomic = after.0 - before.0;
    assert!(atomic >= full_buffers, "{atomic}: the counter counts");
    assert!(atomic <= 4 * full_buffers, "{atomic} of {full_buffers}");
    file.close().unwrap();
    let written = fs::metadata(&path).unwrap().len();
    assert_eq!(written, part::BUFFER_BYTES as u64 + bytes);
}

/// A file in local mode makes each join remember a pointer, and still nothing is shared.
#[test]
fn joins_with_a_pointer_in_local_mode_do_no_atomic_operation_either() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "0123456789").unwrap();
    let file = File::open(&path, Mode::Local).unwrap();
    (&file).seek(SeekFrom::Start(3)).unwrap();
    let before = counts();
    tree(10, 1, &|_| {
        assert_eq!((&file).stream_position().unwrap(), 3);
        (&file).seek(SeekFrom::Current(2)).unwrap();
    });
    assert_eq!((&file).stream_position().unwrap(), 3);
    assert_eq!(counts(), before);
}
