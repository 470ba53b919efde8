//! Runs of a user with few threads and processes, a fork bomb among their tasks, and another user
//! at the control socket.
//!
//! None of these was ever tried. They need a second user, so only root can test them. Read first:
//! `support`.

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use support::programs::works;
use support::{Ended, Live, Place, held, shell, skipped};

/// Users that have no other processes: a limit counts all processes of a user.
const SOMEBODY: u32 = 64_123;
const BOMBER: u32 = 64_124;

/// Whether processes can be started as that user, with limits; if not, the test is skipped.
fn has_somebody(test: &str) -> bool {
    let user = format!("--reuid={SOMEBODY}");
    let has = works(&[
        "setpriv",
        &user,
        "--clear-groups",
        "prlimit",
        "--nproc=9",
        "true",
    ]);
    if !has {
        skipped(
            test,
            "only root can be another user, with setpriv and prlimit",
        );
    }
    has
}

/// A place of a user's, with these files and the command.
fn place_of(user: u32, files: &[(&str, &str)]) -> Place {
    let place = Place::new();
    place.copy_of_command();
    for (name, text) in files {
        place.file(name, text);
    }
    fs::set_permissions(place.path(""), Permissions::from_mode(0o755)).unwrap();
    for path in [place.path(""), place.path("runtime")] {
        chown(&path, Some(user), Some(user)).unwrap();
    }
    place
}

/// Runs a job as a user who may have so many threads and processes.
fn run_confined(place: &Place, user: u32, threads: u32, job: &str) -> Ended {
    let mut command = place.program(Path::new("setpriv"));
    command
        .args([format!("--reuid={user}"), format!("--regid={user}")])
        .args(["--clear-groups", "prlimit", &format!("--nproc={threads}")])
        .arg(place.path("ciel"))
        .args(["run", "-j4", job])
        // That of the tests may lie in a folder that only its owner may enter.
        .env_remove("CIEL_PYTHON");
    let ended = Live::start(command).end_of(&format!("a run with {threads} threads ends"));
    place.expect_nobody(&ended.stderr);
    ended
}

#[test]
fn user_without_threads_is_told_to_raise_the_limit_and_no_run_hangs() {
    if !has_somebody("user_without_threads_is_told_to_raise_the_limit_and_no_run_hangs") {
        return;
    }
    let one = "spawn_exec(\"shell\", {\"command\": \"echo {i}\", \"inputs\": {\"i\": i}}, 1)[0]";
    let job = format!(
        "xs = []; for (i in range(8)) {{ xs += {one}; }} sum = 0; for (x in xs) {{ sum += *x; }} \
         return sum;"
    );
    let place = place_of(SOMEBODY, &[("job.sw", &job)]);
    let mut refused = 0;
    for threads in [3, 5, 7, 9, 10, 11, 12, 14, 64] {
        let ended = run_confined(&place, SOMEBODY, threads, "job.sw");
        if ended.code == Some(0) {
            assert_eq!(ended.stdout, "28\n", "{threads}: {}", ended.stderr);
            continue;
        }
        refused += 1;
        let about = format!("{threads} {:?}: {}", ended.code, ended.stderr);
        assert!(
            ended.stderr.contains("esource temporarily unavailable"),
            "{about}"
        );
        assert!(ended.stderr.contains("ulimit -u"), "{about}");
        assert!(threads < 64, "{about}");
    }
    assert!(refused > 2, "{refused} runs were refused");
}

/// "does not exist" was said of an interpreter in a folder that only its owner may enter.
#[test]
fn interpreter_out_of_reach_is_said_to_be_so() {
    if !has_somebody("interpreter_out_of_reach_is_said_to_be_so") {
        return;
    }
    let place = place_of(SOMEBODY, &[("job.py", "def main():\n    return 1\n")]);
    fs::create_dir(place.path("closed")).unwrap();
    place.file("closed/python3", "");
    fs::set_permissions(place.path("closed"), Permissions::from_mode(0o700)).unwrap();
    for (file, told) in [
        ("closed/python3", "cannot be reached: permission denied"),
        ("none/python3", "does not exist"),
        ("runtime", "is no file"),
    ] {
        let mut command = place.program(&place.path("ciel"));
        command
            .uid(SOMEBODY)
            .args(["run", "--python", file, "job.py"]);
        let ended = Live::start(command).end();
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        let message = format!("error: the Python interpreter {file} {told}");
        assert!(ended.stderr.starts_with(&message), "{}", ended.stderr);
    }
}

/// Each process forks as fast as it can until the system refuses.
const BOMB: &str = "
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
";

#[test]
fn fork_bomb_under_a_limit_is_ended_by_its_time_limit_and_leaves_nothing() {
    if !has_somebody("fork_bomb_under_a_limit_is_ended_by_its_time_limit_and_leaves_nothing") {
        return;
    }
    let user = format!("--reuid={BOMBER}");
    if !works(&["setpriv", &user, "--clear-groups", "python3", "-c", "pass"]) {
        return skipped("a fork bomb", "another user finds no python3 here");
    }
    let job = "
        command = {\"command\": \"exec python3 bomb.py\"};
        bomb = spawn_exec(\"shell\", command, 1, {\"timeout\": 1})[0];
        try { text(bomb); } catch (e) { print(e.kind); }
        print(\"after\");";
    let place = place_of(BOMBER, &[("job.sw", job), ("bomb.py", BOMB)]);
    let ended = run_confined(&place, BOMBER, 64, "job.sw");
    let found = (ended.code, ended.stdout.as_str());
    assert_eq!(found, (Some(0), "Timeout\nafter\n"), "{}", ended.stderr);
}

/// Asks the socket as a client does, and prints what comes back.
const CLIENT: &str = "
import socket, sys
stream = socket.socket(socket.AF_UNIX)
try:
    stream.connect(sys.argv[1])
except OSError as error:
    sys.exit(type(error).__name__)
try:
    stream.sendall(b'{\"tasks\": 10}\\n')
    print(stream.makefile('rb').read())
except OSError:
    print('hung up')
";

fn ask_as(user: u32, socket: &Path) -> String {
    let mut command = Command::new("python3");
    command
        .arg("-c")
        .arg(CLIENT)
        .arg(socket)
        .stdin(Stdio::null());
    let output = command.uid(user).current_dir("/").output().unwrap();
    let written = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&written).trim().to_string()
}

/// The permissions of its folder were all that kept other users from the control socket.
#[test]
fn another_user_gets_no_answer_from_the_control_socket() {
    if !has_somebody("another_user_gets_no_answer_from_the_control_socket") {
        return;
    }
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["-q"], &format!("return *{};", shell(&held("gate"))));
    let folder = place.path("runtime/ciel");
    let sockets = || fs::read_dir(&folder).into_iter().flatten().flatten();
    let socket = support::until("the socket", || sockets().next()).path();
    let own = rustix::process::geteuid().as_raw();
    support::until_true("the run answers its own user", || {
        ask_as(own, &socket).contains("running")
    });
    assert_eq!(ask_as(SOMEBODY, &socket), "PermissionError");
    for path in [&place.path(""), &place.path("runtime"), &folder, &socket] {
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    let answer = ask_as(SOMEBODY, &socket);
    assert!(["b''", "hung up"].contains(&answer.as_str()), "{answer}");
    gate.release(1);
    assert_eq!(live.end().code, Some(0));
}
