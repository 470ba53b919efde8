//! How an ordered command ends: its status, signals, and what is killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

use super::support::{Place, kill, parent_of, until, until_true};
use super::{command, fifos, may_intercept, ordered, plain};

#[test]
fn status_is_that_of_the_command() {
    let place = Place::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        let output = ordered(&place, &["--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{script}");
    }
}

#[test]
fn command_that_cannot_start_says_why() {
    let place = Place::new();
    place.file("plain", "no program");
    let missing = ordered(&place, &["--", "no-such-program"]);
    let stderr = String::from_utf8_lossy(&missing.stderr);
    assert_eq!(missing.status.code(), Some(127), "{stderr}");
    let expected = "error: cannot start no-such-program: No such file or directory\n";
    assert_eq!(stderr, expected);
    let closed = ordered(&place, &["--", "./plain"]);
    assert_eq!(closed.status.code(), Some(126));
}

#[test]
fn route_of_pipes_passes_output_on_and_says_that_it_is_not_ordered() {
    let place = Place::new();
    let script = "(echo a) & wait; echo b >&2; echo c";
    let output = ordered(&place, &["--route", "pipes", "--", "sh", "-c", script]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\nc\n");
    assert_eq!(
        stderr,
        "notice: the processes of the command are not told apart: what they print is passed on as \
         it comes\nb\n"
    );
}

/// The message blamed the system, and the command might have run before it was refused.
#[test]
fn files_cannot_be_ordered_by_the_route_of_pipes() {
    let place = Place::new();
    let words = ["--route", "pipes", "--file", "log", "--", "touch", "ran"];
    let output = ordered(&place, &words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert_eq!(
        stderr,
        "error: --file needs the route seccomp: the route pipes does not tell processes apart\n\
         hint: leave out `--route pipes`\n"
    );
    assert!(!place.has("ran"));
}

#[test]
fn system_without_interception_falls_back_with_a_notice() {
    let test = "system_without_interception_falls_back_with_a_notice";
    if !may_intercept(test) {
        return;
    }
    let place = Place::new();
    // Within an ordered command there can be no second listener.
    let inner = format!("{} ordered -- sh -c 'echo x'", super::support::CIEL);
    let output = ordered(&place, &["--", "sh", "-c", &inner]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "x\n", "{stderr}");
    assert!(
        stderr.starts_with("notice: calls of processes cannot be intercepted"),
        "{stderr}"
    );
    let inner = format!(
        "{} ordered --route seccomp -- touch ran",
        super::support::CIEL
    );
    let output = ordered(&place, &["--", "sh", "-c", &inner]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("`--route pipes`"), "{stderr}");
    assert!(!place.has("ran"));
    let inner = format!("{} ordered --file log -- touch ran", super::support::CIEL);
    let output = ordered(&place, &["--", "sh", "-c", &inner]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(
        stderr.contains("--file needs the route seccomp"),
        "{stderr}"
    );
    assert!(!place.has("ran"));
}

#[test]
fn standard_input_is_that_of_the_command() {
    let place = Place::new();
    let mut child = command(&place, &["--", "sh", "-c", "cat; echo end"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"given\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "given\nend\n");
}

#[test]
fn final_output_appears_while_the_command_runs() {
    if !may_intercept("final_output_appears_while_the_command_runs") {
        return;
    }
    let place = Place::new();
    fifos(&place, &["gate".to_owned()]);
    let script = "(echo first; read x < gate; echo second) & (echo third) & wait";
    let mut child = running(&place, script);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "first\n");
    std::fs::write(place.path("gate"), "\n").unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "second\nthird\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn reader_that_goes_away_ends_the_writers_as_ever() {
    if !may_intercept("reader_that_goes_away_ends_the_writers_as_ever") {
        return;
    }
    let place = Place::new();
    let mut child = running(&place, "(yes & wait); yes");
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "y\n");
    // The shell reports that its last command was ended by SIGPIPE.
    assert_eq!(child.wait().unwrap().code(), Some(141));
    place.await_nobody();
}

/// Signals that the page names.
const PASSED_ON: [&str; 8] = [
    "TERM", "HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "WINCH",
];

#[test]
fn signal_is_passed_on_to_the_command() {
    if !may_intercept("signal_is_passed_on_to_the_command") {
        return;
    }
    for signal in PASSED_ON {
        let place = Place::new();
        fifos(&place, &["gate".to_owned()]);
        // The trap ends the process for which the shell waits.
        let script = format!(
            "trap 'echo > gate; echo got it; exit 5' {signal}; \
             read x < gate & : > started; wait"
        );
        let mut child = running(&place, &script);
        let mut output = child.stdout.take().unwrap();
        place.await_file("started");
        kill(child.id(), signal);
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!((rest.as_str(), code), ("got it\n", Some(5)), "{signal}");
    }
}

/// A command with three levels of processes that wait for ever.
const FOREVER: &str = "(sh -c 'read x < gate' & read x < gate) & (setsid sleep 9999 &) ; \
                       echo ready; wait";

fn running(place: &Place, script: &str) -> Child {
    let mut command = command(place, &["--", "sh", "-c", script]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Starts [`FOREVER`]; all of its processes are there.
fn forever(place: &Place) -> Child {
    fifos(place, &["gate".to_owned()]);
    let child = running(place, FOREVER);
    until_true("all processes are there", || place.processes().len() >= 6);
    child
}

fn child_of(place: &Place, parent: u32) -> u32 {
    let is_child = |pid: &u32| parent_of(*pid) == Some(parent);
    until("a child", || place.processes().into_iter().find(is_child))
}

#[test]
fn killed_guard_leaves_no_process() {
    let place = Place::new();
    let mut child = forever(&place);
    kill(child.id(), "KILL");
    child.wait().unwrap();
    place.await_nobody();
}

#[test]
fn killed_supervisor_leaves_no_process_and_is_reported() {
    let place = Place::new();
    let mut child = forever(&place);
    kill(child_of(&place, child.id()), "KILL");
    assert_eq!(child.wait().unwrap().code(), Some(125));
    place.await_nobody();
}

#[test]
fn killed_command_gives_its_status_when_its_processes_have_ended() {
    if !may_intercept("killed_command_gives_its_status_when_its_processes_have_ended") {
        return;
    }
    let place = Place::new();
    fifos(&place, &["gate".to_owned(), "other".to_owned()]);
    let mut child = running(&place, "(read x < gate; echo late) & read x < other");
    let mut output = child.stdout.take().unwrap();
    let supervisor = child_of(&place, child.id());
    let command = child_of(&place, supervisor);
    // The process in the background has opened the pipe when this returns.
    let mut gate = std::fs::OpenOptions::new()
        .write(true)
        .open(place.path("gate"))
        .unwrap();
    kill(command, "KILL");
    gate.write_all(b"\n").unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert_eq!(text, "late\n");
    assert_eq!(child.wait().unwrap().code(), Some(137));
}

#[test]
fn killed_child_leaves_a_prefix_of_its_output_in_its_place() {
    if !may_intercept("killed_child_leaves_a_prefix_of_its_output_in_its_place") {
        return;
    }
    let place = Place::new();
    let script = "sh -c 'echo begun; kill -9 $$; echo never' & echo next; wait; echo last";
    let output = ordered(&place, &["--", "sh", "-c", script]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "begun\nnext\nlast\n"
    );
}

/// The standard library opens `/dev/null` for what is closed: output was lost with status 0.
#[test]
fn closed_standard_output_is_an_error_unless_nothing_is_printed() {
    let place = Place::new();
    for (command, code, message) in [
        (
            "echo x",
            125,
            "error: cannot write standard output: Bad file descriptor",
        ),
        ("echo said >&2; exit 3", 3, "said\n"),
    ] {
        let script = format!(
            "exec {} ordered -- sh -c '{command}' >&-",
            super::support::CIEL
        );
        let output = plain(&place, &["sh", "-c", &script]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{command}: {stderr}");
        assert!(stderr.starts_with(message), "{stderr}");
    }
}

/// A command that read closed standard input found its end, and ended well.
#[test]
fn command_reads_closed_standard_input_as_without_us() {
    let place = Place::new();
    let [ours, theirs] = ["exec \"$CIEL\" ordered -- cat", "exec cat"].map(|words| {
        let mut shell = place.program("sh".as_ref());
        shell.env("CIEL", super::support::CIEL);
        shell
            .args(["-c", &format!("{words} <&-")])
            .output()
            .unwrap()
    });
    assert_eq!(
        (ours.status.code(), theirs.status.code()),
        (Some(1), Some(1))
    );
    let said = String::from_utf8_lossy(&ours.stderr);
    assert!(said.contains("Bad file descriptor"), "{said}");
    assert!(theirs.stderr.starts_with(&ours.stderr), "{said}");
}

/// What is dropped without us is dropped with us, and the command continues.
#[test]
fn messages_to_closed_standard_error_are_dropped() {
    let place = Place::new();
    let ciel = super::support::CIEL;
    let script = format!("exec {ciel} ordered -- sh -c 'ls no-such-file; echo x' 2>&-");
    let output = plain(&place, &["sh", "-c", &script]);
    assert_eq!(
        (output.status.code(), &*output.stdout),
        (Some(0), &b"x\n"[..])
    );
}
