//! Where output goes: pipes that close, files that are continued or refused, a terminal.

use std::process::{Command, Stdio};

use crate::support::{Folder, Running, shows};

const COUNT: &str = "for (i in range(1000)) { print(i); }\nreturn \"end\";\n";

fn counted() -> String {
    (0..1000).map(|number| format!("{number}\n")).collect()
}

#[test]
fn closed_pipe_ends_the_job_quietly() {
    let endless = "while (true) { print(\"line\"); }\n";
    let folder = Folder::with_job(endless);
    let mut command = folder.command(&["run", "job.sw"]);
    command.stdout(Stdio::piped());
    let mut running = Running::start(command);
    assert_eq!(running.line(), "line\n");
    let mut child = running.take();
    drop(child.stdout.take());
    assert_eq!(folder.ended(child).shown(), "exit 141\n");
}

#[test]
fn file_receives_the_output_and_the_result_stays() {
    let folder = Folder::with_job(COUNT);
    let ended = folder.ciel(&["run", "-q", "-o", "out", "job.sw"]);
    assert_eq!(ended.shown(), "exit 0\n--- stdout\n\"end\"\n");
    assert_eq!(folder.read("out"), counted());
}

#[test]
fn file_with_the_beginning_is_continued() {
    let folder = Folder::with_job(COUNT);
    folder.write("out", &counted()[..1001]);
    assert_eq!(
        folder.ciel(&["run", "-q", "-o", "out", "job.sw"]).code,
        Some(0)
    );
    assert_eq!(folder.read("out"), counted());
    assert_eq!(
        folder.ciel(&["run", "-q", "-o", "out", "job.sw"]).code,
        Some(0)
    );
    assert_eq!(folder.read("out"), counted());
}

#[test]
fn file_with_something_else_is_refused() {
    let folder = Folder::with_job(COUNT);
    folder.write("out", "0\n1\nprecious\n");
    shows!(
        "output_differs",
        folder.ciel(&["run", "-o", "out", "job.sw"])
    );
    assert_eq!(folder.read("out"), "0\n1\nprecious\n");
    folder.write("out", counted() + "precious\n");
    shows!(
        "output_goes_on",
        folder.ciel(&["run", "-q", "-o", "out", "job.sw"])
    );
}

#[test]
fn file_is_replaced_when_told_so() {
    let folder = Folder::with_job(COUNT);
    folder.write("out", "something else");
    let ended = folder.ciel(&["run", "-q", "--overwrite", "-o", "out", "job.sw"]);
    assert_eq!(ended.code, Some(0));
    assert_eq!(folder.read("out"), counted());
}

#[test]
fn script_is_never_overwritten() {
    let folder = Folder::with_job(COUNT);
    shows!(
        "output_is_script",
        folder.ciel(&["run", "--overwrite", "-o", "./job.sw", "job.sw"])
    );
    assert_eq!(folder.read("job.sw"), COUNT);
}

#[test]
fn file_that_cannot_be_written_is_told() {
    let folder = Folder::with_job(COUNT);
    shows!("output_folder", folder.ciel(&["run", "-o", ".", "job.sw"]));
    shows!(
        "output_nowhere",
        folder.ciel(&["run", "-o", "no/out", "job.sw"])
    );
    shows!(
        "output_full",
        folder.ciel(&["run", "-o", "/dev/full", "job.sw"])
    );
}

/// Two lines of standard error and two of standard output, in two tasks.
const TALK: &str = "function talk(word) {\n  x = spawn_exec(\"environ\", {\"inputs\": [], \
    \"command_line\": [\"sh\", \"-c\", \"echo \" + word + \"; echo err \" + word + \" >&2; \
    echo > $OUTPUT_FILES; echo 1 > $(cat $OUTPUT_FILES)\"]}, 1);\n  return *x[0];\n}\n";

fn talking(words: &[&str]) -> crate::support::Ended {
    let script = TALK.replace("echo > $OUTPUT_FILES; ", "");
    let folder = Folder::with_job(&format!(
        "{script}a = spawn(talk, [\"one\"]);\nb = spawn(talk, [\"two\"]);\nreturn *a + *b;\n"
    ));
    folder.ciel(&[&["run"], words, &["job.sw"]].concat())
}

#[test]
fn standard_error_is_tagged_with_its_task() {
    shows!("tagged", talking(&["--serial"]));
}

#[test]
fn standard_error_comes_in_order_on_request() {
    shows!("ordered_errors", talking(&["-q", "--stderr=ordered"]));
}

#[test]
fn colours_come_only_when_asked_for_without_a_terminal() {
    assert!(!talking(&["--serial"]).stderr.contains('\u{1b}'));
    let ended = talking(&["--serial", "--colour", "always"]);
    assert!(
        ended.stderr.contains("\u{1b}[32mdone\u{1b}[0m"),
        "{}",
        ended.stderr
    );
}

/// What a terminal of 80 columns would have received.
fn on_a_terminal(folder: &Folder, command: &str) -> String {
    let line = format!(
        "stty cols 80 rows 24; {} {command}",
        env!("CARGO_BIN_EXE_ciel")
    );
    let mut script = std::process::Command::new("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .current_dir(folder.path("."));
    script
        .env("TERM", "xterm")
        .env("XDG_RUNTIME_DIR", folder.path("."))
        .env_remove("NO_COLOR");
    script
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    folder.ended(script.spawn().unwrap()).stdout
}

#[test]
fn terminal_shows_whole_lines_and_no_progress_in_the_end() {
    let folder = Folder::with_job(
        "x = spawn_exec(\"stdinout\", {\"inputs\": [], \"command_line\": [\"sh\", \"-c\", \
         \"cat pipe; echo err >&2\"]}, 1);\nprint(\"line\");\nreturn text(x[0]);\n",
    );
    folder.pipe("pipe");
    let writer = folder.path("pipe");
    let feeder = std::thread::spawn(move || {
        // Opening waits until the task reads; the job has then been running for a while.
        std::fs::write(writer, "fed").unwrap();
    });
    let shown = on_a_terminal(&folder, "run job.sw");
    feeder.join().unwrap();
    let last = shown.rsplit("\u{1b}[2K").next().unwrap();
    assert!(shown.contains("line\r\n"), "{shown:?}");
    assert!(shown.contains("]\u{1b}[0m err\r\n"), "{shown:?}");
    assert!(shown.contains("\"fed\"\r\n"), "{shown:?}");
    assert!(
        last.ends_with("cores used\r\n") || last.ends_with("ms\r\n"),
        "{shown:?}"
    );
}

#[test]
fn progress_line_tells_what_is_known_so_far() {
    let folder = Folder::with_job(
        "x = spawn_exec(\"stdinout\", {\"inputs\": [], \"command_line\": [\"sh\", \"-c\", \
         \"cat pipe\"]}, 1);\nreturn text(x[0]);\n",
    );
    folder.pipe("pipe");
    let shown = on_a_terminal(&folder, "run --timeout 3s job.sw");
    assert!(shown.contains("0/2 tasks · 1 running · "), "{shown:?}");
    assert!(shown.contains(" · oldest sh@"), "{shown:?}");
    assert!(shown.contains("failed"), "{shown:?}");
}

/// The standard library opens `/dev/null` for what is closed: the output of a job was lost, with
/// status 0, and so was that of `ciel runs`.
#[test]
fn closed_standard_output_is_an_error_unless_nothing_is_printed() {
    let folder = Folder::with_job("print(\"said\");\n");
    folder.write("silent.sw", "x = 1;\n");
    for (words, code, message) in [
        (
            &["run", "-q", "job.sw"][..],
            1,
            "cannot write the output: Bad file descriptor",
        ),
        (&["run", "-q", "silent.sw"], 0, ""),
        (
            &["runs"],
            1,
            "cannot write to standard output: Bad file descriptor",
        ),
    ] {
        let ciel = folder.command(words);
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" >&-"]);
        shell.arg(ciel.get_program()).args(ciel.get_args());
        shell.current_dir(ciel.get_current_dir().unwrap());
        for (name, value) in ciel.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let output = shell.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {stderr}");
        assert!(stderr.contains(message), "{stderr}");
    }
    let ended = folder.ciel(&["run", "-q", "job.sw"]);
    assert_eq!(ended.shown(), "exit 0\n--- stdout\nsaid\n");
}
