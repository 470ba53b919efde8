//! How tasks end: by themselves, killed, and with processes left behind.
//! It does not know the deaths of engine and spawner. Next: `deaths`.

mod support;

use ciel_spawner::{Request, Status, resident_anonymous};
use support::{DOUBLE, PLAIN, Run, SESSION, SHOW, is_running};

/// Runs a script that prints the number of a process which it leaves behind.
fn check_left(script: &str) {
    let mut run = Run::new();
    let (id, mut lines) = run.script(&format!("{SHOW} {script} exit 3"));
    let pid = lines.pid();
    let end = run.exited(id);
    assert_eq!(end.exit.status, Status::Code(3));
    let left: Vec<_> = end
        .left
        .iter()
        .map(|left| (left.pid, &*left.command))
        .collect();
    assert_eq!(left, [(pid, "sleep 1000")]);
    assert!(!is_running(pid));
    assert_eq!(run.children(), "");
}

#[test]
fn child_left_in_the_group_is_named_and_gone() {
    check_left(PLAIN);
}

#[test]
fn child_left_in_its_own_session_is_named_and_gone() {
    check_left(SESSION);
}

#[test]
fn child_left_by_a_double_fork_is_named_and_gone() {
    check_left(DOUBLE);
}

#[test]
fn child_left_without_any_mark_is_named_when_nobody_else_runs() {
    check_left("env -i setsid sleep 1000 >&- & show $!;");
}

#[test]
fn tree_left_behind_is_killed_to_its_leaves() {
    let mut run = Run::new();
    let inner = format!("setsid sh -c '{SHOW} sleep 1000 >&- & show $!; echo $$; wait' &");
    let (id, mut lines) = run.script(&format!("{inner} read x < {}", fifo(&run)));
    let (leaf, middle) = (lines.pid(), lines.pid());
    std::fs::write(fifo(&run), "go\n").unwrap();
    let end = run.exited(id);
    let left: Vec<_> = end.left.iter().map(|left| left.pid).collect();
    assert_eq!(left, [middle, leaf]);
    assert!(!is_running(leaf) && !is_running(middle));
}

fn fifo(run: &Run) -> String {
    let path = run.folder.path().join("fifo");
    if !path.exists() {
        let name = support::c_string(path.to_str().unwrap());
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &*name, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    path.to_str().unwrap().to_owned()
}

#[test]
fn daemon_of_a_running_task_outlives_the_end_of_another_task() {
    let mut run = Run::new();
    let (first, mut lines) = run.script(&format!("{SHOW} {DOUBLE} sleep 1000"));
    let daemon = lines.pid();
    let other = run.start(&["true"]);
    assert!(run.exited(other).left.is_empty());
    assert!(is_running(daemon));
    run.spawner
        .send(
            &Request::Kill {
                id: first,
                signal: libc::SIGTERM,
                group: true,
            },
            &[],
        )
        .unwrap();
    let end = run.exited(first);
    assert_eq!(end.exit.status, Status::Signal(libc::SIGTERM, false));
    assert_eq!(
        end.left.iter().map(|left| left.pid).collect::<Vec<_>>(),
        [daemon]
    );
    assert!(!is_running(daemon));
}

#[test]
fn signal_to_the_group_reaches_its_children() {
    let mut run = Run::new();
    let (id, mut lines) = run.script(&format!("{SHOW} {PLAIN} wait"));
    let child = lines.pid();
    run.spawner
        .send(
            &Request::Kill {
                id,
                signal: libc::SIGTERM,
                group: true,
            },
            &[],
        )
        .unwrap();
    assert_eq!(run.status(id), Status::Signal(libc::SIGTERM, false));
    assert!(!is_running(child));
}

#[test]
fn signal_to_the_process_alone_spares_its_children() {
    let mut run = Run::new();
    let script = "trap 'echo caught; exit 7' USR1; sh -c 'echo ready; exec sleep 1000' & wait";
    let (id, mut lines) = run.script(script);
    assert_eq!(lines.line(), "ready");
    run.spawner
        .send(
            &Request::Kill {
                id,
                signal: libc::SIGUSR1,
                group: false,
            },
            &[],
        )
        .unwrap();
    assert_eq!(lines.line(), "caught");
    let end = run.exited(id);
    assert_eq!((end.exit.status, end.left.len()), (Status::Code(7), 1));
}

#[test]
fn killed_tree_takes_those_that_fled_and_names_nobody() {
    let mut run = Run::new();
    let bare = "env -i setsid sleep 1000 >&- & show $!;";
    let script = format!("{SHOW} {PLAIN} {SESSION} {DOUBLE} {bare} sleep 1000");
    let (id, mut lines) = run.script(&script);
    let pids = [lines.pid(), lines.pid(), lines.pid(), lines.pid()];
    run.spawner.send(&Request::KillTree { id }, &[]).unwrap();
    let end = run.exited(id);
    assert_eq!(
        (end.exit.status, end.left),
        (Status::Signal(libc::SIGKILL, false), vec![])
    );
    assert!(pids.iter().all(|&pid| !is_running(pid)));
    assert_eq!(run.children(), "");
}

#[test]
fn stopped_task_can_be_killed() {
    let mut run = Run::new();
    let (id, mut lines) = run.script("echo ready; kill -STOP $$");
    assert_eq!(lines.line(), "ready");
    run.spawner.send(&Request::KillTree { id }, &[]).unwrap();
    assert_eq!(run.status(id), Status::Signal(libc::SIGKILL, false));
}

#[test]
fn kill_of_an_ended_or_unknown_task_does_nothing() {
    let mut run = Run::new();
    let id = run.start(&["true"]);
    run.exited(id);
    for id in [id, 999] {
        run.spawner
            .send(
                &Request::Kill {
                    id,
                    signal: libc::SIGKILL,
                    group: true,
                },
                &[],
            )
            .unwrap();
        run.spawner.send(&Request::KillTree { id }, &[]).unwrap();
    }
    let id = run.start(&["true"]);
    assert_eq!(run.status(id), Status::Code(0));
}

#[test]
fn use_of_time_and_memory_is_reported() {
    let mut run = Run::new();
    let id = run.start(&[
        "sh",
        "-c",
        "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done",
    ]);
    let exit = run.exited(id).exit;
    assert!(
        exit.user_us > 1_000 && exit.resident_bytes_max > 500_000,
        "{exit:?}"
    );
}

#[test]
fn memory_of_a_task_counts_its_children() {
    let mut run = Run::new();
    let child = r#"x=$(head -c 20000000 /dev/zero | tr "\0" a); echo ready; sleep 1000"#;
    let (id, mut lines) = run.script(&format!("sh -c '{child}' & wait"));
    assert_eq!(lines.line(), "ready");
    let pid = run.started(id);
    assert!(
        resident_anonymous(&[pid])[0] > 20_000_000,
        "{:?}",
        resident_anonymous(&[pid])
    );
    run.spawner.send(&Request::KillTree { id }, &[]).unwrap();
    run.exited(id);
    assert_eq!(resident_anonymous(&[pid]), [0]);
}
