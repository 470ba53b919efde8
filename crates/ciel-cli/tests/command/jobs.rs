//! Jobs that run: results, failures of each kind, what is shown of them.

use serde_json::Value;

use crate::support::{Folder, shows};

/// A script of one shell command on standard input and output.
fn shell(command: &str) -> String {
    format!(
        "x = spawn_exec(\"stdinout\", {{\"inputs\": [], \
         \"command_line\": [\"sh\", \"-c\", \"{command}\"]}}, 1);\nreturn text(x[0]);\n"
    )
}

#[test]
fn result_is_the_last_line() {
    let folder = Folder::with_job("print(\"hello\");\nreturn {\"answer\": [42, 1.5, null]};\n");
    shows!("hello", folder.ciel(&["run", "job.sw"]));
}

#[test]
fn null_result_is_not_printed() {
    let ended = Folder::with_job("print(\"hello\");").ciel(&["run", "-q", "job.sw"]);
    assert_eq!(ended.shown(), "exit 0\n--- stdout\nhello\n");
}

#[test]
fn script_by_itself_is_run_with_its_arguments() {
    let folder = Folder::with_job("return argv();");
    let ended = folder.ciel(&["job.sw", "a", "--json", "-j2"]);
    assert_eq!(ended.stdout, "[\"a\",\"--json\",\"-j2\"]\n");
}

#[test]
fn package_is_given_by_name() {
    let folder = Folder::with_job("return text(package(\"data\"));");
    folder.write("data.txt", "content");
    let ended = folder.ciel(&["run", "--package", "data=data.txt", "job.sw"]);
    assert_eq!(ended.stdout, "\"content\"\n", "{}", ended.stderr);
}

#[test]
fn spawned_tasks_give_the_same_at_any_number_of_cores() {
    let script = "function fib(n) { if (n < 2) { return n; } \
                  a = spawn(fib, [n - 1]); b = spawn(fib, [n - 2]); return *a + *b; }\n\
                  print(\"begin\"); return fib(8);\n";
    let folder = Folder::with_job(script);
    for words in [&["-j1"][..], &["-j2"], &["--serial"]] {
        let words = [&["run"], words, &["job.sw"]].concat();
        let ended = folder.ciel(&words);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), "begin\n21\n"),
            "{words:?}"
        );
    }
}

#[test]
fn names_of_tasks_do_not_depend_on_the_folder() {
    // Names, and the numbers of `task_rng` with them, came from the script's whole path: the same
    // job in another folder drew other numbers, though the page says that it never does.
    let script = shell("echo $CIEL_TASK");
    let [one, other] = [Folder::with_job(&script), Folder::with_job(&script)].map(|folder| {
        let words = ["run", "-q", "job.sw"];
        folder.ciel(&words)
    });
    assert!(one.stdout.contains('@'), "{}{}", one.stdout, one.stderr);
    assert_eq!(one.stdout, other.stdout);
}

#[test]
fn uncaught_error_shows_chain_cause_and_line() {
    let script = "function part(n) { return 10 / n; }\n\
                  function whole(n) { return *spawn(part, [n]) + 1; }\n\
                  x = spawn(whole, [0]);\n\
                  return *x + 1;\n";
    shows!(
        "division",
        Folder::with_job(script).ciel(&["run", "job.sw"])
    );
}

#[test]
fn deep_chain_is_shortened_in_its_middle() {
    let script = "function deep(n) {\n  if (n == 0) { throw \"bottom\"; }\n  \
                  return *spawn(deep, [n - 1]) + 1;\n}\nreturn deep(25);\n";
    shows!("deep", Folder::with_job(script).ciel(&["run", "job.sw"]));
}

#[test]
fn command_with_bad_status_shows_its_last_words() {
    let folder = Folder::with_job(&shell("echo 'no such disk' >&2; exit 3"));
    shows!("bad_status", folder.ciel(&["run", "job.sw"]));
}

#[test]
fn command_killed_by_a_signal_is_told() {
    shows!(
        "killed",
        Folder::with_job(&shell("kill -9 $$")).ciel(&["run", "job.sw"])
    );
}

#[test]
fn unknown_executor_is_told_with_the_known_ones() {
    let folder = Folder::with_job("return text(spawn_exec(\"fortran\", {}, 1)[0]);");
    shows!("unknown_executor", folder.ciel(&["run", "job.sw"]));
}

#[test]
fn task_over_its_time_is_ended() {
    let folder = Folder::with_job(&shell("cat pipe"));
    folder.pipe("pipe");
    shows!(
        "task_timeout",
        folder.ciel(&["run", "--timeout", "300ms", "job.sw"])
    );
}

#[test]
fn job_over_its_time_is_ended() {
    let folder = Folder::with_job(&shell("cat pipe"));
    folder.pipe("pipe");
    shows!(
        "job_timeout",
        folder.ciel(&["run", "-q", "--job-timeout", "300ms", "job.sw"])
    );
}

/// The failure was that of "job@00000000", which is no task.
#[test]
fn job_that_exceeds_its_time_limit_is_named_by_its_first_task() {
    let folder = Folder::with_job(&shell("cat pipe"));
    folder.pipe("pipe");
    let ended = folder.ciel(&["run", "-q", "--job-timeout", "300ms", "job.sw"]);
    let (label, _) = ended.stderr.split_once(" failed: Timeout").unwrap();
    let named = folder.ciel(&["why", label.strip_prefix("error: ").unwrap()]);
    assert_eq!(named.code, Some(0), "{label}: {}", named.stderr);
}

#[test]
fn script_over_its_heap_is_ended() {
    let folder = Folder::with_job("x = \"ab\";\nwhile (true) { x = x + x; }\n");
    shows!("heap", folder.ciel(&["run", "--heap", "1M", "job.sw"]));
}

#[test]
fn process_left_behind_is_killed_with_a_warning() {
    let folder = Folder::with_job(&shell("sleep 1000 >/dev/null 2>&1 & echo well"));
    let ended = folder.ciel(&["run", "job.sw"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "\"well\\n\"\n")
    );
    // What was left may not have become `sleep` yet when it was found.
    assert!(
        ended.stderr.starts_with("warning: [sh@"),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("it left 1 running when it ended"),
        "{}",
        ended.stderr
    );
}

/// Three tasks print; the second one fails.
const THREE: &str = "function say(n) {\n  if (n == 2) { throw \"two\"; }\n  print(n);\n}\n\
                     for (i in [1, 2, 3]) { spawn(say, [i]); }\n";

#[test]
fn output_ends_before_the_failed_task() {
    let ended = Folder::with_job(THREE).ciel(&["run", "-q", "job.sw"]);
    // The third task may or may not have begun when the second one failed.
    assert!(
        ["1\n", "1\n3\n"].contains(&ended.stdout.as_str()),
        "{}",
        ended.stdout
    );
    assert_eq!(ended.code, Some(1));
}

#[test]
fn keep_going_finishes_all_work() {
    let ended = Folder::with_job(THREE).ciel(&["run", "-qk", "job.sw"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "1\n3\n"));
}

#[test]
fn several_failures_are_counted_and_the_first_listed() {
    let script =
        "function no(n) { throw \"no \" + str(n); }\nfor (i in range(9)) { spawn(no, [i]); }\n";
    shows!(
        "several_failures",
        Folder::with_job(script).ciel(&["run", "-k", "job.sw"])
    );
}

#[test]
fn fail_fast_ends_the_job_though_the_script_would_handle_it() {
    let script = "function no() { throw \"no\"; }\n\
                  try { x = *spawn(no) + 1; } catch (e) { x = 7; }\nreturn x;\n";
    let folder = Folder::with_job(script);
    assert_eq!(
        folder.ciel(&["run", "-q", "job.sw"]).shown(),
        "exit 0\n--- stdout\n7\n"
    );
    let ended = folder.ciel(&["run", "-q", "--fail-fast", "job.sw"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
}

#[test]
fn failed_task_is_tried_again() {
    let folder = Folder::with_job(&shell(
        "if test -e mark; then echo well; else touch mark; exit 1; fi",
    ));
    shows!(
        "retried",
        folder.ciel(&["run", "-v", "--retries", "2", "job.sw"])
    );
}

#[test]
fn json_tells_the_whole_run() {
    let folder = Folder::with_job(&shell("echo word >&2; exit 3"));
    let ended = folder.ciel(&["run", "--json", "job.sw"]);
    let events = ended.events();
    let kind = |event: &Value| event["event"].as_str().unwrap().to_string();
    let find = |wanted: &str| events.iter().find(|event| kind(event) == wanted).unwrap();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert_eq!(kind(&events[0]), "started");
    assert_eq!(find("stderr")["text"], "word\n");
    let failure = &find("failed")["failure"];
    assert_eq!(failure["kind"], "TaskError");
    assert_eq!(failure["excerpt"], "word");
    assert_eq!(failure["chain"].as_array().unwrap().len(), 2);
    let last = events.last().unwrap();
    assert_eq!(
        (kind(last).as_str(), &last["well"]),
        ("ended", &Value::Bool(false))
    );
    assert_eq!(last["run"], events[0]["run"]);
    assert_eq!(last["tasks"]["spawned"], 2);
}

#[test]
fn quiet_job_says_nothing_but_its_failure() {
    let folder = Folder::with_job("throw \"no\";");
    shows!("quiet_failure", folder.ciel(&["run", "-q", "job.sw"]));
}

#[test]
fn foreign_state_folder_is_left_alone() {
    let folder = Folder::with_job("return 1;");
    std::fs::create_dir(folder.path("state")).unwrap();
    folder.write("state/precious", "1");
    shows!(
        "foreign_state",
        folder.ciel(&["run", "--state", "state", "job.sw"])
    );
    assert_eq!(folder.read("state/precious"), "1");
}

#[test]
fn two_runs_in_one_folder_do_not_meet() {
    let folder = Folder::with_job("print(\"one\"); return 1;");
    let both = [0, 1].map(|_| folder.command(&["run", "-q", "job.sw"]).spawn().unwrap());
    for child in both {
        assert_eq!(folder.ended(child).shown(), "exit 0\n--- stdout\none\n1\n");
    }
}

#[test]
fn resource_that_the_machine_is_said_to_have_is_given_to_tasks() {
    let folder = Folder::new();
    let task = "spawn_exec(\"shell\", {\"command\": \"echo on it\"}, 1, {\"gpu\": 1})[0]";
    folder.write("job.sw", format!("return text({task});"));
    let ended = folder.ciel(&["run", "-q", "--resource", "gpu=2", "job.sw"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "\"on it\\n\"\n")
    );
    assert_eq!(folder.ciel(&["run", "-q", "job.sw"]).code, Some(1));
}
