//! Structured files: written by strands side by side, read through the same calls as flat ones.

use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ciel_cio::{Ending, Reader};
use ciel_files::{File, FileError, Mode, Options, fork, join};
use tempfile::TempDir;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.cio");
    (folder, path)
}

fn create(path: &Path) -> File {
    let options = Options::new().create(true).structured(true);
    options.open(path, Mode::SerialAppend).unwrap()
}

fn cause(refused: std::io::Error) -> FileError {
    refused.downcast::<FileError>().unwrap()
}

#[test]
fn strand_before_its_turn_writes_its_bytes_once_and_they_are_not_copied() {
    let (_folder, path) = folder();
    let file = create(&path);
    let megabytes = |letter: u8| vec![letter; 5 << 20];
    let strand = fork();
    (&file).write_all(&megabytes(b'b')).unwrap();
    strand.run(|| (&file).write_all(&megabytes(b'a')).unwrap());
    file.close().unwrap();
    let mut shown = Vec::new();
    (&File::open(&path, Mode::Global).unwrap())
        .read_to_end(&mut shown)
        .unwrap();
    assert!(shown == [megabytes(b'a'), megabytes(b'b')].concat());
    let reader = Reader::open(fs::File::open(&path).unwrap()).unwrap();
    // What was written second comes first: nothing was moved.
    assert!(reader.extents().get(0).data.offset > 5 << 20);
    assert!(fs::metadata(&path).unwrap().len() < (10 << 20) + 8192);
}

#[test]
fn flat_view_is_read_and_sought_by_strands_of_local_and_global_files() {
    let (_folder, path) = folder();
    let file = create(&path);
    let strand = fork();
    write!(&file, "2222\n3333\n").unwrap();
    strand.run(|| writeln!(&file, "1111").unwrap());
    file.close().unwrap();
    let line = |mut file: &File| {
        let mut bytes = [0; 5];
        file.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    };
    let local = File::open(&path, Mode::Local).unwrap();
    assert_eq!(line(&local), "1111\n");
    let both = join(|| line(&local), || line(&local));
    assert_eq!(both, ("2222\n".into(), "2222\n".into()));
    assert_eq!((&local).seek(SeekFrom::End(-5)).unwrap(), 10);
    assert_eq!(line(&local), "3333\n");
    let global = File::open(&path, Mode::Global).unwrap();
    join(|| line(&global), || line(&global));
    assert_eq!(line(&global), "3333\n");
    for file in [local, global] {
        let refused = (&file).write_all(b"x").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(matches!(cause(refused), FileError::ReadOnly { .. }));
    }
}

#[test]
fn bytes_as_they_are_can_be_had_too() {
    let (_folder, path) = folder();
    create(&path).close().unwrap();
    let raw = Options::new().structured(false).open(&path, Mode::Global);
    let mut bytes = Vec::new();
    (&raw.unwrap()).read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, fs::read(&path).unwrap());
}

#[test]
fn file_that_is_never_closed_shows_its_prefix() {
    let (_folder, path) = folder();
    let file = create(&path);
    let mut strand = fork();
    (&file).write_all(&vec![b'b'; 1 << 20]).unwrap();
    strand.within(|| {
        write!(&file, "begin").unwrap();
        (&file).flush().unwrap();
    });
    let shown = std::io::read_to_string(&File::open(&path, Mode::Global).unwrap());
    assert_eq!(shown.unwrap(), "begin");
    drop(strand);
    file.close().unwrap();
    let reader = Reader::open(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.ending(), Ending::Complete);
}

#[test]
fn last_handle_that_is_dropped_ends_the_file() {
    let (_folder, path) = folder();
    let file = create(&path);
    write!(&file, "text").unwrap();
    drop(file);
    let reader = Reader::open(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.ending(), Ending::Complete);
    assert_eq!(std::io::read_to_string(reader).unwrap(), "text");
}

#[test]
fn contents_that_exist_are_neither_continued_nor_overwritten() {
    let (_folder, path) = folder();
    create(&path).close().unwrap();
    let before = fs::read(&path).unwrap();
    let refused = File::open(&path, Mode::SerialAppend).unwrap_err();
    assert!(matches!(cause(refused), FileError::NotContinued { .. }));
    let structured = Options::new().structured(true);
    let refused = structured.open(&path, Mode::SerialAppend).unwrap_err();
    assert!(matches!(cause(refused), FileError::NotEmpty { .. }));
    assert_eq!(fs::read(&path).unwrap(), before);
    let again = structured.truncate(true);
    again
        .open(&path, Mode::SerialAppend)
        .unwrap()
        .close()
        .unwrap();
}

#[test]
fn damaged_header_is_named_with_the_file() {
    let (_folder, path) = folder();
    create(&path).close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[13] ^= 1;
    fs::write(&path, bytes).unwrap();
    let refused = File::open(&path, Mode::Local).unwrap_err();
    let told = refused.to_string();
    assert!(
        told.contains("log.cio\" cannot be read: its header"),
        "{told}"
    );
}

/// Tells this test that it is the process to be killed, and where it writes.
const KILLED: &str = "CIEL_FILES_TEST_KILLED";

/// The longest that anything may take on a loaded machine.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(120);

fn write_lines_for_ever(path: &Path) {
    let file = create(path);
    let lines = |from: u64| {
        let lines: String = (from..from + 9_000)
            .map(|line| format!("{line}\n"))
            .collect();
        (&file).write_all(lines.as_bytes()).unwrap();
    };
    for turn in 0.. {
        join(|| lines(turn * 18_000), || lines(turn * 18_000 + 9_000));
    }
}

#[test]
fn killed_process_leaves_the_first_lines() {
    if let Some(path) = std::env::var_os(KILLED) {
        return write_lines_for_ever(Path::new(&path));
    }
    let (_folder, path) = folder();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed_process_leaves_the_first_lines"])
        .env(KILLED, &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let end = std::time::Instant::now() + DEADLINE;
    while fs::metadata(&path).map_or(0, |found| found.len()) < 4 << 20 {
        assert!(std::time::Instant::now() < end, "it writes");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut reader = Reader::open(fs::File::open(&path).unwrap()).unwrap();
    assert!(
        matches!(reader.ending(), Ending::Open(_)),
        "{:?}",
        reader.ending()
    );
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(text.len() > 2 << 20, "{} bytes", text.len());
    let wanted: String = (0..)
        .map(|line: u64| format!("{line}\n"))
        .take(text.len())
        .collect();
    assert!(wanted.starts_with(&text));
}
