//! Whose state is trusted: that of the user, where no other user could have written.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use ciel_store::{HeldRun, ObjectName, ObjectStore, RunFolder, StateFolder, StoreError};
use tempfile::TempDir;

/// A user who is not the one of the test.
const SOMEBODY: u32 = 65534;

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Gives a file or folder away; false, and the reason printed, where the test may not.
fn given_away(path: &Path) -> bool {
    let given = chown(path, Some(SOMEBODY), None);
    if let Err(error) = &given {
        eprintln!("skipped: files of another user: only root can make them: {error}");
    }
    given.is_ok()
}

fn is_other_owner(error: &StoreError, at: &Path) -> bool {
    matches!(error, StoreError::OtherOwner { path, owner: SOMEBODY, .. } if path == at)
}

/// A state folder with a run that was broken off and can be resumed.
fn broken_off(home: &TempDir) -> PathBuf {
    let path = home.path().join(".ciel");
    let state = StateFolder::open(&path).unwrap();
    let run = RunFolder::create(&state, "run-1", u64::MAX).unwrap();
    run.describe(b"{}").unwrap();
    let journal = run.journal_folder().unwrap();
    fs::write(journal.join("log-0"), "records").unwrap();
    set_mode(&journal.join("log-0"), 0o600);
    path
}

fn resumed(path: &Path) -> Result<RunFolder, StoreError> {
    let run = HeldRun::take(&StateFolder::open(path)?, "run-1")?.open(u64::MAX)?;
    run.journal_folder().map(|_| run)
}

#[test]
fn new_state_folder_is_for_its_user_alone() {
    let home = TempDir::new().unwrap();
    let path = broken_off(&home);
    for inner in [
        "",
        "runs",
        "runs/run-1",
        "runs/run-1/journal",
        "runs/run-1/objects",
    ] {
        assert_eq!(mode_of(&path.join(inner)), 0o700, "{inner}");
    }
    assert!(resumed(&path).is_ok());
}

#[test]
fn state_folder_that_others_could_read_is_closed_when_it_is_opened() {
    let home = TempDir::new().unwrap();
    let path = broken_off(&home);
    set_mode(&path, 0o755);
    StateFolder::open(&path).unwrap();
    assert_eq!(mode_of(&path), 0o700);
}

#[test]
fn state_folder_that_others_could_write_is_refused_unless_it_is_empty() {
    let home = TempDir::new().unwrap();
    let path = broken_off(&home);
    for mode in [0o777, 0o770, 0o1777, 0o702] {
        set_mode(&path, mode);
        let refused = StateFolder::open(&path).unwrap_err();
        assert_eq!(refused.code(), "store.writable-by-others", "{mode:o}");
        assert!(refused.hint().unwrap().contains("--state"));
        let refused = StateFolder::open_existing(&path).unwrap_err();
        assert_eq!(refused.code(), "store.writable-by-others", "{mode:o}");
        assert_eq!(mode_of(&path), mode, "a refused folder is left as it is");
    }
    let empty = home.path().join("empty");
    fs::create_dir(&empty).unwrap();
    set_mode(&empty, 0o777);
    StateFolder::open(&empty).unwrap();
    assert_eq!(mode_of(&empty), 0o700);
}

#[test]
fn folders_and_files_inside_that_others_could_write_are_refused() {
    for inner in [
        "runs",
        "runs/run-1",
        "runs/run-1/journal",
        "runs/run-1/objects",
    ] {
        let home = TempDir::new().unwrap();
        let path = broken_off(&home);
        set_mode(&path.join(inner), 0o777);
        let refused = resumed(&path).unwrap_err();
        assert_eq!(refused.code(), "store.writable-by-others", "{inner}");
    }
    for file in ["format", "runs/run-1/run.json", "runs/run-1/journal/log-0"] {
        let home = TempDir::new().unwrap();
        let path = broken_off(&home);
        set_mode(&path.join(file), 0o666);
        let refused = resumed(&path).and_then(|run| run.description().map(|_| run));
        assert_eq!(
            refused.unwrap_err().code(),
            "store.writable-by-others",
            "{file}"
        );
    }
}

/// One look at its name tells whether an object is what it was; this, too.
#[test]
fn object_that_others_could_write_is_not_shared() {
    let home = TempDir::new().unwrap();
    let state = StateFolder::open(&home.path().join(".ciel")).unwrap();
    let run = RunFolder::create(&state, "run-1", u64::MAX).unwrap();
    let (name, objects) = (ObjectName(7), run.objects());
    objects.put(name, b"whole").unwrap();
    let path = objects.share(name).unwrap();
    set_mode(&path, 0o646);
    let refused = objects.share(name).unwrap_err();
    assert_eq!(refused.code(), "store.writable-by-others");
    set_mode(&path, 0o444);
    assert_eq!(objects.share(name).unwrap(), path);
    fs::rename(&path, home.path().join("other")).unwrap();
    std::os::unix::fs::symlink(home.path().join("other"), &path).unwrap();
    assert!(objects.share(name).is_err(), "a link is no object");
}

/// Another user who could write to the folder put a command into a journal, corrected its checksum,
/// and the user who resumed the run ran that command.
#[test]
fn state_of_another_user_is_refused() {
    for inner in [
        "",
        "runs",
        "runs/run-1",
        "runs/run-1/journal",
        "runs/run-1/journal/log-0",
        "runs/run-1/lock",
    ] {
        let home = TempDir::new().unwrap();
        let path = broken_off(&home);
        let place = if inner.is_empty() {
            path.clone()
        } else {
            path.join(inner)
        };
        if !given_away(&place) {
            return;
        }
        let refused = resumed(&path).unwrap_err();
        assert!(is_other_owner(&refused, &place), "{inner}: {refused}");
        assert!(refused.hint().unwrap().contains("--state"), "{inner}");
    }
}
