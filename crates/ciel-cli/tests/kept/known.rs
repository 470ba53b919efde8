//! Results that have dropped their bytes: what is known of them suffices until somebody needs them.

use serde_json::Value;

use crate::support::Place;
use crate::{expect, ran, sample};

/// Three commands in a row, each of which gives more than what stays in memory, and their length.
/// The first one prints.
const ROW: &str = r#"
include "grab";
a = spawn_exec("shell", {
    "command": "echo ran a >&2; echo printed by a; cat {in.text} {in.text} > {out.text}",
    "inputs": {"text": ref("text")}, "outputs": ["text"]}, 1)[0];
b = spawn_exec("shell", {
    "command": "echo ran b >&2; cat {in.text} {in.text} > {out.text}",
    "inputs": {"text": a}, "outputs": ["text"]}, 1)[0];
c = spawn_exec("shell", {
    "command": "echo ran c >&2; wc -c < {in.text} | tr -d ' \\n'", "inputs": {"text": b}}, 1)[0];
return text(c);
"#;

const OUTPUT: &str = "printed by a\n\"10812\"\n";

/// The row after a run that ended well, of which the bytes were removed.
fn row_without_bytes() -> Place {
    let place = Place::new();
    place.file("text", sample("t", 3));
    place.file("row.sw", ROW);
    let first = place.run(&["run", "row.sw"]);
    expect(&first, 0, &["a", "b", "c"]);
    assert_eq!(first.stdout, OUTPUT);
    let cleaned = place.run(&["clean", "--bytes-only"]);
    let expected = "removed the bytes of 2 kept results, ";
    assert!(cleaned.stdout.starts_with(expected), "{}", cleaned.stdout);
    place
}

fn edit(place: &Place, before: &str, after: &str) {
    let text = place.read("row.sw");
    assert!(text.contains(before), "{before}");
    place.file("row.sw", text.replace(before, after));
}

#[test]
fn nothing_runs_whose_bytes_nobody_needs_and_what_it_printed_is_printed() {
    let place = row_without_bytes();
    let ended = place.run(&["run", "--kept", "row.sw"]);
    expect(&ended, 0, &[]);
    assert_eq!(ended.stdout, OUTPUT);
    let summary = "3 of 3 kept, 2 known by digest";
    assert!(ended.stderr.contains(summary), "{}", ended.stderr);
    let runs = place.run(&["ps", "--json"]).stdout;
    let tasks: Value = serde_json::from_str(runs.lines().next().unwrap()).unwrap();
    let mut commands = tasks["tasks"].as_array().unwrap().iter();
    let first = commands.find(|task| task["what"] == "echo").unwrap();
    let told = place.run(&["why", first["name"].as_str().unwrap()]).stdout;
    let known = "known by the digest that an earlier run kept";
    assert!(told.contains(known), "{told}");
}

#[test]
fn edit_at_the_end_runs_those_whose_bytes_are_needed_and_says_why() {
    let place = row_without_bytes();
    edit(&place, "tr -d ' \\\\n'", "tr -d '\\\\n '");
    let ended = place.run(&["run", "--kept", "row.sw"]);
    expect(&ended, 0, &["a", "b", "c"]);
    assert_eq!(ended.stdout, OUTPUT);
    assert!(
        ended
            .stderr
            .contains("0 of 3 kept; echo: bytes removed (2 tasks)"),
        "{}",
        ended.stderr
    );
    // The bytes are back.
    edit(&place, "tr -d '\\\\n '", "tr -d ' \\\\n '");
    expect(&place.run(&["run", "--kept", "row.sw"]), 0, &["c"]);
}

#[test]
fn edit_in_the_middle_runs_what_is_before_it_and_the_rest_is_found() {
    let place = row_without_bytes();
    edit(&place, "ran b >&2; cat", "ran b >&2; cat -u");
    let ended = place.run(&["run", "--kept", "row.sw"]);
    expect(&ended, 0, &["a", "b"]);
    assert_eq!(ended.stdout, OUTPUT);
}

#[test]
fn bytes_are_removed_by_task_and_run_and_reported_as_such() {
    let place = row_without_bytes();
    assert_eq!(
        place.run(&["clean", "--bytes-only"]).stdout,
        "nothing to remove\n"
    );
    edit(&place, "tr -d ' \\\\n'", "tr -d '\\\\n '");
    expect(
        &place.run(&["run", "--kept", "row.sw"]),
        0,
        &["a", "b", "c"],
    );
    let words = ["clean", "--bytes-only", "--task", "echo", "-n", "--json"];
    let value: Value = serde_json::from_str(&place.run(&words).stdout).unwrap();
    assert_eq!(value["bytes_only"], true);
    assert_eq!(value["results"].as_array().unwrap().len(), 2);
    let of_nothing = ["clean", "--bytes-only", "--task", "nothing"];
    assert_eq!(place.run(&of_nothing).stdout, "nothing to remove\n");
    let tasks = place.run(&["ps", "--json"]).stdout;
    assert!(tasks.contains("\"rerun\":\"bytes removed\""), "{tasks}");
}

#[test]
fn result_of_the_job_is_recomputed_if_its_bytes_are_gone() {
    let place = row_without_bytes();
    edit(&place, "return text(c);", "return len(text(b));");
    let ended = place.run(&["run", "--kept", "row.sw"]);
    expect(&ended, 0, &["a", "b"]);
    assert_eq!(ended.stdout, OUTPUT.replace("\"10812\"", "10812"));
}

/// What was taken because of a digest cannot be withdrawn, so a result that turns out to be another
/// one must not be shown beside it.
#[test]
fn recomputed_result_that_differs_fails_the_run_and_the_next_one_continues_from_it() {
    let place = Place::new();
    place.file("text", sample("t", 3));
    place.file("salt", "first\n");
    // The command reads a file whose name it is not given.
    let salted = ROW.replace(
        "cat {in.text} {in.text} > {out.text}\",\n    \"inputs\": {\"text\": ref",
        "cat {in.text} $(echo sa''lt) > {out.text}\",\n    \"inputs\": {\"text\": ref",
    );
    assert_ne!(salted, ROW);
    place.file("row.sw", salted);
    expect(&place.run(&["run", "row.sw"]), 0, &["a", "b", "c"]);
    place.run(&["clean", "--bytes-only"]);
    place.file("salt", "other\n");
    edit(&place, "tr -d ' \\\\n'", "tr -d '\\\\n '");
    let ended = place.run(&["run", "--kept", "row.sw"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let message = "it gave another result than before when it was recomputed";
    let text = ended
        .stderr
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(text.contains(message), "{}", ended.stderr);
    assert!(text.contains("run the command again"), "{}", ended.stderr);
    let again = place.run(&["run", "row.sw"]);
    expect(&again, 0, &["b", "c"]);
    assert!(ran(&again).len() == 2);
}

/// Functions that print, and give or hand on what a command has made; commands take their results.
const FUNCTIONS: &str = r#"
include "grab";
function made(n) {
    print("making", n);
    return text(spawn_exec("shell", {"command": "echo ran seq >&2; seq {n}",
        "inputs": {"n": n}}, 1)[0]);
}
function handed(n) {
    print("handing", n);
    return *spawn_exec("shell", {"command": "echo ran tac >&2; seq {n} | tac",
        "inputs": {"n": n}}, 1)[0];
}
function lines(name, given) {
    return spawn_exec("shell", {"command": "echo ran wc {name} >&2; wc -w < {in.given}",
        "inputs": {"given": given, "name": name}}, 1)[0];
}
counts = [lines("made", spawn(made, [1000])), lines("handed", spawn(handed, [1000]))];
print(trim(text(counts[0])), trim(text(counts[1])));
"#;

const FUNCTIONS_OUTPUT: &str = "making 1000\nhanding 1000\n1 1000\n";

/// That script after a run that ended well, of which the bytes were removed.
fn functions_without_bytes() -> Place {
    let place = Place::new();
    place.file("row.sw", FUNCTIONS);
    let first = place.run(&["run", "row.sw"]);
    expect(&first, 0, &["seq", "tac", "wc handed", "wc made"]);
    assert_eq!(first.stdout, FUNCTIONS_OUTPUT);
    place.run(&["clean", "--bytes-only"]);
    place
}

#[test]
fn functions_without_bytes_are_known_and_run_when_these_are_needed() {
    let place = functions_without_bytes();
    let ended = place.run(&["run", "--kept", "row.sw"]);
    expect(&ended, 0, &[]);
    assert_eq!(ended.stdout, FUNCTIONS_OUTPUT);
    let summary = "4 of 4 kept, 2 known by digest";
    assert!(ended.stderr.contains(summary), "{}", ended.stderr);
    edit(&place, "wc -w <", "wc  -w <");
    let ended = place.run(&["run", "--kept", "row.sw"]);
    expect(&ended, 0, &["seq", "tac", "wc handed", "wc made"]);
    assert_eq!(ended.stdout, FUNCTIONS_OUTPUT);
    let reason = "handed: bytes removed";
    assert!(ended.stderr.contains(reason), "{}", ended.stderr);
}

/// Once, it ran in each run, as its own bytes could not be kept.
#[test]
fn function_that_hands_on_a_result_without_bytes_is_kept_by_its_digest() {
    let place = functions_without_bytes();
    edit(
        &place,
        "print(\"handing\", n);",
        "print(\"handing\", n + 0);",
    );
    let edited = place.run(&["run", "--kept", "row.sw"]);
    let reason = "handed: code changed: row.sw:8";
    assert!(edited.stderr.contains(reason), "{}", edited.stderr);
    assert_eq!(edited.stdout, FUNCTIONS_OUTPUT);
    let again = place.run(&["run", "--kept", "row.sw"]);
    expect(&again, 0, &[]);
    assert_eq!(again.stdout, FUNCTIONS_OUTPUT);
    assert!(again.stderr.contains("4 of 4 kept"), "{}", again.stderr);
}

#[test]
fn results_without_bytes_are_taken_whole_from_a_shared_folder() {
    let shared = tempfile::tempdir().unwrap();
    let folder = shared.path().to_str().unwrap();
    let place = Place::new();
    place.file("text", sample("t", 3));
    place.file("row.sw", ROW);
    let words = ["run", "--kept-dir", folder, "row.sw"];
    expect(&place.run(&words), 0, &["a", "b", "c"]);
    place.run(&["clean", "--bytes-only"]);
    edit(&place, "tr -d ' \\\\n'", "tr -d '\\\\n '");
    let ended = place.run(&words);
    expect(&ended, 0, &["c"]);
    assert_eq!(ended.stdout, OUTPUT);
    // Without the folder only the digests are known, and what is in it is of no use without bytes.
    expect(&place.run(&["run", "--kept", "row.sw"]), 0, &[]);
    let user = rustix::process::geteuid().as_raw().to_string();
    std::fs::remove_dir_all(shared.path().join(user).join("objects")).unwrap();
    edit(&place, "tr -d '\\\\n '", "tr -d ' \\\\n '");
    edit(&place, "wc -c <", "wc -c  <");
    let ended = place.run(&words);
    expect(&ended, 0, &["a", "b", "c"]);
    assert_eq!(ended.stdout, OUTPUT);
}
