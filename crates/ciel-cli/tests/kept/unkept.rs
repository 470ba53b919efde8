//! What is never kept: results of tasks that ran out of time, and of those that were stopped.

use crate::expect;
use crate::support::Place;

/// A command that ends, and one that does not before there is a file `open`.
const LIMITED: &str = r#"
quick = spawn_exec("shell", {"command": "echo ran quick >&2; echo q"}, 1)[0];
slow = spawn_exec("shell", {
    "command": "echo ran slow >&2; test -e open || sleep 600; cat {in.text}",
    "inputs": {"text": quick}}, 1, {"timeout": "500ms"})[0];
return text(slow);
"#;

#[test]
fn task_that_ran_out_of_time_is_not_kept() {
    let place = Place::new();
    expect(&place.script(&[], LIMITED), 1, &["quick", "slow"]);
    let again = place.script(&["--kept"], LIMITED);
    expect(&again, 1, &["slow"]);
    assert!(
        again.stderr.contains("time limit of 0.5 s"),
        "{}",
        again.stderr
    );
    place.file("open", "");
    let ended = place.script(&["--kept"], LIMITED);
    expect(&ended, 0, &["slow"]);
    assert_eq!(ended.stdout, "\"q\\n\"\n");
}

/// A command that ends, and one that does not before there is a file `open`.
const STOPPED: &str = r#"
quick = spawn_exec("shell", {"command": "echo ran quick >&2; echo q"}, 1)[0];
slow = spawn_exec("shell", {
    "command": "cat {in.text}; echo ran slow >&2; test -e open || sleep 600",
    "inputs": {"text": quick}}, 1)[0];
return text(slow);
"#;

#[test]
fn task_that_was_stopped_by_the_user_is_not_kept() {
    let place = Place::new();
    place.file("job.sw", STOPPED);
    let live = place.start(&["run", "job.sw"]);
    live.await_error("ran slow");
    live.signal("INT");
    assert_ne!(live.end_of("the stopped run").code, Some(0));
    place.file("open", "");
    let ended = place.run(&["run", "--kept", "job.sw"]);
    expect(&ended, 0, &["slow"]);
    assert_eq!(ended.stdout, "\"q\\n\"\n");
}
