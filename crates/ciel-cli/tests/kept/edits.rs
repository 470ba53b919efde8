//! The table of edits, for functions of Skywriting and for commands: each row edits one thing of a
//! small project, and says exactly which tasks run and for what reason. The same table for Python
//! is in `sdk/python/tests/edited_project.py`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::functions::ran_with_reasons;
use super::support::Place;

/// What is edited, one thing in each row.
const THINGS: [&str; 14] = [
    "body",
    "callee",
    "callee of a callee through a dictionary",
    "method",
    "default",
    "constant",
    "decorator",
    "data file",
    "tool",
    "library version",
    "comment",
    "blank line",
    "rename of a local variable",
    "rename of a function",
];

/// What an edit does.
enum Row {
    /// Of a file, one text becomes another; then these tasks run for these reasons.
    Edit {
        file: &'static str,
        before: &'static str,
        after: &'static str,
        runs: &'static [(&'static str, &'static str)],
    },
    /// The language has no such thing.
    Absent(&'static str),
}

const fn edit(
    file: &'static str,
    before: &'static str,
    after: &'static str,
    runs: &'static [(&'static str, &'static str)],
) -> Row {
    Row::Edit {
        file,
        before,
        after,
        runs,
    }
}

const FUNCTIONS: &str = r#"include "library.sw";
factor = 2;
function leaf(x) { return x + 1; }
function through(x) { return leaf(x) * 2; }
steps = {"go": through};
function logged(function_of_x) { return lambda x: function_of_x(x) + 100; }
decorated = logged(leaf);
function by_body(x) { print("body"); y = x; return y * 3; }
function by_call(x) { print("call"); return leaf(x); }
function by_table(x) { print("table"); return steps["go"](x); }
function by_constant(x) { print("constant"); return x * factor; }
function by_decorator(x) { print("decorator"); return decorated(x); }
function by_library(x) { print("library"); return from_library(x); }
function by_file(x) {
    lines = spawn_exec("shell", {"command": "wc -l < data"}, 1, {"name": "count"})[0];
    return int(trim(text(lines)));
}
function by_tool(x) {
    return int(trim(text(spawn_exec("shell", {"command": "./tool"}, 1, {"name": "use"})[0])));
}
// All of them.
for (f in [by_body, by_call, by_table, by_constant, by_decorator, by_library, by_file, by_tool]) {
    print(*spawn(f, [1]));
}
"#;

/// Edits of the functions.
const OF_FUNCTIONS: [(&str, Row); 14] = [
    (
        "body",
        edit(
            "job.sw",
            "y * 3",
            "y * 4",
            &[("by_body", "code changed: job.sw:8")],
        ),
    ),
    (
        "callee",
        edit(
            "job.sw",
            "return x + 1;",
            "return x + 2;",
            &[
                ("by_call", "code changed: job.sw:3"),
                ("by_table", "code changed: job.sw:3"),
                ("by_decorator", "code changed: job.sw:3"),
            ],
        ),
    ),
    (
        "callee of a callee through a dictionary",
        edit(
            "job.sw",
            "leaf(x) * 2",
            "leaf(x) * 3",
            &[("by_table", "code changed: job.sw:4")],
        ),
    ),
    ("method", Row::Absent("there are no classes")),
    ("default", Row::Absent("parameters have no defaults")),
    (
        "constant",
        edit(
            "job.sw",
            "factor = 2",
            "factor = 3",
            &[("by_constant", "code changed: job.sw:2")],
        ),
    ),
    (
        "decorator",
        edit(
            "job.sw",
            "+ 100",
            "+ 200",
            &[("by_decorator", "code changed: job.sw:6")],
        ),
    ),
    (
        "data file",
        edit(
            "data",
            "1\n",
            "1\n2\n",
            &[
                ("by_file", "input changed: data"),
                ("count", "input changed: data"),
            ],
        ),
    ),
    (
        "tool",
        edit(
            "tool",
            "echo 1",
            "echo 2",
            &[
                ("by_tool", "input changed: ./tool"),
                ("use", "input changed: ./tool"),
            ],
        ),
    ),
    (
        "library version",
        edit(
            "library.sw",
            "x - 1",
            "x - 2",
            &[("by_library", "code changed: library.sw:1")],
        ),
    ),
    (
        "comment",
        edit("job.sw", "// All of them.", "// Some.", &[]),
    ),
    (
        "blank line",
        edit("job.sw", "function leaf", "\n\n\nfunction leaf", &[]),
    ),
    (
        "rename of a local variable",
        edit("job.sw", "y = x; return y", "z = x; return z", &[]),
    ),
    (
        "rename of a function",
        edit(
            "job.sw",
            "leaf",
            "tip",
            &[
                ("by_call", "code changed: job.sw:3"),
                ("by_table", "code changed: job.sw:3"),
                ("by_decorator", "code changed: job.sw:3"),
            ],
        ),
    ),
];

const COMMANDS: &str = r#"limit = 2;
function named(name, command, inputs) {
    arguments = {"command": command, "inputs": inputs};
    return spawn_exec("shell", arguments, 1, {"name": name})[0];
}
// All of them.
print(text(named("body", "echo body", {})));
print(text(named("constant", "seq {limit}", {"limit": limit})));
print(text(named("default", "echo ${UNSET:-none}", {})));
print(text(named("data", "wc -l < data", {})));
print(text(named("tool", "./tool", {})));
"#;

/// Edits of the commands.
const OF_COMMANDS: [(&str, Row); 14] = [
    (
        "body",
        edit(
            "job.sw",
            "echo body",
            "echo BODY",
            &[("body", "argument changed: command")],
        ),
    ),
    ("callee", Row::Absent("what a command calls is a tool")),
    (
        "callee of a callee through a dictionary",
        Row::Absent("what a command calls is a tool"),
    ),
    ("method", Row::Absent("there are no classes")),
    (
        "default",
        edit(
            "job.sw",
            ":-none",
            ":-nothing",
            &[("default", "argument changed: command")],
        ),
    ),
    (
        "constant",
        edit(
            "job.sw",
            "limit = 2",
            "limit = 3",
            &[("constant", "argument changed: inputs")],
        ),
    ),
    ("decorator", Row::Absent("there are no functions")),
    (
        "data file",
        edit("data", "1\n", "1\n2\n", &[("data", "input changed: data")]),
    ),
    (
        "tool",
        edit(
            "tool",
            "echo 1",
            "echo 2",
            &[("tool", "input changed: ./tool")],
        ),
    ),
    (
        "library version",
        Row::Absent("what is installed is not seen unless a variable says it"),
    ),
    (
        "comment",
        edit("job.sw", "// All of them.", "// Some.", &[]),
    ),
    (
        "blank line",
        edit(
            "job.sw",
            "print(text(named(\"body\"",
            "\n\nprint(text(named(\"body\"",
            &[],
        ),
    ),
    (
        "rename of a local variable",
        edit("job.sw", "arguments", "given", &[]),
    ),
    (
        "rename of a function",
        edit("job.sw", "named(", "called(", &[]),
    ),
];

/// Writes the project, of which the last edit is gone then.
fn write(place: &Place, script: &str) {
    place.file("job.sw", script);
    place.file("library.sw", "function from_library(x) { return x - 1; }\n");
    place.file("data", "1\n");
    let tool = place.file("tool", "#!/bin/sh\necho 1\n");
    fs::set_permissions(tool, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Makes each edit and expects what the table says; then what the run prints is what a run from
/// nothing prints.
fn expect_table(script: &str, table: &[(&str, Row)]) {
    let place = Place::new();
    let run = |options: &[&str]| {
        let ended = place.run(&[&["run"], options, &["job.sw"]].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    };
    write(&place, script);
    run(&[]);
    for (what, row) in table {
        let (file, before, after, runs) = match row {
            Row::Edit {
                file,
                before,
                after,
                runs,
            } => (file, before, after, runs),
            Row::Absent(why) => {
                println!("skipped: {what}: {why}");
                continue;
            }
        };
        write(&place, script);
        run(&["--kept"]);
        let text = place.read(file);
        assert!(text.contains(before), "{what}: {text}");
        let mode = fs::metadata(place.path(file)).unwrap().permissions();
        place.file(file, text.replace(before, after));
        fs::set_permissions(place.path(file), mode).unwrap();
        let printed = run(&["--kept"]);
        let job = place.path("job.sw").display().to_string();
        let folder = job.trim_end_matches("job.sw");
        let ran: BTreeMap<String, String> = ran_with_reasons(&place)
            .into_iter()
            .map(|(name, reason)| (name, reason.replace(folder, "")))
            .collect();
        let expected: BTreeMap<String, String> = runs
            .iter()
            .map(|(name, reason)| (name.to_string(), reason.to_string()))
            .collect();
        assert_eq!(ran, expected, "{what}");
        assert_eq!(printed, run(&["--new"]), "{what}");
    }
    let things: Vec<&str> = table.iter().map(|(what, _)| *what).collect();
    assert_eq!(things, THINGS);
}

#[test]
fn edit_of_one_thing_reruns_exactly_the_functions_that_it_concerns() {
    expect_table(FUNCTIONS, &OF_FUNCTIONS);
}

#[test]
fn edit_of_one_thing_reruns_exactly_the_commands_that_it_concerns() {
    expect_table(COMMANDS, &OF_COMMANDS);
}
