//! Starts that wait until another process has ended. It does not know why they wait. Next: `ends`.

mod support;

use std::io::PipeWriter;
use std::os::fd::AsFd;

use ciel_spawner::{Input, Output, Report, Request, Start, Status};
use support::{Lines, Run, c_string};

/// The number of a report's task, and what it says.
fn told(report: &Report) -> (&str, u64) {
    match report {
        Report::Started { id, .. } => ("started", *id),
        Report::Refused { id, .. } => ("refused", *id),
        Report::Withdrawn { id } => ("withdrawn", *id),
        Report::Passed { id, .. } => ("passed", *id),
        Report::Exited { id, .. } => ("exited", *id),
    }
}

/// Starts a script that passes its slot on; it reads to the end of what is written.
fn passing(run: &mut Run, script: &str) -> (u64, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut start = run.task(&["sh", "-c", script]);
    (start.stdin, start.passes_on) = (Input::Fd(0), Some(Vec::new()));
    (run.send(start, &[reader.as_fd()]), writer)
}

fn waiting(run: &mut Run, program: &[&str]) -> Start {
    let mut start = run.task(program);
    start.waits = true;
    start
}

/// The next reports, so many of them.
fn next(run: &mut Run, count: usize) -> Vec<Report> {
    (0..count).map(|_| run.wait_for(|_| true)).collect()
}

#[test]
fn starts_that_wait_begin_one_by_one_as_processes_exit_well() {
    let mut run = Run::new();
    let (first, input) = passing(&mut run, "cat");
    let mut second = waiting(&mut run, &["true"]);
    second.passes_on = Some(Vec::new());
    let second = run.send(second, &[]);
    let third = waiting(&mut run, &["sh", "-c", "exit 3"]);
    let third = run.send(third, &[]);
    run.started(first);
    drop(input);
    let reports = next(&mut run, 7);
    let all: Vec<_> = reports.iter().map(told).collect();
    let (passed, exited, started) = ("passed", "exited", "started");
    let expected = [
        (passed, first),
        (exited, first),
        (started, second),
        (passed, second),
        (exited, second),
        (started, third),
        (exited, third),
    ];
    assert_eq!(all, expected);
    assert_eq!(
        reports[0],
        Report::Passed {
            id: first,
            next: second
        }
    );
}

#[test]
fn slot_of_a_process_that_fails_or_is_killed_is_not_passed_on() {
    let mut run = Run::new();
    let (failing, input) = passing(&mut run, "cat; exit 1");
    let (mut lines, writer) = Lines::new();
    let script = "trap 'exit 0' TERM; echo ready; sleep 1000 & wait";
    let mut trapping = run.task(&["sh", "-c", script]);
    (trapping.stdout, trapping.passes_on) = (Output::Fd(0), Some(Vec::new()));
    let trapping = run.send(trapping, &[writer.as_fd()]);
    assert_eq!(lines.line(), "ready");
    let (killed, _open) = passing(&mut run, "cat");
    let behind = waiting(&mut run, &["true"]);
    let behind = run.send(behind, &[]);
    drop(input);
    assert_eq!(run.status(failing), Status::Code(1));
    let terminate = Request::Kill {
        id: trapping,
        signal: libc::SIGTERM,
        group: false,
    };
    run.spawner.send(&terminate, &[]).unwrap();
    run.exited(trapping);
    run.spawner
        .send(&Request::KillTree { id: killed }, &[])
        .unwrap();
    run.exited(killed);
    run.spawner
        .send(&Request::Withdraw { id: behind }, &[])
        .unwrap();
    let answer = run.wait_for(|report| told(report).1 == behind);
    assert_eq!(answer, Report::Withdrawn { id: behind });
}

#[test]
fn slot_of_a_process_that_leaves_out_a_file_is_not_passed_on() {
    let mut run = Run::new();
    let file = run.folder.path().join("file");
    let file = file.to_str().unwrap();
    let behind = waiting(&mut run, &["true"]);
    let behind = run.send(behind, &[]);
    let start = |run: &mut Run, script: &str| {
        let mut start = run.task(&["sh", "-c", script]);
        start.passes_on = Some(vec![c_string(file)]);
        run.send(start, &[])
    };
    let without = start(&mut run, "exit 0");
    assert_eq!(run.status(without), Status::Code(0));
    let with = start(&mut run, &format!(": > {file}"));
    assert_eq!(
        run.wait_for(|report| matches!(report, Report::Passed { .. })),
        Report::Passed {
            id: with,
            next: behind
        }
    );
    run.exited(behind);
}

#[test]
fn start_that_was_withdrawn_does_not_begin_and_one_that_cannot_begin_is_passed_over() {
    let mut run = Run::new();
    let (first, input) = passing(&mut run, "cat");
    let withdrawn = waiting(&mut run, &["true"]);
    let withdrawn = run.send(withdrawn, &[]);
    let missing = waiting(&mut run, &["/no/such/program"]);
    let missing = run.send(missing, &[]);
    let last = waiting(&mut run, &["true"]);
    let last = run.send(last, &[]);
    run.spawner
        .send(&Request::Withdraw { id: withdrawn }, &[])
        .unwrap();
    run.wait_for(|report| *report == Report::Withdrawn { id: withdrawn });
    drop(input);
    run.refused(missing);
    run.wait_for(|report| {
        *report
            == Report::Passed {
                id: first,
                next: last,
            }
    });
    assert_eq!(run.status(last), Status::Code(0));
    // It does not wait any more, so there is no answer: the next report is that of another task.
    run.spawner
        .send(&Request::Withdraw { id: last }, &[])
        .unwrap();
    let other = run.start(&["true"]);
    run.exited(other);
    let answered = |report: &Report| told(report) == ("withdrawn", last);
    assert!(!run.reports().iter().any(answered));
}

#[test]
fn start_that_waits_begins_on_request_and_once() {
    let mut run = Run::new();
    let start = waiting(&mut run, &["true"]);
    let id = run.send(start, &[]);
    for _ in 0..2 {
        run.spawner.send(&Request::Begin { id }, &[]).unwrap();
    }
    assert_eq!(run.status(id), Status::Code(0));
    let other = run.start(&["true"]);
    run.exited(other);
    let again =
        |report: &Report| matches!(report, Report::Exited { id: ended, .. } if *ended == id);
    assert!(!run.reports().iter().any(again));
}

#[test]
fn second_start_with_the_number_of_one_that_waits_is_refused() {
    let mut run = Run::new();
    let start = waiting(&mut run, &["true"]);
    run.send(start.clone(), &[]);
    let id = run.send(start, &[]);
    run.refused(id);
}
