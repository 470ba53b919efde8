//! The deaths of engine and spawner: no process of the run may remain.
//! The engine that dies here is the crate's own program. Next: `server::serve`.

mod support;

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use ciel_spawner::{Request, sweep};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use support::{BINARY, DOUBLE, Lines, PLAIN, Run, SESSION, SHOW, kill_hard, wait_until_gone};

/// Starts an engine with a task that has fled in every way, kills the engine, and waits until
/// the spawner and every process of the task is gone.
fn check_engine_death(prefix: &[&str]) {
    let script = format!("{SHOW} {PLAIN} {SESSION} {DOUBLE} echo $$; echo $PPID; sleep 1000");
    let (reader, writer) = io::pipe().unwrap();
    let mut engine = Command::new(BINARY)
        .args(prefix)
        .args(["run", "sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(writer)
        .spawn()
        .unwrap();
    let mut lines = Lines::of(reader);
    let pids: Vec<_> = (0..5).map(|_| lines.pid()).collect();
    engine.kill().unwrap();
    engine.wait().unwrap();
    pids.into_iter().for_each(wait_until_gone);
}

#[test]
fn killed_engine_leaves_no_process() {
    check_engine_death(&[]);
}

#[test]
fn killed_engine_leaves_no_process_of_an_engine_inside_its_task() {
    check_engine_death(&["run", BINARY]);
}

/// A process that the engine has forked keeps its end of the socket open.
#[test]
fn killed_engine_leaves_no_process_although_its_end_of_the_socket_stays_open() {
    let script = "exec 3<&0; \"$0\" <&3 3<&- & wait";
    let words = ["-c", script, BINARY].map(OsStr::new);
    let mut run = Run::by(Path::new("/bin/sh"), &words);
    let (_, mut lines) = run.script(&format!("{SHOW} {SESSION} {DOUBLE} echo $$; sleep 1000"));
    let pids = [lines.pid(), lines.pid(), lines.pid()];
    // This process has the socket, and the shell is the engine: the parent of the spawner.
    kill_hard(run.spawner.pid());
    pids.into_iter().for_each(wait_until_gone);
}

#[test]
fn killed_spawner_takes_first_processes_along_and_the_sweep_takes_the_rest() {
    let mut run = Run::new();
    let (id, mut lines) = run.script(&format!("{SHOW} {SESSION} {DOUBLE} exec sleep 1000"));
    let first = run.started(id);
    let mut fled = vec![lines.pid(), lines.pid()];
    kill_hard(run.spawner.pid());
    wait_until_gone(first);
    let error = loop {
        match run.spawner.receive() {
            Ok(_) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    let send = run.spawner.send(&Request::KillTree { id }, &[]);
    assert_eq!(send.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    let swept = sweep(&run.cookie);
    let mut pids: Vec<_> = swept.iter().map(|(pid, _)| *pid).collect();
    pids.sort_unstable();
    fled.sort_unstable();
    assert_eq!(pids, fled);
    assert!(
        swept.iter().all(|(_, command)| command == "sleep 1000"),
        "{swept:?}"
    );
    fled.into_iter()
        .for_each(|pid| assert!(!support::is_running(pid)));
    assert_eq!(sweep(&run.cookie), []);
}

#[test]
fn sweep_of_another_run_touches_nobody() {
    let mut run = Run::new();
    let (id, mut lines) = run.script("echo ready; sleep 1000");
    assert_eq!(lines.line(), "ready");
    assert_eq!(sweep(&ciel_spawner::Cookie::new("another").unwrap()), []);
    assert!(support::is_running(run.started(id)));
}

#[test]
fn shutdown_and_drop_kill_everything_first() {
    for orderly in [true, false] {
        let mut run = Run::new();
        let (_, mut lines) = run.script(&format!("{SHOW} {SESSION} {DOUBLE} echo $$; sleep 1000"));
        let pids = [lines.pid(), lines.pid(), lines.pid()];
        if orderly {
            run.spawner.send(&Request::Shutdown, &[]).unwrap();
        }
        drop(run.spawner);
        assert!(pids.iter().all(|&pid| !support::is_running(pid)));
    }
}

#[test]
fn spawner_whose_engine_died_before_its_greeting_ends_well() {
    let (flags, kind) = (SocketFlags::CLOEXEC, SocketType::SEQPACKET);
    let (near, far) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
    drop(far);
    let status = Command::new(BINARY).stdin(near).status().unwrap();
    assert_eq!(status.code(), Some(0));
}
