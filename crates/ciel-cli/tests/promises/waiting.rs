//! The page about waiting.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::{Place, done, held, shell, until_true, waits};

/// "A script that only decides what to do next never waits for a computation to end": with one
/// slot, which a command has that never ends, scripts still run, and one ends the job.
#[test]
fn script_that_decides_waits_for_no_computation() {
    let place = Place::new();
    let _gate = place.gate("gate");
    let script = format!(
        "computation = {};
         function next(n) {{ return n + 1; }}
         n = 0;
         while (n < 20) {{ n = *spawn(next, [n]); }}
         throw \"decided \" + str(n);",
        shell(&held("gate"))
    );
    let ended = place.script(&["-j1", "--fail-fast"], &script);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("decided 20"), "{}", ended.stderr);
}

/// "A script that computes for a long time is interrupted if another one wants its thread… So
/// neither an endless loop nor a doubling list can block the others."
#[test]
fn endless_loop_and_doubling_list_block_no_other_script() {
    let place = Place::new();
    let script = "function endless() { while (true) { x = 1; } return 0; }
         function doubling() { l = [1]; while (true) { l = l + l; } return 0; }
         function next(n) { return n + 1; }
         loops = spawn(endless, []);
         doubles = spawn(doubling, []);
         n = 0;
         while (n < 20) { n = *spawn(next, [n]); }
         print(n, cancel(loops));
         try { print(*doubles + 0); } catch (e) { print(e.kind); }";
    for slots in ["-j1", "-j2"] {
        let ended = place.script(&["-q", slots, "--heap", "16M"], script);
        let found = (ended.code, ended.stdout.as_str());
        let expected = (Some(0), "20 true\nOutOfMemory\n");
        assert_eq!(found, expected, "{slots} {}", ended.stderr);
    }
}

/// "No process was started for this, and no more threads run than the machine has cores": five
/// hundred nested scripts wait for a command that is held.
#[test]
fn waiting_scripts_share_as_many_threads_as_there_are_slots() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "function down(n) {{
             if (n == 0) {{ return *{}; }}
             return *spawn(down, [n - 1]) + 1;
         }}
         return down(500);",
        shell(&format!("{}; {}; echo 0", done("begun"), held("gate")))
    );
    let live = place.start_script(&["-q", "-j3"], &script);
    place.await_file("begun");
    let scripts = || {
        let threads = fs::read_dir(format!("/proc/{}/task", live.pid())).unwrap();
        let name = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm"));
        let names = threads.flatten().flat_map(name);
        names.filter(|name| name.starts_with("script-")).count()
    };
    // A thread that has not run yet has no name of its own.
    until_true("three threads of scripts", || scripts() == 3);
    // The command, its spawner, and the shell of the one task.
    assert_eq!(place.processes().len(), 3);
    gate.release(1);
    let ended = live.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "500\n"));
}

/// "While nothing happens in a run, none of its processes wakes up": not once in two seconds. The
/// engine looked at the run ten times a second.
#[test]
fn run_in_which_nothing_happens_leaves_the_machine_alone() {
    let place = Place::new();
    let gate = place.gate("gate");
    let wait = shell(&format!("{}; {}; echo 7", done("begun"), held("gate")));
    let script = format!("function asks() {{ return *{wait}; }} return *spawn(asks, []);");
    let live = place.start_script(&["-q", "-j2"], &script);
    place.await_file("begun");
    let mut since = (Instant::now(), 0);
    until_true("nothing wakes up for two seconds", || {
        let count = place.processes().into_iter().map(waits).sum();
        if count != since.1 {
            since = (Instant::now(), count);
        }
        since.0.elapsed() >= Duration::from_secs(2)
    });
    gate.release(1);
    let ended = live.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "7\n"));
    let counted = place.run(&["ps", "--all"]);
    assert!(counted.stdout.contains("asks"), "{}", counted.stdout);
}
