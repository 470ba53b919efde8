//! The page about failures.

use crate::support::{Place, SmallDisk, appended, done, held, shell, skipped, task};

/// "A task among them that failed is repeated, with everything that was spawned after it, unless it
/// had retries of its own. What was spawned before is not repeated."
#[test]
fn another_attempt_of_a_function_repeats_the_command_that_failed() {
    let place = Place::new();
    let command = |name: &str, end: &str| {
        let command = format!("{}; {end}", appended(name, "marks"));
        task(&command, "{\"pure\": false}")
    };
    let script = format!(
        "function again() {{
             before = {};
             flaky = {};
             return *before + *flaky + *{};
         }}
         print(*spawn(again, [], {{\"retries\": 2}}));",
        command("before", "echo 5"),
        command("flaky", "test $(grep -c flaky marks) -eq 3 && echo 7"),
        command("after", "echo 8"),
    );
    for mode in ["-j1", "-j2", "--serial"] {
        let ended = place.script(&[mode], &script);
        assert_eq!(ended.code, Some(0), "{mode} {}", ended.stderr);
        assert_eq!(ended.stdout, "20\n", "{mode}");
        assert!(
            ended.stderr.contains("2 retried"),
            "{mode} {}",
            ended.stderr
        );
        let marks = place.read("marks");
        let count = |name: &str| marks.lines().filter(|mark| *mark == name).count();
        let counts = ["before", "flaky", "after"].map(count);
        assert_eq!(counts, [1, 3, 1], "{mode} {marks}");
        std::fs::remove_file(place.path("marks")).unwrap();
    }
}

/// "Unless it had retries of its own": a chain of functions with retries repeated a command as
/// often as the product of all of them.
#[test]
fn attempts_of_functions_do_not_multiply() {
    let place = Place::new();
    let script = format!(
        "function down(n) {{
             if (n == 0) {{ return *{} + 0; }}
             return *spawn(down, [n - 1]) + 0;
         }}
         return *spawn(down, [4]) + 0;",
        task(
            &format!("{}; exit 3", appended("x", "marks")),
            "{\"pure\": false}"
        )
    );
    let ended = place.script(&["--retries", "2"], &script);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(place.read("marks").lines().count(), 3);
}

/// "Where something was printed since, by the function or by a task behind the failed one, nothing
/// is repeated, and the function finds the same failure." "A function must print the same again,
/// and its lines appear once."
#[test]
fn another_attempt_of_a_function_repeats_nothing_before_a_line_and_no_line() {
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

/// "`throw` of such a dictionary passes the failure on", with kind, message and origin.
#[test]
fn failure_that_is_caught_and_thrown_again_is_the_same() {
    let place = Place::new();
    let ended = place.script(
        &["-q"],
        "function bad() { throw {\"kind\": \"Own\", \"message\": \"m\", \"hint\": \"h\"}; }
         function passes() {
             try { print(*spawn(bad, []) + 0); } catch (e) { print(\"passed\"); throw e; }
         }
         try { print(*spawn(passes, []) + 0); } catch (e) {
             print(e.kind, e.message, e.hint, find(e.task, \"bad@\"), len(e.trace) > 1);
         }",
    );
    let expected = "passed\nOwn m h 0 true\n";
    assert_eq!(ended.stdout, expected, "{}", ended.stderr);
}

/// "Each attempt has the whole limit": two attempts take longer together than their task may.
#[test]
fn each_attempt_has_the_whole_time_limit() {
    let place = Place::new();
    let command = format!(
        "{}; sleep 5.1; test $(wc -l < marks) -eq 2; echo 5",
        appended("x", "marks")
    );
    let command = command.replace("; echo", " && echo");
    let options = "{\"timeout\": 10, \"retries\": 1}";
    let ended = place.script(&["-q"], &format!("return *{};", task(&command, options)));
    let found = (ended.code, ended.stdout.as_str());
    assert_eq!(found, (Some(0), "5\n"), "{}", ended.stderr);
}

/// "A death of `ciel` itself does not count towards the three", nor as a failed attempt: the
/// command is killed with `ciel` five times.
#[test]
fn death_of_the_engine_counts_neither_as_a_loss_nor_as_a_failure() {
    let place = Place::new();
    let gate = place.gate("gate");
    let command = format!("{}; {}; echo 5", appended("x", "marks"), held("gate"));
    let script = format!("return *{};", shell(&command));
    for round in 1..=5 {
        let live = place.start_script(&["-q"], &script);
        crate::support::until_true("the command runs", || {
            place.read("marks").lines().count() == round
        });
        live.signal("KILL");
        assert_eq!(live.end().signal, Some(9));
        place.await_nobody();
    }
    gate.release(1);
    let ended = place.script(&[], &script);
    let found = (ended.code, ended.stdout.as_str());
    assert_eq!(found, (Some(0), "5\n"), "{}", ended.stderr);
    assert_eq!(place.read("marks"), "x\n".repeat(6));
    for word in ["retried", "failed", "lost"] {
        assert!(!ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
}

/// "What a cancelled task has spawned is cancelled with it."
#[test]
fn children_of_a_cancelled_task_are_cancelled_with_it() {
    let place = Place::new();
    let gate = place.gate("gate");
    let command = format!("{}; {}; echo late >> marks", done("begun"), held("gate"));
    let wait = shell("until test -e begun; do :; done; echo 1");
    let ended = place.script(
        &["-j4"],
        &format!(
            "function outer() {{ return *{} + 1; }}
             r = spawn(outer, []);
             begun = *{wait};
             print(begun);
             print(cancel(r));
             try {{ print(*r + 0); }} catch (e) {{ print(e.kind); }}",
            shell(&command)
        ),
    );
    gate.release(1);
    let found = (ended.code, ended.stdout.as_str());
    assert_eq!(found, (Some(0), "1\ntrue\nCancelled\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("2 cancelled"), "{}", ended.stderr);
    assert_eq!(place.read("marks"), "");
}

/// "A task that declares memory starts when that much of the machine's memory is not reserved for
/// others": two of these tasks never run side by side, although there is a slot for each.
#[test]
fn tasks_that_declare_more_memory_than_there_is_together_take_turns() {
    let place = Place::new();
    let machine = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total_kib: u64 = machine.split_whitespace().nth(1).unwrap().parse().unwrap();
    let options = format!(
        "{{\"pure\": false, \"memory\": {}}}",
        total_kib * 1024 / 5 * 3
    );
    let command = "mkdir alone && touch ran && rmdir alone; echo $?";
    let mut script = String::from("all = []; failed = 0;\n");
    for _ in 0..12 {
        script += &format!("all += {};\n", task(command, &options));
    }
    script += "for (one in all) { failed += *one; } return failed;";
    let ended = place.script(&["-q", "-j4"], &script);
    let found = (ended.code, ended.stdout.as_str());
    assert_eq!(found, (Some(0), "0\n"), "{}", ended.stderr);
}

/// "A command that fails while less than 1 MiB is free on the disk of the state folder counts as
/// one that ran out of disk space, whatever its exit status. When the disk has space, the same
/// `ciel run` resumes it."
#[test]
fn command_that_fails_on_a_full_disk_stops_the_run_which_can_be_resumed() {
    let place = Place::new();
    let Some(disk) = SmallDisk::new(&place.path("disk")) else {
        return skipped(
            "a command on a full disk",
            "this user may not mount a file system",
        );
    };
    let wait = format!("{}; {}", done("begun"), held("gate"));
    let command = format!(
        "{}; test -e begun || {{ {wait}; exit 7; }}; echo 5",
        appended("x", "marks")
    );
    let script = format!("print(\"before\"); return *{};", shell(&command));
    let gate = place.gate("gate");
    let options = ["--state", "disk/state"];
    let live = place.start_script(&options, &script);
    place.await_file("begun");
    disk.leave(512);
    gate.release(1);
    let full = live.end();
    assert_eq!(full.code, Some(1), "{}", full.stderr);
    assert!(
        full.stderr.contains("no space is left on the disk"),
        "{}",
        full.stderr
    );
    disk.make_room();
    let ended = place.script(&options, &script);
    let found = (ended.code, ended.stdout.as_str());
    assert_eq!(found, (Some(0), "before\n5\n"), "{}", ended.stderr);
    assert_eq!(place.read("marks"), "x\nx\n");
}
