//! `ciel ps --store` and the end of a run.

use std::fs;

use crate::support::{Place, held};
use crate::{MIB, ending, expect_balance, looked};

/// A task that makes 3 MiB, and one that waits at a gate and then counts them.
fn job(gate: &str) -> String {
    let count = format!("echo begun > begun; {}; wc -c < {{in.zeros}}", held(gate));
    format!(
        "zeros = spawn_exec(\"shell\", {{\"command\": \"head -c 3M /dev/zero\"}}, 1)[0];\n\
         count = spawn_exec(\"shell\", {{\"command\": \"{count}\", \
         \"inputs\": {{\"zeros\": zeros}}}}, 1)[0];\nreturn int(text(count));\n"
    )
}

#[test]
fn live_run_shows_what_takes_the_room_and_who_made_it() {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["-q"], &job("gate"));
    place.await_file("begun");
    let store = looked_live(&place);
    expect_balance(&store);
    assert_eq!(store["present_bytes"], 3 * MIB, "{store}");
    assert_eq!(store["kinds"][0]["kind"], "files");
    let largest = &store["largest"][0];
    assert!(
        largest["task"].as_str().unwrap().starts_with("head@"),
        "{store}"
    );
    assert_eq!(
        (&largest["bytes"], &largest["present"]),
        (&(3 * MIB).into(), &true.into())
    );
    assert_eq!(bytes_of_objects(&place), 3 * MIB);
    gate.release(1);
    assert_eq!(live.end().stdout, "3145728\n");
}

/// As [`looked`], while processes of a run live.
fn looked_live(place: &Place) -> serde_json::Value {
    let ended = place.start(&["ps", "--store", "--json"]).end();
    let run: serde_json::Value = serde_json::from_str(ended.stdout.trim()).unwrap();
    run["store"].clone()
}

/// Bytes of the files of all objects of all runs.
fn bytes_of_objects(place: &Place) -> u64 {
    let runs = fs::read_dir(place.path(".ciel/runs")).unwrap();
    let folders = runs.map(|run| run.unwrap().path().join("objects"));
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
    files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum()
}

#[test]
fn ended_run_says_what_it_made_and_had_at_once() {
    let place = Place::new();
    place.gate("gate").release(1);
    let gate = place.gate("open");
    gate.release(1);
    let ended = place.script(&[], &job("open"));
    let line = "objects: 3.0 MiB made, 3.0 MiB on disk at the peak\n";
    assert!(ended.stderr.contains(line), "{}", ended.stderr);
    let shown = place.run(&["ps", "--store"]).stdout;
    for part in [
        line,
        "    files  3.0 MiB made  0 bytes on disk\n",
        "  3.0 MiB  released\n",
    ] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
    expect_balance(&looked(&place));
}

#[test]
fn run_of_small_objects_ends_without_a_word_about_them_but_for_programs() {
    let place = Place::new();
    let job = "return text(spawn_exec(\"shell\", {\"command\": \"echo hello\"}, 1)[0]);";
    let ended = place.script(&[], job);
    assert!(!ended.stderr.contains("objects:"), "{}", ended.stderr);
    let store = ending(&place.script(&["--json", "--new"], job))["store"].clone();
    assert_eq!(
        (&store["made_bytes"], &store["largest"]),
        (&0.into(), &serde_json::json!([]))
    );
    expect_balance(&store);
}

#[test]
fn files_of_the_user_and_waiting_output_are_counted() {
    let place = Place::new();
    place.file("table", vec![b'x'; 2 << 20]);
    let job = "include \"grab\";\n\
        first = spawn_exec(\"shell\", {\"command\": \"wc -c < {in.a} > {out.n}; read x < gate\", \
        \"inputs\": {\"a\": ref(\"table\")}, \"outputs\": [\"n\"]}, 1)[0];\n\
        second = spawn_exec(\"shell\", {\"command\": \"yes | head -c 1M; echo > {out.done}; \
        echo > printed\", \"outputs\": [\"done\"]}, 1)[0];\n\
        return int(text(first));\n";
    let gate = place.gate("gate");
    let live = place.start_script(&["--json"], job);
    place.await_file("printed");
    crate::support::until_true("the output waits on the disk", || {
        looked_live(&place)["spilled_bytes"] == MIB
    });
    gate.release(1);
    let ended = live.end();
    let store = ending(&ended)["store"].clone();
    expect_balance(&store);
    assert_eq!(store["moved_bytes"], 2 * MIB, "{store}");
    assert_eq!(store["largest"][0]["task"], "table", "{store}");
    assert_eq!(store["made_bytes"], 3 * MIB, "{store}");
}
