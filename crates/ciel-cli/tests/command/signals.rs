//! Ctrl-C: real signals, real processes.

use rustix::process::Signal;

use crate::support::{Folder, Running, shows, wait_until};

/// A task that writes its process number and waits for a pipe, whichever signals it gets.
fn job(trap: &str) -> String {
    format!(
        "x = spawn_exec(\"stdinout\", {{\"inputs\": [], \"command_line\": [\"sh\", \"-c\", \
         \"{trap} echo $$ > begun; cat pipe; cat pipe\"]}}, 1);\nreturn text(x[0]);\n"
    )
}

/// Sends the signals to a running job, and returns how it ended once nothing of it is left.
fn interrupted(trap: &str, signals: &[Signal]) -> crate::support::Ended {
    let folder = Folder::with_job(&job(trap));
    folder.pipe("pipe");
    let running = Running::start(folder.command(&["run", "job.sw"]));
    let process = folder.wait_for_line("begun");
    for signal in signals {
        running.signal(*signal);
    }
    let ended = folder.ended(running.take());
    wait_until("the task's process is gone", || {
        !std::path::Path::new(&format!("/proc/{process}")).exists()
    });
    ended
}

#[test]
fn interrupt_ends_the_job_and_its_processes() {
    shows!("interrupted", interrupted("", &[Signal::INT]));
}

#[test]
fn request_to_end_is_obeyed_like_an_interrupt() {
    assert_eq!(interrupted("", &[Signal::TERM]).code, Some(130));
}

#[test]
fn second_interrupt_kills_what_will_not_end() {
    assert_eq!(
        interrupted("trap '' TERM INT;", &[Signal::INT, Signal::INT]).code,
        Some(130)
    );
}

#[test]
fn interrupt_is_told_as_json() {
    let folder = Folder::with_job(&job(""));
    folder.pipe("pipe");
    let running = Running::start(folder.command(&["run", "--json", "job.sw"]));
    folder.wait_for_line("begun");
    running.signal(Signal::INT);
    let ended = folder.ended(running.take());
    let last = ended.events().pop().unwrap();
    assert_eq!(
        (ended.code, &last["interrupted"]),
        (Some(130), &serde_json::Value::Bool(true))
    );
}

/// Prints more than any pipe holds.
const LOUD: &str = "
for (n in range(20000)) { print(\"a line that nobody reads\", n); }
return 1;
";

/// Bytes that a pipe holds.
const PIPE_BYTES: u64 = 64 << 10;

/// A run whose output was not read could not be ended by any number of signals: its output thread
/// waited for the reader, and all other threads for the output thread.
#[test]
fn third_signal_ends_a_run_whose_output_nobody_reads() {
    let folder = Folder::with_job(LOUD);
    let mut command = folder.command(&["run", "job.sw"]);
    let (unread, stdout) = std::io::pipe().unwrap();
    command.stdout(stdout);
    let running = Running::start(command);
    wait_until("the pipe is full", || {
        rustix::io::ioctl_fionread(&unread).unwrap() >= PIPE_BYTES
    });
    // Equal signals that are not yet handled would count as one.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        running.signal(signal);
    }
    assert_eq!(running.take().wait().unwrap().code(), Some(130));
    drop(unread);
    let ended = folder.ended(Running::start(folder.command(&["run", "job.sw"])).take());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.ends_with("nobody reads 19999\n1\n"));
}
