//! Plug-in executors: the real command with real workers, good and hostile.
//!
//! Most tasks are those of `executors/worker.py`, which is installed under the names that a test
//! needs; its name decides how it sends `hello`.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use support::{Ended, Place, kill, repository, until_true};

const HOSTILE: &str = "hostile";

fn install(place: &Place, source: &Path, name: &str) {
    std::fs::create_dir_all(place.path("executors")).unwrap();
    let program = std::fs::read(source).unwrap();
    let path = place.file(&format!("executors/ciel-executor-{name}"), program);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

fn place_with(name: &str) -> Place {
    let place = Place::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/executors/worker.py");
    install(&place, &source, name);
    place
}

/// Runs a script of which `TASK(arguments)` is a task of the hostile executor.
fn run(options: &[&str], script: &str) -> Ended {
    run_in(&place_with(HOSTILE), options, script)
}

fn run_in(place: &Place, options: &[&str], script: &str) -> Ended {
    let opened = script.replace("TASK(", "spawn_exec(\"hostile\", ");
    place.script(&[&["-q"], options].concat(), &opened)
}

fn expect(options: &[&str], script: &str, stdout: &str) {
    let ended = run(options, script);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), stdout),
        "{}",
        ended.stderr
    );
}

/// The task fails with all of `told`; another one of the same executor is unhurt.
fn expect_failure(task: &str, told: &[&str]) {
    let script = format!(
        "bad = TASK({task}, 1)[0];
         good = TASK({{\"do\": \"fine\", \"value\": 3}}, 1)[0];
         print(\"good \" + str(*good));
         return *bad;"
    );
    for options in [&["-j2"][..], &["--serial"]] {
        let ended = run(options, &script);
        assert_eq!(ended.code, Some(1), "{task} {}", ended.stderr);
        assert_eq!(ended.stdout, "good 3\n", "{task} {}", ended.stderr);
        for words in told {
            assert!(
                ended.stderr.contains(words),
                "{task}: {words}\n{}",
                ended.stderr
            );
        }
    }
}

/// An executor that cannot be had fails each task that wants it, and is not tried for ever.
fn expect_unusable(name: &str, told: &[&str]) {
    let place = place_with(name);
    expect_unusable_in(&place, name, told);
    assert!(place.has("starts"), "no worker has begun");
}

fn expect_unusable_in(place: &Place, name: &str, told: &[&str]) {
    let script = format!(
        "for (n in [1, 2, 3, 4, 5, 6]) {{ spawn_exec(\"{name}\", {{\"n\": n}}, 1); }}
         return 1;"
    );
    let ended = place.script(&["-q", "-k"], &script);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    for words in told {
        assert!(ended.stderr.contains(words), "{words}\n{}", ended.stderr);
    }
    let starts = place.read("starts").lines().count();
    // Workers may be on their way together when the third start in a row fails.
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    assert!(starts <= 2 + cores, "{starts} starts");
}

/// Any messages of a worker fail the tasks of that worker at most. Sixty tasks send random
/// messages; the others give their values. An index of 2^64-1 among them once stopped the engine.
#[test]
fn babble_of_a_worker_fails_its_own_tasks_at_most() {
    let place = place_with("good");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/executors/babbler.py");
    install(&place, &source, HOSTILE);
    let script = "good = [];
        for (n in range(60)) {
            spawn_exec(\"hostile\", {\"seed\": n}, 1, {\"timeout\": 5});
            good += spawn_exec(\"good\", {\"do\": \"fine\", \"value\": n}, 1)[0];
        }
        sum = 0;
        for (one in good) { sum += *one; }
        print(sum);
        return 1;";
    let ended = place.script(&["-q", "-k", "-j2"], script);
    assert!(
        ended.stdout.starts_with("1770\n"),
        "{}\n{}",
        ended.stdout,
        ended.stderr
    );
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("good@"), "{}", ended.stderr);
}

#[test]
fn task_of_an_executor_gives_its_value() {
    for options in [&["-j1"][..], &["-j2"], &["--serial"]] {
        expect(options, "return *TASK({\"do\": \"fine\"}, 1)[0];", "42\n");
    }
}

/// Each reader once got a conversion of its own, in a file of its own.
#[test]
fn value_of_a_script_is_converted_once_for_all_its_readers() {
    let script = "function many() { all = []; for (n in range(2000)) { all += n; } return all; }
        value = spawn(many);
        readers = [];
        for (n in range(6)) { readers += TASK({\"do\": \"where\", \"of\": value}, 1)[0]; }
        first = *(readers[0]);
        same = [];
        for (reader in readers) { same += *reader == first; }
        return same;";
    let same = "[true,true,true,true,true,true]\n";
    expect(&["-j2"], script, same);
}

#[test]
fn example_counts_words_by_children_and_replay() {
    let place = Place::new();
    let example = repository().join("examples/executors/ciel-executor-wordfreq");
    install(&place, &example, "wordfreq");
    place.file("words.txt", "tea cup tea\n".repeat(20_000));
    let script = "include \"grab\";
        counted = spawn_exec(\"wordfreq\", {\"do\": \"count\", \"top\": 2,
            \"text\": grab(\"words.txt\")}, 1)[0];
        steps = spawn_exec(\"wordfreq\", {\"do\": \"collatz\", \"at\": 27, \"steps\": 0}, 1)[0];
        return [*counted, *steps];";
    for options in [&["-q", "-j2"][..], &["-q", "--serial"]] {
        let ended = place.script(options, script);
        let expected = "4 pieces\n[[[\"tea\",40000],[\"cup\",20000]],111]\n";
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), expected),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn value_of_a_script_reaches_an_executor_as_json() {
    let script = "function f() { return {\"a\": [1, \"two\"]}; }
        given = spawn(f, []);
        waited = *given;
        return *TASK({\"do\": \"echo\", \"of\": given}, 1)[0];";
    expect(&["-j1"], script, "{\"a\":[1,\"two\"]}\n");
}

#[test]
fn worker_that_says_garbage_fails_its_task_only() {
    let told = ["broke the executor protocol", "this is no message"];
    expect_failure("{\"do\": \"garbage\"}", &told);
}

#[test]
fn misspelt_field_fails_its_task_only() {
    let told = ["broke the executor protocol", "outptus"];
    expect_failure("{\"do\": \"misspelt\"}", &told);
}

#[test]
fn worker_that_goes_on_with_what_it_was_not_told_fails_its_task_only() {
    let told = [
        "broke the executor protocol",
        "a start that it never received",
    ];
    expect_failure("{\"do\": \"goes-on\"}", &told);
}

#[test]
fn handle_that_was_never_given_fails_its_task_only() {
    for handle in ["5", "2147483648", "4294967295"] {
        let task = format!("{{\"do\": \"foreign\", \"handle\": {handle}}}");
        expect_failure(
            &task,
            &[&format!("it used handle {handle}, which it does not have")],
        );
    }
}

#[test]
fn task_that_gives_no_output_fails() {
    expect_failure("{\"do\": \"empty\"}", &["without publishing output 0"]);
}

#[test]
fn output_that_is_published_twice_fails_its_task() {
    expect_failure("{\"do\": \"publish-twice\"}", &["it gave output 0 twice"]);
}

/// The engine refused objects of a form that it does not know, though the page of the protocol says
/// that other executors can pass them on; and a number lost the type that its maker knew.
#[test]
fn form_of_an_executors_own_and_type_of_a_value_are_passed_on() {
    let script = "return *TASK({\"do\": \"strange\"}, 1)[0];";
    expect(&[], script, "[[\"parquet\",null],[\"json\",\"int\"]]\n");
}

#[test]
fn stream_that_was_not_agreed_on_fails_its_task() {
    let told = ["a task with a stream, but its worker", "hint"];
    expect_failure("{\"do\": \"streams\"}", &told);
}

#[test]
fn definition_that_was_never_sent_fails_its_task() {
    let told = ["definition 4000, which it did not send", "hint"];
    expect_failure("{\"do\": \"undefined\"}", &told);
}

#[test]
fn action_with_an_earlier_index_fails_its_task() {
    let told = ["it gave the index 0 to an action; the minimum is 1"];
    expect_failure("{\"do\": \"backwards\"}", &told);
}

#[test]
fn indices_and_handles_may_be_left_out() {
    let script = "return *TASK({\"do\": \"leaves-gaps\"}, 1)[0];";
    expect(&[], script, "3\n");
}

#[test]
fn failure_of_the_users_code_is_told_as_it_is() {
    let told = [
        "PriceError",
        "there is no price for tea",
        "job.py:7",
        "add it to prices.csv",
    ];
    expect_failure("{\"do\": \"fails\"}", &told);
}

#[test]
fn task_that_blocks_on_what_it_was_told_is_stopped() {
    expect_failure("{\"do\": \"forgetful\"}", &["already resolved"]);
}

#[test]
fn replay_that_differs_is_nondeterministic() {
    expect_failure("{\"do\": \"fickle\"}", &["NonDeterministic"]);
}

#[test]
fn worker_that_dies_every_time_is_given_up() {
    expect_failure(
        "{\"do\": \"die\"}",
        &["WorkerLost", "was killed by SIGKILL"],
    );
}

#[test]
fn worker_that_died_once_is_replayed_and_nothing_shows() {
    expect(
        &["-j2"],
        "return *TASK({\"do\": \"die-once\"}, 1)[0];",
        "before\n7\n",
    );
}

/// An executor of which each worker adds a line to `starts` and waits at `gate` before its hello.
fn place_with_slow_starts() -> Place {
    let place = place_with(HOSTILE).with_variable("CIEL_HELLO_MS", "3600000");
    let inner = place.path("executors/inner");
    std::fs::create_dir(&inner).unwrap();
    let name = format!("ciel-executor-{HOSTILE}");
    std::fs::rename(place.path("executors").join(&name), inner.join(&name)).unwrap();
    let (starts, gate) = (place.path("starts"), place.path("gate"));
    let program = format!(
        "#!/bin/sh\necho start >> {}\nread line < {}\nexec {} \"$@\"\n",
        starts.display(),
        gate.display(),
        inner.join(&name).display()
    );
    let path = place.file("slow", program);
    install(&place, &path, HOSTILE);
    place
}

#[test]
fn spawner_killed_while_workers_start_costs_no_task_an_attempt() {
    // With four workers in the midst of their start, one death of the spawner counted as four
    // failed starts and as three losses of one task: the job failed with WorkerLost, and what was
    // finished was lost with it. And the third death ended the job, although a start may be
    // repeated three times: of 250 random kills on a busy machine one series ended so.
    let place = place_with_slow_starts();
    let gate = place.gate("gate");
    let script = "sum = 0; all = [];
        for (n in range(8)) {
          all += spawn_exec(\"hostile\", {\"do\": \"fine\", \"value\": n}, 1)[0];
        }
        for (one in all) { sum = sum + *one; }
        return sum;";
    let live = place.start_script(&["-j4"], script);
    let await_starts = |count: usize| {
        until_true("the workers start", || {
            place.has("starts") && place.read("starts").lines().count() == count
        });
    };
    for kills in 1..=3 {
        await_starts(4 * kills);
        kill(place.spawner_of(&live), "KILL");
    }
    await_starts(16);
    gate.release(4);
    let ended = live.end();
    let found = (ended.code, ended.stdout.as_str());
    assert_eq!(found, (Some(0), "28\n"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("restarted"), "{}", ended.stderr);
    place.expect_nobody(&ended.stderr);
}

#[test]
fn task_that_ignores_its_cancellation_is_killed_and_the_rest_goes_on() {
    let script = "bad = TASK({\"do\": \"stubborn\"}, 1, {\"timeout\": 0.2})[0];
        good = TASK({\"do\": \"fine\"}, 1)[0];
        print(\"good \" + str(*good));
        return *bad;";
    let ended = run(&["-j2"], script);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), "good 42\n"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("Timeout"), "{}", ended.stderr);
}

#[test]
fn interrupted_job_leaves_no_worker() {
    let place = place_with(HOSTILE);
    let script = "return *spawn_exec(\"hostile\", {\"do\": \"stubborn\"}, 1)[0];";
    let live = place.start_script(&["-j2"], script);
    support::until_true("the worker runs", || place.processes().len() >= 3);
    live.signal("INT");
    let ended = live.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    place.expect_nobody(&ended.stderr);
}

#[test]
fn executor_that_dies_before_hello_is_told_with_its_last_lines() {
    let told = [
        "ciel-executor-mute",
        "exit status 1 before it sent hello",
        "no licence for today",
    ];
    expect_unusable("mute", &told);
}

/// A worker that the system killed between its start and its hello ended the whole job, although
/// nothing of the task had run.
#[test]
fn worker_killed_before_hello_costs_nothing_but_a_start() {
    let place = place_with("unlucky");
    let script = "return *spawn_exec(\"unlucky\", {\"do\": \"fine\"}, 1)[0];";
    let ended = place.script(&["-q", "-j1"], script);
    assert_eq!(ended.stdout, "42\n", "{}", ended.stderr);
    assert_eq!(place.read("starts").lines().count(), 2);
}

#[test]
fn executor_of_another_protocol_is_refused() {
    let told = [
        "ciel-executor-old",
        "speaks protocol 1, this engine speaks 2",
        "install the executor",
    ];
    expect_unusable("old", &told);
}

#[test]
fn executor_that_speaks_noise_is_refused() {
    expect_unusable(
        "noise",
        &["ciel-executor-noise", "sent invalid data", "\\xff\\xfe"],
    );
}

/// Only the whole hello counts, so one that sends it byte by byte gains no time. The time limit was
/// never tried: it is half a minute for each start. Where it is shorter, a busy machine may end all
/// workers before their program has begun, and this test failed for want of a single start.
#[test]
fn executor_that_sends_its_hello_byte_by_byte_is_given_up_in_time() {
    let place = Place::new().with_variable("CIEL_HELLO_MS", "300");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/executors/dripper.py");
    install(&place, &source, "drip");
    let told = ["ciel-executor-drip", "did not send hello within 0.3 s"];
    expect_unusable_in(&place, "drip", &told);
}

#[test]
fn executor_that_cannot_be_run_is_refused() {
    let place = place_with("still");
    let path = place.path("executors/ciel-executor-still");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let ended = place.script(&["-q"], "return *spawn_exec(\"still\", {}, 1)[0];");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("could not be started"),
        "{}",
        ended.stderr
    );
}

#[test]
fn length_beyond_the_limit_fails_the_task() {
    let place = place_with("huge");
    let ended = place.script(&["-q"], "return *spawn_exec(\"huge\", {}, 1)[0];");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let told = ["broke the executor protocol", "over the limit of 67108864"];
    for words in told {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn parked_strand_goes_on_in_its_worker() {
    expect(&["-j1"], "return *TASK({\"do\": \"park\"}, 1)[0];", "6\n");
}

#[test]
fn parked_strand_that_is_lost_with_its_worker_is_replayed() {
    let script = "return *TASK({\"do\": \"park\", \"child\": \"die-first\"}, 1)[0];";
    for options in [&["-j1"][..], &["-j2"]] {
        expect(options, script, "6\n");
    }
}

#[test]
fn saved_strand_goes_on_from_its_bytes() {
    expect(
        &["-j2"],
        "return *TASK({\"do\": \"save\"}, 1)[0];",
        "[\"kept\",2,2]\n",
    );
}

#[test]
fn published_output_has_a_handle() {
    let script = "both = TASK({\"do\": \"publish\"}, 2); return [*both[0], *both[1]];";
    expect(&["-j2"], script, "[\"early\",\"late\"]\n");
}

#[test]
fn reference_inside_an_object_can_be_opened() {
    expect(&["-j2"], "return *TASK({\"do\": \"nest\"}, 1)[0];", "8\n");
}

/// A script cannot name them, but they are delivered to it, and have handles.
#[test]
fn references_with_plain_bytes_leave_those_of_the_script_as_they_are() {
    let script = "seven = 0 + *TASK({\"do\": \"bytes-with-reference\"}, 1)[0];
        next = spawn(lambda x: x + 100, [seven]);
        return [seven, *spawn(lambda r: *r, [next])];";
    expect(&["-j2"], script, "[7,107]\n");
}

#[test]
fn large_results_go_through_files() {
    let script = "return len(text(TASK({\"do\": \"files\"}, 1)[0]));";
    expect(&["-j2"], script, "100000\n");
}

#[test]
fn what_a_task_writes_comes_in_serial_order() {
    let place = place_with(HOSTILE);
    let script = "*TASK({\"do\": \"writes\"}, 1)[0]; print(\"four\");";
    for options in [&["-j2"][..], &["-j1"], &["--serial"]] {
        let ended = run_in(&place, options, script);
        let expected = (Some(0), "one\ntwo\nthree\nfour\n");
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            expected,
            "{}",
            ended.stderr
        );
        for words in ["aside", "from the process itself", "ciel-executor-hostile@"] {
            assert!(ended.stderr.contains(words), "{words}\n{}", ended.stderr);
        }
    }
}

#[test]
fn what_a_task_appends_to_files_comes_in_serial_order_in_each() {
    let say = |text, file| {
        format!("TASK({{\"do\": \"says\", \"text\": \"{text}\", \"file\": \"{file}\"}}, 1)[0]")
    };
    let (one, two, three) = (say("1", "log"), say("2", "other"), say("3", "log"));
    let script =
        format!("x = {one}; append(\"log\", \"-\"); y = {two}; return [*{three}, *y, *x];");
    for options in [&["-j4"][..], &["-j1"], &["--serial"]] {
        let place = place_with(HOSTILE);
        let ended = run_in(&place, options, &script);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!((&*place.read("log"), &*place.read("other")), ("1-3", "2"));
    }
}

#[test]
fn observation_is_the_same_when_the_task_is_run_again() {
    expect(
        &["-j2"],
        "return *TASK({\"do\": \"clock\"}, 1)[0];",
        "true\n",
    );
}

#[test]
fn question_about_a_lazy_task_is_answered_and_does_not_wake_it() {
    let script = "sleeper = TASK({\"do\": \"fine\"}, 1, {\"lazy\": true})[0];
        return *TASK({\"do\": \"done\", \"about\": sleeper}, 1)[0];";
    expect(&["-j2"], script, "[false]\n");
}

#[test]
fn block_for_the_first_is_recorded() {
    expect(
        &["-j2"],
        "return *TASK({\"do\": \"first\"}, 1)[0];",
        "true\n",
    );
}

#[test]
fn task_of_another_executor_takes_over_the_outputs() {
    expect(
        &["-j2"],
        "return *TASK({\"do\": \"shell\"}, 1)[0];",
        "\"through a shell\"\n",
    );
}

#[test]
fn worker_serves_task_after_task_until_it_is_used_up() {
    let script = "function next(keep) {
            return *TASK({\"do\": \"counts-processes\", \"keep\": keep}, 1, {\"pure\": false})[0];
        }
        a = next(\"KEEP_UNSPECIFIED\"); b = next(\"KEEP_END\"); c = next(\"KEEP_PROCESS\");
        return [a == b, b == c];";
    expect(&["-j1"], script, "[true,false]\n");
}

/// Runs four tasks that end only when all of them run in one process, which has four slots.
fn expect_meeting(arguments: &str) -> Place {
    let place = Place::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/executors/meeting.py");
    install(&place, &source, "meeting");
    let script = format!(
        "met = [];
         for (n in range(4)) {{
             options = {{\"cores\": 0.25, \"timeout\": 600}};
             met += spawn_exec(\"meeting\", {arguments}, 1, options)[0];
         }}
         first = *met[0];
         together = 0;
         for (one in met) {{ if (*one == first) {{ together += 1; }} }}
         return together;"
    );
    let ended = place.script(&["-q", "-j1"], &script);
    assert_eq!(ended.stdout, "4\n", "{}", ended.stderr);
    place
}

#[test]
fn worker_with_four_slots_runs_four_tasks_at_once() {
    expect_meeting("{}");
}

#[test]
fn worker_that_dies_loses_all_of_its_tasks_and_another_one_runs_them() {
    let place = expect_meeting("{\"fatal\": true}");
    assert!(place.path("fatal").exists(), "no worker died");
}
