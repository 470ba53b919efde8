//! One writer of a file at a time, and followers that never stand in its way.

use std::fs::File;
use std::path::{Path, PathBuf};

use ciel_writer::{Writer, claim};
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    (folder, path)
}

fn written(path: &Path) -> File {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.open(path).unwrap()
}

#[test]
fn second_writer_is_refused_until_the_first_one_has_ended() {
    let (_folder, path) = place();
    let first = written(&path);
    assert!(claim(&first).unwrap());
    assert!(!claim(&written(&path)).unwrap());
    drop(first);
    assert!(claim(&written(&path)).unwrap());
}

#[test]
fn look_finds_the_writer_as_long_as_there_is_one() {
    let (_folder, path) = place();
    let file = written(&path);
    let reader = File::open(&path).unwrap();
    assert_eq!(Writer::of(&reader).unwrap(), None);
    claim(&file).unwrap();
    assert!(Writer::of(&reader).unwrap().is_some());
    drop(file);
    assert_eq!(Writer::of(&reader).unwrap(), None);
}

/// A run tried a locked file five times, two milliseconds apart, because one who followed it had
/// its lock for an instant; a follower that was stopped in this instant made the file unusable.
#[test]
fn follower_that_is_stopped_with_its_lock_keeps_nobody_away() {
    let (_folder, path) = place();
    let first = written(&path);
    claim(&first).unwrap();
    let stopped = File::open(&path).unwrap();
    let writer = Writer::of(&stopped).unwrap().unwrap();
    drop(first);
    // What a stopped follower has: the shared lock of the mark that it has waited for.
    hold_shared(&stopped);
    let second = written(&path);
    assert!(claim(&second).unwrap());
    let other = File::open(&path).unwrap();
    let next = Writer::of(&other).unwrap().unwrap();
    assert_ne!(writer, next);
    writer.wait_until_gone(&other).unwrap();
    drop(second);
    next.wait_until_gone(&other).unwrap();
    assert_eq!(Writer::of(&other).unwrap(), None);
}

/// A shared lock of the first mark, as a follower has it between its wait and its unlock.
fn hold_shared(file: &File) {
    let lock = libc::flock {
        l_type: libc::F_RDLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 1 << 62,
        l_len: 1,
        l_pid: 0,
    };
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(file);
    // SAFETY: the descriptor is open, and the lock a valid one.
    let taken = unsafe { libc::fcntl(descriptor, libc::F_OFD_SETLK, &raw const lock) };
    assert_eq!(taken, 0);
}

#[test]
fn wait_ends_with_the_writer_and_not_before() {
    let (_folder, path) = place();
    let file = written(&path);
    claim(&file).unwrap();
    let reader = File::open(&path).unwrap();
    let writer = Writer::of(&reader).unwrap().unwrap();
    let (told, heard) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn(move || {
        told.send("waits").unwrap();
        writer.wait_until_gone(&reader).unwrap();
        told.send("gone").unwrap();
    });
    assert_eq!(heard.recv().unwrap(), "waits");
    assert!(heard.try_recv().is_err());
    drop(file);
    assert_eq!(heard.recv().unwrap(), "gone");
    waiting.join().unwrap();
}
