//! Runs that are blocked, damaged or lose files: the messages, what stays, and how they resume.
//!
//! The moment of the interruption does not matter here, but the state in which the run resumes; see
//! `resume.rs` for runs that are killed at any moment. Read first: `support`.

#[path = "../support/mod.rs"]
mod support;

mod broken_off;
mod clock;
mod damage;
mod damaged_objects;
mod flipped_output;
mod full_disk;
mod jumping_clock;
mod nondeterministic;
mod other_users;
mod read_only;
mod removed;
mod replaced;
mod stalled;
mod unbegun;

use support::{Ended, Place};

/// Tasks that make files, and scripts that print lines about them.
const PARTS: usize = 24;

/// A job of [`PARTS`] commands, which each add a line to `ran` and give a file of their own
/// length, and of as many scripts that print.
fn job() -> String {
    job_with("")
}

/// The same with these lines between the two halves of the scripts; all files are made by then.
fn job_with(middle: &str) -> String {
    let half = PARTS / 2;
    format!(
        "function show(p, n) {{
           print(n, len(text(p)));
           for (i in range(40)) {{ print(\"line of output number\", i, \"of part\", n); }}
           return n;
         }}
         parts = []; shown = []; sum = 0;
         for (n in range({PARTS})) {{
           make = \"echo \" + str(n) + \" >> ran; head -c \" + str(2000 + n * 3000);
           make = make + \" /dev/zero | tr '\\\\0' a\";
           options = {{\"name\": \"part\" + str(n)}};
           parts += spawn_exec(\"shell\", {{\"command\": make}}, 1, options)[0];
         }}
         for (n in range({half})) {{ shown += spawn(show, [parts[n], n]); }}
         {middle}
         for (n in range({half}, {PARTS})) {{ shown += spawn(show, [parts[n], n]); }}
         for (s in shown) {{ sum = sum + *s; }}
         return sum;"
    )
}

/// What that job puts out, and its result.
fn output() -> String {
    let mut text = String::new();
    for n in 0..PARTS {
        text.push_str(&format!("{n} {}\n", 2000 + n * 3000));
        for i in 0..40 {
            text.push_str(&format!("line of output number {i} of part {n}\n"));
        }
    }
    text + &format!("{}\n", PARTS * (PARTS - 1) / 2)
}

/// How often each command of the job has run.
fn times_run(place: &Place) -> Vec<usize> {
    let ran = place.read("ran");
    let count = |n: usize| ran.lines().filter(|line| **line == *n.to_string()).count();
    (0..PARTS).map(count).collect()
}

fn expect_well(ended: &Ended, stdout: &str) {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let same = ended.stdout.bytes().zip(stdout.bytes());
    let same = same.take_while(|(found, expected)| found == expected);
    assert!(
        ended.stdout == stdout,
        "it differs from byte {} on",
        same.count()
    );
}

/// A refusal or trouble: its exit code and these words, and no panic.
fn expect_told(ended: &Ended, code: i32, words: &[&str]) {
    let stderr = &ended.stderr;
    assert_eq!(ended.code, Some(code), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "no {word:?} in: {stderr}");
    }
}
