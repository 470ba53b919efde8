//! Short commands that follow one another in a slot: the next one may be with the spawner before
//! its turn. Whether it is depends on how long commands take, and what is shown here does not.
//!
//! Read first: `processes`, for commands one at a time.

mod support;

use support::{Place, appended, expect_well, held, kill, shell, shell_printing, until_true};

/// A script that spawns `count` commands, of which each is given its number as `$i`, and then waits
/// for all of them.
fn row(count: usize, command: &str, options: &str) -> String {
    let one = shell_printing(&format!("i=\" + str(i) + \"; {command}"), options);
    // The number stands in the middle of the text.
    let one = one.replace("\\\" + str(i) + \\\"", "\" + str(i) + \"");
    format!(
        "all = [];
         for (i in range({count})) {{ all += {one}; }}
         for (one in all) {{ text(one); }}"
    )
}

fn numbers(count: usize) -> String {
    (0..count).map(|number| format!("{number}\n")).collect()
}

/// The numbers in a file, sorted.
fn written(place: &Place, name: &str) -> Vec<usize> {
    let text = place.read(name);
    let mut numbers: Vec<usize> = text.lines().map(|line| line.parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn short_commands_run_once_each_and_print_in_order() {
    for jobs in ["-j1", "-j2", "-j5"] {
        let place = Place::new();
        let command = format!("{}; echo $i", appended("$i", "ran"));
        let ended = place.script(&[jobs], &row(200, &command, ""));
        expect_well(&ended, &numbers(200));
        assert_eq!(written(&place, "ran"), (0..200).collect::<Vec<_>>());
        place.expect_nobody(&ended.stderr);
    }
}

#[test]
fn short_commands_of_one_slot_never_run_side_by_side() {
    let place = Place::new();
    let command = "mkdir busy && echo $i && rmdir busy";
    let ended = place.script(&["-j1"], &row(200, command, ""));
    expect_well(&ended, &numbers(200));
}

#[test]
fn commands_before_and_behind_a_long_one_do_not_wait_for_it() {
    let place = Place::new();
    let gate = place.gate("gate");
    let command = format!(
        "[ $i = 20 ] && {}; {}; echo $i",
        held("gate"),
        appended("$i", "ran")
    );
    let live = place.start_script(&["-j2"], &row(60, &command, ""));
    until_true("all but the long one have run", || {
        place.has("ran") && place.read("ran").lines().count() == 59
    });
    gate.release(1);
    expect_well(&live.end(), &numbers(60));
}

#[test]
fn nothing_begins_behind_a_command_that_fails_in_a_job_that_stops() {
    let place = Place::new();
    let command = format!("{}; [ $i != 50 ]", appended("$i", "ran"));
    let ended = place.script(&["-j1", "--fail-fast"], &row(100, &command, ""));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(written(&place, "ran"), (0..=50).collect::<Vec<_>>());
    place.expect_nobody(&ended.stderr);
}

#[test]
fn commands_that_fail_among_others_are_retried_and_the_others_run_once() {
    let place = Place::new();
    let command = format!(
        "{}; case $i in *7) [ -e f$i ] || {{ : > f$i; exit 1; }};; esac; echo $i",
        appended("$i", "ran")
    );
    let ended = place.script(&["-j2"], &row(100, &command, ", \"retries\": 1"));
    expect_well(&ended, &numbers(100));
    let mut expected: Vec<usize> = (0..100).chain((7..100).step_by(10)).collect();
    expected.sort_unstable();
    assert_eq!(written(&place, "ran"), expected);
}

#[test]
fn cancelled_commands_end_and_nothing_is_left_of_them() {
    let place = Place::new();
    let script = format!(
        "all = [];
         for (i in range(100)) {{ all += {}; }}
         first = text(all[0]);
         for (i in range(90)) {{ x = cancel(all[99 - i]); }}
         for (i in range(10)) {{ text(all[i]); }}
         return first;",
        shell("echo 1")
    );
    let ended = place.script(&["-j2"], &script);
    expect_well(&ended, "\"1\\n\"\n");
    place.expect_nobody(&ended.stderr);
}

/// A row of commands of which the last one waits for a gate, so that the run does not end before.
fn held_row(count: usize) -> String {
    let command = format!(
        "[ $i = {} ] && {}; {}; echo $i",
        count - 1,
        held("gate"),
        appended("$i", "ran")
    );
    row(count, &command, "")
}

#[test]
fn spawner_killed_between_short_commands_loses_none_of_them() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["-j2"], &held_row(200));
    for least in [20, 90] {
        until_true("some have run", || {
            place.has("ran") && place.read("ran").lines().count() > least
        });
        let spawner = place.spawner_of(&live);
        kill(spawner, "KILL");
        until_true("there is another spawner", || {
            place.spawner_of(&live) != spawner
        });
    }
    // One for each time that the last command may begin.
    gate.release(3);
    let ended = live.end();
    expect_well(&ended, &numbers(200));
    let mut ran = written(&place, "ran");
    ran.dedup();
    assert_eq!(ran, (0..200).collect::<Vec<_>>());
    place.expect_nobody(&ended.stderr);
}

#[test]
fn run_killed_between_short_commands_goes_on_where_it_was() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["-j2"], &held_row(200));
    until_true("some have run", || {
        place.has("ran") && place.read("ran").lines().count() > 60
    });
    live.signal("KILL");
    assert_eq!(live.end().signal, Some(9));
    place.await_nobody();
    gate.release(3);
    let ended = place.run(&["run", "-j2", "job.sw"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(numbers(200).ends_with(&ended.stdout), "{}", ended.stdout);
    let mut ran = written(&place, "ran");
    ran.dedup();
    assert_eq!(ran, (0..200).collect::<Vec<_>>());
}
