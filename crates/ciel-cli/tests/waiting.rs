//! Executors that wait for the first, or for a time, that watch, and whose failures come back
//! whole: the real command with a worker that knows nothing but the protocol.
//!
//! The tasks are those of `executors/worker.py` under the name `waiting`, which agrees with the
//! engine on all optional parts of the protocol.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use support::{Ended, Place};

fn place() -> Place {
    let place = Place::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/executors/worker.py");
    std::fs::create_dir_all(place.path("executors")).unwrap();
    let program = std::fs::read(source).unwrap();
    let path = place.file("executors/ciel-executor-waiting", program);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    place
}

/// Runs a script of which `TASK(arguments)` is a task of the executor.
fn run(place: &Place, options: &[&str], script: &str) -> Ended {
    let opened = script.replace("TASK(", "spawn_exec(\"waiting\", ");
    place.script(&[&["-q"], options].concat(), &opened)
}

fn expect_of(options: &[&str], script: &str, stdout: &str) {
    let ended = run(&place(), options, script);
    let shown = (ended.code, ended.stdout.as_str());
    assert_eq!(shown, (Some(0), stdout), "{script}\n{}", ended.stderr);
}

/// The value of a task without arguments.
fn expect(task: &str, stdout: &str) {
    let script = format!("return *TASK({{\"do\": \"{task}\"}}, 1)[0];");
    expect_of(&["-j3"], &script, stdout);
}

#[test]
fn first_that_is_there_wakes_a_parked_strand() {
    expect("race", "[true,false,\"through\"]\n");
}

#[test]
fn first_that_was_there_is_told_to_a_strand_that_is_run_again() {
    expect("race-again", "[\"first\",[1],\"through\"]\n");
}

#[test]
fn strand_that_waits_for_the_first_and_is_lost_is_told_by_its_replay() {
    let script = "return *TASK({\"do\": \"race-lost\"}, 1)[0];";
    expect_of(&["-j1"], script, "\"first\"\n");
}

#[test]
fn wait_ends_when_its_time_is_over() {
    expect("patience", "[true,[]]\n");
}

#[test]
fn wait_that_ended_by_time_is_recorded_and_so_is_one_that_did_not() {
    expect("patience-again", "[[\"timeout\",[]],[\"first\",[0]]]\n");
}

#[test]
fn saved_strand_is_told_that_its_time_was_over() {
    expect("patience-saved", "[true,true]\n");
}

#[test]
fn list_is_given_once_and_taken_one_after_the_other() {
    expect("takes-all", "[1,2,3]\n");
}

#[test]
fn watched_references_are_told_of_when_they_are_there() {
    expect("watcher", "[[2,3],1,\"through\",\"made meanwhile\"]\n");
}

#[test]
fn failure_comes_back_as_its_worker_told_it() {
    let place = place();
    let script = "return *TASK({\"do\": \"asker\", \"of\": \"fails-whole\"}, 1)[0];";
    let ended = run(&place, &["-j2"], script);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(told["language"], "python");
    assert_eq!(told["exception"]["form"], "pickle");
    assert_eq!(told["exception"]["data"], "gAROLg==");
    assert_eq!(told["retryable"], true);
    let calls = told["traceback"].as_array().unwrap();
    assert_eq!(calls.len(), 1, "{told}");
    let call = &calls[0];
    assert_eq!((&call["line"], &call["column"]), (&7.into(), &5.into()));
    assert_eq!(
        (&call["function"], &call["source"]),
        (&"price".into(), &"raise".into())
    );
}

#[test]
fn failure_that_is_passed_on_tells_each_call_once() {
    let script = "return *TASK({\"do\": \"asker\", \"of\": \"passes-on\"}, 1)[0];";
    let ended = run(&place(), &["-j2"], script);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let calls = told["traceback"].as_array().unwrap();
    let functions: Vec<_> = calls.iter().map(|call| &call["function"]).collect();
    assert_eq!(functions, ["main", "price"]);
    assert_eq!(told["exception"]["data"], "gAROLg==");
    assert!(told["task"].as_str().unwrap().starts_with("fails-whole@"));
}

#[test]
fn failure_that_says_so_is_not_tried_again() {
    for (said, attempts) in [
        ("", 3),
        (", \"retryable\": true", 3),
        (", \"retryable\": false", 1),
    ] {
        let place = place();
        let script =
            format!("return *TASK({{\"do\": \"fails-whole\"{said}}}, 1, {{\"retries\": 2}})[0];");
        let ended = run(&place, &["-j2"], &script);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert_eq!(place.read("attempts").lines().count(), attempts, "{said}");
    }
}

#[test]
fn text_is_a_string_to_scripts_and_words_to_commands() {
    let script = "tea = TASK({\"do\": \"text\"}, 1)[0];
        counted = spawn_exec(\"shell\", {\"command\": \"wc -c < {in.tea}\",
            \"inputs\": {\"tea\": tea}}, 1)[0];
        return [*tea, text(counted)];";
    let ended = run(&place(), &["-j2"], script);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let value: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(value[0], "tea\n");
    assert_eq!(value[1].as_str().unwrap().trim(), "4");
}

#[test]
fn text_that_a_job_gives_is_shown_as_a_string() {
    expect_of(
        &["-j2"],
        "return TASK({\"do\": \"text\"}, 1)[0];",
        "\"tea\\n\"\n",
    );
}

#[test]
fn worker_that_wants_no_scratch_folder_gets_none_and_knows_its_position() {
    expect("place", "[\"\",16,true]\n");
}

#[test]
fn task_that_is_interrupted_ends_and_its_process_goes_on() {
    let script = "function pid() {
            return *TASK({\"do\": \"counts-processes\"}, 1, {\"pure\": false})[0];
        }
        before = pid();
        bad = TASK({\"do\": \"interruptible\"}, 1, {\"timeout\": 0.3})[0];
        try { x = *bad + 1; } catch (e) { print(e.kind); }
        return before == pid();";
    expect_of(&["-j1"], script, "Timeout\ntrue\n");
}

#[test]
fn process_that_is_used_up_goes_on_with_what_is_parked_in_it() {
    let script = "return *TASK({\"do\": \"outlives\"}, 1)[0];";
    expect_of(&["-j1"], script, "[true,true,false]\n");
}
