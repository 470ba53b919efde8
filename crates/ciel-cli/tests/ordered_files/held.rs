//! `--held-bytes`: output that waits behind the frontier is bounded, and nothing else changes.

use serde_json::Value;

use crate::support::{Ended, Place, until};
use crate::{expect_well, held_append};

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
