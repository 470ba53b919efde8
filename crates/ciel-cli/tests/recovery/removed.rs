//! Parts of the state are removed, while a run is live or after it was killed: each has one
//! meaning, which is reported.

use std::fs;
use std::path::Path;

use crate::broken_off::{BrokenOff, at_the_gate, only_run, run_folder};
use crate::support::{Ended, Place};
use crate::{expect_told, expect_well, output, times_run};

fn remove(path: &Path) {
    fs::remove_dir_all(path)
        .or_else(|_| fs::remove_file(path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Removes a part of a live run, which then continues.
fn robbed_while_it_lives(part: &str) -> (Place, String, Ended) {
    let place = Place::new();
    let (gate, live) = at_the_gate(&place, &[], "");
    let run = only_run(&place, ".ciel");
    remove(&run_folder(&place, ".ciel", &run).join(part));
    gate.release(2);
    let mut ended = live.end();
    // The first lines were read while it lived.
    ended
        .stdout
        .insert_str(0, &output()[..output().len() - second_half().len()]);
    place.expect_nobody(&ended.stderr);
    (place, run, ended)
}

fn second_half() -> String {
    let from = output().find("\n12 38000\n").unwrap() + 1;
    output()[from..].to_string()
}

#[test]
fn live_run_does_without_files_that_it_has_open() {
    for part in ["stdout", "history", "run.json", "lock", "spill"] {
        let (place, run, ended) = robbed_while_it_lives(part);
        expect_well(&ended, &output());
        let times = times_run(&place);
        assert!(times.iter().all(|times| *times == 1), "{part}: {times:?}");
        let runs = place.run(&["runs"]);
        assert_eq!(runs.code, Some(0), "{part}: {}", runs.stderr);
        assert_eq!(runs.stdout.contains(&run), part != "lock", "{part}");
    }
}

#[test]
fn live_run_without_its_journal_stops_and_says_that_it_cannot_be_resumed() {
    // It continued, recorded into nothing, and reported success; a kill would have lost all of it.
    let place = Place::new();
    let (_gate, live) = at_the_gate(&place, &[], "");
    let run = only_run(&place, ".ciel");
    remove(&run_folder(&place, ".ciel", &run).join("journal"));
    let ended = live.end();
    expect_told(&ended, 1, &["journal is missing", "reruns the job"]);
    place.expect_nobody(&ended.stderr);
}

#[test]
fn live_run_without_its_objects_stops_and_makes_them_again_later() {
    let (place, run, ended) = robbed_while_it_lives("objects");
    let hint = format!("`ciel resume {run}`");
    expect_told(
        &ended,
        1,
        &[
            "a file of the run is missing or has changed: object ",
            &hint,
        ],
    );
    let runs = place.run(&["runs"]);
    assert!(runs.stdout.contains("can be resumed"), "{}", runs.stdout);
    let ended = place.run(&["resume"]);
    expect_well(&ended, &output());
}

#[test]
fn live_run_without_its_scratch_stops_and_goes_on_later() {
    let (place, run, ended) = robbed_while_it_lives("scratch");
    let hint = format!("`ciel resume {run}`");
    expect_told(&ended, 1, &["scratch is missing", &hint]);
    let gate = fs::File::options()
        .read(true)
        .write(true)
        .open(place.path("gate"));
    std::io::Write::write_all(&mut gate.as_ref().unwrap(), b"\n").unwrap();
    expect_well(&place.run(&["resume"]), &output());
}

#[test]
fn live_run_without_its_folder_stops_and_says_that_it_is_gone() {
    let (place, run, ended) = robbed_while_it_lives("");
    expect_told(&ended, 1, &["is missing", &run, "hint: "]);
    place.expect_usable();
}

#[test]
fn killed_run_does_without_what_is_not_needed() {
    let broken = BrokenOff::new();
    for part in ["history", "scratch", "spill"] {
        broken.restore();
        remove(&broken.path(part));
        expect_well(&broken.ciel(&["resume"]), &output());
        assert!(!broken.ran_again(), "{part}");
    }
}

#[test]
fn killed_run_without_what_makes_it_a_run_is_begun_afresh() {
    let broken = BrokenOff::new();
    for part in ["run.json", "journal", "lock", ""] {
        broken.restore();
        remove(&broken.path(part));
        let ended = broken.ciel(&["resume", &broken.run]);
        expect_told(&ended, 2, &[&broken.run, "hint: "]);
        let fresh = broken.ciel(&["run", "job.sw"]);
        expect_well(&fresh, &output());
        assert!(broken.ran_again(), "{part}");
        let cleaned = broken.ciel(&["clean"]);
        assert_eq!(cleaned.code, Some(0), "{part}: {}", cleaned.stderr);
    }
}

#[test]
fn killed_run_whose_records_are_gone_is_done_again_with_the_same_output() {
    let broken = BrokenOff::new();
    remove(&broken.path("journal/log-0000000000"));
    expect_well(&broken.ciel(&["resume"]), &output());
    assert!(broken.ran_again());
}

#[test]
fn killed_run_whose_output_is_gone_makes_it_again_from_its_records() {
    let broken = BrokenOff::new();
    remove(&broken.path("stdout"));
    expect_well(&broken.ciel(&["resume"]), &output());
    assert!(!broken.ran_again());
}

#[test]
fn state_folder_without_its_format_is_left_alone() {
    let broken = BrokenOff::new();
    remove(&broken.place.path(".ciel/format"));
    let ended = broken.ciel(&["run", "job.sw"]);
    expect_told(&ended, 2, &["is not a state folder of ciel", "hint: "]);
    assert!(broken.path("journal").is_dir());
}

#[test]
fn killed_run_without_objects_makes_them_again() {
    let broken = BrokenOff::new();
    remove(&broken.path("objects"));
    expect_well(&broken.ciel(&["resume"]), &output());

    broken.restore();
    let objects = fs::read_dir(broken.path("objects")).unwrap();
    let mut paths: Vec<_> = objects.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 5, "{paths:?}");
    remove(&paths[1]);
    let short = fs::read(&paths[2]).unwrap();
    remove(&paths[2]);
    fs::write(&paths[2], &short[1..]).unwrap();
    expect_well(&broken.ciel(&["resume"]), &output());
}

/// A run that ended its work early gave up all its tasks then, and removed the files that none of
/// them needed any more, but that the resumed run did need.
#[test]
fn interrupted_run_keeps_the_files_that_it_needs_later() {
    for signal in ["INT", "TERM"] {
        let place = Place::new();
        let (gate, live) = at_the_gate(&place, &[], "");
        live.signal(signal);
        let ended = live.end();
        assert_eq!(ended.code, Some(130), "{}", ended.stderr);
        gate.release(1);
        expect_well(&place.run(&["resume"]), &output());
        let times = times_run(&place);
        assert!(times.iter().all(|times| *times == 1), "{times:?}");
    }
}
