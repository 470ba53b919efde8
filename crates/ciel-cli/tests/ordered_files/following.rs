//! Those who read an ordered file along see the beginning of its final bytes at every moment.

use std::path::Path;
use std::time::Instant;

use crate::support::{Place, until_true};
use crate::{expect_told, expect_well, held_append};

/// Tasks of the job, let go one after another.
const TASKS: usize = 20;

/// Tasks that append in the wrong order, as far as their gates say.
fn job() -> String {
    let spawned: String = (0..TASKS)
        .map(|task| {
            let held = held_append(&format!("gate{task}"), &format!("task {task}"));
            format!("x{task} = {held}; append(\"log\", \"behind {task}\\n\"); ")
        })
        .collect();
    format!("append(\"log\", \"begin\\n\"); {spawned} print(\"spawned\"); return len(text(x0));")
}

fn whole() -> String {
    let lines = (0..TASKS).map(|task| format!("task {task}\nbehind {task}\n"));
    format!("begin\n{}", lines.collect::<String>())
}

#[test]
fn follower_and_file_have_a_prefix_at_every_moment_and_end_with_the_run() {
    let place = Place::new();
    let gates: Vec<_> = (0..TASKS)
        .map(|task| place.gate(&format!("gate{task}")))
        .collect();
    let live = place.start_script(&["-j8"], &job());
    until_true("the file is open", || place.has("log"));
    let follower = place.start(&["tail", "log"]);
    let whole = whole();
    for task in [1, 0, 2, 4, 3].into_iter().chain(5..TASKS) {
        gates[task].release(1);
        let (seen, file) = (follower.unread(), place.read("log"));
        assert!(
            whole.starts_with(&seen) && whole.starts_with(&file),
            "{seen}\n{file}"
        );
        if task == 0 || task == 3 {
            let behind = format!("behind {task}\n");
            until_true("what is final is seen", || {
                let seen = follower.unread();
                assert!(whole.starts_with(&seen), "{seen}");
                seen.contains(&behind)
            });
        }
    }
    expect_well(&live.end(), "spawned\n0\n");
    expect_well(&follower.end_of("the follower ends with the run"), &whole);
    assert_eq!(place.read("log"), whole);
}

#[test]
fn ps_shows_the_bytes_that_wait_for_each_file() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "x = {}; append(\"log\", \"0123456789\"); append(\"two\", \"01234\"); print(\"shown\"); \
         y = {}; return len(text(x)) + len(text(y));",
        held_append("gate", "first"),
        held_append("gate", "second"),
    );
    let live = place.start_script(&["-j4"], &script);
    let row = |bytes: &str, file: &str| format!("  {bytes} wait for their turn in {file}\n");
    let path = |name: &str| place.path(name).display().to_string();
    let shown = || place.start(&["ps"]).end().stdout;
    until_true("all of it waits", || shown().contains("stdout"));
    let shown = shown();
    for row in [
        row("10 bytes", &path("log")),
        row("5 bytes", &path("two")),
        row("6 bytes", "stdout"),
    ] {
        assert!(shown.contains(&row), "{row}: {shown}");
    }
    gate.release(2);
    expect_well(&live.end(), "shown\n0\n");
    assert!(!place.run(&["ps"]).stdout.contains("wait for their turn"));
}

#[test]
fn follower_of_a_run_that_is_killed_ends_with_the_prefix() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "append(\"log\", \"first\\n\"); return len(text({}));",
        held_append("gate", "second")
    );
    let live = place.start_script(&[], &script);
    until_true("the first line is there", || place.read("log") == "first\n");
    let follower = place.start(&["tail", "log"]);
    assert_eq!(follower.line(), "first");
    live.signal("KILL");
    live.end();
    expect_well(&follower.end_of("the follower ends with the run"), "");
    place.await_nobody();
    gate.release(2);
    expect_well(&place.script(&[], &script), "0\n");
    expect_well(&place.run(&["tail", "log"]), "first\nsecond\n");
}

#[test]
fn follower_that_goes_away_does_not_disturb_the_run() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "append(\"log\", \"first\\n\"); return len(text({}));",
        held_append("gate", "second")
    );
    let live = place.start_script(&[], &script);
    until_true("the file is open", || place.read("log") == "first\n");
    let follower = place.start(&["tail", "log"]);
    assert_eq!(follower.line(), "first");
    follower.signal("KILL");
    follower.end();
    gate.release(1);
    expect_well(&live.end(), "0\n");
    assert_eq!(place.read("log"), "first\nsecond\n");
}

/// A follower looked for the run by taking the file's lock for an instant, and a run that began in
/// this instant had to retry. One that is stopped anywhere now keeps no run
/// away.
#[test]
fn follower_that_is_stopped_keeps_no_later_run_away() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&[], &two_lines());
    until_true("the first line is there", || place.read("log") == "first\n");
    let follower = place.start(&["tail", "log"]);
    assert_eq!(follower.line(), "first");
    follower.signal("STOP");
    gate.release(1);
    expect_well(&live.end(), "0\n");
    let again = "append(\"log\", \"first\\nsecond\\nthird\\n\"); return 1;";
    expect_well(&place.start_script(&[], again).end(), "1\n");
    follower.signal("CONT");
    expect_well(&follower.end_of("the follower ends"), "second\nthird\n");
}

/// `ciel tail log | head -n 1` stayed until the next line was written.
#[test]
fn follower_whose_reader_goes_away_ends_at_once() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&[], &two_lines());
    until_true("the first line is there", || place.read("log") == "first\n");
    let mut shell = place.program(Path::new("sh"));
    shell.args(["-c", "\"$1\" tail log | head -n 1", "sh"]);
    let shown = shell.arg(place.command().get_program()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&shown.stdout), "first\n");
    gate.release(1);
    expect_well(&live.end(), "0\n");
}

/// A job whose second line waits for the gate.
fn two_lines() -> String {
    format!(
        "append(\"log\", \"first\\n\"); return len(text({}));",
        held_append("gate", "second")
    )
}

#[test]
fn file_that_nobody_writes_is_printed_at_once_and_none_is_an_error() {
    let place = Place::new();
    place.file("log", "all of it");
    let begun = Instant::now();
    expect_well(&place.run(&["tail", "log"]), "all of it");
    eprintln!("{} ms for a finished file", begun.elapsed().as_millis());
    let words = [
        "cannot follow missing",
        "as soon as a task of the job has opened it",
    ];
    expect_told(&place.run(&["tail", "missing"]), &words);
    expect_told(&place.run(&["tail", "."]), &["it is not a regular file"]);
}
