//! Runs seen from outside: `ps`, `why`, `logs`, `clean`, `doctor`.

use std::process::Command;

use serde_json::Value;

use crate::support::{DEADLINE, Folder, Running, filtered, shows, shows_table, wait_until};

/// A task that says a word, then waits for a pipe; another task waits for it.
const WAITING: &str = "function wait(n) {\n  x = spawn_exec(\"stdinout\", {\"inputs\": [], \
    \"command_line\": [\"sh\", \"-c\", \"echo $$ > begun; echo word >&2; cat pipe\"]}, 1);\n  \
    return text(x[0]);\n}\nreturn *spawn(wait, [1]) + \"!\";\n";

/// A run that waits for its pipe, all of its tasks in their places.
fn waiting(folder: &Folder) -> Running {
    folder.pipe("pipe");
    let running = Running::start(folder.command(&["run", "-q", "job.sw"]));
    folder.wait_for_line("begun");
    wait_until("the task that waits is suspended", || {
        folder
            .ciel(&["why", "wait"])
            .stdout
            .contains("waiting for sh")
    });
    running
}

#[test]
fn live_run_is_explained_and_so_is_the_ended_one() {
    let folder = Folder::with_job(WAITING);
    let running = waiting(&folder);
    shows_table!("ps_live", folder.ciel(&["ps"]));
    shows!("why_waiting", folder.ciel(&["why", "wait"]));
    shows!("why_running", folder.ciel(&["why", "sh"]));
    shows!("clean_live", folder.ciel(&["clean"]));
    folder.write("pipe", "fed");
    let ended = folder.ended(running.take());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "\"fed!\"\n"));
    shows_table!("ps_ended", folder.ciel(&["ps"]));
    shows_table!("ps_all", folder.ciel(&["ps", "--all"]));
    shows!("why_ended", folder.ciel(&["why", "sh"]));
    shows!("logs", folder.ciel(&["logs", "sh"]));
    shows!("logs_none", folder.ciel(&["logs", "wait"]));
    shows!("clean_ended", folder.ciel(&["clean"]));
    shows_table!("ps_none", folder.ciel(&["ps"]));
    shows!("why_no_runs", folder.ciel(&["why", "sh"]));
}

/// What a command had written was lost if it failed and its standard output was to be its output.
#[test]
fn standard_output_of_a_failed_command_is_kept_also_if_it_was_to_be_an_output() {
    let folder = Folder::with_job(
        "return text(spawn_exec(\"shell\", {\"command\": \"echo half {n}; exit 3\", \
         \"inputs\": {\"n\": \"Ann\"}}, 1)[0]);",
    );
    let ended = folder.ciel(&["run", "-q", "job.sw"]);
    assert_eq!(ended.code, Some(1));
    let message = "`sh -c echo half {n}; exit 3` ended with exit status 3, with n = \"Ann\"";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
    let logs = folder.ciel(&["logs", "echo"]);
    assert!(logs.stdout.contains("half Ann\n"), "{}", logs.stdout);
}

#[test]
fn looks_are_told_as_json() {
    let folder = Folder::with_job(WAITING);
    let running = waiting(&folder);
    let look = |words: &[&str]| -> Value {
        let ended = folder.ciel(words);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        serde_json::from_str(&ended.stdout).unwrap()
    };
    let runs = look(&["ps", "--json"]);
    assert_eq!(runs["state"], "live");
    assert_eq!(runs["tasks"].as_array().unwrap().len(), 3);
    let why = look(&["why", "--json", "sh"]);
    assert_eq!(why["task"]["state"], "running");
    assert!(
        why["reasons"][0]
            .as_str()
            .unwrap()
            .starts_with("running in process")
    );
    folder.write("pipe", "fed");
    assert_eq!(folder.ended(running.take()).code, Some(0));
    assert_eq!(look(&["logs", "--json", "sh"])["log"]["text"], "word\n");
}

#[test]
fn killed_run_is_told_as_one_that_can_go_on() {
    let folder = Folder::with_job(WAITING);
    let running = waiting(&folder);
    running.signal(rustix::process::Signal::KILL);
    assert_eq!(folder.ended(running.take()).code, None);
    let ended = folder.ciel(&["ps"]);
    assert!(ended.stdout.contains("interrupted"), "{}", ended.stdout);
    assert!(ended.stdout.contains("ciel resume"), "{}", ended.stdout);
    assert_eq!(folder.ciel(&["clean", "--all"]).stdout, "removed 1 run\n");
}

#[test]
fn several_tasks_are_listed() {
    let script = "function part(n) { return n; }\nfor (i in range(3)) { spawn(part, [i]); }\n";
    let folder = Folder::with_job(script);
    assert_eq!(folder.ciel(&["run", "--serial", "job.sw"]).code, Some(0));
    shows!("why_several", folder.ciel(&["why", "part"]));
    shows!("why_misspelt", folder.ciel(&["why", "prat"]));
    shows!(
        "why_unknown_json",
        folder.ciel(&["why", "--json", "elephant"])
    );
}

/// It was ambiguous: the digits of other tasks began with the whole name of the function.
#[test]
fn function_is_meant_before_digits() {
    let others = "function part(n) { return n; }\nfor (i in range(100)) { spawn(part, [i]); }\n";
    let folder = Folder::with_job(&format!(
        "function a() {{ return 1; }}\nspawn(a);\n{others}"
    ));
    assert_eq!(folder.ciel(&["run", "--serial", "job.sw"]).code, Some(0));
    let all = folder.ciel(&["ps", "--all"]).stdout;
    assert!(all.contains("part@a"), "{all}");
    let why = folder.ciel(&["why", "a"]);
    assert_eq!(
        (why.code, why.stdout.starts_with("a@")),
        (Some(0), true),
        "{}",
        why.stderr
    );
}

#[test]
fn failed_task_is_explained() {
    let folder = Folder::with_job("function no() { throw \"no\"; }\nreturn *spawn(no) + 1;\n");
    assert_eq!(folder.ciel(&["run", "--serial", "job.sw"]).code, Some(1));
    shows!("why_failed", folder.ciel(&["why", "no"]));
    shows!("why_failed_parent", folder.ciel(&["why", "job"]));
    shows_table!("ps_failed", folder.ciel(&["ps"]));
}

#[test]
fn state_of_another_version_is_cleaned() {
    let folder = Folder::with_job("return 1;");
    assert_eq!(folder.ciel(&["run", "job.sw"]).code, Some(0));
    folder.write(".ciel/format", "ciel-state 0\n");
    shows!("other_version", folder.ciel(&["run", "job.sw"]));
    shows!("other_version_ps", folder.ciel(&["ps"]));
    shows!("other_version_clean", folder.ciel(&["clean"]));
    assert_eq!(folder.ciel(&["run", "-q", "job.sw"]).stdout, "1\n");
}

#[test]
fn clean_without_state_makes_none() {
    let folder = Folder::new();
    shows!("clean_nothing", folder.ciel(&["clean"]));
    assert!(!folder.path(".ciel").exists());
}

#[test]
fn doctor_finds_this_machine_well_and_leaves_nothing() {
    let folder = Folder::new();
    let ended = folder.ciel(&["doctor", "--json"]);
    let findings: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert!(findings.iter().all(|finding| finding["grade"] != "problem"));
    assert!(findings.iter().any(|finding| finding["check"] == "spawner"));
    assert!(!folder.path(".ciel").exists());
}

#[test]
fn doctor_ends_with_one_on_a_problem() {
    let folder = Folder::new();
    folder.write("state", "precious");
    let ended = folder.ciel(&["doctor", "--state", "state"]);
    assert_eq!(ended.code, Some(1));
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let problem = lines
        .iter()
        .position(|line| line.starts_with("problem"))
        .unwrap();
    filtered(|| insta::assert_snapshot!("doctor_problem", lines[problem..problem + 2].join("\n")));
}

#[test]
fn doctor_finds_executors_of_the_folder() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("executors")).unwrap();
    folder.write("executors/ciel-executor-words", "#!/bin/sh\n");
    let executors = || {
        let shown = folder.ciel(&["doctor"]).stdout;
        shown
            .lines()
            .find(|line| line.contains("executors"))
            .unwrap()
            .to_string()
    };
    assert!(executors().starts_with("warning"), "{}", executors());
    let plugin = folder.path("executors/ciel-executor-words");
    assert!(
        Command::new("chmod")
            .arg("+x")
            .arg(plugin)
            .status()
            .unwrap()
            .success()
    );
    assert!(
        executors().starts_with("ok") && executors().contains("words"),
        "{}",
        executors()
    );
}

/// Ten thousand tasks of a plug-in once left ten thousand lines, and a million a million, all of
/// which `ciel ps` read.
#[test]
fn run_of_more_tasks_than_its_history_tells_of_is_counted_by_function() {
    let script = "function one(i) { return i; }\nall = [];\n\
        for (i in range(16000)) { all += spawn(one, [i], {\"name\": \"one\"}); }\n\
        return len(all);\n";
    let folder = Folder::with_job(script);
    assert_eq!(folder.ciel(&["run", "-q", "job.sw"]).code, Some(0));
    let shown = folder.ciel(&["ps", "--json"]).stdout;
    let run: Value = serde_json::from_str(&shown).unwrap();
    let one = &run["functions"][1];
    assert_eq!(
        (&one["what"], &one["spawned"]),
        (&"one".into(), &16_000.into())
    );
    assert_eq!(one["finished"], 16_000);
    let known = run["tasks"].as_array().unwrap().len();
    // At least those that may wait for the thread that writes them, should it never have its turn.
    assert!((4_096..15_000).contains(&known), "{known}");
    let all = folder.ciel(&["ps", "--all"]).stdout;
    let count = |line: &&str| line.contains("16000 tasks  16000 finished");
    assert!(all.lines().rev().take(2).any(|line| count(&line)), "{all}");
}

/// What a follower of the only run of a folder gets: the stream after its request.
fn follow(folder: &Folder) -> std::io::BufReader<std::os::unix::net::UnixStream> {
    let sockets = std::fs::read_dir(folder.path("ciel")).unwrap();
    let path = sockets.last().unwrap().unwrap().path();
    let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    std::io::Write::write_all(&mut stream, b"{\"follow\":100}\n").unwrap();
    std::io::BufReader::new(stream)
}

fn next_record(stream: &mut impl std::io::BufRead) -> Option<Value> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).unwrap();
    (read > 0).then(|| serde_json::from_str(&line).unwrap())
}

#[test]
fn follower_gets_the_tasks_that_live_and_then_what_happens_until_the_run_ends() {
    let folder = Folder::with_job(WAITING);
    let running = waiting(&folder);
    let mut stream = follow(&folder);
    let kinds = |record: &Value| record["record"].as_str().unwrap().to_string();
    let first: Vec<Value> = (0..4).map_while(|_| next_record(&mut stream)).collect();
    assert_eq!(
        first.iter().map(kinds).collect::<Vec<_>>(),
        ["counts", "task", "task", "task"]
    );
    folder.write("pipe", "fed");
    let rest: Vec<Value> = std::iter::from_fn(|| next_record(&mut stream)).collect();
    let finished = |record: &Value| record["what"] == "sh" && record["moment"] == "finished";
    assert!(rest.iter().any(finished), "{rest:?}");
    assert!(
        rest.iter().all(|record| kinds(record) == "moment"),
        "{rest:?}"
    );
    assert_eq!(folder.ended(running.take()).code, Some(0));
}

/// The reader reads nothing while tens of thousands of moments pass; the run must not wait for it.
#[test]
fn slow_follower_loses_the_oldest_moments_and_hears_how_many() {
    let script = "function one(i) { return i; }\n\
        function cat(word) {\n  command = \"echo b > \" + word + \"; cat pipe\";\n  \
        return text(spawn_exec(\"shell\", {\"command\": command}, 1)[0]);\n}\n\
        first = cat(\"begun\");\ntotal = len(first);\n\
        for (i in range(6000)) { total += *spawn(one, [i], {\"name\": \"one\"}); }\n\
        if (total > 0) { return cat(\"done\"); }\n";
    let folder = Folder::with_job(script);
    folder.pipe("pipe");
    let running = Running::start(folder.command(&["run", "-q", "job.sw"]));
    folder.wait_for_line("begun");
    let mut stream = follow(&folder);
    assert_eq!(next_record(&mut stream).unwrap()["record"], "counts");
    folder.write("pipe", "fed");
    folder.wait_for_line("done");
    let mut rest = std::iter::from_fn(|| next_record(&mut stream));
    let missed = rest.find_map(|record| record["moments"].as_u64()).unwrap();
    assert!(missed > 1_000, "{missed}");
    assert_eq!(rest.next().unwrap()["record"], "moment");
    folder.write("pipe", "fed");
    assert_eq!(folder.ended(running.take()).stdout, "\"fed\"\n");
}
