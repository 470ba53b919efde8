//! What a run has recorded, as `ciel journal` shows it; and that looking changes nothing.

use std::fs::OpenOptions;
use std::io::Write;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Ended, Folder, Running, filtered, shows, wait_until};

/// A function that prints, and a task that waits for a pipe, for which the job waits.
const JOB: &str = "function part(n) { print(\"part\", n); return n * 7; }\n\
    a = spawn(part, [6]);\n\
    x = spawn_exec(\"stdinout\", {\"inputs\": [], \"command_line\": \
    [\"sh\", \"-c\", \"echo $$ > begun; cat pipe\"]}, 1);\n\
    return [*a, text(x[0])];\n";

fn folder() -> Folder {
    let folder = Folder::with_job(JOB);
    folder.pipe("pipe");
    folder
}

/// A run that has recorded all that happens before its pipe is written to.
fn waiting(folder: &Folder) -> Running {
    let running = Running::start(folder.command(&["run", "-q", "-j1", "job.sw"]));
    folder.wait_for_line("begun");
    wait_until("the part is finished and recorded", || {
        let records = records(folder);
        records.iter().any(|record| record["what"] == "finished")
    });
    running
}

/// The records of the newest run that has any; none before there is a journal.
fn records(folder: &Folder) -> Vec<Value> {
    let ended = folder.ciel(&["journal", "--json"]);
    let lines = ended.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Sizes differ with the length of the folder's name.
fn shown(name: &str, ended: &Ended) {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r" +\d+ bytes  ", "  SIZE  ");
    settings.bind(|| filtered(|| insta::assert_snapshot!(name, ended.shown())));
}

#[test]
fn journal_of_a_live_run_is_shown_and_the_run_goes_on() {
    let folder = folder();
    let running = waiting(&folder);
    shown("journal_live", &folder.ciel(&["journal"]));
    folder.write("pipe", "fed");
    let ended = folder.ended(running.take());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, "part 6\n[42,\"fed\"]\n");
}

#[test]
fn torn_journal_is_told_and_not_cut() {
    let folder = folder();
    let running = waiting(&folder);
    running.signal(Signal::KILL);
    assert_eq!(folder.ended(running.take()).code, None);
    let before = records(&folder);
    let run = folder.ciel(&["runs", "--json"]).stdout;
    let run: Value = serde_json::from_str(run.trim()).unwrap();
    let log = format!(
        ".ciel/runs/{}/journal/log-0000000000",
        run["run"].as_str().unwrap()
    );
    let mut file = OpenOptions::new()
        .append(true)
        .open(folder.path(&log))
        .unwrap();
    file.write_all(b"half a frame").unwrap();
    let torn = std::fs::read(folder.path(&log)).unwrap();
    let after = records(&folder);
    let (last, whole) = after.split_last().unwrap();
    assert_eq!(whole, before);
    assert_eq!(
        *last,
        serde_json::json!({"what": "unfinished", "bytes": 12})
    );
    assert_eq!(std::fs::read(folder.path(&log)).unwrap(), torn);
}

#[test]
fn records_are_told_as_json() {
    let folder = folder();
    let running = waiting(&folder);
    let records = records(&folder);
    let whats: Vec<&str> = records
        .iter()
        .map(|record| record["what"].as_str().unwrap())
        .collect();
    assert_eq!(whats[..3], ["began", "submitted", "placed"]);
    let numbers = records
        .iter()
        .map(|record| record["record"].as_u64().unwrap());
    assert!(numbers.eq(1..=records.len() as u64));
    let wrote = records
        .iter()
        .find(|record| record["what"] == "wrote")
        .unwrap();
    assert_eq!(wrote["beginning"], "part 6\n");
    assert_eq!(
        (&wrote["length"], &wrote["stream"]),
        (&7.into(), &"stdout".into())
    );
    let spawned = records
        .iter()
        .find(|record| record["what"] == "spawned")
        .unwrap();
    assert_eq!(spawned["place"], "job.sw:2");
    assert!(wrote["task"] == spawned["child"], "{wrote} {spawned}");
    running.signal(Signal::KILL);
    assert_eq!(folder.ended(running.take()).code, None);
}

// Only debug builds can be made to take snapshots of short logs.
#[cfg(debug_assertions)]
#[test]
fn snapshot_is_shown_in_place_of_what_it_covers() {
    let folder = folder();
    let mut command = folder.command(&["run", "-q", "-j1", "job.sw"]);
    command.env("CIEL_LOG_BYTES_MIN", "1");
    let running = Running::start(command);
    wait_until("a snapshot of the root and two tasks is there", || {
        let records = records(&folder);
        let first = records.first();
        first.is_some_and(|first| first["what"] == "snapshot" && first["tasks"] == 3)
    });
    let records = records(&folder);
    let next = records[0]["until"].as_u64().unwrap() + 1;
    let numbers = records[1..]
        .iter()
        .map(|record| record["record"].as_u64().unwrap());
    assert!(numbers.eq((next..).take(records.len() - 1)));
    let shown = folder.ciel(&["journal"]).stdout;
    assert!(
        shown.contains("  snapshot of the state up to record "),
        "{shown}"
    );
    assert!(shown.contains(": 3 tasks, "), "{shown}");
    running.signal(Signal::KILL);
    assert_eq!(folder.ended(running.take()).code, None);
}

#[test]
fn run_without_a_journal_is_told() {
    let folder = Folder::with_job("return 1;");
    shows!("journal_no_runs", folder.ciel(&["journal"]));
    assert_eq!(folder.ciel(&["run", "-q", "job.sw"]).code, Some(0));
    let run = folder.ciel(&["runs", "--json"]).stdout;
    let run: Value = serde_json::from_str(run.trim()).unwrap();
    shows!(
        "journal_ended",
        folder.ciel(&["journal", run["run"].as_str().unwrap()])
    );
    shows!("journal_unknown", folder.ciel(&["journal", "nothing"]));
}

/// A folder whose `./python` is that script of the shell.
fn with_interpreter(script: &str) -> Folder {
    let folder = Folder::new();
    folder.write("python", format!("#!/bin/sh\n{script}\n"));
    let made = std::process::Command::new("chmod")
        .arg("+x")
        .arg(folder.path("python"))
        .status();
    assert!(made.unwrap().success());
    folder
}

#[test]
fn lint_asks_the_interpreter_of_jobs() {
    let folder = with_interpreter("test \"$1$2\" = -P-c || exit 3\nshift 3\necho \"$@\"\nexit 1");
    let words = ["lint", "--python", "./python", "--json", "a.py", "-b.py"];
    shows!("lint_option", folder.ciel(&words));
    let ended = folder.ciel(&[
        "lint", "--python", "./python", "--json", "a.py", "--", "-b.py",
    ]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), "--json -- a.py -b.py\n")
    );
}

#[test]
fn lint_without_an_interpreter_or_its_module_says_which_is_missing() {
    // The second ended with the interpreter's own words, which did not say what to do.
    let folder = with_interpreter("exec python3 -I -S \"$@\"");
    for (interpreter, told) in [
        (
            "./missing",
            "the Python interpreter ./missing does not exist",
        ),
        ("./python", "./python has no module ciel"),
    ] {
        let ended = folder.ciel(&["lint", "--python", interpreter, "a.py"]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
        assert!(ended.stderr.contains("--python FILE"), "{}", ended.stderr);
    }
}
