//! `--store-bytes`: what the run's files take of the disk is bounded, and nothing else changes.

use serde_json::Value;

use crate::support::{Place, held, until};
use crate::{MIB, ending, looked};

/// Pairs of tasks: one makes half a mebibyte, and one counts it.
const PAIRS: u64 = 24;

/// What all of them make.
const MADE: u64 = PAIRS * MIB / 2;

/// The pairs, of which each counts when a task before all of them has come through its gate. No
/// more than one object is needed at a time.
fn job() -> String {
    let gate = held("gate");
    format!(
        "gate = spawn_exec(\"shell\", {{\"command\": \"{gate}; echo open\"}}, 1)[0];\n\
         counts = [];\n\
         for (n in range({PAIRS})) {{\n\
         make = \"head -c 524280 /dev/zero; printf %08d \" + str(n);\n\
         zeros = spawn_exec(\"shell\", {{\"command\": make}}, 1)[0];\n\
         count = \"cat {{in.gate}} > seen; wc -c < {{in.zeros}}\";\n\
         counts += spawn_exec(\"shell\", {{\"command\": count, \
         \"inputs\": {{\"zeros\": zeros, \"gate\": gate}}}}, 1)[0];\n\
         zeros = 0;\n\
         }}\n\
         total = 0;\n\
         for (count in counts) {{ total += int(text(count)); }}\n\
         return total;\n"
    )
}

/// What `ciel ps` says of the one live run when tasks are held.
fn once_held(place: &Place) -> Value {
    until("tasks are held", || {
        let shown = place.start(&["ps", "--store", "--json"]).end().stdout;
        let run: Value = serde_json::from_str(shown.lines().next()?).unwrap();
        let is_held = run["held"]["tasks"].as_u64().is_some_and(|tasks| tasks > 0);
        is_held.then_some(run)
    })
}

#[test]
fn fan_out_is_held_when_three_quarters_are_used_and_ends_with_the_same_result() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["--json", "-j2", "--store-bytes", "2M"], &job());
    let run = once_held(&place);
    assert_eq!(run["held"]["room_is_scarce"], true, "{run}");
    assert_eq!(run["held"]["bound_bytes"], Value::Null, "{run}");
    assert_eq!(run["store"]["limit_bytes"], 2 * MIB, "{run}");
    let shown = place.start(&["ps", "--store"]).end().stdout;
    assert!(
        shown.contains("held; little of --store-bytes is left"),
        "{shown}"
    );
    gate.release(1);
    let ended = live.end();
    assert_eq!(ended.stdout, format!("{MADE}\n"), "{}", ended.stderr);
    let store = ending(&ended)["store"].clone();
    assert_eq!(store["made_bytes"], MADE);
    // Two tasks have the slots and four are on their way when the mark is reached.
    let most = 2 * MIB + 6 * MIB / 2;
    assert!(store["peak_bytes"].as_u64().unwrap() <= most, "{store}");
}

#[test]
fn run_that_is_killed_while_room_is_scarce_is_resumed_within_the_same_budget() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["-q", "-j2", "--store-bytes", "2M"], &job());
    once_held(&place);
    live.signal("KILL");
    live.end();
    place.await_nobody();
    gate.release(2);
    let ended = place.run(&["resume"]);
    assert_eq!(ended.stdout, format!("{MADE}\n"), "{}", ended.stderr);
}

/// The first object and the second are needed together.
const TOO_LARGE: &str = "
    small = spawn_exec(\"shell\", {\"command\": \"head -c 3M /dev/zero\"}, 1)[0];\n\
    large = spawn_exec(\"shell\", {\"command\": \"head -c 9M /dev/zero\"}, 1)[0];\n\
    both = spawn_exec(\"shell\", {\"command\": \"cat {in.small} {in.large} | wc -c\", \
    \"inputs\": {\"small\": small, \"large\": large}}, 1)[0];\n\
    return int(text(both));\n";

#[test]
fn task_whose_result_does_not_fit_fails_and_says_what_is_held_by_whom() {
    let place = Place::new();
    let ended = place.script(&["-j1", "--store-bytes", "10M"], TOO_LARGE);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    for part in [
        "error: head@",
        "DiskFull: its object of 9.0 MiB does not fit into the 10.0 MiB of disk that the run may \
         take, where 3.0 MiB are held, by head@",
        " 3.0 MiB\n",
        "hint: allow more with --store-bytes",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let ended = place.script(&["-j1", "--store-bytes", "8M", "--new"], TOO_LARGE);
    let told = "its object of 9.0 MiB does not fit into the 8.0 MiB of disk";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    let ended = place.script(&["-j1", "--store-bytes", "12M", "--new"], TOO_LARGE);
    assert_eq!(ended.stdout, "12582912\n", "{}", ended.stderr);
}

/// What a command writes that never ends by itself, in each of the ways in which it can: with what
/// its spawn says beside the command.
const ENDLESS: [(&str, &str); 6] = [
    ("head -c 64M /dev/zero", ""),
    ("head -c 64M /dev/zero > {out.a}", ", \"outputs\": [\"a\"]"),
    (
        "head -c 64M /dev/zero > {out.a/}/b",
        ", \"outputs\": [\"a\"]",
    ),
    (
        "head -c 64M /dev/zero > {out.a}.temporary",
        ", \"outputs\": [\"a\"]",
    ),
    (
        "echo > {out.a}; head -c 64M /dev/zero",
        ", \"outputs\": [\"a\"]",
    ),
    ("head -c 64M /dev/zero", ", \"stream\": true"),
];

/// A command that never ended filled the disk, however small the budget: what it wrote counted from
/// its end on.
#[test]
fn command_that_writes_without_end_fails_when_its_files_take_more_than_the_budget() {
    for (command, options) in ENDLESS {
        let place = Place::new();
        let _gate = place.gate("gate");
        let job = format!(
            "kept = spawn_exec(\"shell\", {{\"command\": \"head -c 3M /dev/zero\"}}, 1)[0];\n\
             endless = spawn_exec(\"shell\", \
             {{\"command\": \"{command}; {}\"{options}}}, 1)[0];\n\
             both = spawn_exec(\"shell\", \
             {{\"command\": \"cat {{in.a}} {{in.b}} | wc -c\", \
             \"inputs\": {{\"a\": kept, \"b\": endless}}}}, 1)[0];\nreturn int(text(both));\n",
            held("gate")
        );
        let ended = place.script(&["-j1", "--store-bytes", "10M"], &job);
        assert_eq!(ended.code, Some(1), "{command}: {}", ended.stderr);
        for part in [
            "DiskFull: it has written ",
            " MiB so far, which does not fit into the 10.0 MiB of disk that the run may take, \
             where 3.0 MiB are held, by head@",
            "hint: allow more with --store-bytes",
        ] {
            assert!(
                ended.stderr.contains(part),
                "{command}: {part}: {}",
                ended.stderr
            );
        }
        place.expect_nobody("the command");
    }
}

/// What takes the room is shown while it grows, and what waits for a slot is held meanwhile.
#[test]
fn files_that_a_command_is_writing_count() {
    let place = Place::new();
    let gate = place.gate("gate");
    let job = format!(
        "large = spawn_exec(\"shell\", {{\"command\": \"head -c 9M /dev/zero > {{out.a}}; {}\", \
         \"outputs\": [\"a\"]}}, 1)[0];\n\
         small = spawn_exec(\"shell\", {{\"command\": \"echo small\"}}, 1)[0];\n\
         x = text(small);\nreturn len(text(large));\n",
        held("gate")
    );
    let live = place.start_script(&["-j1", "--store-bytes", "10M"], &job);
    let run = until("the file is seen", || {
        let shown = place.start(&["ps", "--store", "--json"]).end().stdout;
        let run: Value = serde_json::from_str(shown.lines().next()?).unwrap();
        let unfinished = run["store"]["unfinished_bytes"].as_u64();
        unfinished
            .is_some_and(|bytes| bytes >= 9 * MIB)
            .then_some(run)
    });
    assert_eq!(run["store"]["disk_bytes"], 0, "{run}");
    gate.release(1);
    let ended = live.end();
    assert_eq!(ended.stdout, "9437184\n", "{}", ended.stderr);
    assert_eq!(looked(&place)["unfinished_bytes"], 0);
}

/// The files of kept results are there in any case, so they take nothing of the budget.
#[test]
fn kept_results_take_nothing_of_the_budget() {
    let place = Place::new();
    let made = place.script(&["-j1"], TOO_LARGE);
    assert_eq!(made.stdout, "12582912\n", "{}", made.stderr);
    let ended = place.script(&["-j1", "--store-bytes", "1M", "--kept"], TOO_LARGE);
    assert_eq!(ended.stdout, "12582912\n", "{}", ended.stderr);
}

/// The serial program ends within a budget of one object; so does the run, whatever it has begun.
#[test]
fn budget_of_one_object_is_enough_where_the_serial_program_needs_one() {
    let place = Place::new();
    let gate = place.gate("gate");
    gate.release(1);
    let ended = place.script(&["-q", "-j4", "--store-bytes", "512K"], &job());
    assert_eq!(ended.stdout, format!("{MADE}\n"), "{}", ended.stderr);
}
