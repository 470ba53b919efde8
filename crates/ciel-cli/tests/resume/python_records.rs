//! A Python program that is killed at records all along, before and after they are written.
//!
//! Starting Python takes long, so one test kills at every other record in turns. Read first:
//! `trial`.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::support::programs::{python, runs_python};
use crate::trial::{Moment, Seen, Trial};

/// Tasks that spawn, gather, delegate and ask the clock; commands with named outputs, and one that
/// fails; an answer that depends on who is first.
const JOB: &str = r#"
import ciel

@ciel.task
def leaf(n: int) -> int:
    print("leaf", n)
    return n * 10

@ciel.task
def pair(n: int) -> int:
    print("pair", n)
    return sum(ciel.gather(leaf.spawn(n), leaf.spawn(n + 1)))

class Spilled(Exception):
    pass

@ciel.task
def pour(n: int) -> int:
    raise Spilled(n, "drops")

@ciel.task
def countdown(n: int) -> str:
    print("tail", n)
    if n == 0:
        return "landed"
    return countdown.tail(n - 1)

def marked(name, command, **given):
    options = ciel.Options(name=name)
    return ciel.sh(f"echo {name} >> marks; {command}", options=options, **given)

def main():
    print("now", ciel.now())
    poured = pour.spawn(3)
    first = pair.spawn(1)
    big = marked("big", "seq 1000 > {out.numbers}", outputs=["numbers"])["numbers"]
    used = marked("used", "wc -l < {big}", big=big)
    for done in ciel.as_completed([leaf.spawn(7), leaf.spawn(8)]):
        print("done", done.result())
    print("later", ciel.now())
    loop = countdown.spawn(1)
    bad = marked("bad", "exit 3")
    try:
        bad.result()
    except ciel.TaskError:
        print("caught")
    try:
        poured.result()
    except Spilled as spilled:
        print("spilled", spilled.args)
    return [first.result(), int(used.result()), loop.result()]
"#;

/// Its output, at any time of the day and whichever task is first.
const EXPECTED: &str = "pair 1|leaf 1|leaf 2|leaf 7|leaf 8|tail 1|tail 0|caught|\
    spilled (3, 'drops')|\
    [30,1000,\"landed\"]";

/// Records that it makes at least.
const RECORDS_MIN: u64 = 30;

/// Threads of this test; each waits for processes most of the time.
const THREADS: usize = 2;

fn trial() -> Trial {
    Trial {
        files: vec![("job.py", JOB.to_string())],
        job: "job.py",
        arguments: Vec::new(),
        environment: vec![("CIEL_PYTHON", python().display().to_string())],
    }
}

/// Two times in their order, both answers, and the rest as expected. That no time differs from what
/// was shown before a kill is checked by the trial.
fn expect_right(seen: &Seen, about: &str) {
    let (code, shown) = &seen.shown;
    assert_eq!(*code, Some(0), "{about}: {shown}\n{}", seen.failure);
    let mut times = Vec::new();
    let mut answers = Vec::new();
    let mut rest = Vec::new();
    for line in shown.lines() {
        match line.split_once(' ') {
            Some(("now" | "later", time)) => times.push(time.parse::<f64>().unwrap()),
            Some(("done", answer)) => answers.push(answer),
            _ => rest.push(line),
        }
    }
    answers.sort_unstable();
    assert_eq!(answers, ["70", "80"], "{about}");
    assert!(times.len() == 2 && times.is_sorted(), "{about} {times:?}");
    assert_eq!(rest.join("|"), EXPECTED, "{about}");
}

#[test]
fn python_program_killed_at_any_record_ends_as_if_undisturbed() {
    if !runs_python("Python programs that are killed", "") {
        return;
    }
    let trial = trial();
    expect_right(&trial.in_peace(&["-j2"]), "in peace");
    let (next, saved) = (AtomicU64::new(1), AtomicUsize::new(0));
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let (at, written) = (number, number.is_multiple_of(2));
        let moment = Moment { at, written };
        let Some((seen, done)) = trial.killed_at(&[moment], &["-j2"]) else {
            assert!(at > RECORDS_MIN, "it ended before record {at}");
            return;
        };
        expect_right(&seen, &format!("{moment:?}"));
        saved.fetch_add(done, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    let saved = saved.into_inner();
    assert!(saved > 10, "so few tasks were committed before: {saved}");
}

#[test]
fn python_program_killed_twice_ends_as_if_undisturbed() {
    if !runs_python("Python programs that are killed twice", "") {
        return;
    }
    let trial = trial();
    for (at, later) in [(3, 2), (12, 9), (25, 4)] {
        let first = Moment { at, written: true };
        let second = Moment {
            at: at + later,
            written: false,
        };
        if let Some((seen, _)) = trial.killed_at(&[first, second], &["-j2"]) {
            expect_right(&seen, &format!("{first:?} {second:?}"));
        }
    }
}
