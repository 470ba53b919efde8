//! The page about recovery.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;

use crate::support::programs::{python, runs_python};
use crate::support::{Ended, Live, Place, appended, done, held, shell, task, until_true};

/// "`--durable never`: starts from the beginning" after `kill -9`, and nothing is recorded.
#[test]
fn run_that_is_not_to_be_durable_starts_from_the_beginning() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "x = *{}; print(\"begun\"); y = *{};",
        shell(&format!("{}; echo 1", appended("ran", "marks"))),
        shell(&held("gate"))
    );
    let options = ["-q", "--durable", "never"];
    let live = place.start_script(&options, &script);
    assert_eq!(live.line(), "begun");
    live.signal("KILL");
    assert_eq!(live.end().signal, Some(9));
    place.await_nobody();
    gate.release(1);
    let ended = place.script(&options, &script);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "begun\n"),
        "{}",
        ended.stderr
    );
    assert_eq!(place.read("marks"), "ran\nran\n");
}

/// Kills a run when a command waits at the gate, which is open from then on, and `shown` has come
/// on standard output, so that all from which it follows is recorded. What came on standard error.
fn broken_off(place: &Place, options: &[&str], script: &str, shown: &str) -> String {
    let gate = place.gate("gate");
    let live = place.start_script(options, script);
    place.await_file("begun");
    until_true(shown, || live.unread().contains(shown));
    live.signal("KILL");
    let ended = live.end();
    assert_eq!(ended.signal, Some(9));
    place.await_nobody();
    drop(gate);
    fs::remove_file(place.path("gate")).unwrap();
    place.file("gate", "open\n");
    ended.stderr
}

/// A task at which the run is killed.
fn killing() -> String {
    shell(&format!("{}; {}; echo 1", done("begun"), held("gate")))
}

fn expect_of(ended: &Ended, stdout: &str) {
    let found = (ended.code, ended.stdout.as_str());
    assert_eq!(found, (Some(0), stdout), "{}", ended.stderr);
}

/// The folder of the one run there is.
fn run_folder(place: &Place) -> PathBuf {
    let mut runs = fs::read_dir(place.path(".ciel/runs")).unwrap();
    let found = runs.next().unwrap().unwrap().path();
    assert!(runs.next().is_none());
    found
}

/// The table of "The folder `.ciel/runs/RUN/` contains", of a run that was killed; and "the run
/// ended: its journal and results are removed".
#[test]
fn folder_of_a_killed_run_contains_what_the_page_lists() {
    let place = Place::new();
    let script = format!(
        "x = {}; print(len(text(x))); y = *{};",
        shell("head -c 4000 /dev/zero | tr '\\0' a"),
        killing()
    );
    broken_off(&place, &["-q"], &script, "4000");
    let page = fs::read_to_string(crate::support::repository().join("docs/concepts/recovery.md"));
    let page = page.unwrap();
    let listed = |name: &str| {
        page.contains(&format!("| `{name}` |")) || page.contains(&format!("| `{name}/` |"))
    };
    for entry in fs::read_dir(run_folder(&place)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(listed(&name), "{name} is not on the page");
    }
    for name in [
        "run.json", "journal", "stdout", "objects", "history", "lock",
    ] {
        assert!(run_folder(&place).join(name).exists(), "{name}");
    }
    assert_eq!(
        fs::read_to_string(run_folder(&place).join("stdout")).unwrap(),
        "4000\n"
    );
    expect_of(&place.script(&["-q"], &script), "4000\n");
    for name in ["journal", "objects", "stdout", "spill", "scratch"] {
        assert!(!run_folder(&place).join(name).exists(), "{name}");
    }
}

/// "`--stderr=ordered`: in serial order; what was final before the crash is not repeated", and
/// "`ciel logs`, `ciel why`: … everything after it".
#[test]
fn what_was_final_on_ordered_standard_error_is_not_repeated_and_logs_have_the_rest() {
    let place = Place::new();
    let later = |command: &str, name: &str| {
        let options = format!("{{\"pure\": false, \"name\": \"{name}\"}}");
        task(command, &options)
    };
    let script = format!(
        "if (*{} == 1) {{ print(\"shown\"); }}
         if (*{} == 1) {{ print(\"resumed\"); }}
         x = *{};",
        later("echo before >&2; echo 1", "first"),
        killing(),
        later("echo after >&2; echo 1", "last")
    );
    let first = broken_off(&place, &["--stderr=ordered"], &script, "shown");
    assert_eq!(first, "before\n");
    let ended = place.script(&["-q", "--stderr=ordered"], &script);
    expect_of(&ended, "shown\nresumed\n");
    assert_eq!(ended.stderr, "after\n");
    assert_eq!(place.run(&["logs", "last"]).stdout, "after\n");
    let why = place.run(&["why", "last"]);
    assert!(
        why.stdout.contains("finished"),
        "{}{}",
        why.stdout,
        why.stderr
    );
}

/// "The code of a script is its text with all that it includes… Scripts that tasks call by their
/// files, and data that commands read by themselves, do not count."
#[test]
fn included_text_belongs_to_the_key_and_called_scripts_and_data_do_not() {
    let place = Place::new();
    place.file("included.sw", "function one() { return 1; }");
    place.file("called.sw", "return 1;");
    place.file("data", "1");
    let script = format!(
        "include \"included.sw\";
         a = *{}; b = *spawn_exec(\"skywriting\", {{\"file\": \"called.sw\"}}, 1)[0];
         print(one(), a, b); x = *{};",
        shell("cat data"),
        killing()
    );
    broken_off(&place, &["-q"], &script, "1 1 1");
    place.file("called.sw", "return 2;");
    place.file("data", "2");
    let ended = place.script(&[], &script);
    assert!(ended.stderr.contains("resuming run"), "{}", ended.stderr);
    expect_of(&ended, "1 1 1\n");

    fs::remove_dir_all(place.path(".ciel")).unwrap();
    for name in ["gate", "begun"] {
        fs::remove_file(place.path(name)).unwrap();
    }
    broken_off(&place, &["-q"], &script, "1 2 2");
    place.file("included.sw", "function one() { return 7; }");
    let ended = place.script(&[], &script);
    assert!(!ended.stderr.contains("resuming run"), "{}", ended.stderr);
    expect_of(&ended, "7 2 2\n");
}

/// The hint was `ciel resume RUN`, which did not find the run.
#[test]
fn run_whose_state_folder_was_moved_is_resumed_as_its_hint_says() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "print(\"begun\"); x = *{}; y = *{}; print(\"ended\");",
        shell(&held("gate")),
        shell("true")
    );
    let live = place.start_script(&["-q"], &script);
    assert_eq!(live.line(), "begun");
    fs::rename(place.path(".ciel"), place.path("moved")).unwrap();
    gate.release(1);
    let ended = live.end();
    assert!(
        ended.stderr.contains("is missing: it was moved"),
        "{}",
        ended.stderr
    );
    let (_, hint) = ended.stderr.split_once("resume run ").unwrap();
    let (run, _) = hint
        .split_once(" where it is now, with `--state DIR`")
        .unwrap();
    gate.release(1);
    let resumed = place.run(&["resume", run, "--state", "moved", "-q"]);
    expect_of(&resumed, "begun\nended\n");
}

/// "The code of a Python job is all `*.py` files in and below its folder."
#[test]
fn code_of_a_python_job_is_every_file_of_it_in_and_below_its_folder() {
    if !runs_python(
        "code_of_a_python_job_is_every_file_of_it_in_and_below_its_folder",
        "",
    ) {
        return;
    }
    let place = Place::new().with_variable("CIEL_PYTHON", python().to_str().unwrap());
    let job = format!(
        "import ciel\n\ndef main():\n    ciel.sh(\"{}; {}\").result()\n",
        done("begun"),
        held("gate")
    );
    place.file("job.py", job);
    fs::create_dir_all(place.path("below/deeper")).unwrap();
    place.file("below/deeper/module.py", "A = 1\n");
    place.file("below/notes.txt", "1");
    let gate = place.gate("gate");
    for (changed, resumes) in [("below/notes.txt", true), ("below/deeper/module.py", false)] {
        let live = place.start(&["run", "job.py"]);
        place.await_file("begun");
        live.signal("KILL");
        assert_eq!(live.end().signal, Some(9));
        place.await_nobody();
        place.file(changed, "B = 2\n");
        gate.release(1);
        let ended = place.run(&["run", "job.py"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let resumed = ended.stderr.contains("resuming run");
        assert_eq!(resumed, resumes, "{changed} {}", ended.stderr);
        fs::remove_file(place.path("begun")).unwrap();
    }
}

/// "`--new`: starts from the beginning; the old run is kept until `ciel clean --all`."
#[test]
fn old_run_is_kept_beside_a_new_one_until_all_are_cleaned() {
    let place = Place::new();
    let script = format!("print(*{}); x = *{};", shell("echo 1"), killing());
    broken_off(&place, &["-q"], &script, "");
    expect_of(&place.script(&["--new"], &script), "1\n");
    let states = || place.run(&["runs", "--json"]).stdout;
    assert!(states().contains("\"resumable\""), "{}", states());
    assert_eq!(place.run(&["clean"]).code, Some(0));
    assert!(states().contains("\"resumable\""), "{}", states());
    assert_eq!(place.run(&["clean", "--all"]).code, Some(0));
    assert!(!states().contains("\"resumable\""), "{}", states());
}

/// "Only if the file of a result is missing is its task rerun to recompute it. What it prints is
/// dropped, and its standard error is shown again; a task that was declared impure is not rerun,
/// and then the job cannot continue."
#[test]
fn missing_result_is_recomputed_unless_its_task_is_impure() {
    let make = "head -c 9000 /dev/zero | tr '\\0' a; echo again >&2";
    let make = format!("{}; {make}", appended("x", "marks"));
    let look = "{\"command\": \"wc -c < {x}\", \"inputs\": {\"x\": x}}";
    for (options, continues) in [("{}", true), ("{\"pure\": false}", false)] {
        let place = Place::new();
        let script = format!(
            "x = {}; print(\"made\", len(text(x))); y = *{};
             print(y, *spawn_exec(\"shell\", {look}, 1)[0]);",
            task(&make, options),
            killing(),
        );
        broken_off(&place, &["-q"], &script, "made");
        for entry in fs::read_dir(run_folder(&place).join("objects")).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        let ended = place.script(&["-q"], &script);
        let runs = place.read("marks").lines().count();
        if continues {
            expect_of(&ended, "made 9000\n1 9000\n");
            assert_eq!(runs, 2);
            assert!(ended.stderr.contains("] again"), "{}", ended.stderr);
        } else {
            assert_eq!((ended.code, runs), (Some(1), 1), "{}", ended.stderr);
        }
    }
}

/// "The next process verifies files before anything runs… and recomputes those that have changed",
/// here one over 4 MiB, which "gets its digest in the background, in the file `digests`".
#[test]
fn changed_file_over_four_mebibytes_is_found_and_recomputed() {
    let place = Place::new();
    let make = "head -c 6000000 /dev/zero | tr '\\0' a";
    let look = "{\"command\": \"tr -d a < {x} | wc -c\", \"inputs\": {\"x\": x}}";
    let script = format!(
        "x = {}; y = *{};
         print(y, *spawn_exec(\"shell\", {look}, 1)[0]);",
        task(&format!("{}; {make}", appended("x", "marks")), "{}"),
        killing()
    );
    let gate = place.gate("gate");
    let live = place.start_script(&["-q"], &script);
    place.await_file("begun");
    until_true("the digest of the file", || {
        fs::metadata(run_folder(&place).join("digests")).is_ok_and(|found| found.len() > 0)
    });
    live.signal("KILL");
    assert_eq!(live.end().signal, Some(9));
    place.await_nobody();
    let mut objects = fs::read_dir(run_folder(&place).join("objects")).unwrap();
    let path = objects.next().unwrap().unwrap().path();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"b", 3_000_000).unwrap();
    gate.release(1);
    expect_of(&place.script(&["-q"], &script), "1 0\n");
    assert_eq!(place.read("marks"), "x\nx\n");
}

/// The record and what happened, of each line of a journal; times and sizes differ from run to run.
fn happenings(journal: &str) -> Vec<(u64, String)> {
    let happening = |line: &str| {
        let record = line.split_whitespace().next()?.parse().ok()?;
        let (_, what) = line.split_once(" bytes  ")?;
        Some((record, what.to_string()))
    };
    journal.lines().filter_map(happening).collect()
}

/// "This job…": its program, its journal when it was killed, what a resume shows, and the records
/// that follow are those of the page. The names and sizes there had become those of an old version.
#[test]
fn job_of_the_page_has_the_journal_of_the_page() {
    let page = crate::support::repository().join("docs/concepts/recovery.md");
    let page = fs::read_to_string(page).unwrap();
    let program = page.split("```skywriting\n").nth(1).unwrap();
    let place = Place::new();
    place.file("words.sw", program.split("```").next().unwrap());
    for record in ["27", "39"] {
        let mut command = place.command();
        command.args(["run", "-q", "-j1", "words.sw"]);
        command.env("CIEL_DIE_AT_RECORD", record);
        assert_eq!(Live::start(command).end().signal, Some(9));
        place.await_nobody();
    }
    let journal = place.run(&["journal"]).stdout;
    let expected = happenings(&page);
    assert_eq!(expected.len(), 39);
    assert_eq!(happenings(&journal), expected);
    let resumed = place.run(&["resume"]);
    expect_of(&resumed, "the 4000\ncat 2000\ndog 2000\n8000\n");
}
