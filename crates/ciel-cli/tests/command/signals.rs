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

/// What a shell ignores for `nohup PROGRAM &` in a script.
const IGNORED: &str = "trap '' HUP INT QUIT; exec \"$0\" run job.sw";

/// `nohup ciel run job.sw &` ended with its terminal: the run watched for the signals that it was
/// to ignore, and its commands had their defaults, so they were ended, too. Those of the serial
/// program ignore what it ignores.
#[test]
fn run_that_is_to_ignore_signals_continues_and_so_do_its_commands() {
    let folder = Folder::with_job(
        "x = spawn_exec(\"shell\", {\"command\": \"grep SigIgn /proc/self/status; \
         kill -INT $$; kill -HUP $$; echo > begun; cat pipe\"}, 1);\nreturn *x[0];\n",
    );
    folder.pipe("pipe");
    let ciel = folder.command(&[]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", IGNORED]).arg(ciel.get_program());
    command
        .current_dir(folder.path(""))
        .stdin(std::process::Stdio::null());
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let running = Running::start(command);
    folder.wait_for_line("begun");
    for signal in [Signal::INT, Signal::HUP, Signal::QUIT] {
        running.signal(signal);
    }
    folder.write("pipe", "read\n");
    let ended = folder.ended(running.take());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let (ignored, rest) = ended.stdout.split_once("\\n").unwrap();
    let mask = ignored.rsplit("\\t").next().unwrap();
    let mask = u64::from_str_radix(mask, 16).unwrap();
    // Signals 1 to 3, and neither SIGPIPE nor SIGTERM.
    assert_eq!((mask & 0x5007, rest), (7, "read\\n\"\n"));
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
