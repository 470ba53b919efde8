//! `ciel clean` and `ciel runs`: which runs and kept results are meant, and what is spared.

use std::fs;

use serde_json::Value;

use crate::support::Place;
use crate::{ALL, OUTPUT, expect, pipeline};

/// The one value that a command prints.
fn told(place: &Place, words: &[&str]) -> Value {
    let ended = place.run(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn count(value: &Value) -> usize {
    value["results"].as_array().unwrap().len()
}

/// The pipeline, in which counting is a command of another name, after a run that ended well.
fn kept_pipeline() -> Place {
    let place = pipeline();
    let echo_first = "echo ran count {sample} >&2; wc -l < {in.text}";
    let text = place.read("job.sw");
    let named = text.replace(echo_first, "wc -l < {in.text}; echo ran count {sample} >&2");
    assert_ne!(named, text);
    place.file("job.sw", named);
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    place
}

#[test]
fn results_of_a_task_are_removed_and_only_that_task_runs_again() {
    let place = kept_pipeline();
    let dry = place.run(&["clean", "--task", "wc", "--dry-run"]);
    assert!(
        dry.stdout.starts_with("would remove 3 kept results, "),
        "{}",
        dry.stdout
    );
    assert!(dry.stdout.contains("\n  wc  3 results  "), "{}", dry.stdout);
    let value = told(&place, &["clean", "--task", "wc", "-n", "--json"]);
    assert_eq!((count(&value), &value["dry_run"]), (3, &Value::Bool(true)));
    let removed = place.run(&["clean", "--task", "wc"]);
    assert_eq!(
        removed.stdout,
        dry.stdout.replace("would remove", "removed")
    );
    let ended = place.run(&["run", "--kept", "job.sw"]);
    // What follows finds its inputs by their content.
    expect(&ended, 0, &["count a", "count b", "count c"]);
    assert_eq!(ended.stdout, OUTPUT);
    assert!(
        ended.stderr.contains("wc: evicted (3 tasks)"),
        "{}",
        ended.stderr
    );
    assert_eq!(
        place.run(&["clean", "--task", "nothing"]).stdout,
        "nothing to remove\n"
    );
}

#[test]
fn results_and_runs_are_removed_by_age_and_by_run() {
    let place = kept_pipeline();
    let old = told(&place, &["clean", "--older", "1h", "--json"]);
    assert_eq!((count(&old), &old["runs"]), (0, &serde_json::json!([])));
    let run = told(&place, &["runs", "--json"]);
    assert_eq!(run["kept_results"], 7);
    let run = run["run"].as_str().unwrap();
    place.file("b", "another\n");
    expect(
        &place.run(&["run", "--kept", "job.sw"]),
        0,
        &["count b", "join", "sort b"],
    );
    let removed = told(&place, &["clean", "--run", run, "--json"]);
    assert_eq!(count(&removed), 7);
    assert_eq!(removed["runs"], serde_json::json!([run]));
    // The results of the other run stay.
    let list = told(&place, &["runs", "--json"]);
    assert_eq!(
        (list["kept_results"].as_u64(), list["run"] == *run),
        (Some(3), false)
    );
    let unknown = place.run(&["clean", "--run", "zz"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.contains("there is no run zz"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn results_beyond_a_size_are_removed_and_runs_stay() {
    let place = kept_pipeline();
    let large = told(&place, &["clean", "--keep-size", "1G", "-n", "--json"]);
    assert_eq!(count(&large), 0);
    let all = told(&place, &["clean", "--keep-size", "0", "--json"]);
    assert_eq!((count(&all), &all["runs"]), (7, &serde_json::json!([])));
    let objects = fs::read_dir(place.path(".ciel/kept/objects")).unwrap();
    let files = objects.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    assert_eq!(files.count(), 0);
    assert!(!place.run(&["runs"]).stdout.contains("kept result"));
}

#[test]
fn results_that_a_live_run_has_used_or_kept_are_spared() {
    let place = kept_pipeline();
    place.file(
        "live.sw",
        "include \"grab\"; spawn_exec(\"shell\", {\"command\": \"echo > begun; \
         while [ ! -e go ]; do sleep 0.05; done\"}, 1)[0];",
    );
    let live = place.start(&["run", "live.sw"]);
    place.await_file("begun");
    let words = ["clean", "--keep-size", "0", "--json"];
    let beside = place.command().args(words).output().unwrap();
    let value: Value = serde_json::from_slice(&beside.stdout).unwrap();
    assert_eq!(count(&value), 0, "{value}");
    place.file("go", "");
    assert_eq!(live.end().code, Some(0));
    let value = told(&place, &["clean", "--keep-size", "0", "--json"]);
    assert_eq!(count(&value), 8, "{value}");
}

#[test]
fn list_of_runs_says_what_each_has_kept_and_what_all_hold() {
    let place = kept_pipeline();
    let list = place.run(&["runs"]).stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert!(
        lines[0].contains("SIZE") && lines[0].contains("KEPT"),
        "{list}"
    );
    assert!(lines[1].contains("  7, "), "{list}");
    assert!(lines[2].contains("on disk; 7 kept results, "), "{list}");
    // Plain cleaning removes runs; what they have kept stays.
    assert_eq!(place.run(&["clean"]).stdout, "removed 1 run\n");
    expect(&place.run(&["run", "--kept", "job.sw"]), 0, &[]);
}
