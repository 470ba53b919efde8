//! Many processes, much output, full disks.
//!
//! `CIEL_ORDERED_BYTES` says how many bytes one process prints behind another one; the usual run
//! takes some that do not fit into memory's bound.

use std::process::Stdio;

use super::support::random::number;
use super::support::{Place, SmallDisk, skipped};
use super::{command, fifos, may_intercept, ordered, plain};

/// Bytes that wait for their turn in the usual run.
const WAITING_BYTES: u64 = 64 << 20;

/// Memory that a supervisor may take, in KiB: some times the bound for what waits.
const PEAK_KIB_MAX: u64 = 96 << 10;

/// Processes one after another, and at once.
const MANY: u64 = 2_000;
const AT_ONCE: u64 = 500;

#[test]
fn large_output_waits_on_disk_and_comes_out_whole() {
    if !may_intercept("large_output_waits_on_disk_and_comes_out_whole") {
        return;
    }
    let place = Place::new();
    fifos(&place, &["gate".to_owned()]);
    let bytes = number("CIEL_ORDERED_BYTES").unwrap_or(WAITING_BYTES);
    let script = format!(
        "(read x < gate; echo first) & yes | head -c {bytes}; echo > gate; wait; \
         grep VmHWM /proc/$PPID/status >&2"
    );
    let output = command(&place, &["--", "sh", "-c", &script]);
    let output = { output }.stdout(Stdio::piped()).output().unwrap();
    assert!(output.stdout.starts_with(b"first\ny\ny\n"));
    assert_eq!(output.stdout.len() as u64, bytes + 6);
    assert!(output.stdout[6..].chunks(2).all(|pair| pair == b"y\n"));
    let peak = String::from_utf8_lossy(&output.stderr);
    let peak: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(peak < PEAK_KIB_MAX, "{peak} KiB");
}

#[test]
fn full_disk_of_waiting_output_ends_the_command_with_a_prefix() {
    let test = "full_disk_of_waiting_output_ends_the_command_with_a_prefix";
    if !may_intercept(test) {
        return;
    }
    let place = Place::new();
    let Some(disk) = SmallDisk::new(&place.path("small")) else {
        skipped(test, "this user may not mount a small disk");
        return;
    };
    disk.leave(1024);
    fifos(&place, &["gate".to_owned()]);
    let script = "echo start; (read x < gate; echo first) & yes";
    let mut command = command(&place, &["--", "sh", "-c", script]);
    let output = command.env("TMPDIR", place.path("small")).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(
        stderr.contains("cannot hold output that waits for its turn"),
        "{stderr}"
    );
    assert!(stderr.contains("TMPDIR"), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "start\n");
    place.await_nobody();
}

#[test]
fn full_output_ends_the_command_and_names_the_prefix() {
    let test = "full_output_ends_the_command_and_names_the_prefix";
    let place = Place::new();
    let Some(disk) = SmallDisk::new(&place.path("small")) else {
        skipped(test, "this user may not mount a small disk");
        return;
    };
    disk.leave(64);
    let file = std::fs::File::create(place.path("small/out")).unwrap();
    let mut command = command(&place, &["--", "sh", "-c", "yes"]);
    let output = command.stdout(Stdio::from(file)).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let held = std::fs::metadata(place.path("small/out")).unwrap().len();
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    let expected = format!("it holds the first {held} bytes of the serial output");
    assert!(stderr.contains(&expected), "{stderr}");
    place.await_nobody();
}

/// With few descriptors left the status of a new process could not be read, so it was taken for one
/// that had gone: it shared its parent's pipe, and printed where it was, with status 0.
#[test]
fn too_few_descriptors_are_an_error_and_never_another_order() {
    let test = "too_few_descriptors_are_an_error_and_never_another_order";
    if !may_intercept(test) {
        return;
    }
    let place = Place::new();
    fifos(&place, &["gate".to_owned()]);
    let inner = "echo a; (read x < gate; echo b) & echo c; echo > gate; wait; echo d";
    let enough = (4..32).find(|descriptors| {
        let script = format!(
            "ulimit -n {descriptors}; exec {} ordered --route seccomp -- sh -c '{inner}'",
            super::support::CIEL
        );
        let output = plain(&place, &["sh", "-c", &script]);
        place.expect_nobody(&script);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            assert_eq!(printed, "a\nb\nc\nd\n", "{descriptors}: {stderr}");
            return true;
        }
        assert!(
            stderr.contains("Too many open files"),
            "{descriptors}: {stderr}"
        );
        assert_eq!(output.status.code(), Some(125), "{descriptors}: {stderr}");
        assert!(
            "a\nb\nc\nd\n".starts_with(&*printed),
            "{descriptors}: {printed}"
        );
        false
    });
    assert!(enough.is_some());
}

#[test]
fn many_processes_one_after_another_print_in_order() {
    if !may_intercept("many_processes_one_after_another_print_in_order") {
        return;
    }
    let place = Place::new();
    let count = number("CIEL_ORDERED_PROCESSES").unwrap_or(MANY);
    let script = format!("i=0; while [ $i -lt {count} ]; do i=$((i + 1)); echo $i & done; wait");
    let output = ordered(&place, &["--", "sh", "-c", &script]);
    let expected: String = (1..=count).map(|number| format!("{number}\n")).collect();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout) == expected);
}

#[test]
fn many_processes_at_once_print_in_order() {
    if !may_intercept("many_processes_at_once_print_in_order") {
        return;
    }
    let place = Place::new();
    fifos(&place, &["gate".to_owned()]);
    // All wait until the last one is there.
    let script = format!(
        "exec 9<> gate; i=0; \
         while [ $i -lt {AT_ONCE} ]; do i=$((i + 1)); (read x <&9; echo $i) & done; \
         while [ $i -gt 0 ]; do i=$((i - 1)); echo >&9; done; wait"
    );
    let output = ordered(&place, &["--", "sh", "-c", &script]);
    let expected: String = (1..=AT_ONCE).map(|number| format!("{number}\n")).collect();
    assert!(String::from_utf8_lossy(&output.stdout) == expected);
}
