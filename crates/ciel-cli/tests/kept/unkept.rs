//! What is never kept: results of tasks that ran out of time, and of those that were stopped.

use crate::compared::runs;
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

/// The options were taken, and had no effect: nothing was taken or kept, and nobody was told.
#[test]
fn kept_results_of_a_run_without_records_are_refused() {
    let place = Place::new();
    for asked in [&["--kept"][..], &["--kept-dir", "shared"]] {
        let options = [asked, &["--durable", "never"]].concat();
        let refused = place.script(&options, "return 1;");
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        let told = "a run with --durable never neither takes nor keeps results";
        assert!(refused.stderr.contains(told), "{}", refused.stderr);
    }
    // What a job asks for itself is asked for where it can be had.
    let ended = place.script(&["--durable", "never"], "// ciel: kept\nreturn 1;");
    assert_eq!(ended.stdout, "1\n", "{}", ended.stderr);
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

/// A command that reads what another one writes at the same time.
const STREAMED: &str = r#"
made = spawn_exec("shell", {"command": "echo ran made >&2; echo x; read y < gate",
                            "stream": true}, 1)[0];
return text(spawn_exec("shell", {
    "command": "echo ran reads >&2; head -n 1; : > started", "stdin": [made]}, 1)[0]);
"#;

/// The next run said that it had never finished, and `ciel diff` that its input had changed:
/// it had been noted with the inputs that were there when it began.
#[test]
fn command_that_reads_a_stream_is_not_kept_and_the_next_run_says_so() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["-j2"], STREAMED);
    place.await_file("started");
    gate.release(1);
    expect(&live.end(), 0, &["made", "reads"]);
    let again = place.script(&["--kept", "-j2"], STREAMED);
    expect(&again, 0, &["reads"]);
    let said = &again.stderr;
    assert!(said.contains("1 of 2 kept; echo: not kept"), "{said}");
    let told = place.run(&["diff", &runs(&place)[1], &runs(&place)[0]]);
    assert!(!told.stdout.contains("input changed"), "{}", told.stdout);
    expect(&place.script(&["--kept", "-j2"], STREAMED), 0, &[]);
}

/// The next run said that it had never finished.
#[test]
fn command_that_prints_too_much_is_not_kept_and_the_next_run_says_so() {
    let place = Place::new();
    let script = shell_printing_much();
    expect(&place.script(&[], &script), 0, &["much"]);
    let again = place.script(&["--kept"], &script);
    expect(&again, 0, &["much"]);
    let said = &again.stderr;
    assert!(said.contains("not kept"), "{said}");
}

fn shell_printing_much() -> String {
    let command = "echo ran much >&2; : > {out.done}; head -c 1100000 /dev/zero | tr '\\\\0' a";
    let arguments = format!("{{\"command\": \"{command}\", \"outputs\": [\"done\"]}}");
    format!("return text(spawn_exec(\"shell\", {arguments}, 1)[0]);")
}

/// Each task of a loop of tail calls was followed until its end, which took twice as long as the
/// loop itself; only the first four thousand of a row are, and all say what became of them.
#[test]
fn tasks_far_down_a_row_are_not_kept_and_the_next_run_says_so() {
    let place = Place::new();
    let script = "function step(n) { if (n == 0) { return 7; } return spawn(step, [n - 1]); }\n\
                  return *spawn(step, [4200]);";
    for options in [&[][..], &["--kept"]] {
        let ended = place.script(options, script);
        assert_eq!((ended.code, &*ended.stdout), (Some(0), "7\n"));
        let said = &ended.stderr;
        assert_eq!(
            said.contains("step: not kept"),
            !options.is_empty(),
            "{said}"
        );
        assert!(!said.contains("never finished"), "{said}");
    }
}
