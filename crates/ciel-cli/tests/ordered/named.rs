//! Files that `--file` names: appended to in serial order, and everything else in its turn.

use super::support::Place;
use super::{fifos, may_intercept, ordered, printed};

/// A process that comes first and writes last.
const HELD: &str = "(read x < gate; echo first >> log) &\n";

fn gated() -> Place {
    let place = Place::new();
    fifos(&place, &["gate".to_owned()]);
    place
}

#[test]
fn appended_lines_stand_in_order_of_starts() {
    if !may_intercept("appended_lines_stand_in_order_of_starts") {
        return;
    }
    let place = gated();
    let script = format!("{HELD}echo second >> log; echo > gate");
    assert_eq!(printed(&place, &["--file", "log"], &script), "");
    assert_eq!(place.read("log"), "first\nsecond\n");
}

#[test]
fn reader_waits_until_all_before_it_is_written() {
    if !may_intercept("reader_waits_until_all_before_it_is_written") {
        return;
    }
    let place = gated();
    let script = format!(
        "{HELD}(cat log; echo of the reader) &\n\
         echo third >> log; echo > gate; wait; wc -l < log"
    );
    let expected = "first\nof the reader\n2\n";
    assert_eq!(printed(&place, &["--file", "log"], &script), expected);
}

#[test]
fn later_truncation_empties_the_file_later() {
    if !may_intercept("later_truncation_empties_the_file_later") {
        return;
    }
    let place = gated();
    place.file("log", "old\n");
    let script = format!("{HELD}(echo new > log); cat log; echo > gate");
    // The reader is behind the truncation, and so are the bytes before it.
    let script = script.replace("cat log; echo > gate", "echo > gate; cat log");
    assert_eq!(printed(&place, &["--file", "log"], &script), "new\n");
    assert_eq!(place.read("log"), "new\n");
}

#[test]
fn removal_and_renaming_take_place_in_their_turn() {
    if !may_intercept("removal_and_renaming_take_place_in_their_turn") {
        return;
    }
    let place = gated();
    let script = format!(
        "{HELD}(mv log moved) &\n\
         (echo next >> log; test -s log && echo seen) &\n\
         echo > gate; wait; cat moved"
    );
    assert_eq!(
        printed(&place, &["--file", "log"], &script),
        "seen\nfirst\n"
    );
    assert_eq!(place.read("log"), "next\n");
}

#[test]
fn look_and_removal_wait_for_their_turn() {
    if !may_intercept("look_and_removal_wait_for_their_turn") {
        return;
    }
    let place = gated();
    let script = format!(
        "{HELD}(stat -c %s log) &\n\
         (rm log; test -e log || echo gone) &\n\
         (echo again >> log) & echo > gate; wait"
    );
    assert_eq!(printed(&place, &["--file", "log"], &script), "6\ngone\n");
    assert_eq!(place.read("log"), "again\n");
}

#[test]
fn descriptor_of_an_ordered_file_is_called_a_pipe() {
    if !may_intercept("descriptor_of_an_ordered_file_is_called_a_pipe") {
        return;
    }
    let place = Place::new();
    let script = "exec 5>> log; stat -L -c %F /dev/fd/5";
    assert_eq!(printed(&place, &["--file", "log"], script), "fifo\n");
}

#[test]
fn pattern_orders_each_file_that_matches() {
    if !may_intercept("pattern_orders_each_file_that_matches") {
        return;
    }
    let place = gated();
    std::fs::create_dir(place.path("out")).unwrap();
    let script = "for part in a b; do\n\
                    (read x < gate; echo first >> out/$part.log) &\n\
                    echo second >> $PWD/out/$part.log\n\
                    echo > gate\n\
                  done";
    printed(&place, &["--file", "out/*.log"], script);
    assert_eq!(place.read("out/a.log"), "first\nsecond\n");
    assert_eq!(place.read("out/b.log"), "first\nsecond\n");
}

#[test]
fn writer_in_the_middle_of_a_file_waits_for_its_turn() {
    if !may_intercept("writer_in_the_middle_of_a_file_waits_for_its_turn") {
        return;
    }
    let place = gated();
    let script = format!(
        "{HELD}(printf X | dd of=log conv=notrunc bs=1 2> /dev/null) &\n\
         echo > gate; wait; cat log"
    );
    assert_eq!(printed(&place, &["--file", "log"], &script), "Xirst\n");
}

#[test]
fn created_file_has_the_mode_that_its_process_asked_for() {
    if !may_intercept("created_file_has_the_mode_that_its_process_asked_for") {
        return;
    }
    let place = Place::new();
    let script = "umask 027; echo x > log; stat -c %a log";
    assert_eq!(printed(&place, &["--file", "log"], script), "640\n");
}

#[test]
fn file_that_cannot_be_opened_fails_in_its_process() {
    if !may_intercept("file_that_cannot_be_opened_fails_in_its_process") {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.path("log")).unwrap();
    let words = [
        "--file",
        "log",
        "--",
        "sh",
        "-c",
        "echo x > log; echo after",
    ];
    let output = ordered(&place, &words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("log: Is a directory"), "{stderr}");
}

/// A file below `/proc` and one with too long a name were opened by `ciel` when their turn came,
/// and ended the whole command with 125; the page says that the process fails by itself.
#[test]
fn file_that_nobody_can_make_fails_in_its_process_as_without_ciel() {
    if !may_intercept("file_that_nobody_can_make_fails_in_its_process_as_without_ciel") {
        return;
    }
    let place = Place::new();
    let long = "n".repeat(300);
    for path in ["/proc/missing", "/sys/missing", long.as_str()] {
        let script = format!("{{ echo a > {path}; }} 2> /dev/null; echo status $?");
        assert_eq!(printed(&place, &["--file", path], &script), "status 2\n");
    }
}

#[test]
fn ordered_file_can_be_neither_read_nor_sought_through_its_handle() {
    let test = "ordered_file_can_be_neither_read_nor_sought_through_its_handle";
    if !may_intercept(test) {
        return;
    }
    let place = Place::new();
    // `dd` seeks in what it writes to.
    let script = "exec 5>> log; dd if=/dev/null bs=1 seek=4 >&5 2> message || echo refused\n\
                  cat <&5 2> /dev/null || echo unreadable";
    assert_eq!(
        printed(&place, &["--file", "log"], script),
        "refused\nunreadable\n"
    );
    let message = place.read("message");
    assert!(message.contains("cannot seek"), "{message}");
}

#[test]
fn word_that_is_no_pattern_is_refused_before_anything_runs() {
    let place = Place::new();
    let output = ordered(&place, &["--file", "[", "--", "touch", "ran"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("not a pattern of paths: ["), "{stderr}");
    assert!(!place.has("ran"));
}

/// A misspelt path used to be accepted in silence.
#[test]
fn path_that_no_process_names_is_told_at_the_end() {
    if !may_intercept("path_that_no_process_names_is_told_at_the_end") {
        return;
    }
    let place = Place::new();
    let script = "echo line >> log; exit 3";
    let words = ["--file", "lgo", "--file", "l*", "--", "sh", "-c", script];
    let output = ordered(&place, &words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert_eq!(
        stderr.matches("no process has named").count(),
        1,
        "{stderr}"
    );
    assert!(stderr.contains("the ordered file lgo:"), "{stderr}");
    assert_eq!(place.read("log"), "line\n");
}
