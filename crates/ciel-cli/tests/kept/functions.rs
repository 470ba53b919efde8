//! Functions of scripts whose results are kept: what is taken, what runs and why, what is printed.
//!
//! Commands tell on standard error that they ran; which functions ran is in the records of the run.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::support::{Ended, Place};
use super::{edit, expect};

const SCRIPT: &str = r#"
include "ref";
factor = 2;
function helper(x) {
    return x * factor;
}
function count(name) {
    print("counting", name);
    lines = spawn_exec("shell", {"command": "echo ran wc {name} >&2; wc -l < {in.text}",
        "inputs": {"text": ref(name), "name": name}}, 1)[0];
    append("log", name + "\n");
    return helper(int(trim(text(lines))));
}
function both(first, second) {
    print("begin", first, second);
    one = spawn(count, [first]);
    two = spawn(count, [second]);
    total = *one + *two;
    print("end", total);
    return total;
}
function handed(name) {
    return *spawn(count, [name]);
}
print(*spawn(both, ["a", "b"]));
print(*spawn(handed, ["c"]));
"#;

const OUTPUT: &str = "begin a b\ncounting a\ncounting b\nend 6\n6\ncounting c\n6\n";

fn project() -> Place {
    let place = Place::new();
    for (name, text) in [("a", "1\n"), ("b", "1\n2\n"), ("c", "1\n2\n3\n")] {
        place.file(name, text);
    }
    place.file("job.sw", SCRIPT);
    place
}

/// The functions of tasks that ran in the last run, once for each.
fn functions(place: &Place) -> Vec<String> {
    let told = place.run(&["ps", "--json", "--all"]);
    let runs = told
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let id = |run: &Value| run["run"]["run"].as_str().unwrap().to_string();
    let last: Value = runs.max_by_key(id).unwrap();
    let ran =
        last["tasks"].as_array().unwrap().iter().filter(|task| {
            task["executor"] == "skywriting" && task["what"] != "job" && !is_kept(task)
        });
    let mut names: Vec<String> = ran
        .map(|task| task["what"].as_str().unwrap().to_string())
        .collect();
    names.sort();
    names
}

fn is_kept(task: &Value) -> bool {
    let reasons = task["reasons"].as_array().unwrap();
    reasons
        .iter()
        .any(|reason| reason == "took the result that an earlier run kept")
}

fn again(place: &Place, options: &[&str]) -> Ended {
    let _ = fs::remove_file(place.path("log"));
    let words: Vec<&str> = [&["run"], options, &["job.sw"]].concat();
    place.run(&words)
}

#[test]
fn function_is_taken_and_prints_what_all_beneath_it_print() {
    let place = project();
    for cores in ["-j1", "-j2"] {
        let first = again(&place, &[cores, "--new"]);
        expect(&first, 0, &["wc a", "wc b", "wc c"]);
        assert_eq!(first.stdout, OUTPUT);
        let log = place.read("log");
        let taken = again(&place, &[cores, "--kept"]);
        expect(&taken, 0, &[]);
        assert_eq!(taken.stdout, OUTPUT);
        assert_eq!(place.read("log"), log);
        assert!(functions(&place).is_empty());
        assert!(taken.stderr.contains("2 of 2 kept"), "{}", taken.stderr);
    }
}

#[test]
fn edit_of_one_thing_reruns_the_functions_that_reach_it_and_says_where() {
    let all = ["both", "count", "count", "count", "handed"];
    type Names<'a> = &'a [&'a str];
    let edits: &[(&str, &str, Names<'_>, Names<'_>, &str)] = &[
        (
            "factor = 2;",
            "factor = 2; // Two.\n\n",
            &[],
            &[],
            "2 of 2 kept",
        ),
        (
            "total = *one",
            "sum = 0;\n    total = *one",
            &["both"],
            &[],
            "both: code changed: job.sw:14",
        ),
        (
            "x * factor",
            "factor * x",
            &all,
            &[],
            "count: code changed: job.sw:4",
        ),
        (
            "factor = 2",
            "factor = 3",
            &all,
            &[],
            "count: code changed: job.sw:3",
        ),
        (
            "wc -l <",
            "wc -l  <",
            &all,
            &["wc a", "wc b", "wc c"],
            "count: code changed: job.sw:7",
        ),
        (
            "[\"c\"]",
            "[\"a\"]",
            &["handed"],
            &[],
            "handed: argument changed: name",
        ),
    ];
    for (before, after, ran, commands, reason) in edits {
        let place = project();
        again(&place, &[]);
        edit(&place, before, after);
        let ended = again(&place, &["--kept"]);
        expect(&ended, 0, commands);
        assert_eq!(functions(&place), *ran, "{before}: {}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{before}: {}", ended.stderr);
        let log = place.read("log");
        let fresh = again(&place, &["--new"]);
        assert_eq!(
            (ended.stdout, log),
            (fresh.stdout, place.read("log")),
            "{before}"
        );
    }
}

#[test]
fn file_that_was_read_beneath_a_function_counts_by_its_content() {
    let place = project();
    again(&place, &[]);
    place.file("b", "1\n2\n3\n4\n");
    let ended = again(&place, &["--kept"]);
    expect(&ended, 0, &["wc b"]);
    assert_eq!(functions(&place), ["both", "count"]);
    assert!(
        ended.stderr.contains("both: input changed: "),
        "{}",
        ended.stderr
    );
    assert!(ended.stdout.contains("end 10\n"), "{}", ended.stdout);
}

#[test]
fn function_of_a_failed_run_is_taken_in_the_next_one_and_of_one_that_ended_well_is_not() {
    let place = project();
    edit(
        &place,
        "print(*spawn(handed",
        "if (len(argv()) > 0) { throw \"stop\"; }\nprint(*spawn(handed",
    );
    let failed = place.run(&["run", "job.sw", "x"]);
    assert_eq!(failed.code, Some(1));
    expect(&place.run(&["run", "job.sw", "x"]), 1, &[]);
    assert!(functions(&place).is_empty());
    expect(&again(&place, &[]), 0, &["wc a", "wc b", "wc c"]);
    expect(&again(&place, &[]), 0, &["wc a", "wc b", "wc c"]);
}

/// The functions that ran in a second run of a script, whose last run ended well.
fn ran_again(script: &str, options: &[&str]) -> BTreeSet<String> {
    let place = Place::new();
    place.file("data", "1\n");
    place.file("job.sw", script);
    let first = place.run(&["run", "--package", "data=data", "job.sw"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let words: Vec<&str> = [&["run", "--package", "data=data"], options, &["job.sw"]].concat();
    let second = place.run(&words);
    assert_eq!(second.stdout, first.stdout, "{}", second.stderr);
    functions(&place).into_iter().collect()
}

#[test]
fn marks_of_functions_mean_what_those_of_other_tasks_mean() {
    let script = r#"
        function marked(x) { print(x); return x; }
        function pure(x) { print(x); return x; }
        function never(x) { print(x); return x; }
        function impure(x) { print(x); return x; }
        function plain(x) { print(x); return x; }
        print(*spawn(marked, [1], {"keep": true}), *spawn(pure, [2], {"pure": true}));
        print(*spawn(never, [3], {"keep": false}), *spawn(impure, [4], {"pure": false}));
        print(*spawn(plain, [5]));
    "#;
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let expected: BTreeSet<String> = names(&["impure", "never", "plain"]);
    assert_eq!(ran_again(script, &[]), expected);
    let expected: BTreeSet<String> = names(&["impure", "never"]);
    assert_eq!(ran_again(script, &["--kept"]), expected);
}

/// A task that is looked for at a place which only the file system knows, and what a function asks
/// while it runs, do not let its result be kept; nor does a reference in it that nobody waited for.
#[test]
fn function_whose_result_depends_on_what_is_not_known_runs_again() {
    for (body, may_be_kept) in [
        ("return len(text(name));", true),
        ("print(env(\"HOME\")); return 1;", true),
        ("print(argv()); return 1;", true),
        ("print(1); return len(env());", false),
        ("print(1); return len(text(package(\"data\")));", false),
        ("print(1); return glob(\"da*\");", false),
        ("print(1); return lambda x: x;", false),
        (
            "return spawn_exec(\"shell\", {\"command\": \"echo\"}, 1)[0];",
            false,
        ),
        (
            "return *spawn_exec(\"shell\", {\"command\": \"echo 1\"}, 1)[0];",
            true,
        ),
        (
            "return *spawn_exec(\"shell\", {\"command\": \"seq 1000\"}, 1)[0];",
            true,
        ),
        (
            "return is_error(spawn_exec(\"shell\", {\"command\": \"exit 1\"}, 1)[0]);",
            false,
        ),
    ] {
        let script = format!(
            "function f(name) {{ {body} }}\nname = spawn_exec(\"shell\", {{\"command\": \
             \"printf abc\"}}, 1)[0];\nprint(text(name));\n\
             r = spawn(f, [name], {{\"name\": \"f\"}});\nprint(is_error(r));"
        );
        assert_eq!(
            ran_again(&script, &["--kept"]).is_empty(),
            may_be_kept,
            "{body}"
        );
    }
}

#[test]
fn long_row_of_functions_that_hand_their_outputs_on_is_kept_at_its_end_only() {
    let place = Place::new();
    place.file(
        "job.sw",
        "function step(n) { print(n); if (n == 0) { return 7; } return *spawn(step, [n - 1]); }\n\
         return *spawn(step, [600]);",
    );
    let first = place.run(&["run", "job.sw"]);
    let second = place.run(&["run", "--kept", "job.sw"]);
    assert_eq!((second.code, &second.stdout), (Some(0), &first.stdout));
    let ran = functions(&place).len();
    assert!(
        (300..600).contains(&ran),
        "{ran} steps ran: {}",
        second.stderr
    );
}

#[test]
fn version_stands_for_the_code_of_a_function_but_not_for_what_that_uses() {
    let place = Place::new();
    let script = r#"
        factor = 2;
        function f(x) { print("f"); return x * factor; }
        print(*spawn(f, [3], {"version": "1"}));
    "#;
    place.file("job.sw", script);
    let ran = |before: &str, after: &str| {
        edit(&place, before, after);
        let ended = place.run(&["run", "--kept", "job.sw"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        (functions(&place), ended)
    };
    assert_eq!(ran("factor = 2", "factor = 2").0, ["f"]);
    let (names, same) = ran("x * factor", "factor * x");
    assert_eq!((names, &*same.stdout), (Vec::new(), "f\n6\n"));
    let (names, other) = ran("\"version\": \"1\"", "\"version\": \"2\"");
    assert_eq!(names, ["f"]);
    let reason = "f: code changed: job.sw:3";
    assert!(other.stderr.contains(reason), "{}", other.stderr);
    assert_eq!(ran("factor = 2", "factor = 3").0, ["f"]);
    assert_eq!(ran("\"version\": \"2\"", "\"keep\": true").0, ["f"]);
}

#[test]
fn version_that_is_no_text_or_of_a_command_is_refused() {
    let place = Place::new();
    for (call, message) in [
        (
            "spawn(f, [], {\"version\": 3})",
            "a string such as \"3\", not 3",
        ),
        ("spawn(f, [], {\"version\": \"\"})", "a string such as"),
        (
            "spawn_exec(\"shell\", {\"command\": \"true\"}, 1, {\"version\": \"3\"})",
            "is for functions of the script",
        ),
    ] {
        let ended = place.script(&[], &format!("function f() {{ return 1; }}\n{call};"));
        assert_eq!(ended.code, Some(1), "{call}");
        assert!(ended.stderr.contains(message), "{call}: {}", ended.stderr);
    }
}

/// A job that calls a script, which includes a file, prints, and runs a command.
fn calling() -> Place {
    let place = Place::new();
    place.file(
        "job.sw",
        "function whole(month) {\n    return *spawn_exec(\"skywriting\", {\"file\": \
         \"report.sw\", \"args\": [month]}, 1)[0];\n}\nprint(*spawn(whole, [\"may\"]));\n\
         print(*spawn_exec(\"skywriting\", {\"file\": \"report.sw\", \"args\": \
         [\"june\"]}, 1)[0]);",
    );
    place.file(
        "report.sw",
        "include \"grab\";\ninclude \"parts\";\nmonth = argv()[0];\nprint(\"report of\", month);\n\
         lines = spawn_exec(\"shell\", {\"command\": \"echo ran wc {m} >&2; wc -l < {t}\",\n    \
         \"inputs\": {\"m\": month, \"t\": ref(month)}}, 1)[0];\n\
         return marked(trim(text(lines)));",
    );
    place.file(
        "parts.sw",
        "function marked(x) { return \"<\" + x + \">\"; }\n",
    );
    place.file("may", "1\n");
    place.file("june", "1\n2\n");
    place
}

#[test]
fn called_script_is_kept_with_its_arguments_its_code_and_what_is_beneath_it() {
    let all = ["report", "report", "whole"];
    let output = "report of may\n<1>\nreport of june\n<2>\n";
    type Names<'a> = &'a [&'a str];
    let edits: &[(&str, &str, &str, Names<'_>, Names<'_>, &str)] = &[
        (
            "report.sw",
            "month = argv",
            "// It.\n\nmonth = argv",
            &["whole"],
            &[],
            "whole: code changed: report.sw",
        ),
        (
            "parts.sw",
            "x + \">\"",
            "x + \"?\"",
            &all,
            &[],
            "report: code changed: parts.sw:1",
        ),
        (
            "report.sw",
            "\"report of\"",
            "\"report  of\"",
            &all,
            &[],
            "report: code changed: report.sw",
        ),
        (
            "june",
            "2\n",
            "2\n3\n",
            &["report"],
            &["wc june"],
            "report: input changed: ",
        ),
        ("job.sw", "[\"june\"]", "[\"may\"]", &[], &[], "2 of 2 kept"),
        (
            "job.sw",
            "[\"june\"]",
            "[\"may\", 2]",
            &["report"],
            &[],
            "report: argument changed: args",
        ),
    ];
    for (file, before, after, ran, commands, reason) in edits {
        let place = calling();
        let first = place.run(&["run", "job.sw"]);
        expect(&first, 0, &["wc june", "wc may"]);
        assert_eq!(first.stdout, output);
        let text = place.read(file);
        assert!(text.contains(before), "{before}");
        place.file(file, text.replace(before, after));
        let ended = place.run(&["run", "--kept", "job.sw"]);
        expect(&ended, 0, commands);
        assert_eq!(functions(&place), *ran, "{before}: {}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{before}: {}", ended.stderr);
        assert_eq!(
            ended.stdout,
            place.run(&["run", "--new", "job.sw"]).stdout,
            "{before}"
        );
    }
}

#[test]
fn called_script_whose_file_is_gone_fails_although_its_result_is_kept() {
    let place = calling();
    expect(&place.run(&["run", "job.sw"]), 0, &["wc june", "wc may"]);
    fs::remove_file(place.path("report.sw")).unwrap();
    let ended = place.run(&["run", "--kept", "job.sw"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("report.sw"), "{}", ended.stderr);
}
