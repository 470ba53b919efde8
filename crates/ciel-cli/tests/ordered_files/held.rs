//! `--held-bytes`: output that waits behind the frontier is bounded, and nothing else changes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::Value;

use crate::support::random::number;
use crate::support::{Ended, Place, SmallDisk, skipped, until};
use crate::{expect_told, expect_well, held_append};

/// Writers behind the task that the gate holds.
const WRITERS: u64 = 100;

/// Bytes that each writes.
const WRITTEN: u64 = 10_000;

/// A command that waits for the gate, and then commands that each write that much.
fn commands() -> String {
    let writer = format!(
        "spawn_exec(\"shell\", {{\"command\": \"head -c {WRITTEN} /dev/zero | \
         tr '\\\\0' x >&{{log}}\", \"appends\": {{\"log\": \"log\"}}}}, 1, {{\"pure\": false}})[0]"
    );
    format!(
        "first = {}; xs = []; for (n in range({WRITERS})) {{ xs += {writer}; }} \
         for (x in xs) {{ done = *x; }} return len(text(first));",
        held_append("gate", "first")
    )
}

/// What `ciel ps` says of the one live run when at least one task is held.
fn once_held(place: &Place) -> Value {
    until("tasks are held", || {
        let shown = place.start(&["ps", "--json"]).end().stdout;
        let mut runs = shown
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let is_held = |run: &Value| run["held"]["tasks"].as_u64().is_some_and(|tasks| tasks > 0);
        runs.find(is_held)
    })
}

fn waiting(run: &Value) -> u64 {
    let bytes = run["waiting_bytes"].as_object().unwrap();
    bytes.values().map(|bytes| bytes.as_u64().unwrap()).sum()
}

fn expect_log(place: &Place, ended: &Ended) {
    expect_well(ended, "0\n");
    let log = place.read("log");
    assert!(log.starts_with("first\nx"), "{}", &log[..20]);
    assert_eq!(log.len() as u64, 6 + WRITERS * WRITTEN);
}

#[test]
fn commands_behind_a_slow_one_wait_until_it_has_ended() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["-j2", "--held-bytes", "50K"], &commands());
    let run = once_held(&place);
    // Two have the slots, and four are on their way.
    let most = (50 << 10) + 6 * WRITTEN;
    assert!(waiting(&run) <= most, "{run}");
    assert_eq!(run["held"]["bound_bytes"], 50 << 10);
    assert_eq!(run["held"]["gave_way"], 0);
    let shown = place.start(&["ps"]).end().stdout;
    assert!(shown.contains("held; 50.0 KiB may wait"), "{shown}");
    gate.release(1);
    expect_log(&place, &live.end());
}

#[test]
fn run_that_is_killed_while_tasks_are_held_is_resumed_and_ends_with_the_same_file() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["-j2", "--held-bytes", "1"], &commands());
    once_held(&place);
    live.signal("KILL");
    live.end();
    place.await_nobody();
    gate.release(2);
    expect_log(&place, &place.run(&["resume"]));
}

/// Functions of a script that write more than a thread's stretch stop in the middle.
#[test]
fn functions_that_write_much_stop_until_it_is_their_turn() {
    let place = Place::new();
    let gate = place.gate("gate");
    let line = "0123456789".repeat(100);
    let script = format!(
        "function writer(n) {{ for (i in range(2000)) {{ append(\"log\", \"{line}\"); }} \
         return n; }} first = {}; xs = []; for (n in range(4)) {{ xs += spawn(writer, [n]); }} \
         total = 0; for (x in xs) {{ total += *x; }} return total + len(text(first));",
        held_append("gate", "first")
    );
    let live = place.start_script(&["-j2", "--held-bytes", "100K"], &script);
    let run = once_held(&place);
    // Each of two threads writes 64 KiB and a slice of instructions before it asks.
    assert!(waiting(&run) < 3_000_000, "{run}");
    gate.release(1);
    expect_well(&live.end(), "6\n");
    assert_eq!(place.read("log").len(), 6 + 4 * 2000 * 1000);
}

/// Bytes that may wait in the runs of a command that prints much.
const MUCH_BOUND: u64 = 4 << 20;

/// What is in pipes, and is read at once, beyond the bound.
const READ_AHEAD: u64 = 2 << 20;

/// Bytes that the command behind the slow one writes.
fn much() -> u64 {
    number("CIEL_ORDERED_BYTES").unwrap_or(100_000_000)
}

/// A command that waits for the gate, and behind it one that writes much, as `{log}` or to standard
/// output, with these options.
fn one_that_writes_much(redirection: &str, options: &str) -> String {
    let writer = format!(
        "spawn_exec(\"shell\", {{\"command\": \"head -c {} /dev/zero {redirection}; \
         echo done > {{out}}\", \
         \"outputs\": [\"out\"], \"appends\": {{\"log\": \"log\"}}}}, 1, {options})[0]",
        much()
    );
    format!(
        "first = {}; behind = {writer}; done = *behind; return len(text(first));",
        held_append("gate", "first")
    )
}

/// What `ciel ps` says of the one live run when a command is paused.
fn once_paused(place: &Place) -> Value {
    until("a command is paused", || {
        let shown = place.start(&["ps", "--json"]).end().stdout;
        let mut runs = shown
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        runs.find(|run: &Value| run["held"]["paused"] == 1)
    })
}

/// Bytes of all files below a folder that are on the disk.
fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// `--held-bytes` held only what had not begun: a command that ran behind a slow one, and wrote
/// without end, filled the disk.
#[test]
fn running_command_that_writes_much_behind_a_slow_one_is_paused() {
    for (redirection, options) in [
        (">&{log}", "{\"pure\": false}"),
        ("", "{\"pure\": false}"),
        ("", "{\"pure\": false, \"live\": true}"),
    ] {
        let place = Place::new();
        let gate = place.gate("gate");
        let bound = MUCH_BOUND.to_string();
        let script = one_that_writes_much(redirection, options);
        let words = ["-j2", "--held-bytes", &bound, "-o", "printed"];
        let live = place.start_script(&words, &script);
        let run = once_paused(&place);
        assert_eq!(run["held"]["gave_way"], 0, "{run}");
        assert!(waiting(&run) <= MUCH_BOUND + READ_AHEAD, "{run}");
        let kept = bytes_below(&place.path(".ciel"));
        assert!(kept <= MUCH_BOUND + READ_AHEAD, "{kept} bytes");
        let shown = place.start(&["ps"]).end().stdout;
        assert!(
            shown.contains("0 tasks held, 1 command paused; 4.0 MiB may wait"),
            "{shown}"
        );
        gate.release(1);
        expect_well(&live.end(), "0\n");
        let length = |name: &str| fs::metadata(place.path(name)).unwrap().len();
        let printed = if redirection.is_empty() { much() } else { 0 };
        assert_eq!(length("printed"), printed, "{redirection} {options}");
        assert_eq!(length("log"), 6 + much() - printed);
    }
}

#[test]
fn run_that_is_killed_while_a_command_is_paused_is_resumed_and_ends_with_the_same_file() {
    let place = Place::new();
    let gate = place.gate("gate");
    let bound = MUCH_BOUND.to_string();
    let script = one_that_writes_much(">&{log}", "{\"pure\": false}");
    let live = place.start_script(&["-j2", "--held-bytes", &bound], &script);
    once_paused(&place);
    live.signal("KILL");
    live.end();
    place.await_nobody();
    let live = place.start(&["resume"]);
    once_paused(&place);
    gate.release(2);
    expect_well(&live.end(), "0\n");
    let written = fs::metadata(place.path("log")).unwrap().len();
    assert_eq!(written, 6 + much());
}

#[test]
fn ordered_standard_error_counts_towards_the_bound() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = format!(
        "first = {}; behind = spawn_exec(\"shell\", {{\"command\": \
         \"head -c {} /dev/zero | tr '\\\\0' x >&2; echo 1 > {{o}}\", \
         \"outputs\": [\"o\"]}}, 1, {{\"pure\": false}})[0]; return *behind + len(text(first));",
        held_append("gate", "first"),
        2 * READ_AHEAD
    );
    let words = ["-q", "-j2", "--held-bytes", "100K", "--stderr=ordered"];
    let live = place.start_script(&words, &script);
    let run = once_paused(&place);
    assert_eq!(run["held"]["gave_way"], 0, "{run}");
    gate.release(1);
    let ended = live.end();
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "1\n"));
    assert!(ended.stderr.starts_with("xxx"));
}

/// It sleeps only when its pipe is full: until then it computes, on the core that it keeps.
#[test]
fn paused_command_computes_on_and_keeps_its_core() {
    let place = Place::new();
    let (gate, later) = (place.gate("gate"), place.gate("later"));
    let task = |command: &str| {
        let words = "1, {\"pure\": false, \"live\": true}";
        format!(
            "spawn_exec(\"shell\", {{\"command\": \"{command}; echo 1 > {{o}}\", \
                 \"outputs\": [\"o\"]}}, {words})[0]"
        )
    };
    let script = format!(
        "first = {}; second = {}; third = {}; return *first + *second + *third;",
        task("read x < gate; echo first"),
        task("echo second; : > computes; read x < later; echo end"),
        task("touch third"),
    );
    let live = place.start_script(&["-j2", "--held-bytes", "0"], &script);
    place.await_file("computes");
    let run = once_paused(&place);
    assert_eq!(run["held"]["gave_way"], 0, "{run}");
    assert!(!place.has("third"));
    later.release(1);
    gate.release(1);
    expect_well(&live.end(), "first\nsecond\nend\n3\n");
}

#[test]
fn paused_command_can_be_cancelled() {
    let place = Place::new();
    let gate = place.gate("gate");
    let script = one_that_writes_much("", "{\"pure\": false}");
    let live = place.start_script(&["-j2", "--held-bytes", "1M"], &script);
    once_paused(&place);
    let ended = place.start(&["cancel", "head"]).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    gate.release(1);
    let ended = live.end();
    assert!(ended.stderr.contains("1 cancelled"), "{}", ended.stderr);
    place.await_nobody();
}

/// What goes through a pipe to a full disk stops the run, as what a command writes by itself does.
#[test]
fn full_disk_below_what_a_bounded_command_prints_stops_the_run_until_there_is_room() {
    let place = Place::new();
    let Some(disk) = SmallDisk::new(&place.path("disk")) else {
        return skipped(
            "full disk below a bounded command",
            "this user may not mount a file system",
        );
    };
    let script = "x = spawn_exec(\"shell\", {\"command\": \"seq 100000; echo done > {o}\", \
                  \"outputs\": [\"o\"]}, 1)[0]; done = *x; return 1;";
    place.file("job.sw", script);
    let words = "run -j1 --held-bytes 10M --state disk/state job.sw";
    let words: Vec<&str> = words.split(' ').collect();
    disk.leave(300);
    let ended = place.run(&words);
    expect_told(&ended, &["no space is left on the disk", "ciel resume "]);
    assert_eq!(ended.stdout, "");
    disk.make_room();
    let numbers = (1..=100_000).map(|number| format!("{number}\n"));
    let ended = place.run(&words);
    expect_well(&ended, &(numbers.collect::<String>() + "1\n"));
}

/// All slots are taken by paused commands, and the task at the frontier resumes and wants one.
#[test]
fn bound_gives_way_to_paused_commands_that_have_the_slot_of_the_task_in_front() {
    let place = Place::new();
    let script = "
        function second(x) { return text(x); }
        a = spawn_exec(\"shell\", {\"command\": \"seq 200000 | tail -n 1; sleep 0.3\"}, 1)[0];
        function chain(a, n) {
            if (n == 0) { return len(text(a)); }
            b = spawn_exec(\"shell\", {\"command\": \"cat {a}; sleep 0.1\", \
                \"inputs\": {\"a\": a}}, 1)[0];
            return chain(b, n - 1);
        }
        front = spawn(chain, [a, 4]);
        xs = [];
        for (n in range(4)) {
            xs += spawn_exec(\"shell\", {\"command\": \"seq 300000; echo {n} > {o}\", \
                \"inputs\": {\"n\": n}, \"outputs\": [\"o\"]}, 1)[0];
        }
        for (x in xs) { done = *x; }
        return *front;";
    let expected = place.script(&["--serial"], script);
    assert_eq!(expected.code, Some(0), "{}", expected.stderr);
    for bound in ["0", "100K"] {
        let place = Place::new();
        let ended = place.script(&["-j2", "--held-bytes", bound], script);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout == expected.stdout, "{bound}");
    }
}

/// Programs in which tasks wait for others in every way that the language has.
#[test]
fn bounds_of_no_and_one_byte_change_no_output_and_end() {
    let script = "
        function leaf(n) { print(\"leaf\", n); append(\"log\", \"leaf \", n, \"\\n\"); return n; }
        function tree(n) {
            if (n < 2) { return *spawn(leaf, [n]); }
            left = spawn(tree, [n - 1]);
            print(\"between\", n);
            right = spawn(tree, [n - 2]);
            append(\"log\", \"behind \", n, \"\\n\");
            return *right + *left;
        }
        function loop(n) {
            print(\"loop\", n);
            if (n == 0) { return 0; }
            return *spawn(loop, [n - 1]);
        }
        late = spawn(tree, [7]);
        ended = spawn(loop, [20]);
        same = [spawn(tree, [4]), spawn(tree, [4])];
        print(\"sum\", *same[1] + *same[0] + *ended);
        return *late;
    ";
    let place = Place::new();
    let expected = place.script(&["--serial"], script);
    assert_eq!(expected.code, Some(0), "{}", expected.stderr);
    let log = place.read("log");
    for bound in ["0", "1", "40"] {
        let place = Place::new();
        let ended = place.script(&["-j4", "--held-bytes", bound], script);
        expect_well(&ended, &expected.stdout);
        assert_eq!(place.read("log"), log, "{bound}");
    }
}
