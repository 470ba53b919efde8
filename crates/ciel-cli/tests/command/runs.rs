//! Runs that were broken off: how they are listed, resumed, refused and removed.
//!
//! A run can be resumed if it has left a journal, so these tests give it one.

use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Ended, Folder, Running, shows, shows_table, wait_until};

/// A job that waits for its pipe and shows what comes out of it.
const JOB: &str = "x = spawn_exec(\"stdinout\", {\"inputs\": [], \"command_line\": \
    [\"sh\", \"-c\", \"echo $$ > begun; cat pipe\"]}, 1, {\"keep\": false});\n\
    print(\"asked\");\nreturn text(x[0]);\n";

/// The words that run it.
const RUN: [&str; 2] = ["run", "job.sw"];

fn folder() -> Folder {
    let folder = Folder::with_job(JOB);
    folder.pipe("pipe");
    folder
}

/// Starts the job, and returns it when its task runs.
fn begun(folder: &Folder, words: &[&str]) -> Running {
    // What an earlier run of the job has written there.
    let _ = std::fs::remove_file(folder.path("begun"));
    let running = Running::start(folder.command(words));
    folder.wait_for_line("begun");
    running
}

/// The runs, as `ciel runs` lists them, newest first.
fn runs(folder: &Folder) -> Vec<Value> {
    let told = folder.ciel(&["runs", "--json"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let lines = told.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn newest(folder: &Folder) -> String {
    runs(folder)[0]["run"].as_str().unwrap().to_string()
}

fn states(folder: &Folder) -> Vec<String> {
    let state = |run: &Value| run["state"].as_str().unwrap().to_string();
    runs(folder).iter().map(state).collect()
}

/// A run with these words that was broken off by a signal.
fn broken_off(folder: &Folder, words: &[&str], signal: Signal) -> (String, Ended) {
    let running = begun(folder, words);
    let run = newest(folder);
    running.signal(signal);
    (run, folder.ended(running.take()))
}

/// Starts a command that resumes the job, and lets the job end.
fn ended_well(folder: &Folder, words: &[&str]) -> Ended {
    let running = begun(folder, words);
    folder.write("pipe", "fed");
    let ended = folder.ended(running.take());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended
}

fn expect_refused(ended: &Ended, code: &str) {
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), ""),
        "{}",
        ended.stderr
    );
    let line = ended.stderr.lines().last().unwrap();
    let event: Value = serde_json::from_str(line).unwrap();
    assert_eq!(event["code"], code, "{line}");
    assert!(!event["hint"].is_null(), "{line}");
}

#[test]
fn interrupted_run_says_how_it_goes_on() {
    let folder = folder();
    let (run, ended) = broken_off(&folder, &RUN, Signal::INT);
    shows!("interrupted_resumable", ended);
    shows_table!("ps_resumable", folder.ciel(&["ps"]));
    shows!("clean_resumable", folder.ciel(&["clean"]));
    let has = |name: &str| folder.path(&format!(".ciel/runs/{run}/{name}")).exists();
    assert!(has("objects") && has("spill") && has("run.json"));
    assert!(!has("scratch") && !has("ended"));
}

#[test]
fn same_command_goes_on_with_the_interrupted_run() {
    let folder = folder();
    let (run, _) = broken_off(&folder, &RUN, Signal::TERM);
    let ended = ended_well(&folder, &RUN);
    assert_eq!(ended.stdout, "asked\n\"fed\"\n");
    let first = ended.stderr.lines().next().unwrap();
    assert_eq!(
        first,
        format!("resuming run {run}: 0 tasks already finished")
    );
    assert_eq!(
        (newest(&folder), states(&folder)),
        (run, vec!["ended-well".to_string()])
    );
}

/// A run of this job whose reader goes away is interrupted; a new reader gets all of the output.
fn expect_new_reader_gets(job: &str, output: &str) {
    let folder = folder();
    folder.write("job.sw", job);
    let running = begun(&folder, &RUN);
    let run = newest(&folder);
    let mut child = running.take();
    drop(child.stdout.take());
    folder.write("pipe", "fed");
    let ended = folder.ended(child);
    assert_eq!(ended.code, Some(141), "{}", ended.stderr);
    assert_eq!(states(&folder), ["interrupted"]);
    let again = folder.ciel(&RUN);
    assert!(again.stderr.contains(&run), "{}", again.stderr);
    assert_eq!((again.code, &*again.stdout), (Some(0), output));
    assert_eq!(states(&folder), ["ended-well"]);
}

#[test]
fn run_whose_reader_went_away_can_go_on() {
    let job = JOB.replace("return text(x[0])", "print(text(x[0]))");
    expect_new_reader_gets(&job, "asked\nfed\n");
}

/// Only the result was left to print when the reader had gone: the command exited 0 and `ciel runs`
/// said that the run had ended well, although the result had gone to nobody.
#[test]
fn run_whose_result_has_no_reader_can_go_on() {
    let job = JOB.replace("print(\"asked\");\n", "");
    expect_new_reader_gets(&job, "\"fed\"\n");
}

/// After a run with `--state`, `ciel resume RUN` was told, which looks in the default folder: there
/// was no such run.
#[test]
fn commands_that_messages_name_find_a_run_in_a_state_folder_that_was_named() {
    let folder = folder();
    let running = begun(&folder, &["run", "--state", "its own", "job.sw"]);
    running.signal(Signal::INT);
    let ended = folder.ended(running.take());
    let told = "ciel resume --state 'its own' ";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    for look in ["ps", "clean"] {
        let ended = folder.ciel(&[look, "--state", "its own"]);
        assert!(ended.stdout.contains(told), "{}", ended.stdout);
    }
    let refused = folder.ciel(&["resume", "--state", "its own", "unknown"]);
    let told = "`ciel runs --state 'its own'`";
    assert!(refused.stderr.contains(told), "{}", refused.stderr);
}

#[test]
fn killed_run_is_resumed_in_its_folder_with_its_options() {
    let folder = folder();
    let state = folder.path(".ciel");
    let words = [
        "run",
        "--retries",
        "3",
        "-o",
        "out.txt",
        "job.sw",
        "argument",
    ];
    let (run, ended) = broken_off(&folder, &words, Signal::KILL);
    assert_eq!(ended.code, None);
    assert_eq!(states(&folder), ["interrupted"]);

    std::fs::remove_file(folder.path("begun")).unwrap();
    let elsewhere = Folder::new();
    let state = state.to_str().unwrap();
    let words = ["resume", "-j2", "--json", "--state", state, &run[..13]];
    let running = Running::start(elsewhere.command(&words));
    folder.wait_for_line("begun");
    folder.write("pipe", "fed");
    let ended = folder.ended(running.take());
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "\"fed\"\n"),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .events()
            .iter()
            .any(|event| event["event"] == "resumed")
    );
    assert_eq!(folder.read("out.txt"), "asked\n");
    let told = &runs(&folder)[0];
    assert_eq!(
        (&told["run"], &told["state"]),
        (&run.into(), &"ended-well".into())
    );
    assert_eq!(told["command"], serde_json::json!(["job.sw", "argument"]));
}

#[test]
fn resume_without_a_name_takes_the_newest_that_can_go_on() {
    let folder = folder();
    expect_refused(&folder.ciel(&["resume", "--json"]), "resume.none");
    let (older, _) = broken_off(&folder, &RUN, Signal::KILL);
    let (newer, _) = broken_off(&folder, &["run", "--new", "job.sw"], Signal::KILL);
    assert_ne!(older, newer);
    let ended = ended_well(&folder, &["resume"]);
    assert!(
        ended.stderr.contains(&format!("resuming run {newer}")),
        "{}",
        ended.stderr
    );
    assert_eq!(states(&folder), ["ended-well", "interrupted"]);
}

#[test]
fn live_run_is_not_resumed_and_its_process_is_told() {
    let folder = folder();
    let running = begun(&folder, &RUN);
    let run = newest(&folder);
    shows!("resume_live", folder.ciel(&["resume", &run]));
    let told = &runs(&folder)[0];
    assert_eq!(told["state"], "running");
    let ended = folder.ciel(&["resume", &run, "--json"]);
    expect_refused(&ended, "store.run-alive");
    assert!(
        ended
            .stderr
            .contains(&format!("in process {}", told["process"]))
    );
    folder.write("pipe", "fed");
    assert_eq!(folder.ended(running.take()).code, Some(0));
    shows!("resume_ended", folder.ciel(&["resume", &run]));
}

#[test]
fn of_two_resumes_at_once_exactly_one_gets_the_run() {
    let folder = folder();
    let (run, _) = broken_off(&folder, &RUN, Signal::KILL);
    std::fs::remove_file(folder.path("begun")).unwrap();
    let words = ["resume", "--json", &run];
    let start = || folder.command(&words).spawn().unwrap();
    let mut both = [start(), start()];
    let loser = std::cell::Cell::new(None);
    let both_cell = std::cell::RefCell::new(&mut both);
    wait_until("one is refused", || {
        let mut both = both_cell.borrow_mut();
        let ended = both
            .iter_mut()
            .position(|one| one.try_wait().unwrap().is_some());
        loser.set(ended);
        ended.is_some()
    });
    folder.wait_for_line("begun");
    folder.write("pipe", "fed");
    let [first, second] = both;
    let ended = [folder.ended(first), folder.ended(second)];
    let loser = loser.get().unwrap();
    expect_refused(&ended[loser], "store.run-alive");
    assert_eq!(
        ended[1 - loser].code,
        Some(0),
        "{}",
        ended[1 - loser].stderr
    );
}

#[test]
fn changed_script_starts_afresh_and_is_not_resumed() {
    let folder = folder();
    let (run, _) = broken_off(&folder, &RUN, Signal::KILL);
    folder.write("job.sw", "return 7;");
    shows!("resume_changed", folder.ciel(&["resume", &run]));
    let ended = folder.ciel(&RUN);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "7\n"));
    assert!(!ended.stderr.contains("resuming"), "{}", ended.stderr);
    assert_eq!(states(&folder), ["ended-well", "interrupted"]);
    folder.write("job.sw", JOB);
    assert!(ended_well(&folder, &RUN).stderr.contains(&run));
}

#[test]
fn other_arguments_are_another_job() {
    let folder = folder();
    broken_off(&folder, &RUN, Signal::KILL);
    let ended = ended_well(&folder, &["run", "job.sw", "other"]);
    assert!(!ended.stderr.contains("resuming"), "{}", ended.stderr);
}

#[test]
fn options_of_the_engine_do_not_make_another_job() {
    let folder = folder();
    let (run, _) = broken_off(&folder, &["run", "-j1", "job.sw"], Signal::KILL);
    let ended = ended_well(&folder, &["run", "-j2", "-k", "job.sw"]);
    assert!(
        ended.stderr.contains(&format!("resuming run {run}")),
        "{}",
        ended.stderr
    );
}

#[test]
fn serial_run_cannot_be_resumed() {
    let folder = folder();
    let (run, _) = broken_off(&folder, &["run", "--serial", "job.sw"], Signal::KILL);
    let told = &runs(&folder)[0];
    assert_eq!(
        (&told["state"], &told["resumable"]),
        (&"interrupted".into(), &false.into())
    );
    expect_refused(
        &folder.ciel(&["resume", "--json", &run]),
        "store.run-unrecorded",
    );
}

#[test]
fn run_of_another_version_is_told_and_left_alone() {
    let folder = folder();
    let (run, _) = broken_off(&folder, &RUN, Signal::KILL);
    let path = folder.path(&format!(".ciel/runs/{run}/run.json"));
    let mut description: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    description["version"] = "0.0.1".into();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, description.to_string()).unwrap();
    expect_refused(&folder.ciel(&["resume", "--json"]), "run.other-version");
    let ended = ended_well(&folder, &RUN);
    assert!(ended.stderr.contains("version 0.0.1"), "{}", ended.stderr);
    assert_eq!(states(&folder), ["ended-well", "interrupted"]);

    std::fs::write(&path, "{}").unwrap();
    expect_refused(&folder.ciel(&["resume", "--json"]), "run.undescribed");
    assert_eq!(folder.ciel(&["clean", "--all"]).stdout, "removed 2 runs\n");
}

#[test]
fn user_who_deletes_parts_of_a_run_can_go_on_working() {
    let folder = folder();
    let (run, _) = broken_off(&folder, &RUN, Signal::KILL);
    for part in ["objects", "spill", "history"] {
        let path = folder.path(&format!(".ciel/runs/{run}/{part}"));
        let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
    }
    assert!(ended_well(&folder, &["resume"]).stderr.contains(&run));
    let (run, _) = broken_off(&folder, &RUN, Signal::KILL);
    std::fs::remove_dir_all(folder.path(&format!(".ciel/runs/{run}/journal"))).unwrap();
    expect_refused(
        &folder.ciel(&["resume", "--json", &run]),
        "store.run-unrecorded",
    );
    assert!(!ended_well(&folder, &RUN).stderr.contains("resuming"));
    std::fs::remove_dir_all(folder.path(".ciel")).unwrap();
    assert!(!ended_well(&folder, &RUN).stderr.contains("resuming"));
}

#[test]
fn run_that_is_not_there_or_not_the_only_one_is_refused() {
    let folder = Folder::with_job("return 1;");
    assert_eq!(folder.ciel(&["runs"]).stdout, "no runs\n");
    shows!("resume_unknown", folder.ciel(&["resume", "77"]));
    for _ in 0..2 {
        assert_eq!(folder.ciel(&RUN).code, Some(0));
    }
    let beginning = &newest(&folder)[..3];
    expect_refused(
        &folder.ciel(&["resume", "--json", beginning]),
        "resume.several",
    );
}

#[test]
fn runs_are_listed_with_their_state_and_size() {
    let folder = folder();
    assert_eq!(
        ended_well(&folder, &["run", "--new", "job.sw"]).code,
        Some(0)
    );
    folder.write("bad.sw", "throw \"no\";");
    assert_eq!(folder.ciel(&["run", "bad.sw"]).code, Some(1));
    broken_off(&folder, &["run", "--new", "job.sw", "a"], Signal::KILL);
    let running = begun(&folder, &["run", "--new", "job.sw", "b"]);
    let table = folder.ciel(&["runs"]).stdout;
    let expected = [
        ("running in process", "job.sw b"),
        ("interrupted, can be resumed", "job.sw a"),
        ("failed", "bad.sw"),
        ("ended well", "job.sw"),
    ];
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), expected.len() + 2, "{table}");
    for (line, (state, job)) in lines[1..].iter().zip(expected) {
        assert!(line.contains(state) && line.ends_with(job), "{table}");
        assert!(line.contains("KiB"), "{table}");
    }
    assert!(lines[5].starts_with("4 runs, "), "{table}");
    let told = runs(&folder);
    assert_eq!(
        (&told[2]["tasks"], &told[3]["tasks"]),
        (&1.into(), &2.into())
    );
    assert!(told[2]["failure"].as_str().unwrap().contains("no"));
    folder.write("pipe", "fed");
    assert_eq!(folder.ended(running.take()).code, Some(0));
}

#[test]
fn oldest_ended_runs_are_removed_beyond_what_may_be_kept() {
    let folder = folder();
    let (unended, _) = broken_off(&folder, &RUN, Signal::KILL);
    folder.write("quick.sw", "return 1;");
    let quick = |keep: &str| folder.ciel(&["run", "--keep", keep, "quick.sw"]);
    for _ in 0..3 {
        let ended = quick("1G");
        assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
    }
    assert_eq!(runs(&folder).len(), 4);
    let ended = quick("0");
    assert_eq!(ended.code, Some(0));
    let told = ended.stderr.replace(&unended, "RUN");
    assert!(
        told.contains("warning: ") && told.contains(": RUN; `ciel resume"),
        "{told}"
    );
    assert_eq!(states(&folder), ["ended-well", "interrupted"]);
}

#[test]
fn state_folder_that_cannot_be_written_is_told_and_looked_at() {
    let folder = Folder::with_job("return 1;");
    assert_eq!(folder.ciel(&RUN).code, Some(0));
    let state = folder.path(".ciel");
    let mount = |words: &[&str]| {
        let done = Command::new("mount")
            .args(words)
            .arg(&state)
            .arg(&state)
            .output();
        done.is_ok_and(|done| done.status.success())
    };
    if !mount(&["--bind"]) || !mount(&["-o", "remount,bind,ro"]) {
        eprintln!("skipped: this user may not mount a file system");
        return;
    }
    let (run, resume, clean) = (
        folder.ciel(&RUN),
        folder.ciel(&["resume"]),
        folder.ciel(&["clean"]),
    );
    let listed = states(&folder);
    let undone = Command::new("umount").arg("-l").arg(&state).status();
    assert!(undone.unwrap().success());
    for ended in [&run, &clean] {
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(
            ended.stderr.contains("cannot be written"),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains("--state"), "{}", ended.stderr);
    }
    assert_eq!(resume.code, Some(2));
    assert_eq!(listed, ["ended-well"]);
}
