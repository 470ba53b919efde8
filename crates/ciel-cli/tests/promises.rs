//! Sentences of the pages about failures and recovery, each tried as its reader would.
//!
//! Most sentences of those pages are tested where their subject is; these had no test. Read first:
//! `support`.

mod support;

use support::{Place, appended, held, shell, task};

/// "Another attempt of a function finds what the tasks that it spawned gave: they are not repeated,
/// nor is one of them that failed. It must print the same again, and its lines appear once."
#[test]
fn another_attempt_of_a_function_repeats_no_task_and_no_line() {
    let place = Place::new();
    let command = |name: &str, end: &str| {
        let command = format!("{}; {end}", appended(name, "marks"));
        task(&command, "{\"pure\": false}")
    };
    let script = format!(
        "function again() {{
             good = {};
             bad = {};
             print(\"good\", *good);
             try {{ print(*bad); }} catch (e) {{ print(\"bad\", e.kind); }}
             throw \"no\";
         }}
         return *spawn(again, [], {{\"retries\": 2}});",
        command("good", "echo 5"),
        command("bad", "exit 3"),
    );
    for mode in ["-j1", "-j2", "--serial"] {
        let ended = place.script(&[mode], &script);
        assert_eq!(ended.code, Some(1), "{mode} {}", ended.stderr);
        assert_eq!(ended.stdout, "good 5\nbad TaskError\n", "{mode}");
        assert!(
            ended.stderr.contains("2 retried"),
            "{mode} {}",
            ended.stderr
        );
        let marks = place.read("marks");
        let mut marks: Vec<&str> = marks.lines().collect();
        marks.sort_unstable();
        assert_eq!(marks, ["bad", "good"], "{mode}");
        std::fs::remove_file(place.path("marks")).unwrap();
    }
}

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
