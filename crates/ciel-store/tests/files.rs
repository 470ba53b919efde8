//! Objects, scratch and spilled output, on real files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ciel_store::limits::SPILL_FILE_BYTES_MAX;
use ciel_store::{Extent, ObjectName, ObjectStore, RunFolder, StateFolder, StoreError};
use tempfile::TempDir;

const NAME: ObjectName = ObjectName(0xabc);

fn run_with_limit(limit: u64) -> (TempDir, RunFolder) {
    let home = TempDir::new().unwrap();
    let state = StateFolder::open(&home.path().join(".ciel")).unwrap();
    let run = RunFolder::create(&state, "run", limit).unwrap();
    (home, run)
}

fn run() -> (TempDir, RunFolder) {
    run_with_limit(u64::MAX)
}

fn object_path(run: &RunFolder, name: ObjectName) -> PathBuf {
    run.path().join("objects").join(name.to_string())
}

fn count_files(path: &Path) -> usize {
    fs::read_dir(path).unwrap().count()
}

#[test]
fn foreign_file_is_never_taken_for_an_object_and_gives_way() {
    let (_home, run) = run();
    fs::write(object_path(&run, NAME), "torn").unwrap();
    assert_eq!(
        run.objects().map(NAME).unwrap_err().code(),
        "store.unknown-object"
    );
    run.objects().put(NAME, b"whole").unwrap();
    assert_eq!(&*run.objects().map(NAME).unwrap(), b"whole");
}

#[test]
fn scratch_that_is_a_link_a_folder_or_missing_is_refused() {
    let (home, run) = run();
    let precious = home.path().join("precious");
    fs::write(&precious, "mine").unwrap();
    let path = |purpose| run.scratch().path(1, 0, purpose).unwrap();
    symlink(&precious, path("link")).unwrap();
    fs::create_dir(path("folder")).unwrap();
    for purpose in ["link", "folder", "missing"] {
        let error = run.objects().adopt(NAME, &path(purpose)).unwrap_err();
        assert_eq!(error.code(), "store.not-a-file");
    }
    let error = run.objects().adopt(NAME, &precious).unwrap_err();
    assert_eq!(error.code(), "store.foreign-scratch");
    run.scratch().clear(1, 0).unwrap();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
    assert_eq!(count_files(&run.path().join("scratch")), 0);
}

#[test]
fn output_that_is_a_second_name_of_a_users_file_is_copied() {
    let (home, run) = run();
    let precious = home.path().join("precious");
    fs::write(&precious, "mine").unwrap();
    let mode = fs::metadata(&precious).unwrap().permissions().mode();
    let path = run.scratch().path(1, 0, "output").unwrap();
    fs::hard_link(&precious, &path).unwrap();
    run.objects().adopt(NAME, &path).unwrap();
    fs::write(&precious, "changed later").unwrap();
    assert_eq!(fs::metadata(&precious).unwrap().permissions().mode(), mode);
    assert_eq!(&*run.objects().map(NAME).unwrap(), b"mine");
    assert!(!path.exists());
}

#[test]
fn scratch_is_cleared_for_one_attempt_only() {
    let (_home, run) = run();
    let first = run.scratch().path(1, 0, "stdout").unwrap();
    let second = run.scratch().path(1, 1, "stdout").unwrap();
    assert_eq!(run.scratch().path(1, 1, "stdout").unwrap(), second);
    fs::write(&first, "failed").unwrap();
    fs::write(&second, "well").unwrap();
    run.scratch().clear(1, 0).unwrap();
    assert_eq!(run.scratch().path(1, 0, "stdout").unwrap(), first);
    assert_eq!((first.exists(), second.exists()), (false, true));
    assert_eq!(
        run.scratch().path(1, 0, "../x").unwrap_err().code(),
        "store.invalid-name"
    );
}

#[test]
fn budget_refuses_what_does_not_fit_and_takes_it_after_room_is_given_back() {
    let (_home, run) = run_with_limit(10);
    run.objects().put(NAME, b"seven..").unwrap();
    let other = ObjectName(2);
    let error = run.objects().put(other, b"four").unwrap_err();
    assert!(matches!(
        error,
        StoreError::Full {
            wanted: 4,
            used: 7,
            limit: 10
        }
    ));
    assert!(error.is_retryable());
    assert_eq!(
        run.spill().append(b"four").unwrap_err().code(),
        "store.full"
    );
    assert_eq!(count_files(&run.path().join("scratch")), 0);
    run.objects().release(NAME).unwrap();
    run.objects().put(other, b"four").unwrap();
    assert_eq!((run.budget().used(), run.budget().limit()), (4, 10));
}

#[test]
fn spilled_bytes_come_back_and_their_room_is_given_back() {
    let (_home, run) = run();
    let first = run.spill().append(b"first").unwrap();
    let second = run.spill().append(b"second").unwrap();
    assert_eq!(run.spill().read(first).unwrap(), b"first");
    let part = Extent {
        offset: second.offset + 3,
        length: 3,
        ..second
    };
    assert_eq!(run.spill().read(part).unwrap(), b"ond");
    run.spill().release(first).unwrap();
    assert_eq!(run.budget().used(), 11);
    run.spill().release(second).unwrap();
    assert_eq!(run.budget().used(), 0);
    assert_eq!(
        run.spill().read(second).unwrap_err().code(),
        "store.unknown-extent"
    );
    assert_eq!(
        run.spill().release(second).unwrap_err().code(),
        "store.unknown-extent"
    );
    let again = run.spill().append(b"again").unwrap();
    assert_eq!((again.blob, again.offset), (first.blob, 0));
}

#[test]
fn spill_goes_on_in_another_file_and_a_released_file_vanishes() {
    let (_home, run) = run();
    let large = vec![7; (SPILL_FILE_BYTES_MAX / 2) as usize + 1];
    let first = run.spill().append(&large).unwrap();
    let second = run.spill().append(&large).unwrap();
    assert_ne!(first.blob, second.blob);
    let files = run.path().join("spill");
    assert_eq!(count_files(&files), 2);
    run.spill().release(first).unwrap();
    assert_eq!(
        (count_files(&files), run.budget().used()),
        (1, large.len() as u64)
    );
    assert_eq!(run.spill().read(second).unwrap(), large);
}

#[test]
fn captured_output_is_adopted_without_copying() {
    let (_home, run) = run();
    let path = run.scratch().path(1, 0, "stdout").unwrap();
    fs::write(&path, "a gigabyte, say").unwrap();
    let extent = run.spill().adopt(&path).unwrap();
    assert!(!path.exists());
    let mut sink = Vec::new();
    run.spill().copy_to(extent, &mut sink).unwrap();
    assert_eq!(sink, b"a gigabyte, say");
    run.spill().release(extent).unwrap();
    fs::write(&path, "").unwrap();
    let nothing = run.spill().adopt(&path).unwrap();
    assert_eq!(nothing.length, 0);
    assert_eq!(
        (count_files(&run.path().join("spill")), run.budget().used()),
        (0, 0)
    );
}
