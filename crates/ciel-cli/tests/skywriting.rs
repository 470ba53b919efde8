//! Scripts that tasks call by the names of their files: values, failures, order.
//!
//! The caller is a script here; `sdk/python/tests/test_skywriting.py` has callers in Python.

mod support;

use support::{Ended, Place};

const MODES: [&[&str]; 3] = [&["-q", "-j1"], &["-q", "-j2"], &["-q", "--serial"]];

/// A script that shows what it was given, spawns, and gives all kinds of values.
const REPORT: &str = r#"
function twice(x) { print("twice " + str(x)); return [x * 2, argv()]; }
print("report of " + str(argv()));
first = spawn(twice, [1]);
second = spawn(twice, [len(argv())]);
return {"sum": (*first)[0] + (*second)[0], "seen": [*first, *second],
        "kinds": [1, 2.5, "text", true, null, {"$key": []}]};
"#;

const KINDS: &str = r#""kinds":[1,2.5,"text",true,null,{"$key":[]}]"#;

/// What the scripts of this file begin with, on their first line.
const CALL: &str = "function call(file, args) { \
    return spawn_exec(\"skywriting\", {\"file\": file, \"args\": args}, 1)[0]; } ";

fn run(place: &Place, options: &[&str], script: &str) -> Ended {
    place.script(options, &format!("{CALL}{script}"))
}

fn expect(place: &Place, script: &str, stdout: &str) {
    for options in MODES {
        let ended = run(place, options, script);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), stdout),
            "{options:?} {}",
            ended.stderr
        );
    }
}

fn expect_failure(place: &Place, script: &str, told: &[&str]) {
    for options in MODES {
        let ended = run(place, options, script);
        assert_eq!(ended.code, Some(1), "{options:?} {}", ended.stdout);
        for words in told {
            let found = ended.stderr.contains(words);
            assert!(found, "{options:?} {words}\n{}", ended.stderr);
        }
    }
}

#[test]
fn called_script_spawns_and_prints_in_serial_order() {
    let place = Place::new();
    place.file("report.sw", REPORT);
    let script = "print(\"before\"); value = *call(\"report.sw\", [\"a\", 2.5, true]);
        print(\"after \" + str(value[\"sum\"])); return value;";
    let seen = r#"["a","2.5","true"]"#;
    let expected = format!(
        "before\nreport of {seen}\ntwice 1\ntwice 3\nafter 8\n\
         {{\"sum\":8,\"seen\":[[2,{seen}],[6,{seen}]],{KINDS}}}\n"
    );
    expect(&place, script, &expected);
}

#[test]
fn same_file_with_other_arguments_is_another_call() {
    let place = Place::new();
    place.file("add.sw", "return int(argv(0)) + int(argv(1));");
    let script = r#"
        calls = [];
        for (n in range(5)) { calls = calls + [*call("add.sw", [n, 10])]; }
        return calls;"#;
    expect(&place, script, "[10,11,12,13,14]\n");
}

#[test]
fn called_script_calls_another_one_and_itself() {
    let place = Place::new();
    place.file("runtime/leaf.sw", "return \"leaf of \" + argv(0);");
    place.file(
        "down.sw",
        r#"n = int(argv(0));
        print("down " + str(n));
        if (n == 0) {
            return [*spawn_exec("skywriting", {"file": "runtime/leaf.sw", "args": ["down"]}, 1)[0]];
        }
        return *spawn_exec("skywriting", {"file": "down.sw", "args": [n - 1]}, 1)[0];"#,
    );
    expect(
        &place,
        "return *call(\"down.sw\", [3]);",
        "down 3\ndown 2\ndown 1\ndown 0\n[\"leaf of down\"]\n",
    );
}

#[test]
fn bytes_and_references_leave_a_script_as_they_are() {
    let place = Place::new();
    let shell = r#"spawn_exec("shell", {"command": "printf 'b\na\n'"}, 1)"#;
    place.file("bytes.sw", format!("return *{shell}[0];"));
    place.file("kept.sw", format!("return {{\"made\": {shell}[0]}};"));
    let script = "inside = *call(\"kept.sw\", []);
        return [split(text(call(\"bytes.sw\", []))), split(text(inside[\"made\"]))];";
    expect(&place, script, "[[\"b\",\"a\"],[\"b\",\"a\"]]\n");
}

#[test]
fn mistakes_of_a_called_script_are_told_with_their_lines() {
    let place = Place::new();
    place.file("one.sw", "n = 1;\nreturn lenn(n);\n");
    place.file("two.sw", "a = b;\nreturn c;\n");
    expect_failure(
        &place,
        "return *call(\"one.sw\", []);",
        &[
            "one@",
            "one.sw:2:8",
            "return lenn(n);",
            "did you mean",
            "`lenn`",
        ],
    );
    expect_failure(
        &place,
        "return *call(\"two.sw\", []);",
        &[
            "2 errors",
            "two.sw:1:5",
            "unknown name `b`",
            "two.sw:2:8",
            "unknown name `c`",
        ],
    );
}

#[test]
fn file_that_cannot_be_run_is_told_with_a_way_out() {
    let place = Place::new();
    place.file("report.sw", REPORT);
    place.file("tool.py", "def main(): pass\n");
    for (file, told) in [
        (
            "reprot.sw",
            &[
                "the file reprot.sw does not exist",
                "did you mean report.sw?",
            ][..],
        ),
        (
            "tool.py",
            &["tool.py is a Python program", "executor python"],
        ),
        ("runtime", &["runtime is a folder"]),
        ("/dev/null", &["is not a file"]),
    ] {
        expect_failure(&place, &format!("return *call(\"{file}\", []);"), told);
    }
}

#[test]
fn arguments_that_no_script_takes_are_refused() {
    let place = Place::new();
    place.file("report.sw", REPORT);
    for (call, told) in [
        (
            "{\"file\": \"report.sw\", \"args\": [ready]}, 1",
            "a reference as an argument",
        ),
        ("{\"file\": \"report.sw\", \"args\": [[1]]}, 1", "not [1]"),
        ("{\"files\": \"report.sw\"}, 1", "unknown field `files`"),
        ("{\"file\": \"report.sw\"}, 2", "one output, not 2"),
        ("{}, 1", "missing field `file`"),
    ] {
        let script = format!(
            "ready = spawn(lambda: 1, []);
             return *spawn_exec(\"skywriting\", {call})[0];"
        );
        expect_failure(&place, &script, &["Refused", told]);
    }
}

#[test]
fn what_a_called_script_throws_can_be_caught() {
    let place = Place::new();
    place.file(
        "throws.sw",
        "print(\"so far\");\nthrow {\"code\": argv(0)};",
    );
    let script = "caught = null;
        try { caught = len(*call(\"throws.sw\", [\"x\"])); } catch (e) { caught = e[\"value\"]; }
        return caught;";
    expect(&place, script, "so far\n{\"code\":\"x\"}\n");
    expect_failure(
        &place,
        "return *call(\"throws.sw\", [\"x\"]);",
        &["throws@", "throws.sw:2:1"],
    );
}

#[test]
fn function_does_not_leave_its_script() {
    let place = Place::new();
    place.file("gives.sw", "return [lambda x: x];");
    let told = ["cannot return a function", "gives.sw:1"];
    expect_failure(&place, "return *call(\"gives.sw\", []);", &told);
}

#[test]
fn file_is_read_once_in_a_run() {
    let place = Place::new();
    place.file("self.sw", "return argv(0);");
    let script = "one = str(*call(\"self.sw\", [\"old\"]));
        command = \"echo 'return 1;' > self.sw; echo 1\";
        written = *spawn_exec(\"shell\", {\"command\": command}, 1)[0];
        two = null; if (written == 1) { two = *call(\"self.sw\", [\"still old\"]); }
        return [one, two];";
    for options in MODES {
        place.file("self.sw", "return argv(0);");
        let ended = run(&place, options, script);
        let expected = "[\"old\",\"still old\"]\n";
        assert_eq!(ended.stdout, expected, "{options:?} {}", ended.stderr);
    }
}

/// "the bytes of b57b2faf77b9c0c677cb5d8135ceaf49 are not JSON" was all that was said: no command
/// finds a task by the name of an object.
#[test]
fn bytes_that_are_no_json_are_shown_with_their_task_in_every_mode() {
    let script = "xs = [];
         for (i in range(3)) {
             arguments = {\"command\": \"echo no {i}\", \"inputs\": {\"i\": i}};
             xs += spawn_exec(\"shell\", arguments, 1)[0];
         }
         print(*xs[1] + 1);";
    let mut told = Vec::new();
    for mode in ["-j1", "-j2", "--serial"] {
        let place = Place::new();
        let ended = place.script(&["-q", mode], script);
        let message = ended.stderr.lines().next().unwrap().to_string();
        let (before, after) = message.split_once("not JSON: \"no 1\\n\"; task ").unwrap();
        assert!(before.contains(" failed: ValueError: "), "{message}");
        let why = place.run(&["why", after.split(' ').next().unwrap()]);
        assert!(
            why.stdout.starts_with("echo@"),
            "{}{}",
            why.stdout,
            why.stderr
        );
        told.push(message);
    }
    assert!(told.iter().all(|message| *message == told[0]), "{told:?}");
}

/// An idle core took nine tenths of such functions, although each waits for the one before.
#[test]
fn chain_of_functions_stays_in_place_with_two_slots() {
    let place = Place::new();
    let job = "function add(a, b) { return a + b; }
        value = 0;
        for (n in range(2000)) { value = *spawn(add, [value, 1]); }
        return value;";
    let ended = place.script(&["-q", "-j2"], job);
    assert_eq!(ended.stdout, "2000\n", "{}", ended.stderr);
    let looked = place.run(&["ps", "--all", "--json"]);
    let run: serde_json::Value = serde_json::from_str(looked.stdout.trim()).unwrap();
    let functions = run["functions"].as_array().unwrap();
    let add = functions.iter().find(|one| one["what"] == "add").unwrap();
    assert_eq!(add["finished"], 2000, "{add}");
    assert!(add["in_place"].as_u64().unwrap() > 1900, "{add}");
}
