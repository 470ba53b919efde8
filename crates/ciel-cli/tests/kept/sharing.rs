//! A folder of kept results that runs of several projects and users share.
//!
//! Each place is a colleague's copy of the same project. Read first: the pipeline of `main`.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use super::{ALL, OUTPUT, expect, pipeline, sample};
use crate::support::{Ended, Place, skipped};

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
