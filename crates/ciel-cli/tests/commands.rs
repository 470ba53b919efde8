//! Commands of tasks: which shell runs them, and where.
//!
//! Each test is a program that somebody could write who has read the reference of executors. Read
//! first: `support`.

mod support;

use support::{Ended, Place};

/// A script that returns the text of the task of `shell` with these arguments, or the message of
/// its failure.
fn script(arguments: &str) -> String {
    format!(
        "r = spawn_exec(\"shell\", {{{arguments}}}, 1)[0];\n\
         try {{ return text(r); }} catch (e) {{ return \"failed: \" + e.message; }}"
    )
}

fn run(options: &[&str], arguments: &str) -> Ended {
    let ended = Place::new().script(&[&["-q"], options].concat(), &script(arguments));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended
}

/// What the task prints, as JSON.
fn expect(options: &[&str], arguments: &str, stdout: &str) {
    assert_eq!(
        run(options, arguments).stdout,
        format!("{stdout}\n"),
        "{arguments}"
    );
}

fn expect_failure(options: &[&str], arguments: &str, message: &str) {
    let found = run(options, arguments).stdout;
    let is_right = found.starts_with("\"failed: ") && found.contains(message);
    assert!(is_right, "{arguments}: {found}");
}

const FALSE_IN_A_PIPE: &str = r#""command": "false | cat; echo on""#;

/// Without `pipefail` the failure of a command in a pipe was lost, and its successor's result was
/// that of no data.
#[test]
fn command_in_a_pipe_that_fails_is_the_failure_of_a_strict_task() {
    expect(&[], FALSE_IN_A_PIPE, r#""on\n""#);
    let strict = format!(r#"{FALSE_IN_A_PIPE}, "shell": "strict""#);
    for options in [&["-j2"][..], &["--serial"]] {
        expect_failure(options, &strict, "ended with exit status 1");
    }
}

#[test]
fn variable_that_is_not_set_is_the_failure_of_a_strict_task() {
    let unset = r#""command": "echo ${NOWHERE_SET}", "shell": "strict""#;
    expect_failure(&[], unset, "ended with exit status 1");
}

#[test]
fn shell_of_the_job_is_for_tasks_that_do_not_say_theirs() {
    expect_failure(&["--shell", "strict"], FALSE_IN_A_PIPE, "exit status 1");
    let plain = format!(r#"{FALSE_IN_A_PIPE}, "shell": "sh""#);
    expect(&["--shell", "strict"], &plain, r#""on\n""#);
}

#[test]
fn strict_task_without_bash_says_that_it_was_not_found() {
    let nowhere = r#""command": "echo", "shell": "strict", "env": {"PATH": "/nowhere"}"#;
    expect_failure(&[], nowhere, "program `bash` was not found");
}

#[test]
fn words_of_a_container_start_the_command_with_its_files_and_variables() {
    let arguments = r#""container": "env -i PATH=/usr/bin:/bin",
        "command": "cat {file}; echo {word} $LEVEL ${HOME-none} ${CIEL_TASK-none}",
        "inputs": {"file": spawn_exec("shell", {"command": "echo text"}, 1)[0], "word": "a  'b"},
        "env": {"LEVEL": 3}"#;
    expect(&[], arguments, r#""text\na  'b 3 none none\n""#);
    let strict = format!(r#"{arguments}, "shell": "strict""#);
    expect(&[], &strict, r#""text\na  'b 3 none none\n""#);
}

#[test]
fn failure_in_a_container_shows_the_command_and_not_the_words_before_it() {
    let arguments = r#""container": ["env", "-i", "PATH=/bin"], "command": "exit 4""#;
    expect_failure(&[], arguments, "`sh -c exit 4` ended with exit status 4");
}

#[test]
fn container_program_that_does_not_exist_is_named() {
    let arguments = r#""container": "no-such-docker run image", "command": "echo""#;
    expect_failure(&[], arguments, "program `no-such-docker` was not found");
}

/// A folder that looks like an environment of Conda, with a program and a hook of its own.
fn conda_in(place: &Place) {
    for folder in [
        "tools/conda-meta",
        "tools/bin",
        "tools/etc/conda/activate.d",
    ] {
        std::fs::create_dir_all(place.path(folder)).unwrap();
    }
    place.file(
        "tools/etc/conda/activate.d/data.sh",
        "export DATA=$CONDA_PREFIX/share",
    );
    let tool = place.file(
        "tools/bin/tool",
        "#!/bin/sh\necho \"tool of $CONDA_PREFIX: $DATA $*\"\n",
    );
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(tool, all).unwrap();
}

#[test]
fn environment_of_conda_is_active_in_a_command_of_each_executor() {
    let place = Place::new();
    conda_in(&place);
    let folder = place
        .path("tools")
        .canonicalize()
        .unwrap()
        .display()
        .to_string();
    let script = r#"
        to_file = "tool 3 > $(cat $OUTPUT_FILES)";
        a = spawn_exec("shell", {"command": "tool {n}", "inputs": {"n": 1}, "conda": "tools"}, 1);
        b = spawn_exec("stdinout", {"command_line": ["tool", 2], "conda": "tools"}, 1);
        c = spawn_exec("environ", {"command_line": ["sh", "-c", to_file], "conda": "tools"}, 1);
        print(text(a[0]) + text(b[0]) + text(c[0]));"#;
    let ended = place.script(&["-q"], script);
    let line = |n| format!("tool of {folder}: {folder}/share {n}\n");
    let expected = format!("{}{}{}\n", line(1), line(2), line(3));
    assert_eq!(ended.stdout, expected, "{}", ended.stderr);
}

#[test]
fn folder_that_is_no_environment_of_conda_is_refused() {
    let arguments = r#""command": "echo", "conda": "/nowhere""#;
    expect_failure(&[], arguments, "/nowhere is not a Conda environment");
}

/// A compiler that failed in the middle of a command left no output, and the message was "it
/// succeeded but did not write output 1 of 1": neither which file it was nor what it had said.
#[test]
fn command_that_leaves_out_an_output_shows_its_name_its_inputs_and_what_it_said() {
    let script = r#"
        made = spawn_exec("shell", {"command": "cat none/{n} > {out.copy} 2>&1; rm -f {out.copy}; \
            echo no file {n} >&2; : > {out.log}; echo tidy", "inputs": {"n": 7},
            "outputs": ["log", "copy"]}, 2, {"name": "copy"});
        try { text(made[1]); }
        catch (e) { v = e.value; print(v.exit_status, v.inputs, trim(v.stderr), v.stdout); }
        text(made[0]);"#;
    let script = script.replace("\\\n", "");
    let place = Place::new();
    let ended = place.script(&["-q"], &script);
    assert_eq!(ended.stdout, "0 {\"n\":\"7\"} no file 7 tidy\n\n");
    let said = "succeeded but its output \"copy\" is missing, with n = 7";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("unless its shell is \"strict\""),
        "{}",
        ended.stderr
    );
}

/// The message named a file of the run's own, and said `failed to iterate over archive`.
#[test]
fn folder_of_an_input_that_is_no_archive_names_the_input() {
    let script =
        "made = spawn_exec(\"shell\", {\"command\": \"head -c 5000 /dev/zero | tr '\\\\000' x \
                  > {out.a}\", \"outputs\": [\"a\"]}, 1)[0];
        return *spawn_exec(\"shell\", {\"command\": \"ls {in.tree/}\", \
                  \"inputs\": {\"tree\": made}}, 1)[0];";
    let ended = Place::new().script(&[], script);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let told =
        "{tree/} is a folder with what is in a tar archive, and the input \"tree\" is none: ";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    let hint = "hint: pass what a command has written to {out/}, or another tar archive";
    assert!(ended.stderr.contains(hint), "{}", ended.stderr);
    assert!(!ended.stderr.contains("scratch"), "{}", ended.stderr);
}
