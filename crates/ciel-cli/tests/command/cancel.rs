//! `ciel cancel`: one task of a live run is ended from outside.

use crate::support::{Folder, Running, filtered, shows, wait_until};

/// A command that waits for the pipe `slow`; what waits for it catches its end, says so, and then
/// another command waits for the pipe `rest`.
const CATCHING: &str = r#"
function run(name, command) {
  return text(spawn_exec("shell", {"command": command}, 1, {"name": name, "pure": false})[0]);
}
print("begin");
try {
  print(run("slow", "echo x >> starts; echo $$ > begun; cat slow"));
} catch (e) {
  print(e.kind, e.message);
}
print(run("rest", "echo done; echo $$ > caught; cat rest"));
"#;

fn catching() -> (Folder, Running) {
    let folder = Folder::with_job(CATCHING);
    folder.pipe("slow");
    folder.pipe("rest");
    let running = Running::start(folder.command(&["run", "-q", "job.sw"]));
    folder.wait_for_line("begun");
    (folder, running)
}

#[test]
fn cancelled_task_is_gone_and_what_waits_for_it_continues() {
    let (folder, running) = catching();
    shows!("cancel", folder.ciel(&["cancel", "slow"]));
    folder.wait_for_line("caught");
    let is_told = || folder.ciel(&["why", "slow"]).code == Some(0);
    wait_until("the history has the end of the task", is_told);
    shows!("cancel_ended", folder.ciel(&["cancel", "slow"]));
    shows!("cancel_why", folder.ciel(&["why", "slow"]));
    folder.write("rest", "fed\n");
    let ended = folder.ended(running.take());
    filtered(|| insta::assert_snapshot!("cancel_caught", ended.shown()));
}

#[test]
fn what_a_cancelled_function_printed_first_stays_and_what_it_spawned_is_cancelled() {
    let folder = Folder::with_job(
        r#"
function slow() {
  print("first");
  x = spawn_exec("shell", {"command": "echo $$ > begun; cat never"}, 1, {"pure": false})[0];
  print("second", text(x));
}
try { print(*spawn(slow, [], {"name": "slow"})); } catch (e) { print(e.kind); }
print("end");
"#,
    );
    folder.pipe("never");
    let running = Running::start(folder.command(&["run", "-q", "job.sw"]));
    folder.wait_for_line("begun");
    assert_eq!(folder.ciel(&["cancel", "slow"]).code, Some(0));
    let ended = folder.ended(running.take());
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "first\nCancelled\nend\n")
    );
    assert!(
        !folder.ciel(&["ps"]).stdout.contains("live"),
        "the command was cancelled, too"
    );
}

/// A name that an ended and a live task have was ambiguous, though only one can be cancelled.
#[test]
fn task_that_has_ended_is_not_meant_while_a_live_one_has_its_name() {
    let folder = Folder::with_job(
        r#"
function run(command) {
  return text(spawn_exec("shell", {"command": command}, 1, {"name": "step", "pure": false})[0]);
}
print(run("echo quick"));
try { print(run("echo $$ > begun; cat never")); } catch (e) { print(e.kind); }
"#,
    );
    folder.pipe("never");
    let running = Running::start(folder.command(&["run", "-q", "job.sw"]));
    folder.wait_for_line("begun");
    let cancelled = folder.ciel(&["cancel", "step"]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.shown());
    let ended = folder.ended(running.take());
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "quick\n\nCancelled\n")
    );
    assert_eq!(folder.ciel(&["cancel", "step"]).code, Some(2));
}

#[test]
fn resumed_run_remembers_which_task_was_cancelled() {
    let (folder, mut running) = catching();
    assert_eq!(folder.ciel(&["cancel", "slow"]).code, Some(0));
    // What is printed is recorded before, with the cancellation from which it follows.
    assert_eq!(running.line(), "begin\n");
    assert_eq!(running.line(), "Cancelled it was cancelled\n");
    folder.wait_for_line("caught");
    running.signal(rustix::process::Signal::KILL);
    assert_eq!(folder.ended(running.take()).code, None);
    std::fs::remove_file(folder.path("caught")).unwrap();
    let resumed = Running::start(folder.command(&["run", "-q", "job.sw"]));
    folder.wait_for_line("caught");
    folder.write("rest", "fed\n");
    let ended = folder.ended(resumed.take());
    assert_eq!(ended.code, Some(0), "{}", ended.shown());
    assert!(
        ended.stdout.contains("Cancelled it was cancelled"),
        "{}",
        ended.stdout
    );
    assert_eq!(folder.read("starts"), "x\n");
}

#[test]
fn cancelled_task_that_nobody_catches_fails_the_job() {
    let (folder, running) = catching();
    assert_eq!(folder.ciel(&["cancel", "slow"]).code, Some(0));
    folder.wait_for_line("caught");
    let cancelled = folder.ciel(&["cancel", "--json", "rest"]);
    let told: serde_json::Value = serde_json::from_str(&cancelled.stdout).unwrap();
    assert_eq!(told["cancelled"]["what"], "rest");
    shows!("cancel_uncaught", folder.ended(running.take()));
    shows!("cancel_run_ended", folder.ciel(&["cancel", "rest"]));
    shows!("cancel_unknown", folder.ciel(&["cancel", "nothing"]));
}
