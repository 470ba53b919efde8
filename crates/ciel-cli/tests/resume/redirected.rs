//! Output that the shell has redirected: what a file holds already is not written to it again.
//!
//! Read first: `support`.

use std::fs::{File, OpenOptions};
use std::process::Stdio;

use crate::support::{Ended, Live, Place, until_true};

/// A job that is killed between its lines: in the middle it waits for the file `go`.
const JOB: &str = "
function line(n) { print(\"line\", n); return n; }
for (n in range(9)) {
    if (n == 4) {
        command = \"until test -e go; do sleep 0.01; done\";
        g = *spawn_exec(\"shell\", {\"command\": command}, 1)[0];
    }
    x = *spawn(line, [n]);
}
print(\"last\");
return {\"lines\": 10};
";

/// All that it shows.
const WHOLE: &str = "line 0\nline 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nlast\n\
    {\"lines\":10}\n";

/// What it has shown when it waits.
const HALF: &str = "line 0\nline 1\nline 2\nline 3\n";

fn place() -> Place {
    let place = Place::new();
    place.file("job.sw", JOB);
    place.file("go", "");
    place
}

/// The file as `>` opens it.
fn new_file(place: &Place, name: &str) -> File {
    File::create(place.path(name)).unwrap()
}

/// The file as `>>` opens it.
fn end_of(place: &Place, name: &str) -> File {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    options.open(place.path(name)).unwrap()
}

/// Runs the job with this as its standard output.
fn run_into(place: &Place, stdout: File, options: &[&str]) -> Ended {
    ended(place, stdout, options, None)
}

/// The same, killed at that record.
fn killed_into(place: &Place, stdout: File, options: &[&str], at: &str) {
    let ended = ended(place, stdout, options, Some(at));
    assert_eq!(ended.signal, Some(9), "at {at}: {}", ended.stderr);
    place.await_nobody();
}

/// The same, killed when the file `shown` ends with half of the output.
fn killed_between(place: &Place, stdout: File, options: &[&str], shown: &str) {
    std::fs::remove_file(place.path("go")).unwrap();
    let mut command = place.command();
    command.arg("run").args(options).arg("job.sw");
    let live = Live::start_into(command, Stdio::from(stdout));
    until_true("half of the output", || place.read(shown).ends_with(HALF));
    live.signal("KILL");
    assert_eq!(live.end().signal, Some(9));
    place.await_nobody();
    place.file("go", "");
}

fn ended(place: &Place, stdout: File, options: &[&str], at: Option<&str>) -> Ended {
    let mut command = place.command();
    command.arg("run").args(options).arg("job.sw");
    if let Some(at) = at {
        command.env("CIEL_DIE_AT_RECORD", at);
    }
    Live::start_into(command, Stdio::from(stdout)).end()
}

fn expect_whole(place: &Place, ended: &Ended, name: &str) {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(place.read(name), WHOLE, "{}", ended.stderr);
}

fn expect_refused(ended: &Ended, words: &str) {
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for words in [
        words,
        "standard output no longer holds the output of the run",
    ] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn appended_file_of_a_killed_run_goes_on_exactly() {
    for at in ["1-", "5", "12-", "18", "22-", "26"] {
        let place = place();
        killed_into(&place, new_file(&place, "out"), &[], at);
        let held = place.read("out");
        assert!(WHOLE.starts_with(&held), "{held}");
        let ended = run_into(&place, end_of(&place, "out"), &[]);
        expect_whole(&place, &ended, "out");
        // Where nothing had been shown, it may be that nothing had been written down either.
        let resumed = ended.stderr.contains("resuming");
        assert!(resumed || held.is_empty(), "at {at}: {}", ended.stderr);
    }
}

#[test]
fn file_killed_again_and_again_goes_on_exactly() {
    let place = place();
    for at in ["5", "12-"] {
        killed_into(&place, end_of(&place, "out"), &[], at);
    }
    for _ in 0..3 {
        killed_between(&place, end_of(&place, "out"), &[], "out");
    }
    let ended = run_into(&place, end_of(&place, "out"), &[]);
    expect_whole(&place, &ended, "out");
}

#[test]
fn what_stood_in_an_appended_file_before_the_run_stays() {
    let place = place();
    place.file("out", "my notes\n");
    killed_between(&place, end_of(&place, "out"), &[], "out");
    let ended = run_into(&place, end_of(&place, "out"), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(place.read("out"), format!("my notes\n{WHOLE}"));
}

#[test]
fn emptied_file_and_another_file_get_the_whole_output() {
    let place = place();
    place.file("notes", "my notes\n");
    killed_between(&place, end_of(&place, "notes"), &[], "notes");
    killed_between(&place, new_file(&place, "out"), &[], "out");
    killed_between(&place, new_file(&place, "out"), &[], "out");
    // Shorter than where the run had begun in it.
    killed_between(&place, new_file(&place, "notes"), &[], "notes");
    let ended = run_into(&place, end_of(&place, "notes"), &[]);
    expect_whole(&place, &ended, "notes");
    assert!(WHOLE.starts_with(&place.read("out")));
}

#[test]
fn pipe_gets_the_whole_output_after_a_file() {
    let place = place();
    killed_between(&place, new_file(&place, "out"), &[], "out");
    let ended = place.run(&["run", "job.sw"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), WHOLE));
}

#[test]
fn file_of_the_output_option_goes_on_exactly() {
    let place = place();
    let options = ["-o", "out"];
    killed_between(&place, new_file(&place, "result"), &options, "out");
    assert!(WHOLE.starts_with(&place.read("out")) && place.has("out"));
    let ended = run_into(&place, end_of(&place, "result"), &options);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(place.read("out") + &place.read("result"), WHOLE);
}

#[test]
fn file_in_which_something_else_stands_is_left_alone() {
    let place = place();
    killed_between(&place, new_file(&place, "out"), &[], "out");
    let held = place.read("out");
    let spoiled = place.file("out", format!("{held}done\n"));
    let ended = run_into(&place, end_of(&place, "out"), &[]);
    expect_refused(&ended, &format!("it differs from byte {} on", held.len()));
    assert_eq!(
        std::fs::read_to_string(spoiled).unwrap(),
        format!("{held}done\n")
    );
    // It can resume elsewhere.
    let ended = run_into(&place, new_file(&place, "other"), &[]);
    expect_whole(&place, &ended, "other");
}

#[test]
fn file_that_goes_on_behind_the_output_is_left_alone() {
    let place = place();
    killed_between(&place, new_file(&place, "out"), &[], "out");
    place.file("out", format!("{WHOLE}more\n"));
    let ended = run_into(&place, end_of(&place, "out"), &[]);
    expect_refused(&ended, "it continues after the last byte");
    // It was killed when it had shown all but a part of the result.
    place.file("out", &WHOLE[..WHOLE.len() - 5]);
    let ended = run_into(&place, end_of(&place, "out"), &[]);
    expect_whole(&place, &ended, "out");
}

#[test]
fn file_that_holds_the_result_already_stays_as_it_is() {
    let place = place();
    killed_between(&place, new_file(&place, "out"), &[], "out");
    // It was killed after it had shown its result, and before it had noted that it was at its end.
    place.file("out", WHOLE);
    let ended = run_into(&place, end_of(&place, "out"), &[]);
    expect_whole(&place, &ended, "out");
}

#[test]
fn file_opened_at_its_beginning_is_compared_and_not_overwritten() {
    let place = place();
    killed_between(&place, new_file(&place, "out"), &[], "out");
    let open = || OpenOptions::new().write(true).open(place.path("out"));
    killed_between(&place, open().unwrap(), &[], "out");
    let held = place.read("out");
    assert!(WHOLE.starts_with(&held), "{held}");
    let ended = run_into(&place, open().unwrap(), &[]);
    expect_whole(&place, &ended, "out");
}

#[test]
fn file_that_is_standard_error_too_gets_the_whole_output() {
    let place = place();
    let both = |at: Option<&str>| {
        let mut command = place.command();
        command.args(["run", "job.sw"]);
        command.envs(at.map(|at| ("CIEL_DIE_AT_RECORD", at)));
        let (stdout, stderr) = (end_of(&place, "out"), end_of(&place, "out"));
        command.stdout(stdout).stderr(stderr);
        command.status().unwrap()
    };
    assert!(!both(Some("18")).success());
    place.await_nobody();
    let before = place.read("out");
    assert!(both(None).success());
    let after = place.read("out");
    let added = after.strip_prefix(&before).unwrap();
    let lines = |text: &str| -> String {
        let own = |line: &&str| WHOLE.contains(*line);
        text.split_inclusive('\n').filter(own).collect()
    };
    assert_eq!(lines(added), WHOLE);
}

/// A loop that ran the command until it ended well, with one log file, was refused for ever: the
/// run had been killed before it had shown anything, and its place in the file was the end of that
/// at its start, where another program then wrote.
#[test]
fn what_others_append_before_anything_is_shown_is_none_of_the_output() {
    let place = place();
    let mut before = String::new();
    for (retry, at) in ["1", "2", "3-"].into_iter().enumerate() {
        killed_into(&place, end_of(&place, "out"), &[], at);
        assert_eq!(place.read("out"), before, "at {at}");
        before += &format!("retry {retry}\n");
        place.file("out", &before);
    }
    let ended = run_into(&place, end_of(&place, "out"), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(place.read("out"), before + WHOLE);
}

/// Such a loop continues with a new run, as the message says.
#[test]
fn new_run_appends_to_a_file_in_which_something_else_stands() {
    let place = place();
    killed_between(&place, end_of(&place, "out"), &[], "out");
    let held = place.read("out") + "retry\n";
    place.file("out", &held);
    let ended = run_into(&place, end_of(&place, "out"), &[]);
    expect_refused(&ended, "or with --new for a new run");
    let ended = run_into(&place, end_of(&place, "out"), &["--new"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(place.read("out"), held + WHOLE);
}
