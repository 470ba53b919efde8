//! What may be in a file before the job appends to it, and who else may write it.

use std::fs;

use crate::support::{Gate, Live, Place, SmallDisk, skipped, until_true};
use crate::{expect_told, expect_well, held_append};

const TWO_LINES: &str = "append(\"log\", \"one\\n\"); append(\"./log\", 2, \"\\n\"); return 0;";

/// A run that has opened `log` and appends to it once more when the gate opens.
fn held_run(place: &Place) -> (Gate, Live) {
    let gate = place.gate("gate");
    let script = format!(
        "append(\"log\", \"mine\\n\"); print(\"open\"); return len(text({}));",
        held_append("gate", "more")
    );
    let live = place.start_script(&[], &script);
    assert_eq!(live.line(), "open");
    (gate, live)
}

#[test]
fn absent_empty_and_begun_files_end_with_the_same_bytes() {
    for begun in [None, Some(""), Some("on"), Some("one\n2\n")] {
        let place = Place::new();
        if let Some(begun) = begun {
            place.file("log", begun);
        }
        expect_well(&place.script(&[], TWO_LINES), "0\n");
        assert_eq!(place.read("log"), "one\n2\n", "{begun:?}");
    }
}

#[test]
fn file_with_other_contents_is_refused_and_stays_as_it_is() {
    for other in ["once", "one\n2\nthree"] {
        let place = Place::new();
        place.file("log", other);
        let ended = place.script(&[], TWO_LINES);
        expect_told(&ended, &["/log does not hold", "--overwrite"]);
        assert_eq!(place.read("log"), other);
    }
}

#[test]
fn overwritten_file_holds_the_old_bytes_until_the_end_also_over_a_kill() {
    let place = Place::new();
    place.file("log", "old");
    let gate = place.gate("gate");
    let script = format!(
        "append(\"log\", \"first\\n\"); print(\"begun\"); a = {}; return len(text(a));",
        held_append("gate", "second")
    );
    let live = place.start_script(&["--overwrite"], &script);
    assert_eq!(live.line(), "begun");
    live.signal("KILL");
    live.end();
    place.await_nobody();
    let live = place.start_script(&["--overwrite"], &script);
    assert_eq!(place.read("log"), "old");
    gate.release(2);
    expect_well(&live.end(), "begun\n0\n");
    assert_eq!(place.read("log"), "first\nsecond\n");
    let names = fs::read_dir(place.path(".")).unwrap();
    let drafts = names.filter(|name| {
        let name = name.as_ref().unwrap().file_name();
        name.to_string_lossy().contains("log.ciel-")
    });
    assert_eq!(drafts.count(), 0);
}

#[test]
fn file_that_another_run_writes_is_refused() {
    let place = Place::new();
    let (gate, first) = held_run(&place);
    place.file("other.sw", TWO_LINES);
    let ended = place.start(&["run", "other.sw"]).end();
    expect_told(&ended, &["/log is being written by another run"]);
    gate.release(1);
    expect_well(&first.end(), "0\n");
    assert_eq!(place.read("log"), "mine\nmore\n");
}

#[test]
fn file_that_is_changed_from_outside_is_named_and_left_alone() {
    let place = Place::new();
    let (gate, live) = held_run(&place);
    until_true("the first line is there", || place.read("log") == "mine\n");
    place.file("log", "theirs");
    gate.release(1);
    let words = ["/log was changed from outside", "left 5 bytes", "it has 6"];
    expect_told(&live.end(), &words);
    assert_eq!(place.read("log"), "theirs");
}

/// The run wrote on into the file that had no name any more, and ended well: all that tasks had
/// appended was nowhere.
#[test]
fn removed_file_ends_the_run_which_writes_all_of_it_when_it_is_resumed() {
    let place = Place::new();
    let (gate, live) = held_run(&place);
    until_true("the first line is there", || place.read("log") == "mine\n");
    fs::remove_file(place.path("log")).unwrap();
    gate.release(1);
    let words = ["/log was removed while the run wrote to it", "ciel resume"];
    expect_told(&live.end(), &words);
    assert!(!place.has("log"));
    expect_well(&place.start(&["resume"]).end(), "open\n0\n");
    assert_eq!(place.read("log"), "mine\nmore\n");
}

#[test]
fn folder_pipe_device_and_missing_folder_fail_the_task_with_a_hint() {
    let place = Place::new();
    let _pipe = place.gate("pipe");
    for other in [".", "pipe", "/dev/null", "/dev/stderr"] {
        let ended = place.script(&[], &format!("append(\"{other}\", \"x\");"));
        expect_told(&ended, &[other, "is not a regular file", "hint: "]);
    }
    let ended = place.script(&[], "append(\"no/log\", \"x\");");
    expect_told(&ended, &["cannot write no/log", "the folder must exist"]);
}

#[test]
fn failed_command_appends_nothing_and_a_function_keeps_what_it_appended() {
    let place = Place::new();
    let script = "function f() { append(\"log\", \"kept\\n\"); throw \"over\"; }
        a = spawn_exec(\"shell\", {\"command\": \"echo lost >&{log}; exit 1\", \
        \"appends\": {\"log\": \"log\"}}, 1)[0];
        print(is_error(a)); b = spawn(f, []); print(is_error(b)); append(\"log\", \"end\\n\");";
    expect_well(&place.script(&[], script), "true\ntrue\n");
    assert_eq!(place.read("log"), "kept\nend\n");
}

#[test]
fn what_a_lazy_task_appends_has_no_place_and_is_kept_for_logs() {
    let place = Place::new();
    let script = "function f() { append(\"log\", \"aside\\n\"); return 1; }
        a = spawn(f, [], {\"lazy\": true}); append(\"log\", \"end\\n\"); return *a;";
    expect_well(&place.script(&[], script), "1\n");
    assert_eq!(place.read("log"), "end\n");
    let logs = place.run(&["logs", "f"]);
    assert_eq!(logs.stdout, "aside\n", "{}", logs.stderr);
}

#[test]
fn nothing_appended_makes_an_empty_file() {
    let place = Place::new();
    expect_well(
        &place.script(&[], "append(\"log\", \"\"); return 1;"),
        "1\n",
    );
    assert!(place.has("log"));
    assert_eq!(place.read("log"), "");
}

/// What is on the disk when it is full is the beginning of the output, and the run continues it.
#[test]
fn full_disk_leaves_a_prefix_that_the_resumed_run_continues() {
    let place = Place::new();
    let Some(disk) = SmallDisk::new(&place.path("disk")) else {
        return skipped(
            "full disk below a log",
            "this user may not mount a file system",
        );
    };
    let script = "i = 0; \
                  while (i < 4000) { append(\"disk/log\", \"line \", i, \" with some words\\n\"); \
                  i = i + 1; } return i;";
    let whole: String = (0..4000)
        .map(|i| format!("line {i} with some words\n"))
        .collect();
    disk.leave(40);
    let ended = place.script(&[], script);
    let words = [
        "cannot write",
        "disk/log",
        "bytes are the beginning of the output",
    ];
    expect_told(&ended, &words);
    assert!(whole.starts_with(&place.read("disk/log")));
    disk.make_room();
    expect_well(&place.script(&[], script), "4000\n");
    assert!(place.read("disk/log") == whole);
}
