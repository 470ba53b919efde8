//! Awkward sizes: many strands, many bytes, none at all, and a follower that is slow.
//!
//! The usual run of the tests is a small one; `CIEL_STRANDS` and `CIEL_ORDERED_BYTES` make it
//! large, such as 1000000 and 5000000000.

use std::fs::File;
use std::io::{BufRead, BufReader};

use crate::support::random::number;
use crate::support::{Place, peak_kib, release, until_true};
use crate::{expect_well, held_append};

/// Most memory of the command while tasks write many bytes behind a slow one, in KiB.
const PEAK_KIB_MAX: u64 = 160 << 10;

/// A place with the release build, if there is one: a million strands take the other too long.
fn place() -> Place {
    match release() {
        Some(binary) => Place::new().with_binary(binary),
        None => Place::new(),
    }
}

#[test]
fn file_of_many_strands_has_the_line_of_each_in_order() {
    let strands = number("CIEL_STRANDS").unwrap_or(20_000);
    let place = place();
    let script = format!(
        "function leaf(n) {{ append(\"log\", n, \"\\n\"); return n; }} \
         last = null; for (n in range({strands})) {{ last = spawn(leaf, [n]); }} return *last;"
    );
    expect_well(
        &place.script(&["-j4"], &script),
        &format!("{}\n", strands - 1),
    );
    let lines = BufReader::new(File::open(place.path("log")).unwrap()).lines();
    let mut count = 0;
    for (number, line) in lines.enumerate() {
        assert_eq!(line.unwrap(), number.to_string());
        count += 1;
    }
    assert_eq!(count, strands);
}

/// All but the first task write while that waits, so that all of it goes through the disk.
#[test]
fn many_bytes_behind_a_slow_task_take_disk_rather_than_memory() {
    let bytes = number("CIEL_ORDERED_BYTES").unwrap_or(60_000_000);
    let each = bytes / 20;
    let place = place();
    let gate = place.gate("gate");
    let writer = format!(
        "spawn_exec(\"shell\", {{\"command\": \"head -c {each} /dev/zero | \
         tr '\\\\0' x >&{{log}}\", \"appends\": {{\"log\": \"log\"}}}}, 1, {{\"pure\": false}})[0]"
    );
    let script = format!(
        "x = {}; ys = []; for (n in range(20)) {{ ys += {writer}; }} \
         for (y in ys) {{ done = *y; }} print(\"written\"); return len(text(x));",
        held_append("gate", "first"),
    );
    let live = place.start_script(&["-j3"], &script);
    until_true("all of it waits", || {
        let shown = place.start(&["ps", "--json"]).end().stdout;
        shown.contains("\"stdout\":8")
    });
    let peak = peak_kib(live.pid());
    gate.release(1);
    expect_well(&live.end(), "written\n0\n");
    assert!(peak < PEAK_KIB_MAX, "{peak} KiB");
    let written = std::fs::metadata(place.path("log")).unwrap().len();
    assert_eq!(written, 6 + 20 * each);
}

#[test]
fn nothing_that_is_written_is_nothing_and_makes_the_file() {
    let place = Place::new();
    let script = "append(\"empty\", \"\"); append(\"log\", \"a\"); append(\"log\", \"\"); \
                  append(\"log\", \"\", \"b\", \"\"); return null;";
    expect_well(&place.script(&[], script), "");
    assert!(place.has("empty") && place.read("empty").is_empty());
    assert_eq!(place.read("log"), "ab");
}

/// One that reads nothing does not hold up the run, and has all of it in the end.
#[test]
fn follower_that_is_slower_than_the_writer_has_all_of_it_in_the_end() {
    let place = Place::new();
    let gate = place.gate("gate");
    let line = "0123456789".repeat(100);
    let script = format!(
        "append(\"log\", \"first\\n\"); x = {}; done = text(x); \
         for (i in range(3000)) {{ append(\"log\", \"{line}\"); }} return len(done);",
        held_append("gate", "second")
    );
    let live = place.start_script(&[], &script);
    until_true("the first line is there", || place.read("log") == "first\n");
    let follower = place.start(&["tail", "log"]);
    assert_eq!(follower.line(), "first");
    follower.signal("STOP");
    gate.release(1);
    expect_well(&live.end(), "0\n");
    follower.signal("CONT");
    let rest = follower.end_of("the follower ends with the file").stdout;
    assert_eq!(format!("first\n{rest}"), place.read("log"));
    assert_eq!(rest.len(), 7 + 3000 * 1000);
}
