//! Exports: results in files of the user's, whole, in serial order, and once.
//!
//! Each test is a program that somebody could write who has read the page about `export`. Read
//! first: `support`.

mod support;

use std::os::unix::fs::MetadataExt;

use support::{Place, done, expect_well, held, shell, task};

#[test]
fn command_that_waits_for_an_export_reads_the_file() {
    let script = format!(
        "path = export({}, \"out.txt\");
         count = spawn_exec(\"shell\", {{\"command\": \"wc -l < {{path}}.txt; cat out.txt\",
             \"inputs\": {{\"path\": \"out\", \"after\": path}}}}, 1)[0];
         print(*path); print(text(count));",
        shell("seq 2")
    );
    for options in [&["-j2"][..], &["-j1"], &["--serial"]] {
        expect_well(
            &Place::new().script(options, &script),
            "out.txt\n2\n1\n2\n\n",
        );
    }
}

#[test]
fn value_of_a_function_is_exported_as_json() {
    let place = Place::new();
    let script = "export(spawn(lambda: {\"a\": [1, null]}, []), \"value.json\");";
    expect_well(&place.script(&[], script), "");
    assert_eq!(place.read("value.json"), "{\"a\":[1,null]}");
}

/// Without its turn in serial order, an export would leave a file that the serial program, which
/// fails before, does not write.
#[test]
fn export_waits_for_everything_before_it_and_no_longer() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "before = {}; export({}, \"out.txt\"); after = {}; print(*before);",
        shell(&format!("{}; echo 1", held("gate"))),
        shell("echo result"),
        shell(&done("later")),
    );
    let live = place.start_script(&["-j4"], &script);
    place.await_file("later");
    assert!(!place.has("out.txt"));
    gate.release(1);
    expect_well(&live.end(), "1\n");
    assert_eq!(place.read("out.txt"), "result\n");
}

#[test]
fn job_that_fails_has_exported_what_comes_before_its_failure() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "export({}, \"before.txt\"); bad = {}; *bad; export(bad, \"behind.txt\");",
        shell(&format!("{}; echo result", held("gate"))),
        shell("exit 3"),
    );
    let live = place.start_script(&["-v", "-j4"], &script);
    live.await_error("exit status 3");
    assert!(!place.has("before.txt"));
    gate.release(1);
    assert_eq!(live.end().code, Some(1));
    assert_eq!(place.read("before.txt"), "result\n");
    assert!(!place.has("behind.txt"));
}

#[test]
fn job_that_keeps_going_exports_behind_a_failure_too() {
    let place = Place::new();
    let script = format!(
        "bad = {}; export({}, \"behind.txt\");",
        shell("exit 3"),
        shell("echo result")
    );
    assert_eq!(place.script(&["-k", "-j4"], &script).code, Some(1));
    assert_eq!(place.read("behind.txt"), "result\n");
}

#[test]
fn lazy_task_that_exports_does_so_when_it_is_needed() {
    let place = Place::new();
    let script = format!(
        "f = function () {{ return *export({}, \"out.txt\"); }};
         x = spawn(f, [], {{\"lazy\": true}}); print(*x);",
        shell("echo result")
    );
    expect_well(&place.script(&[], &script), "out.txt\n");
    assert_eq!(place.read("out.txt"), "result\n");
}

#[test]
fn export_behind_a_failure_that_is_caught_happens() {
    let place = Place::new();
    let script = format!(
        "try {{ x = *{}; }} catch (e) {{ x = 0; }} export({}, \"out.txt\");",
        shell("exit 3"),
        shell("echo result"),
    );
    expect_well(&place.script(&["-j4"], &script), "");
    assert_eq!(place.read("out.txt"), "result\n");
}

#[test]
fn last_export_in_serial_order_stays_also_if_its_result_is_ready_first() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "a = {}; export(a, \"out.txt\", {{\"overwrite\": true}});
         b = {}; export(b, \"out.txt\", {{\"overwrite\": true}});",
        shell(&format!("{}; echo first", held("gate"))),
        shell(&format!("echo second; {}", done("ready"))),
    );
    let live = place.start_script(&["-j4"], &script);
    place.await_file("ready");
    gate.release(1);
    expect_well(&live.end(), "");
    assert_eq!(place.read("out.txt"), "second\n");
}

#[test]
fn file_with_something_else_is_refused_and_overwritten_on_request() {
    let place = Place::new();
    place.file("out.txt", "mine");
    let export = |more: &str| format!("export({}, \"out.txt\"{more});", shell("echo result"));
    let refused = place.script(&[], &export(""));
    assert_eq!(refused.code, Some(1));
    assert!(
        refused
            .stderr
            .contains("exists and differs from the result"),
        "{}",
        refused.stderr
    );
    assert_eq!(place.read("out.txt"), "mine");
    expect_well(&place.script(&[], &export(", {\"overwrite\": true}")), "");
    assert_eq!(place.read("out.txt"), "result\n");
    expect_well(&place.script(&[], &export("")), "");
}

/// The time of the wait for earlier tasks counted as running time, so `--timeout` failed exports.
/// It is for the one command that never ends: any other may take longer on a busy machine.
#[test]
fn time_limit_of_tasks_is_none_of_exports() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "{}; export({}, \"out.txt\"); limited = {}; is_error(limited); {};",
        task(&held("gate"), "{\"timeout\": 600}"),
        task("echo result", "{\"timeout\": 600}"),
        shell("exec sleep 600"),
        task(&done("limited"), "{\"timeout\": 600}"),
    );
    let live = place.start_script(&["--timeout", "300ms", "-j4"], &script);
    place.await_file("limited");
    gate.release(1);
    expect_well(&live.end(), "");
    assert_eq!(place.read("out.txt"), "result\n");
}

/// A script that exports, and is held at `gate` before or after that.
fn held_at(before: bool) -> String {
    let export = format!(
        "path = export({}, \"out.txt\");",
        shell("echo result; date +%N")
    );
    let at_gate = format!(
        "x = {};",
        shell(&format!("{}; {}", done("at gate"), held("gate")))
    );
    match before {
        true => format!("{at_gate} {export} {}; text(x);", shell(&done("ready"))),
        false => format!("{export} print(*path); {at_gate} text(x);"),
    }
    .replace("at gate", "at_gate")
}

#[test]
fn run_killed_after_an_export_does_not_export_again() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["-j2"], &held_at(false));
    // What was printed behind the export is recorded, and so is the export.
    assert_eq!(live.line(), "out.txt");
    place.await_file("at_gate");
    let first = std::fs::metadata(place.path("out.txt")).unwrap();
    live.signal("KILL");
    live.end();
    place.await_nobody();
    gate.release(2);
    expect_well(&place.run(&["run", "-j2", "job.sw"]), "out.txt\n");
    let second = std::fs::metadata(place.path("out.txt")).unwrap();
    assert_eq!(
        (first.ino(), first.mtime_nsec()),
        (second.ino(), second.mtime_nsec())
    );
}

#[test]
fn run_killed_before_an_export_exports_when_it_is_resumed() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["-j4"], &held_at(true));
    place.await_file("at_gate");
    place.await_file("ready");
    assert!(!place.has("out.txt"));
    live.signal("KILL");
    live.end();
    place.await_nobody();
    gate.release(2);
    expect_well(&place.run(&["run", "-j4", "job.sw"]), "");
    assert!(place.read("out.txt").starts_with("result\n"));
    let names = std::fs::read_dir(place.path(".")).unwrap().flatten();
    let drafts = names.filter(|entry| entry.file_name().to_string_lossy().contains(".ciel-"));
    assert_eq!(drafts.count(), 0);
}

#[test]
fn interrupt_ends_an_export_that_waits() {
    let place = Place::new();
    let _gate = place.gate("gate");
    let live = place.start_script(&["-j4"], &held_at(true));
    place.await_file("ready");
    live.signal("INT");
    assert_eq!(live.end().code, Some(130));
    assert!(!place.has("out.txt"));
}

#[test]
fn wrong_arguments_of_export_are_errors_of_the_line() {
    for (call, message) in [
        (
            "export(\"text\", \"a\")",
            "`export` takes a reference as first argument",
        ),
        (
            "export(r, 5)",
            "`export` takes a string as the path of the file",
        ),
        (
            "export(r, \"a\", {\"over\": true})",
            "`export` takes {\"overwrite\": true} as options",
        ),
        ("export(r)", "export"),
    ] {
        let script = format!("r = {}; {call};", shell("echo"));
        let ended = Place::new().script(&[], &script);
        assert_ne!(ended.code, Some(0));
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
    }
}
