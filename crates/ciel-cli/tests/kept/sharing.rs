//! A folder of kept results that runs of several projects and users share.
//!
//! Each place is a colleague's copy of the same project. Read first: the pipeline of `main`.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::compared::foretold;
use super::{ALL, OUTPUT, expect, pipeline, ran, sample};
use crate::support::{Ended, Live, Place, skipped};

/// A user who is not the one of the tests.
const STRANGER: u32 = 54_321;

fn run(place: &Place, folder: &Path) -> Ended {
    place.run(&["run", "--kept-dir", folder.to_str().unwrap(), "job.sw"])
}

#[test]
fn results_of_one_folder_are_taken_in_another_one_by_content() {
    let shared = tempfile::tempdir().unwrap();
    expect(&run(&pipeline(), shared.path()), 0, &ALL);
    let colleague = pipeline();
    let ended = run(&colleague, shared.path());
    expect(&ended, 0, &[]);
    assert_eq!(ended.stdout, OUTPUT);
    let other = pipeline();
    other.file("b", sample("b", 4));
    expect(
        &run(&other, shared.path()),
        0,
        &["count b", "join", "sort b"],
    );
}

/// Only the results of tasks that ran were shared: the folder stayed empty where an earlier run had
/// kept all of them.
#[test]
fn results_that_an_earlier_run_has_kept_are_shared_when_they_are_taken() {
    let shared = tempfile::tempdir().unwrap();
    let own = pipeline();
    expect(&own.run(&["run", "--kept", "job.sw"]), 0, &ALL);
    for _ in 0..2 {
        expect(&run(&own, shared.path()), 0, &[]);
    }
    let ended = run(&pipeline(), shared.path());
    expect(&ended, 0, &[]);
    assert_eq!(ended.stdout, OUTPUT);
}

#[test]
fn dry_run_knows_what_the_shared_folder_has() {
    let shared = tempfile::tempdir().unwrap();
    expect(&run(&pipeline(), shared.path()), 0, &ALL);
    let colleague = pipeline();
    expect(&colleague.run(&["run", "job.sw"]), 0, &ALL);
    fs::remove_dir_all(colleague.path(".ciel/kept")).unwrap();
    let taken = |options: &[&str]| {
        let told = foretold(&colleague, options);
        let tasks = told["tasks"].as_array().unwrap().iter();
        tasks.filter(|task| task["fate"] == "taken").count()
    };
    assert_eq!(taken(&["--kept"]), 0);
    let missing = colleague.path("nowhere");
    assert_eq!(taken(&["--kept-dir", missing.to_str().unwrap()]), 0);
    assert!(!missing.exists());
    assert_eq!(taken(&["--kept-dir", shared.path().to_str().unwrap()]), 7);
    expect(&run(&colleague, shared.path()), 0, &[]);
}

#[test]
fn bytes_of_a_stranger_are_taken_and_damaged_ones_recomputed() {
    let shared = tempfile::tempdir().unwrap();
    expect(&run(&pipeline(), shared.path()), 0, &ALL);
    let user = rustix::process::geteuid().as_raw();
    let theirs = shared.path().join(STRANGER.to_string());
    fs::rename(shared.path().join(user.to_string()), &theirs).unwrap();
    if let Err(error) = give(&theirs) {
        return skipped("results of a stranger", &error.to_string());
    }
    let ended = run(&pipeline(), shared.path());
    expect(&ended, 0, &[]);
    assert_eq!(ended.stdout, OUTPUT);
    fs::remove_dir_all(shared.path().join(user.to_string())).unwrap();
    fs::remove_dir_all(theirs.join("objects")).unwrap();
    let ended = run(&pipeline(), shared.path());
    expect(&ended, 0, &["sort a", "sort b", "sort c"]);
    assert_eq!(ended.stdout, OUTPUT);
}

/// Gives a folder and all that is in it to a stranger.
fn give(path: &Path) -> std::io::Result<()> {
    chown(path, Some(STRANGER), None)?;
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path())?;
        }
    }
    Ok(())
}

/// The files of this user in a shared folder: `entries` or `objects`.
fn files(shared: &Path, kind: &str) -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let folders = fs::read_dir(shared.join(user.to_string()).join(kind)).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Puts other bytes into the place of a file that nobody may write.
fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

const SORTS: [&str; 3] = ["sort a", "sort b", "sort c"];

/// Once, an entry of this user that was damaged stayed so, and each run computed its task again.
#[test]
fn damaged_and_foreign_files_are_never_used_and_replaced_by_whole_ones() {
    type Change = fn(&Path);
    let changes: [(&str, Change, &[&str]); 5] = [
        (
            "other bytes in objects",
            |shared| {
                for object in files(shared, "objects") {
                    let length = fs::metadata(&object).unwrap().len() as usize;
                    replace(&object, &vec![b'?'; length]);
                }
            },
            &SORTS,
        ),
        (
            "links in the place of objects",
            |shared| {
                for object in files(shared, "objects") {
                    let aside = shared.join(object.file_name().unwrap());
                    fs::rename(&object, &aside).unwrap();
                    symlink(aside, object).unwrap();
                }
            },
            &SORTS,
        ),
        (
            "other bytes in entries",
            |shared| {
                let entries = files(shared, "entries");
                entries
                    .iter()
                    .for_each(|entry| replace(entry, b"something else"));
            },
            &ALL,
        ),
        (
            "entries of other tasks",
            |shared| {
                let entries = files(shared, "entries");
                let whole = entries.iter().map(|entry| fs::read(entry).unwrap());
                let whole: Vec<Vec<u8>> = whole.collect();
                let others = whole.iter().cycle().skip(1);
                entries
                    .iter()
                    .zip(others)
                    .for_each(|(entry, other)| replace(entry, other));
            },
            &ALL,
        ),
        (
            "missing objects",
            |shared| {
                files(shared, "objects")
                    .iter()
                    .for_each(|one| fs::remove_file(one).unwrap())
            },
            &SORTS,
        ),
    ];
    for (what, change, reruns) in changes {
        let shared = tempfile::tempdir().unwrap();
        expect(&run(&pipeline(), shared.path()), 0, &ALL);
        change(shared.path());
        let ended = run(&pipeline(), shared.path());
        assert_eq!(ended.stdout, OUTPUT, "{what}");
        assert_eq!(ran(&ended), reruns, "{what}: {}", ended.stderr);
        let again = run(&pipeline(), shared.path());
        assert_eq!(ran(&again), [""; 0], "{what}: {}", again.stderr);
    }
}

#[test]
fn two_runs_share_a_folder_while_a_third_process_removes_what_it_holds() {
    let shared = tempfile::tempdir().unwrap();
    let folder = shared.path().to_str().unwrap();
    expect(&run(&pipeline(), shared.path()), 0, &ALL);
    for _ in 0..3 {
        let places = [pipeline(), pipeline()];
        let words = ["run", "--kept-dir", folder, "job.sw"];
        let sharing = places.each_ref().map(|place| place.start(&words));
        let mut removing = Command::new("sh")
            .args([
                "-c",
                "while :; do rm -rf \"$1\"/*/entries/* \"$1\"/*/objects/*; done",
            ])
            .args(["sh", folder])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let ended = sharing.map(Live::end);
        removing.kill().unwrap();
        removing.wait().unwrap();
        for ended in ended {
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            assert_eq!(ended.stdout, OUTPUT);
        }
    }
    run(&pipeline(), shared.path());
    expect(&run(&pipeline(), shared.path()), 0, &[]);
}

#[test]
fn shared_folder_that_cannot_be_used_is_reported_and_the_run_is_whole() {
    let place = pipeline();
    let file = place.file("file", "no folder");
    let ended = run(&place, &file);
    expect(&ended, 0, &ALL);
    assert!(
        ended.stderr.contains("no results are shared"),
        "{}",
        ended.stderr
    );
}

#[test]
fn owner_who_does_not_exist_is_refused() {
    let place = pipeline();
    let words = [
        "run",
        "--kept-dir",
        "shared",
        "--trust-owner",
        "no one",
        "job.sw",
    ];
    let ended = place.run(&words);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("there is no user no one"),
        "{}",
        ended.stderr
    );
}
