//! Many outputs, many failures, many spawns of one script, and much output of one task.
//!
//! The usual run of the tests is a small one; `make soak` sets `CIEL_OUTPUTS`, `CIEL_FAILURES`,
//! `CIEL_SPAWNS` and `CIEL_OUTPUT_BYTES`, and then a release build runs the jobs. Read first:
//! `support`.

mod support;

use std::fs::{self, DirEntry};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use support::programs::{python, runs_python};
use support::random::number;
use support::{Live, Place, peak_kib, release, shell, shell_printing, skipped};

/// Tasks that give the outputs.
const TASKS: u64 = 100;

/// Most memory of the command while it passes on the output of a task, in KiB.
const PEAK_KIB_MAX: u64 = 64 << 10;

/// The same for live output, which passes through the journal.
const LIVE_PEAK_KIB_MAX: u64 = 192 << 10;

/// Bytes that a task writes while nobody reads them.
const UNREAD_BYTES: u64 = 300 << 20;

/// Most memory of the command meanwhile, in KiB.
const UNREAD_PEAK_KIB_MAX: u64 = 120 << 10;

/// Most memory of the command while a script spawns little, in KiB.
const SPAWNS_PEAK_KIB_MAX: u64 = 48 << 10;

/// A place with the release build, if there is one.
fn place() -> Place {
    match release() {
        Some(binary) => Place::new().with_binary(binary),
        None => Place::new(),
    }
}

/// Each task has a tenth of the outputs that the language allows, if all are 10^5.
#[test]
fn outputs_of_many_tasks_are_all_read() {
    if !runs_python("outputs_of_many_tasks_are_all_read", "") {
        return;
    }
    let each = number("CIEL_OUTPUTS").unwrap_or(5_000) / TASKS;
    let place = place();
    let job = format!(
        "import ciel\n\n@ciel.task(outputs={each})\ndef many(first):\n    \
         return tuple(range(first, first + {each}))\n\ndef main():\n    \
         tasks = [many.spawn({each} * task) for task in range({TASKS})]\n    \
         return sum(future.result() for futures in tasks for future in futures)\n"
    );
    place.file("job.py", job);
    let mut command = place.command();
    command
        .args(["run", "-q", "job.py"])
        .env("CIEL_PYTHON", python());
    let ended = Live::start(command).end();
    let count = each * TASKS;
    let sum = format!("{}\n", count * (count - 1) / 2);
    assert_eq!(
        (ended.code, ended.stdout),
        (Some(0), sum),
        "{}",
        ended.stderr
    );
}

/// Each of them is counted, the first in serial order is the job's, and only a few are shown.
#[test]
fn failures_of_many_tasks_are_counted_and_few_are_shown() {
    let count = number("CIEL_FAILURES").unwrap_or(5_000);
    let place = place();
    let script = format!(
        "function bad(n) {{ throw \"no \" + str(n); }}
         for (n in range({count})) {{ spawn(bad, [n]); }}
         return 1;"
    );
    let ended = place.script(&["-k"], &script);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), ""),
        "{}",
        ended.stderr
    );
    for words in [
        "Thrown: no 0\n",
        &format!("also: {} other tasks failed", count - 1),
        &format!("failed: {} tasks in ", count + 1),
        &format!(" {count} failed"),
    ] {
        assert!(ended.stderr.contains(words), "{words}\n{}", ended.stderr);
    }
    assert!(ended.stderr.lines().count() < 40, "{}", ended.stderr);
}

/// What scripts do in the tests of memory.
const SPAWNING: &str = "
    function add(a, b) { return a + b; }
    function unfold(depth) {
        if (depth == 0) { return 1; }
        first = spawn(unfold, [depth - 1]);
        second = spawn(unfold, [depth - 1]);
        return *first + *second;
    }
    function down(n) { if (n == 0) { return 0; } return *spawn(down, [n - 1]) + 1; }
    function pending(count) {
        all = [];
        for (n in range(count)) { all += spawn(add, [n, 1]); }
        total = 0;
        for (one in all) { total += *one; }
        return total;
    }
    function chain(count) {
        value = 0;
        for (n in range(count)) { value = *spawn(add, [value, 1]); }
        return value;
    }
    function tasks(count) {
        value = 0;
        for (n in range(count)) { value = *spawn(add, [value, 1], {\"pure\": true}); }
        return value;
    }
    function commands(count) {
        for (n in range(count)) {
            spawn_exec(\"shell\", {\"command\": \"true\"}, 1, {\"pure\": false});
        }
        return count;
    }";

fn spawns() -> u64 {
    number("CIEL_SPAWNS").unwrap_or(10_000)
}

/// Runs one of these functions, which must give that, and need no more than that memory beside
/// what little scripts need.
fn runs_within(option: &str, call: (&str, u64), given: u64, kib_max: u64) {
    let (what, count) = call;
    let begun = Instant::now();
    let script = format!("{SPAWNING} return *spawn({what}, [{count}]);");
    let ended = place().script(&["-q", option], &script);
    let expected = format!("{given}\n");
    assert_eq!(
        (ended.code, ended.stdout),
        (Some(0), expected),
        "{}",
        ended.stderr
    );
    let (peak, seconds) = (ended.peak_kib, begun.elapsed().as_secs_f32());
    eprintln!("{count} of {what}, {option}: {seconds:.1} s, {peak} KiB");
    assert!(peak < SPAWNS_PEAK_KIB_MAX + kib_max, "{what}: {peak} KiB");
}

/// The list of their references is the script's own.
#[test]
fn pending_spawns_of_one_script_take_half_a_kibibyte_each_at_most() {
    let count = spawns();
    runs_within(
        "-j2",
        ("pending", count),
        count * (count + 1) / 2,
        count / 2,
    );
}

/// Ten times the spawns: two calls wait at each of its levels, and no others.
#[test]
fn recursion_of_a_script_that_would_unfold_into_very_many_tasks_stays_small() {
    let depth = u64::from((spawns() * 10).ilog2());
    runs_within("-j2", ("unfold", depth), 1 << depth, 0);
}

#[test]
fn levels_of_a_script_in_place_take_a_kibibyte_each_at_most() {
    let levels = spawns() / 10;
    runs_within("-j2", ("down", levels), levels, levels);
}

/// Each call needs the one before it, and leaves nothing, with an idle core, too.
#[test]
fn long_chain_of_calls_of_a_script_in_place_takes_no_memory() {
    let count = spawns();
    for option in ["-j1", "-j2"] {
        runs_within(option, ("chain", count), count, 0);
    }
}

/// With an option each of them is a task.
#[test]
fn long_chain_of_tasks_of_a_script_takes_half_a_kibibyte_each_at_most() {
    let count = spawns() / 10;
    runs_within("-j2", ("tasks", count), count, count / 2);
}

/// A script that spawns them pauses while very many have not ended.
#[test]
fn commands_of_one_script_take_little_when_they_have_ended() {
    let count = match spawns() {
        many @ 100_001.. => many,
        few => few / 20,
    };
    runs_within("-j2", ("commands", count), count, count / 2);
}

/// A result, output that waits on the disk until its task has succeeded, and live output: each goes
/// through the disk, and goes with the run. Only the first was tried.
#[test]
fn output_of_one_task_takes_disk_rather_than_memory_and_leaves_none() {
    let bytes = number("CIEL_OUTPUT_BYTES").unwrap_or(100_000_000);
    let command = format!("head -c {bytes} /dev/zero | tr '\\0' x");
    for (what, task, printed, peak_max) in [
        ("a result", shell(&command), 0, PEAK_KIB_MAX),
        ("output", shell_printing(&command, ""), bytes, PEAK_KIB_MAX),
        (
            "live output",
            shell_printing(&command, ", \"live\": true"),
            bytes,
            LIVE_PEAK_KIB_MAX,
        ),
    ] {
        let place = place();
        let free = rustix::fs::statvfs(place.path("")).unwrap();
        // Live output is in the journal, in the file of what was released, and perhaps spilled.
        if free.f_bavail * free.f_frsize < 3 * bytes + (bytes >> 1) {
            let test = "output_of_one_task_takes_disk_rather_than_memory_and_leaves_none";
            return skipped(
                test,
                &format!("the disk has no room for {bytes} bytes of {what}"),
            );
        }
        let begun = Instant::now();
        let ended = place.script(&["-q"], &format!("x = {task};"));
        assert_eq!(ended.code, Some(0), "{what} {}", ended.stderr);
        assert_eq!(ended.stdout_bytes, printed, "{what}");
        let (peak, seconds) = (ended.peak_kib, begun.elapsed().as_secs_f32());
        eprintln!("{bytes} bytes of {what}: {seconds:.1} s, {peak} KiB");
        assert!(peak < peak_max, "{what}: {peak} KiB");
        let left = bytes_in(&place.path(".ciel"));
        assert!(left < 1 << 20, "{what}: {left} bytes are left");
    }
}

/// Live output stayed in memory until somebody read it, all of it: only the output of committed
/// tasks, of scripts and of workers went to the disk.
#[test]
fn live_output_that_nobody_reads_does_not_swell_the_command() {
    let place = Place::new();
    let flood = format!("head -c {UNREAD_BYTES} /dev/zero | tr '\\0' x; : > finished");
    let script = format!("x = {};", shell_printing(&flood, ", \"live\": true"));
    place.file("job.sw", script);
    let mut command = place.command();
    command.args(["run", "-q", "job.sw"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    place.await_file("finished");
    let unread_kib = peak_kib(child.id());
    let mut stdout = child.stdout.take().unwrap();
    let count = std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(count, UNREAD_BYTES);
    assert!(unread_kib < UNREAD_PEAK_KIB_MAX, "{unread_kib} KiB");
}

/// Standard error that is ordered stayed in memory, too. Later, the allocator kept for a second
/// what was freed, which now and then was more than all the rest.
#[test]
fn ordered_standard_error_does_not_swell_the_command() {
    let place = Place::new();
    let flood = format!("head -c {UNREAD_BYTES} /dev/zero | tr '\\0' x >&2; echo 1");
    let script = format!("return *{};", shell(&flood));
    let ended = place.script(&["-q", "--stderr=ordered"], &script);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "1\n"));
    assert!(ended.stderr.starts_with("xxx"));
    assert!(
        ended.peak_kib < UNREAD_PEAK_KIB_MAX,
        "{} KiB",
        ended.peak_kib
    );
}

/// Bytes of all files in a folder.
fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let size = |entry: DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_in(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
