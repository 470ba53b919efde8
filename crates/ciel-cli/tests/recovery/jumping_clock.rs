//! The wall clock jumps by days, in both directions, while jobs run and between their resumes.
//!
//! None of this was ever tried: runs were listed under a clock that had been set back, but none
//! lived through it. Programs load `jumping_clock.c`, which moves their wall clock. Read first:
//! `clock`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::expect_well;
use crate::support::programs::{python, runs_python};
use crate::support::{Ended, Place, done, held, shell, skipped, task};

/// By how much it jumps, in seconds.
const DAYS_S: i64 = 3 * 86_400;

/// What no test takes, in microseconds.
const LONG_US: i64 = 600_000_000;

/// A place whose programs have a clock that [`jump`] moves; none without a C compiler.
fn place(test: &str) -> Option<Place> {
    let place = Place::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recovery/jumping_clock.c");
    let library = place.path("jumping_clock.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
    let compiled = compiler.arg(&library).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        skipped(test, "no C compiler is installed here");
        return None;
    }
    let shift = place.file("shift", "0");
    let place = place
        .with_variable("LD_PRELOAD", library.to_str().unwrap())
        .with_variable("CIEL_TEST_SHIFT", shift.to_str().unwrap());
    assert!(seconds_of(&place) > 1_500_000_000);
    Some(place)
}

/// The time of day as programs see it.
fn seconds_of(place: &Place) -> i64 {
    let output = place.program(Path::new("date")).arg("+%s").output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    text.trim().parse().unwrap()
}

/// From now on the clock of the place is so far from the real one.
fn jump(place: &Place, shift_s: i64) {
    let before = seconds_of(place);
    place.file("shift.new", shift_s.to_string());
    std::fs::rename(place.path("shift.new"), place.path("shift")).unwrap();
    let moved = seconds_of(place) - before;
    assert!(moved.abs() > DAYS_S / 2, "the clock moved by {moved} s");
}

/// No number in a JSON text is negative or beyond what the test takes; a moment is no duration.
fn expect_durations(text: &str) {
    fn look(name: &str, value: &Value, text: &str) {
        match value {
            Value::Object(fields) => fields
                .iter()
                .for_each(|(key, inner)| look(key, inner, text)),
            Value::Array(items) => items.iter().for_each(|inner| look(name, inner, text)),
            Value::Number(number) if name.ends_with("_us") || name == "story" => {
                let duration = number.as_i64().expect("microseconds");
                assert!(
                    (0..LONG_US).contains(&duration),
                    "{name}: {number} in {text}"
                );
            }
            _ => {}
        }
    }
    for line in text.lines().filter(|line| line.starts_with('{')) {
        look("", &serde_json::from_str(line).expect("JSON"), text);
    }
}

/// `ciel ps` and `ciel runs` have nothing strange to say.
fn look_at(place: &Place) {
    for words in [
        &["ps", "--all", "--json"][..],
        &["runs", "--json"],
        &["ps"],
        &["runs"],
    ] {
        let shown: Ended = place.start(words).end();
        assert_eq!(shown.code, Some(0), "{}", shown.stderr);
        assert!(!shown.stdout.contains(" -"), "{}", shown.stdout);
        expect_durations(&shown.stdout);
    }
}

#[test]
fn job_runs_and_is_resumed_while_the_clock_jumps_both_ways() {
    let test = "job_runs_and_is_resumed_while_the_clock_jumps_both_ways";
    for (first, age) in [(DAYS_S, "3 days ago"), (-DAYS_S, "in the future")] {
        let Some(place) = place(test) else { return };
        let [gate, later] = ["gate", "later"].map(|name| place.gate(name));
        let waits = |mark: &str, gate: &str| format!("{}; {}; echo 1", done(mark), held(gate));
        let script = format!(
            "if (*{} == 1) {{ print(\"passed\"); }}
             try {{ print(text({})); }} catch (e) {{ print(e.kind); }}
             if (*{} == 1) {{ print(\"resumed\"); }}",
            task(&waits("begun", "gate"), "{\"timeout\": 100000}"),
            task("sleep 1000", "{\"timeout\": 1}"),
            shell(&waits("again", "later")),
        );
        let live = place.start_script(&["--json"], &script);
        place.await_file("begun");
        jump(&place, first);
        live.await_error("\"event\":\"progress\"");
        look_at(&place);
        let shown = place.start(&["runs"]).end().stdout;
        assert!(shown.contains(age), "{shown}");
        gate.release(1);
        assert_eq!(live.line(), "passed");
        assert_eq!(live.line(), "Timeout");
        place.await_file("again");
        jump(&place, -first);
        look_at(&place);
        live.signal("KILL");
        let killed = live.end();
        assert_eq!(killed.signal, Some(9));
        expect_durations(&killed.stderr);
        place.await_nobody();

        look_at(&place);
        jump(&place, first);
        later.release(1);
        let resumed = place.script(&["--json"], &script);
        expect_well(&resumed, "passed\nTimeout\nresumed\n");
        expect_durations(&resumed.stderr);
        look_at(&place);
    }
}

/// `jumped` sets the clock; the rest is measured by the clock that cannot be set.
const JOB: &str = r#"
import ciel
import os
import time

SHIFT = os.environ["CIEL_TEST_SHIFT"]  # ciel: ok

def jumped(seconds):
    with open(SHIFT + ".own", "w") as file:
        file.write(str(seconds))
    os.rename(SHIFT + ".own", SHIFT)

@ciel.task
def held():
    while not os.path.exists("open"):
        time.sleep(0.005)
    return 1

@ciel.task(timeout=0.5, retries=1)
def late():
    time.sleep(1000)

def ended(call, kind):
    begun = time.monotonic()
    try:
        call()
    except kind:
        return time.monotonic() - begun < 600
    return False

def main():
    future, seen = held.spawn(), []
    for days in (3, -3, 0):
        before = ciel.now()
        jumped(days * 86_400)
        seen.append(abs(ciel.now() - before) > 86_400)
        seen.append(ended(lambda: future.result(timeout=0.2), TimeoutError))
        seen.append(ciel.wait([future], timeout=0.2)[1] == [future])
        seen.append(ended(lambda: late.spawn().result(), ciel.Timeout))
    open("open", "w").close()
    print(future.result(), all(seen), seen if not all(seen) else "")
"#;

#[test]
fn time_limits_in_python_hold_while_the_clock_jumps_both_ways() {
    let test = "time_limits_in_python_hold_while_the_clock_jumps_both_ways";
    if !runs_python(test, "") {
        return;
    }
    let Some(place) = place(test) else { return };
    let place = place.with_variable("CIEL_PYTHON", python().to_str().unwrap());
    place.file("job.py", JOB);
    let ended = place.run(&["run", "-j2", "--json", "job.py"]);
    expect_well(&ended, "1 True \n");
    expect_durations(&ended.stderr);
}
