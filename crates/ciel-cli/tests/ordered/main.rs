//! `ciel ordered`: commands of real processes print what they would if each `&` were gone.
//!
//! A test whose route the system refuses prints why it was skipped. Read next: `elision` (random
//! scripts), `programs` (what starts processes in other ways), `named` (ordered files), `endings`
//! (status, signals, kills), `bounds` (large and full), `limits` (what the page excludes).

mod bounds;
mod elision;
mod endings;
mod limits;
mod named;
mod programs;
mod streams;
#[path = "../support/mod.rs"]
mod support;

use std::process::{Command, Output, Stdio};

use support::{Place, skipped};

/// Whether calls can be intercepted here; if not, the test is skipped.
pub fn may_intercept(test: &str) -> bool {
    let place = Place::new();
    let probe = ordered(&place, &["--route", "seccomp", "--", "true"]);
    if !probe.status.success() {
        skipped(test, "this system refuses seccomp with notification");
    }
    probe.status.success()
}

/// `ciel ordered` with these words, run to its end; no process of it is left.
pub fn ordered(place: &Place, words: &[&str]) -> Output {
    let output = command(place, words).output().unwrap();
    place.expect_nobody(&String::from_utf8_lossy(&output.stderr));
    output
}

/// `ciel ordered` with these words.
pub fn command(place: &Place, words: &[&str]) -> Command {
    let mut command = place.command();
    command.arg("ordered").args(words);
    command
}

/// The same program without us.
pub fn plain(place: &Place, words: &[&str]) -> Output {
    let mut command = place.program(words[0].as_ref());
    command.args(&words[1..]).stdin(Stdio::null());
    command.output().unwrap()
}

/// What a script prints when its processes are ordered; it succeeds and says nothing else.
pub fn printed(place: &Place, options: &[&str], script: &str) -> String {
    let mut words = options.to_vec();
    words.extend(["--", "sh", "-c", script]);
    let output = ordered(place, &words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    assert_eq!(stderr, "", "{script}");
    String::from_utf8(output.stdout).unwrap()
}

/// Pipes at which processes wait for each other.
pub fn fifos(place: &Place, names: &[String]) {
    if !names.is_empty() {
        let made = place.program("mkfifo".as_ref()).args(names).status();
        assert!(made.unwrap().success());
    }
}
