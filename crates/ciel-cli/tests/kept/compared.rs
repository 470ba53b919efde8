//! Runs that are foretold with `ciel run -n`, and runs that are compared with `ciel diff`.
//!
//! What is foretold is then run, so that both say the same. Read first: the pipeline of `main`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ALL, edit, expect, failed_pipeline, pipeline, sample};
use crate::support::Place;

/// What a dry run tells of the pipeline.
pub(super) fn foretold(place: &Place, words: &[&str]) -> Value {
    let told = place.run(&[&["run", "-n", "--json"], words, &["job.sw"]].concat());
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    serde_json::from_str(&told.stdout).unwrap()
}

/// How many of its tasks have that fate.
fn count(told: &Value, fate: &str) -> usize {
    let tasks = told["tasks"].as_array().unwrap().iter();
    tasks.filter(|task| task["fate"] == fate).count()
}

fn reasons(told: &Value) -> String {
    told["tasks"].to_string()
}

/// The ids of the runs, newest first.
pub fn runs(place: &Place) -> Vec<String> {
    let told = place.run(&["runs", "--json"]).stdout;
    let ids = told.lines().map(|line| {
        let run: Value = serde_json::from_str(line).unwrap();
        run["run"].as_str().unwrap().to_string()
    });
    ids.collect()
}

#[test]
fn dry_run_before_any_run_knows_nothing_and_leaves_nothing() {
    let place = pipeline();
    let told = place.run(&["run", "-n", "job.sw"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(told.stdout.contains("no earlier run"), "{}", told.stdout);
    assert!(!place.has(".ciel"));
}

#[test]
fn dry_run_after_a_failure_tells_what_the_run_then_does() {
    let place = failed_pipeline();
    let told = foretold(&place, &[]);
    assert_eq!(
        (count(&told, "taken"), count(&told, "runs")),
        (6, 1),
        "{told}"
    );
    assert!(reasons(&told).contains("never finished"), "{told}");
    fs::remove_file(place.path("broken")).unwrap();
    expect(&place.run(&["run", "job.sw"]), 0, &["join"]);
}

#[test]
fn dry_run_after_an_edit_of_a_file_walks_to_the_change_and_knows_nothing_behind_it() {
    let place = pipeline();
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    place.file("b", sample("b", 4));
    let told = foretold(&place, &["--kept"]);
    let counts = ["taken", "runs", "unknown"].map(|fate| count(&told, fate));
    assert_eq!(counts, [4, 1, 2], "{told}");
    assert!(reasons(&told).contains("input changed"), "{told}");
    let text = place.run(&["run", "-n", "--kept", "job.sw"]).stdout;
    assert!(
        text.contains("4 of 7 tasks taken, 1 would run, 2 unknown"),
        "{text}"
    );
    expect(
        &place.run(&["run", "--kept", "job.sw"]),
        0,
        &["count b", "join", "sort b"],
    );
}

#[test]
fn dry_run_after_a_good_run_says_that_it_computes_again() {
    let place = pipeline();
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    let told = foretold(&place, &[]);
    assert_eq!(count(&told, "taken"), 0, "{told}");
    assert!(reasons(&told).contains("the last run ended well"), "{told}");
    assert_eq!(count(&foretold(&place, &["--kept"]), "taken"), 7);
}

#[test]
fn dry_run_of_an_edited_script_says_that_its_spawns_are_not_known() {
    let place = failed_pipeline();
    edit(&place, "echo ran join", "echo  ran join");
    let told = foretold(&place, &[]);
    assert_eq!(told["edited"], true, "{told}");
    assert_eq!(foretold(&place, &["--new"])["resumed"], false);
}

#[test]
fn dry_run_changes_no_file() {
    let place = failed_pipeline();
    let before = files_below(&place.path("."));
    foretold(&place, &[]);
    assert_eq!(files_below(&place.path(".")), before);
}

/// All files with their bytes, by path.
fn files_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files.extend(files_below(&path)),
            kind if kind.is_file() => files.push((path.clone(), fs::read(&path).unwrap())),
            _ => {}
        }
    }
    files.sort();
    files
}

#[test]
fn diff_says_what_differed_first_and_what_followed_from_it() {
    let place = pipeline();
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    place.file("b", sample("b", 4));
    place.run(&["run", "--kept", "job.sw"]);
    let runs = runs(&place);
    let told = place.run(&["diff", &runs[1], &runs[0]]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let (first, then) = told.stdout.split_once("then:").unwrap();
    assert!(first.contains("input changed: text\n"), "{}", told.stdout);
    assert!(
        then.contains("input changed: text, from echo@"),
        "{}",
        told.stdout
    );
    assert!(then.contains("3 tasks differ, 4 equal"), "{}", told.stdout);
}

#[test]
fn diff_as_json_names_the_task_that_each_one_follows() {
    let place = pipeline();
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    edit(
        &place,
        "sort {in.text} >",
        "sort -r {in.text} | tail -n 1 >",
    );
    place.run(&["run", "--kept", "job.sw"]);
    let runs = runs(&place);
    let told = place.run(&["diff", "--json", &runs[1], &runs[0]]).stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    let tasks = told["tasks"].as_array().unwrap();
    let (first, then): (Vec<&Value>, Vec<&Value>) =
        tasks.iter().partition(|task| task["first"] == true);
    assert_eq!((first.len(), then.len()), (3, 4), "{told}");
    for task in first {
        assert_eq!(task["reason"], "argument changed: command");
    }
    for task in then {
        let from = task["from"].as_str().unwrap();
        assert!(tasks.iter().any(|task| task["task"] == from), "{told}");
    }
}

#[test]
fn diff_of_equal_runs_finds_nothing_and_of_other_jobs_is_refused() {
    let place = pipeline();
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    let two = runs(&place);
    let told = place.run(&["diff", &two[1], &two[0]]);
    assert_eq!(told.stdout, "0 tasks differ, 7 equal\n");
    place.file("other.sw", "return 1;");
    place.run(&["run", "other.sw"]);
    let other = runs(&place);
    let told = place.run(&["diff", &two[0], &other[0]]);
    assert_eq!(told.code, Some(2));
    assert!(told.stderr.contains("of different jobs"), "{}", told.stderr);
}

#[test]
fn diff_names_tasks_that_ended_well_in_one_run_only() {
    let place = Place::new();
    let script = "return text(spawn_exec(\"shell\", {\"command\": \"ls there/now\"}, 1)[0]);";
    place.file("job.sw", script);
    place.run(&["run", "job.sw"]);
    fs::create_dir_all(place.path("there/now")).unwrap();
    expect(&place.run(&["run", "job.sw"]), 0, &[]);
    let runs = runs(&place);
    let told = place.run(&["diff", &runs[1], &runs[0]]).stdout;
    let expected = format!("ended well in run {} only", runs[0]);
    assert!(told.contains(&expected), "{told}");
    assert!(told.contains("1 task differs, 0 equal"), "{told}");
}
