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

/// Lazy tasks, equal calls that share a result, a retry, a script that is called, output that is
/// too long for memory and output that comes while its task runs, and failures in a chain.
const ODD_JOB: &str = r#"
function say(what) { print("say", what); return what; }
function long(n) {
    line = "long";
    for (i in range(n)) { line = line + line; }
    print(line);
    return n;
}
function fails(n) { if (n == 0) { throw "no"; } return *spawn(fails, [n - 1]); }
function command(words, options) {
    return spawn_exec("shell", {"command": words + "; : > {out.done}", "outputs": ["done"]}, 1,
        options)[0];
}
never = spawn(say, ["never"], {"lazy": true});
later = spawn(say, ["later"], {"lazy": true});
retried = command("[ -e tried ] || { : > tried; exit 1; }; echo retried",
    {"retries": 3, "pure": false});
twins = [];
for (n in range(3)) { twins += command("echo twin", {}); }
loud = command("seq 30000", {"pure": false});
live = command("echo live; echo and live", {"pure": false, "live": true});
called = spawn_exec("skywriting", {"file": "called.sw", "args": ["a"]}, 1)[0];
doubled = spawn(long, [12]);
try { x = *spawn(fails, [2]) + 1; } catch (e) { print("caught", e.kind, e.message); }
seen = [*later, *called, *doubled];
for (twin in twins) { seen += len(text(twin)); }
seen += len(text(retried)) + len(text(loud)) + len(text(live));
print("end");
return seen;
"#;

/// The script that it calls.
const CALLED: &str = "function two(n) { print(\"two\", n); return n + n; }
    print(\"called\", argv()); x = spawn(two, [argv(0)]); return {\"x\": *x};";

/// Threads of this test; each waits for processes most of the time.
const THREADS: usize = 3;

/// Records that it makes at least.
const RECORDS_MIN: u64 = 40;

/// Tasks that were not rerun, all kills together, at least.
const SAVED_MIN: usize = 20;

fn trial(job: &str) -> Trial {
    let files = [("job.sw", job), ("called.sw", CALLED)];
    Trial {
        files: files.map(|(name, text)| (name, text.to_string())).to_vec(),
        job: "job.sw",
        arguments: Vec::new(),
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

/// Kills a run at every record, before or after it is written, until there are no more records.
/// Returns how many of the tasks that leave marks were not rerun, all kills together.
fn every_record(job: &str, is_written: fn(u64) -> bool) -> usize {
    let trial = trial(job);
    let (plain, named) = (
        trial.in_peace(&["-j2"]),
        trial.in_peace(&["-j2", "-o", "out"]),
    );
    assert_eq!(plain.shown.0, Some(0), "{plain:?}");
    assert_eq!(named.shown.1.lines().count(), 1, "{named:?}");
    let (next, saved) = (AtomicU64::new(1), AtomicUsize::new(0));
    let work = || loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let written = is_written(at);
        let options = options(at, written);
        let Some((seen, done)) = trial.killed_at(&[Moment { at, written }], &options) else {
            assert!(at > RECORDS_MIN, "it ended before record {at}");
            return;
        };
        let expected = if options.len() > 1 { &named } else { &plain };
        seen.expect(expected, &format!("killed at {at}, {written}, {options:?}"));
        saved.fetch_add(done, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    saved.into_inner()
}

#[test]
fn script_killed_after_any_record_ends_as_if_undisturbed() {
    let saved = every_record(JOB, |_| true);
    assert!(
        saved > SAVED_MIN,
        "so few tasks were committed before: {saved}"
    );
}

#[test]
fn script_killed_before_any_record_is_written_ends_as_if_undisturbed() {
    let saved = every_record(JOB, |_| false);
    assert!(
        saved > SAVED_MIN,
        "so few tasks were committed before: {saved}"
    );
}

#[test]
fn script_with_tasks_of_all_kinds_killed_at_any_record_ends_as_if_undisturbed() {
    every_record(ODD_JOB, |at| at.is_multiple_of(2));
}

#[test]
fn script_killed_twice_ends_as_if_undisturbed() {
    let trial = trial(JOB);
    let expected = trial.in_peace(&["-j2"]);
    for at in (1..80).step_by(13) {
        for (later, written) in [(1, true), (2, false), (9, true), (20, false)] {
            let first = Moment { at, written };
            let second = Moment {
                at: at + later,
                written: true,
            };
            if let Some((seen, _)) = trial.killed_at(&[first, second], &["-j2"]) {
                seen.expect(&expected, &format!("{first:?} {second:?}"));
            }
        }
    }
}
