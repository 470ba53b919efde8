//! The state folder and its runs, on real files.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;

use ciel_store::limits::{PATH_BYTES_INSIDE_MAX, PATH_BYTES_MAX, SCRATCH_PURPOSE_BYTES_MAX};
use ciel_store::{Cleaning, ObjectName, ObjectStore, RunFolder, RunState, StateFolder, StoreError};
use tempfile::TempDir;

fn state_in(home: &TempDir) -> StateFolder {
    StateFolder::open(&home.path().join(".ciel")).unwrap()
}

fn run_in(state: &StateFolder, id: &str) -> RunFolder {
    RunFolder::create(state, id, u64::MAX).unwrap()
}

#[test]
fn missing_folder_is_made_and_opens_again() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("a/b/.ciel");
    assert!(StateFolder::open_existing(&path).unwrap().is_none());
    StateFolder::open(&path).unwrap();
    assert_eq!(
        fs::read_to_string(path.join("format")).unwrap(),
        "ciel-state 1\n"
    );
    assert_eq!(StateFolder::open(&path).unwrap().path(), path);
    assert!(StateFolder::open_existing(&path).unwrap().is_some());
}

#[test]
fn format_that_a_dying_process_left_half_written_is_no_hindrance() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("format-77"), "ciel-st").unwrap();
    StateFolder::open(home.path()).unwrap();
}

/// Of 1,700 runs killed at random moments one left the format that it was writing behind, and no
/// later run removed it.
#[test]
fn format_that_a_dying_process_left_is_removed() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("format-77"), "ciel-st").unwrap();
    fs::write(home.path().join("format-78"), "").unwrap();
    StateFolder::open(home.path()).unwrap();
    assert_eq!(names_in(home.path()), ["format", "runs"]);
}

#[test]
fn folder_with_a_file_of_the_user_is_foreign_whatever_its_name_begins_with() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("format-notes"), "mine").unwrap();
    let refused = StateFolder::open(home.path()).unwrap_err();
    assert!(
        matches!(refused, StoreError::ForeignFolder { .. }),
        "{refused:?}"
    );
    assert_eq!(names_in(home.path()), ["format-notes"]);
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Two runs began in one new folder at the same moment. One looked for the format before the other
/// had written it, and at the rest after that one had made a folder for its run: it took the state
/// folder for a foreign one.
#[test]
fn folder_that_several_make_at_the_same_moment_is_opened_by_all() {
    const OPENERS: usize = 8;
    for _ in 0..200 {
        let home = TempDir::new().unwrap();
        let together = Barrier::new(OPENERS);
        std::thread::scope(|scope| {
            for opener in 0..OPENERS {
                let (home, together) = (&home, &together);
                scope.spawn(move || {
                    together.wait();
                    run_in(&state_in(home), &format!("run-{opener}"));
                });
            }
        });
    }
}

#[test]
fn foreign_folder_or_file_is_refused_and_left_alone() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("thesis.txt"), "mine").unwrap();
    for path in [home.path().to_path_buf(), home.path().join("thesis.txt")] {
        let error = StateFolder::open(&path).unwrap_err();
        assert_eq!(
            (error.code(), error.is_retryable()),
            ("store.foreign-folder", false)
        );
        assert!(error.hint().is_some());
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    fs::write(home.path().join("format"), "png\n").unwrap();
    assert_eq!(
        StateFolder::renew(home.path(), Cleaning::Ended)
            .unwrap_err()
            .code(),
        "store.foreign-folder"
    );
}

#[test]
fn folder_of_another_version_is_refused_until_it_is_renewed() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    drop(run_in(&state, "old"));
    let living = run_in(&state, "living");
    fs::remove_file(state.path().join("format")).unwrap();
    fs::write(state.path().join("format"), "ciel-state 99\n").unwrap();
    let error = StateFolder::open(state.path()).unwrap_err();
    assert!(matches!(&error, StoreError::OtherFormat { found, .. } if found == "ciel-state 99"));
    assert!(error.hint().unwrap().contains("ciel clean"));

    let cleaned = StateFolder::renew(state.path(), Cleaning::Ended).unwrap();
    assert_eq!(
        (cleaned.removed, cleaned.alive),
        (vec!["old".into()], vec!["living".into()])
    );
    assert_eq!(
        StateFolder::open(state.path()).unwrap_err().code(),
        "store.other-format"
    );
    drop(living);
    StateFolder::renew(state.path(), Cleaning::Ended).unwrap();
    StateFolder::open(state.path()).unwrap();
}

#[test]
fn runs_are_listed_by_id_and_end_when_their_folder_is_dropped() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let second = run_in(&state, "20261121-02");
    let first = run_in(&state, "20261121-01");
    drop(second);
    let runs = state.runs().unwrap();
    let alive = RunState::Alive {
        process: Some(std::process::id()),
    };
    assert_eq!(
        runs.iter().map(|run| run.state).collect::<Vec<_>>(),
        [alive, RunState::Ended]
    );
    assert_eq!(
        (runs[0].id.as_str(), runs[0].path.as_path()),
        (first.id(), first.path())
    );
    assert_eq!(first.history_path(), first.path().join("history"));
}

#[test]
fn run_id_in_use_or_unfit_is_refused() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    drop(run_in(&state, "taken"));
    let refusal = |id: &str| RunFolder::create(&state, id, 0).unwrap_err().code();
    assert_eq!(refusal("taken"), "store.run-taken");
    for id in [
        "",
        ".",
        "..",
        "a/b",
        ".hidden",
        "line\nbreak",
        &"x".repeat(65),
    ] {
        assert_eq!(refusal(id), "store.invalid-name");
    }
}

#[test]
fn clean_removes_ended_runs_and_follows_no_link() {
    let home = TempDir::new().unwrap();
    let outside = home.path().join("precious");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("data"), "kept").unwrap();
    let state = state_in(&home);
    let living = run_in(&state, "living");
    let ended = run_in(&state, "ended");
    let runs = state.path().join("runs");
    symlink(&outside, ended.path().join("scratch/link")).unwrap();
    symlink(&outside, runs.join("linked")).unwrap();
    fs::create_dir(runs.join("empty")).unwrap();
    fs::create_dir(runs.join("notes")).unwrap();
    fs::write(runs.join("notes/mine.txt"), "kept").unwrap();
    drop(ended);

    let cleaned = state.clean(Cleaning::Ended).unwrap();
    assert_eq!(
        (cleaned.removed, cleaned.alive),
        (vec!["ended".into()], vec!["living".into()])
    );
    assert_eq!(fs::read_to_string(outside.join("data")).unwrap(), "kept");
    let mut left: Vec<_> = fs::read_dir(&runs)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["linked", "living", "notes"]);
    assert!(!state.path().join("trash").exists());
    living.objects().put(ObjectName(1), b"still works").unwrap();
}

/// One of three runs that started at the same moment ended with "cannot make .ciel/trash/…": each
/// removes older runs at its start, and the first to be done had removed the trash of all.
#[test]
fn processes_that_clean_at_the_same_time_do_not_take_the_trash_from_each_other() {
    let home = TempDir::new().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let state = state_in(&home);
            scope.spawn(move || {
                for round in 0..40 {
                    drop(run_in(&state, &format!("{thread}-{round}")));
                    state.clean(Cleaning::Ended).unwrap();
                }
            });
        }
    });
    assert_eq!(names_in(&home.path().join(".ciel")), ["format", "runs"]);
    assert_eq!(state_in(&home).runs().unwrap(), []);
}

/// Of 750 runs killed at random moments one left `.ciel/trash/…/run.json`, which stayed until
/// somebody called `ciel clean`: its process had moved a folder there, and was killed before that
/// was removed. The next one looked for folders that had to be moved, and there were none.
#[test]
fn what_a_dying_process_left_in_the_trash_is_removed_with_the_folders_of_unbegun_runs() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    drop(run_in(&state, "killed"));
    let trash = home.path().join(".ciel/trash");
    fs::DirBuilder::new().mode(0o700).create(&trash).unwrap();
    fs::rename(
        home.path().join(".ciel/runs/killed"),
        trash.join("killed.77"),
    )
    .unwrap();
    state.remove_unbegun().unwrap();
    assert_eq!(names_in(&home.path().join(".ciel")), ["format", "runs"]);
    assert_eq!(state.runs().unwrap(), []);
}

const HELD_FOLDER: &str = "CIEL_STORE_TEST_HELD_FOLDER";

/// Not a test by itself: the process that the next test kills.
#[test]
fn run_holder_waits_to_be_killed() {
    let Some(path) = std::env::var_os(HELD_FOLDER) else {
        return;
    };
    let state = StateFolder::open(Path::new(&path)).unwrap();
    let _run = run_in(&state, "killed");
    println!("\nrun is held");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn run_whose_process_was_killed_has_ended_and_is_cleaned() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "run_holder_waits_to_be_killed", "--nocapture"])
        .env(HELD_FOLDER, state.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(
        lines
            .map_while(Result::ok)
            .any(|line| line == "run is held")
    );
    let process = Some(holder.id());
    assert_eq!(state.runs().unwrap()[0].state, RunState::Alive { process });
    assert!(state.clean(Cleaning::Ended).unwrap().removed.is_empty());

    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(state.runs().unwrap()[0].state, RunState::Ended);
    assert_eq!(state.clean(Cleaning::Ended).unwrap().removed, ["killed"]);
}

#[test]
fn runs_that_begin_while_another_process_cleans_are_not_harmed() {
    let home = TempDir::new().unwrap();
    let state = state_in(&home);
    std::thread::scope(|threads| {
        let beginner = threads.spawn(|| {
            for number in 0..200 {
                let run = run_in(&state, &format!("run-{number}"));
                let object = run.objects().put(ObjectName(7), b"here").unwrap();
                assert_eq!(&*run.objects().map(object.name).unwrap(), b"here");
            }
        });
        while !beginner.is_finished() {
            state.clean(Cleaning::Ended).unwrap();
            state.runs().unwrap();
        }
        beginner.join().unwrap();
    });
    state.clean(Cleaning::Ended).unwrap();
    assert!(state.runs().unwrap().is_empty());
}

/// A folder below `home` whose path has exactly `length` bytes.
fn deep_path(home: &Path, length: usize) -> PathBuf {
    let mut path = home.to_path_buf();
    while path.as_os_str().len() < length {
        let room = length - path.as_os_str().len() - 1;
        let part = if room > 250 { 200 } else { room };
        path.push("d".repeat(part));
    }
    path
}

#[test]
fn deep_folder_works_as_far_as_paths_can_be_handed_out() {
    let home = TempDir::new().unwrap();
    let longest = PATH_BYTES_MAX - PATH_BYTES_INSIDE_MAX;
    assert!(longest >= 3800);
    let path = deep_path(home.path(), longest);
    let state = StateFolder::open(&path).unwrap();
    let run = run_in(&state, &"r".repeat(64));
    let scratch = run
        .scratch()
        .path(u128::MAX, u32::MAX, &"p".repeat(SCRATCH_PURPOSE_BYTES_MAX))
        .unwrap();
    assert_eq!(scratch.as_os_str().len(), PATH_BYTES_MAX);
    fs::write(&scratch, "deep").unwrap();
    let object = run
        .objects()
        .adopt(ObjectName(u128::MAX), &scratch)
        .unwrap();
    assert_eq!(
        fs::read(run.path().join("objects").join(object.name.to_string())).unwrap(),
        b"deep"
    );
    drop(run);
    assert_eq!(state.clean(Cleaning::Ended).unwrap().removed.len(), 1);

    let error = StateFolder::open(&deep_path(home.path(), longest + 1)).unwrap_err();
    assert!(matches!(error, StoreError::PathTooLong { length, .. } if length == longest + 1));
}
