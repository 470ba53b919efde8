//! A script that is killed at every record, before and after it is written.
//!
//! Read first: `trial`.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::trial::{Moment, Trial};

/// Functions that spawn, print, delegate and wait; shell tasks with results of all kinds, one of
/// them larger than what stays in memory; a failure that is caught.
const JOB: &str = r#"
function leaf(n) { print("leaf", n); return n * 10; }
function pair(n) {
    print("pair", n);
    inner = spawn(leaf, [n]);
    print("asked", n);
    return *inner + 1;
}
function countdown(n) {
    print("tail", n);
    if (n == 0) { return "landed"; }
    return *spawn(countdown, [n - 1]);
}
function marked(mark, command, inputs, outputs) {
    return spawn_exec("shell", {
        "command": "echo " + mark + " >> marks; " + command, "inputs": inputs, "outputs": outputs
    }, len(outputs), {"pure": false, "name": mark});
}
print("begin");
first = spawn(pair, [1]);
big = marked("big", "seq 1000 > {out.numbers}; echo printed by big", {}, ["numbers"])[0];
print("between");
used = marked("used", "wc -l < {in.big} > {out.count}", {"big": big}, ["count"])[0];
loop = spawn(countdown, [3]);
second = spawn(pair, [2]);
both = spawn_exec("environ", {"inputs": [big], "command_line": ["sh", "-c",
    "echo environ >> marks; set -- $(cat $OUTPUT_FILES); " +
    "head -c 2000 $(cat $INPUT_FILES) > $1; echo 7 > $2"]},
    2, {"pure": false, "name": "environ"});
bad = marked("bad", "exit 3", {}, ["none"])[0];
try { x = *bad + 1; } catch (e) { print("caught", e.kind); }
print("sum", *first + *second);
return [*used, *loop, len(text(both[0])), *both[1]];
"#;

/// Threads of this test; each waits for processes most of the time.
const THREADS: usize = 3;

/// Records that it makes at least.
const RECORDS_MIN: u64 = 40;

fn trial() -> Trial {
    Trial {
        files: vec![("job.sw", JOB.to_string())],
        job: "job.sw",
        environment: Vec::new(),
    }
}

/// Standard output and `-o` are taken in turns, and so are one core and two.
fn options(at: u64, written: bool) -> Vec<&'static str> {
    let jobs = if at.is_multiple_of(2) { "-j1" } else { "-j2" };
    match (at / 2).is_multiple_of(2) == written {
        true => vec![jobs],
        false => vec![jobs, "-o", "out"],
    }
}

/// Kills a run at every record, in one of the two ways, until there are no more records.
fn every_record(written: bool) {
    let trial = trial();
    let (plain, named) = (
        trial.in_peace(&["-j2"]),
        trial.in_peace(&["-j2", "-o", "out"]),
    );
    assert_eq!(plain.shown.0, Some(0), "{plain:?}");
    assert_eq!(named.shown.1.lines().count(), 1, "{named:?}");
    let (next, saved) = (AtomicU64::new(1), AtomicUsize::new(0));
    let work = || loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let options = options(at, written);
        let Some((seen, done)) = trial.killed_at(&[Moment { at, written }], &options) else {
            assert!(at > RECORDS_MIN, "it ended before record {at}");
            return;
        };
        let expected = if options.len() > 1 { &named } else { &plain };
        assert_eq!(&seen, expected, "killed at {at}, {written}, {options:?}");
        saved.fetch_add(done, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    let saved = saved.into_inner();
    assert!(saved > 20, "so few tasks were committed before: {saved}");
}

#[test]
fn script_killed_after_any_record_ends_as_if_undisturbed() {
    every_record(true);
}

#[test]
fn script_killed_before_any_record_is_written_ends_as_if_undisturbed() {
    every_record(false);
}

#[test]
fn script_killed_twice_ends_as_if_undisturbed() {
    let trial = trial();
    let expected = trial.in_peace(&["-j2"]);
    for at in (1..80).step_by(13) {
        for (later, written) in [(1, true), (2, false), (9, true), (20, false)] {
            let first = Moment { at, written };
            let second = Moment {
                at: at + later,
                written: true,
            };
            if let Some((seen, _)) = trial.killed_at(&[first, second], &["-j2"]) {
                assert_eq!(seen, expected, "{first:?} {second:?}");
            }
        }
    }
}
