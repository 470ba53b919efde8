//! Processes: deaths are noticed, ended processes are gone, requested resources are honoured, and
//! waits cost nothing.
//!
//! Read first: `support`, for how jobs are run, held still and counted.

mod support;

use std::time::{Duration, Instant};

use support::{
    Live, Place, appended, done, expect_well, held, kill, parent_of, release, shell, task, until,
    until_true,
};

/// Most memory of the command under any number of tasks that are not pending, in KiB.
const PEAK_KIB_MAX: u64 = 300 << 10;

/// Milliseconds between asking a process to end and killing it.
const GRACE_MS: u64 = 1_000;

/// A job of one task that is held at `gate` after it has made the file `started`.
fn one_held_task() -> String {
    let waits = format!("{}; {}; echo 5", done("started"), held("gate"));
    format!(
        "print(\"begin\"); x = {}; print(\"end\", *x);",
        shell(&waits)
    )
}

/// The first process of the one task that runs.
fn task_of(place: &Place, live: &Live) -> u32 {
    let spawner = place.spawner_of(live);
    let is_child = |pid: &u32| parent_of(*pid) == Some(spawner);
    until("a task's process", || {
        place.processes().into_iter().find(is_child)
    })
}

#[test]
fn command_killed_in_the_middle_leaves_nothing_and_the_next_run_works() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["-j2"], &one_held_task());
    place.await_file("started");
    live.signal("KILL");
    assert_eq!(live.end().signal, Some(9));
    place.await_nobody();
    place.expect_usable();
    gate.release(1);
    expect_well(&place.run(&["run", "job.sw"]), "begin\nend 5\n");
    let cleaned = place.run(&["clean"]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.stderr);
}

#[test]
fn command_and_spawner_killed_at_once_are_cleaned_up_by_the_next_run() {
    let place = Place::new();
    let _gate = place.gate("gate");
    let has_child = format!("({}) & {}; wait", held("gate"), done("started"));
    let script = format!("x = *{};", shell(&has_child));
    let live = place.start_script(&["-j2"], &script);
    place.await_file("started");
    let spawner = place.spawner_of(&live);
    live.signal("STOP");
    kill(spawner, "KILL");
    live.signal("KILL");
    assert_eq!(live.end().signal, Some(9));
    assert!(
        !place.processes().is_empty(),
        "a child of the task outlives those who watched it"
    );
    place.file("next.sw", "return 1;");
    let next = place.run(&["run", "next.sw"]);
    expect_well(&next, "1\n");
    assert!(next.stderr.contains("now killed"), "{}", next.stderr);
    place.expect_usable();
}

#[test]
fn spawner_killed_means_its_tasks_run_again_and_the_result_is_right() {
    let place = Place::new();
    let gate = place.gate("gate");
    let count = format!(
        "{}; {}; wc -l < begun",
        appended("x", "begun"),
        held("gate")
    );
    let script = format!(
        "a = {};
         print(\"first\", *a);
         b = {};
         c = {};
         print(\"second\", *b + *c);",
        shell("echo 1"),
        shell(&count),
        shell(&format!("{}; echo 10", held("gate"))),
    );
    let live = place.start_script(&["-j2"], &script);
    until_true("the task runs", || place.read("begun").lines().count() == 1);
    kill(place.spawner_of(&live), "KILL");
    until_true("the task runs again", || {
        place.read("begun").lines().count() == 2
    });
    gate.release(2);
    let ended = live.end();
    expect_well(&ended, "first 1\nsecond 12\n");
    assert!(
        ended.stderr.contains("lost and restarted"),
        "{}",
        ended.stderr
    );
    place.expect_nobody(&ended.stderr);
}

#[test]
fn spawner_killed_again_and_again_fails_the_task_and_names_it() {
    let place = Place::new();
    let _gate = place.gate("gate");
    let waits = format!("{}; {}", appended("x", "begun"), held("gate"));
    let options = "{\"pure\": false, \"name\": \"unlucky\"}";
    let script = format!("print(\"before\"); x = *{};", task(&waits, options));
    let live = place.start_script(&["-j1"], &script);
    for times in 1..=4 {
        until_true("the task runs", || {
            place.read("begun").lines().count() == times
        });
        kill(place.spawner_of(&live), "KILL");
    }
    let ended = live.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "before\n"));
    assert!(ended.stderr.contains("error: unlucky@"), "{}", ended.stderr);
    place.expect_nobody(&ended.stderr);
}

#[test]
fn process_of_a_task_killed_fails_that_task_and_leaves_the_others() {
    let place = Place::new();
    let _gate = place.gate("gate");
    let waits = format!("{}; {}", done("started"), held("gate"));
    let script = format!(
        "b = {};
         u = {};
         a = {};
         print(\"before\", *b);
         try {{ x = *u + 1; }} catch (e) {{ print(\"caught\", e.task != \"\"); }}
         print(\"after\", *a);",
        shell("echo 1"),
        task(&waits, "{\"pure\": false, \"name\": \"unlucky\"}"),
        shell("echo 2"),
    );
    let live = place.start_script(&["-j1", "-v"], &script);
    place.await_file("started");
    kill(task_of(&place, &live), "KILL");
    let ended = live.end();
    expect_well(&ended, "before 1\ncaught true\nafter 2\n");
    assert!(ended.stderr.contains("SIGKILL"), "{}", ended.stderr);
    place.expect_nobody(&ended.stderr);
}

#[test]
fn whole_tree_of_processes_killed_fails_that_task_and_a_retry_runs_it_again() {
    let place = Place::new();
    let gate = place.gate("gate");
    let has_children = format!(
        "({}) & ({}) & {}; wait",
        held("gate"),
        held("gate"),
        appended("x", "begun")
    );
    let options = "{\"pure\": false, \"retries\": 1, \"name\": \"unlucky\"}";
    let script = format!(
        "x = {}; print(\"before\"); print(\"ended\", len(text(x)));",
        task(&has_children, options)
    );
    let live = place.start_script(&["-j1", "-v"], &script);
    until_true("the task runs", || place.read("begun").lines().count() == 1);
    let spawner = place.spawner_of(&live);
    for pid in place.processes() {
        if pid != live.pid() && pid != spawner {
            kill(pid, "KILL");
        }
    }
    until_true("the task runs again", || {
        place.read("begun").lines().count() == 2
    });
    gate.release(2);
    let ended = live.end();
    expect_well(&ended, "before\nended 0\n");
    assert!(ended.stderr.contains("SIGKILL"), "{}", ended.stderr);
    place.expect_nobody(&ended.stderr);
}

/// A job of two tasks, and their children, that do not mind being asked to end.
fn stubborn() -> String {
    let deaf = |name: &str| {
        let child = "(trap '' TERM INT; read x < gate) & ";
        shell(&format!(
            "trap '' TERM INT; {child} {}; {}; wait",
            done(name),
            held("gate")
        ))
    };
    format!(
        "print(\"begin\"); a = {}; b = {}; x = *a + *b;",
        deaf("one"),
        deaf("two")
    )
}

#[test]
fn interrupt_ends_tasks_that_do_not_listen_after_the_time_of_grace() {
    let place = Place::new();
    let _gate = place.gate("gate");
    let live = place.start_script(&["-j2"], &stubborn());
    assert_eq!(live.line(), "begin");
    place.await_file("one");
    place.await_file("two");
    let asked = Instant::now();
    live.signal("INT");
    let ended = live.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(
        asked.elapsed() >= Duration::from_millis(GRACE_MS),
        "{:?}",
        asked.elapsed()
    );
    place.expect_nobody(&ended.stderr);
    place.expect_usable();
}

/// The first one gives tasks an hour here.
#[test]
fn second_interrupt_kills_at_once() {
    let place = Place::new().with_variable("CIEL_KILL_GRACE_MS", "3600000");
    let _gate = place.gate("gate");
    let deaf = "(trap '' TERM INT; read x < gate) &";
    let told = format!("trap '{}' TERM; {deaf} {}", done("asked"), done("started"));
    let script = format!(
        "x = *{};",
        shell(&format!("{told}; while :; do wait; done"))
    );
    let live = place.start_script(&["-j2"], &script);
    place.await_file("started");
    live.signal("INT");
    place.await_file("asked");
    live.signal("INT");
    let ended = live.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    place.expect_nobody(&ended.stderr);
}

#[test]
fn task_over_its_time_fails_and_names_itself_while_others_end_well() {
    let place = Place::new();
    let _gate = place.gate("gate");
    let options = "{\"pure\": false, \"name\": \"slow\", \"timeout\": 0.3}";
    let script = format!(
        "b = {};
         s = {};
         print(\"before\", *b);
         a = {};
         print(\"after\", *a);
         x = *s + 1;",
        shell("echo 1"),
        task(&held("gate"), options),
        shell("echo 2"),
    );
    let ended = place.script(&["-j2"], &script);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), "before 1\nafter 2\n")
    );
    assert!(ended.stderr.contains("error: slow@"), "{}", ended.stderr);
    let all = place.script(
        &["-j1", "--timeout", "300ms"],
        &format!("x = *{};", shell(&held("gate"))),
    );
    assert_eq!(all.code, Some(1), "{}", all.stderr);
}

#[test]
fn job_over_its_time_ends_with_all_its_tasks() {
    let place = Place::new();
    let _gate = place.gate("gate");
    let script = format!("print(\"begin\"); x = *{};", shell(&held("gate")));
    let ended = place.script(&["-j2", "--job-timeout", "0.5"], &script);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    // On a busy machine the script may not have begun by then.
    assert!("begin\n".starts_with(&ended.stdout), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("exceeded its time limit"),
        "{}",
        ended.stderr
    );
}

#[test]
fn task_that_fails_twice_works_with_two_retries() {
    let place = Place::new();
    let flaky = format!(
        "{}; echo attempt >&2; test $(wc -l < tries) -ge 3 && echo 7",
        appended("x", "tries")
    );
    let script = |retries: u32| {
        let options = format!("{{\"pure\": false, \"name\": \"flaky\", \"retries\": {retries}}}");
        format!("print(\"got\", *{});", task(&flaky, &options))
    };
    let ended = place.script(&["-j1"], &script(2));
    expect_well(&ended, "got 7\n");
    assert!(ended.stderr.contains("2 retried"), "{}", ended.stderr);
    place.file("tries", "");
    let ended = place.script(&["-j1"], &script(1));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("error: flaky@"), "{}", ended.stderr);
    place.file("tries", "");
    expect_well(
        &place.script(&["-j1", "--retries", "2"], &script_without_options(&flaky)),
        "got 7\n",
    );
}

fn script_without_options(command: &str) -> String {
    format!("print(\"got\", *{});", shell(command))
}

/// A task that makes a folder of its own while it runs, and fails if another one of `others`
/// (a pattern of names) runs too.
fn exclusive(name: &str, others: &str) -> String {
    format!(
        "mkdir running/{name}; set -- running/{others}; found=$#; test -e \"$1\" || found=0; \
         rmdir running/{name}; test $found -le 1 && echo 1"
    )
}

#[test]
fn task_with_two_cores_never_runs_beside_another() {
    let place = Place::new();
    std::fs::create_dir(place.path("running")).unwrap();
    let mut script = String::from("all = [];\n");
    for number in 0..24 {
        let options = match number % 3 {
            0 => "{\"pure\": false, \"cores\": 2}",
            _ => "{\"pure\": false}",
        };
        let command = match number % 3 {
            0 => exclusive(&format!("wide{number}"), "*"),
            _ => exclusive(&format!("narrow{number}"), "wide*").replace("-le 1", "-eq 0"),
        };
        script += &format!("all += {};\n", task(&command, options));
    }
    script += "total = 0; for (one in all) { total += *one; }\nreturn total;\n";
    expect_well(&place.script(&["-j2"], &script), "24\n");
}

#[test]
fn task_that_asks_for_more_than_there_is_is_refused_by_name() {
    let place = Place::new();
    let options = "{\"pure\": false, \"name\": \"greedy\", \"cores\": 64}";
    let script = format!("print(\"before\"); x = *{};", task("echo 1", options));
    let ended = place.script(&["-j2"], &script);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "before\n"));
    assert!(ended.stderr.contains("error: greedy@"), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint: "), "{}", ended.stderr);
}

#[test]
fn no_more_processes_run_at_once_than_asked_for() {
    for jobs in [1, 3] {
        let place = Place::new();
        let gate = place.gate("gate");
        let waits = format!("{}; {}; echo 1", appended("x", "begun"), held("gate"));
        let script = format!(
            "all = [];
             for (i in range(8)) {{ all += {}; }}
             total = 0; for (one in all) {{ total += *one; }}
             return total;",
            shell(&waits)
        );
        let live = place.start_script(&[&format!("-j{jobs}")], &script);
        for let_through in 0..8 {
            let begun = || place.read("begun").lines().count();
            let expected = (let_through + jobs).min(8);
            until_true("as many as asked for run", || begun() == expected);
            let spawner = place.spawner_of(&live);
            let children = place.processes();
            let running = children
                .iter()
                .filter(|pid| parent_of(**pid) == Some(spawner))
                .count();
            assert!(running <= jobs, "{running} of {jobs}");
            gate.release(1);
        }
        expect_well(&live.end(), "8\n");
    }
}

#[test]
fn recursion_of_ten_thousand_waits_with_one_process() {
    let place = Place::new();
    let gate = place.gate("gate");
    let bottom = shell(&format!("{}; {}; echo 1", done("started"), held("gate")));
    let script = format!(
        "function down(n) {{
             if (n == 0) {{ return *{bottom}; }}
             below = spawn(down, [n - 1]);
             return *below + 1;
         }}
         deepest = spawn(down, [10000]);
         return *deepest;"
    );
    let live = place.start_script(&["-j2"], &script);
    place.await_file("started");
    let running = place.processes();
    assert!(
        running.len() <= 3,
        "the command, its spawner and one task, not {running:?}"
    );
    gate.release(1);
    let ended = live.end();
    expect_well(&ended, "10001\n");
    assert!(ended.peak_kib < PEAK_KIB_MAX, "{} KiB", ended.peak_kib);
}

#[test]
fn long_loop_of_delegating_tasks_stays_small() {
    let (place, rounds) = match release() {
        Some(binary) => (Place::new().with_binary(binary), 1_000_000),
        None => (Place::new(), 100_000),
    };
    let script = format!(
        "function round(n) {{ if (n == 0) {{ return \"end\"; }} return *spawn(round, [n - 1]); }}
         return round({rounds});"
    );
    let ended = place.script(&["-j2"], &script);
    expect_well(&ended, "\"end\"\n");
    assert!(ended.peak_kib < PEAK_KIB_MAX, "{} KiB", ended.peak_kib);
}

#[test]
fn long_loop_of_delegating_tasks_stays_small_in_a_serial_run() {
    // Each script stopped at its spawn until its child had ended, so all of them lived at the same
    // time: 3 KiB for each, and 17 s for 100,000.
    let place = Place::new();
    let mut peaks = Vec::new();
    for rounds in [1_000, 20_000] {
        let script = format!(
            "function round(n) {{
                 if (n == 0) {{ return \"end\"; }}
                 next = spawn(round, [n - 1]);
                 return *next;
             }}
             return *spawn(round, [{rounds}]);"
        );
        let ended = place.script(&["--serial"], &script);
        expect_well(&ended, "\"end\"\n");
        peaks.push(ended.peak_kib);
    }
    assert!(peaks[1] < peaks[0] + (4 << 10), "{peaks:?} KiB");
}

#[test]
fn long_row_of_results_that_name_the_next_one_stays_small() {
    // The script that follows the row spawns once and then only waits. It left no checkpoint, since
    // it met no facts, and its first fact held the whole row: half a kilobyte for each step.
    let place = Place::new();
    let mut peaks = Vec::new();
    for steps in [1_000, 20_000] {
        let script = format!(
            "function next(n) {{ if (n == 0) {{ return \"end\"; }} return spawn(next, [n - 1]); }}
             return spawn(next, [{steps}]);"
        );
        let ended = place.script(&["-j2"], &script);
        expect_well(&ended, "\"end\"\n");
        peaks.push(ended.peak_kib);
    }
    assert!(peaks[1] < peaks[0] + (4 << 10), "{peaks:?} KiB");
}

/// By default the script would pause at ten thousand, and `spawned` would wait for the gate.
#[test]
fn a_hundred_thousand_pending_tasks_stay_small() {
    let bounded = Place::new().with_variable("CIEL_CHILDREN_MAX", "200000");
    let place = release().into_iter().fold(bounded, Place::with_binary);
    let gate = place.gate("gate");
    let script = format!(
        "function wait(first, n) {{ return *first + n; }}
         first = {};
         all = [];
         for (n in range(100000)) {{ all += spawn(wait, [first, n]); }}
         ready = {};
         total = 0;
         for (one in all) {{ total += *one; }}
         return total;",
        shell(&format!("{}; echo 1", held("gate"))),
        shell(&done("spawned")),
    );
    let live = place.start_script(&["-j2"], &script);
    place.await_file("spawned");
    assert!(place.processes().len() <= 4, "{:?}", place.processes());
    gate.release(1);
    let ended = live.end();
    expect_well(&ended, "5000050000\n");
    assert!(ended.peak_kib < 4 * 100_000, "{} KiB", ended.peak_kib);
}

/// A job that cancels a command once that has started, and then waits at the gate `end`. What the
/// command leaves is killed after the time of grace.
fn cancelling() -> String {
    let deaf = "(trap '' TERM; read x < gate) &";
    let told = format!("trap '{}; exit 0' TERM; {deaf}", done("asked"));
    let slow = format!("echo x >> starts; {told} echo > ready; while :; do wait; done");
    format!(
        "print(\"begin\"); slow = {}; x = {}; y = text(x);
         print(cancel(slow), cancel(x));
         try {{ y = text(slow); }} catch (e) {{ print(e.kind, e.message); }}
         y = text({}); print(cancel(slow));",
        shell(&slow),
        shell(&held("ready")),
        shell(&format!("{}; {}", done("waiting"), held("end"))),
    )
}

const CANCELLED: &str = "begin\ntrue false\nCancelled it was cancelled\ntrue\n";

#[test]
fn cancelled_command_is_asked_to_end_and_the_job_goes_on() {
    let place = Place::new();
    let (_gate, _ready, end) = (place.gate("gate"), place.gate("ready"), place.gate("end"));
    let live = place.start_script(&["-j3"], &cancelling());
    place.await_file("waiting");
    place.await_file("asked");
    end.release(1);
    let ended = live.end();
    expect_well(&ended, CANCELLED);
    place.expect_nobody(&ended.stderr);
}

#[test]
fn resumed_run_receives_the_recorded_answer_and_does_not_rerun_what_was_cancelled() {
    let place = Place::new();
    let (_gate, _ready, end) = (place.gate("gate"), place.gate("ready"), place.gate("end"));
    let live = place.start_script(&["-j3"], &cancelling());
    for line in CANCELLED.lines().take(3) {
        assert_eq!(live.line(), line);
    }
    live.signal("KILL");
    assert_eq!(live.end().signal, Some(9));
    place.await_nobody();
    end.release(2);
    let again = place.run(&["run", "-j3", "job.sw"]);
    expect_well(&again, CANCELLED);
    assert_eq!(place.read("starts"), "x\n", "{}", again.stderr);
}

/// In the serial program a task has ended when the next line runs.
#[test]
fn nothing_can_be_cancelled_in_the_serial_program() {
    let place = Place::new();
    let script = "function f() { print(\"f\"); return 1; }
        r = spawn(f); print(cancel(r)); print(*r);";
    expect_well(&place.script(&["--serial"], script), "f\nfalse\n1\n");
}

/// Output after a cancelled task used to be lost: the output of the job ended in it.
#[test]
fn output_after_a_cancelled_task_is_released_and_so_is_that_of_a_task_that_waited_for_it() {
    let place = Place::new();
    let (_ready, _gate) = (place.gate("ready"), place.gate("gate"));
    let script = format!(
        "function child(r) {{ print(\"child\"); return text(r); }}
         function slow() {{ print(\"seen\"); x = {}; y = {}; z = text(x); print(\"unseen\"); }}
         s = spawn(slow); print(\"after\"); y = text({}); print(cancel(s));
         w = {}; v = spawn(lambda: 3); u = *v + 0; print(cancel(v), cancel(w));
         c = spawn(child, [w]); print(is_error(c)); print(\"end\");",
        shell(&held("gate")),
        shell("echo > ready"),
        shell(&held("ready")),
        shell(&held("gate")),
    );
    let ended = place.script(&["-j3"], &script);
    expect_well(&ended, "seen\nafter\ntrue\nfalse true\nchild\ntrue\nend\n");
}
