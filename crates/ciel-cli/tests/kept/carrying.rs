//! `ciel pack` and `ciel unpack`: results that travel as one file.
//!
//! Each place is a copy of the same project on another machine. Read first: the pipeline of `main`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{ALL, OUTPUT, edit, expect, kept_entries, pipeline};
use crate::support::{Place, until_true};

/// The pipeline after a run that ended well, and its results in the file `carried.tar`.
fn packed() -> Place {
    let place = pipeline();
    expect(&place.run(&["run", "job.sw"]), 0, &ALL);
    let ended = place.run(&["pack", "-o", "carried.tar"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.starts_with("carried.tar: 7 results, "),
        "{}",
        ended.stdout
    );
    place
}

/// The same project elsewhere, with a file of packed results.
fn elsewhere(carried: &[u8]) -> Place {
    let place = pipeline();
    place.file("carried.tar", carried);
    place
}

fn bytes(place: &Place) -> Vec<u8> {
    fs::read(place.path("carried.tar")).unwrap()
}

fn value(place: &Place, words: &[&str]) -> Value {
    let ended = place.run(words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn user() -> String {
    let told = std::process::Command::new("id")
        .arg("-un")
        .output()
        .unwrap();
    String::from_utf8(told.stdout).unwrap().trim().to_string()
}

#[test]
fn results_that_are_packed_are_taken_in_another_folder() {
    let place = elsewhere(&bytes(&packed()));
    let ended = place.run(&["unpack", "carried.tar"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let expected = format!("took 7 of 7 results that {} packed\n", user());
    assert_eq!(ended.stdout, expected);
    let ended = place.run(&["run", "--kept", "job.sw"]);
    expect(&ended, 0, &[]);
    assert_eq!(ended.stdout, OUTPUT);
    assert!(ended.stderr.contains("7 of 7 kept"), "{}", ended.stderr);
    let foretold = place.run(&["run", "-n", "--kept", "job.sw"]);
    let expected = "7 of 7 tasks taken, 0 would run";
    assert!(foretold.stdout.contains(expected), "{}", foretold.stdout);
    // What is packed there is what was packed here.
    let again = value(&place, &["pack", "-o", "again.tar", "--json"]);
    assert_eq!(
        (&again["results"], &again["left_out"]),
        (&7.into(), &0.into())
    );
    assert!(fs::read(place.path("again.tar")).unwrap() == bytes(&place));
}

#[test]
fn edit_after_unpacking_reruns_what_depends_on_it_and_says_why() {
    let place = elsewhere(&bytes(&packed()));
    place.run(&["unpack", "carried.tar"]);
    edit(&place, "sort {in.text}", "sort < {in.text}");
    let ended = place.run(&["run", "--kept", "job.sw"]);
    expect(&ended, 0, &["sort a", "sort b", "sort c"]);
    assert_eq!(ended.stdout, OUTPUT);
    let summary = "4 of 7 kept; echo: argument changed: command (3 tasks)";
    assert!(ended.stderr.contains(summary), "{}", ended.stderr);
}

#[test]
fn equal_results_are_packed_into_equal_bytes() {
    let (one, other) = (packed(), packed());
    assert!(bytes(&one) == bytes(&other));
    // The file of an earlier packing is replaced.
    assert_eq!(one.run(&["pack", "-o", "carried.tar"]).code, Some(0));
    assert!(bytes(&one) == bytes(&other));
}

#[test]
fn results_are_unpacked_once_and_can_be_removed() {
    let place = elsewhere(&bytes(&packed()));
    let words = ["unpack", "carried.tar", "--json"];
    let first = value(&place, &words);
    assert_eq!((&first["taken"], &first["present"]), (&7.into(), &0.into()));
    assert_eq!(first["owner"], user());
    let second = value(&place, &words);
    assert_eq!(
        (&second["taken"], &second["present"]),
        (&0.into(), &7.into())
    );
    let removed = place.run(&["clean", "--run", "unpacked"]);
    assert!(
        removed.stdout.starts_with("removed 7 kept results"),
        "{}",
        removed.stdout
    );
    expect(&place.run(&["run", "--kept", "job.sw"]), 0, &ALL);
}

#[test]
fn results_are_unpacked_into_a_shared_folder_for_all_who_read_it() {
    let place = elsewhere(&bytes(&packed()));
    let shared = place.path("shared");
    let shared = shared.to_str().unwrap();
    let words = ["unpack", "--kept-dir", shared, "carried.tar", "--json"];
    assert_eq!(value(&place, &words)["taken"], 7);
    assert_eq!(value(&place, &words)["present"], 7);
    assert!(!place.has(".ciel"));
    let ended = pipeline().run(&["run", "--kept-dir", shared, "job.sw"]);
    expect(&ended, 0, &[]);
    assert_eq!(ended.stdout, OUTPUT);
}

#[test]
fn results_that_a_run_took_from_a_shared_folder_are_packed_with_it() {
    let place = pipeline();
    let shared = place.path("shared");
    let words = ["run", "--kept-dir", shared.to_str().unwrap(), "job.sw"];
    expect(&pipeline().run(&words), 0, &ALL);
    expect(&place.run(&words), 0, &[]);
    let packing = value(&place, &["pack", "-o", "carried.tar", "--json"]);
    assert_eq!(
        (&packing["results"], &packing["left_out"]),
        (&7.into(), &0.into())
    );
    assert!(bytes(&place) == bytes(&packed()));
}

#[test]
fn two_runs_take_unpacked_results_while_a_third_evicts() {
    let place = elsewhere(&bytes(&packed()));
    place.file(
        "other.sw",
        "return text(spawn_exec(\"shell\", {\"command\": \"echo 1\"}, 1)[0]);",
    );
    for _ in 0..3 {
        assert_eq!(place.run(&["unpack", "carried.tar"]).code, Some(0));
        let sharing = ["", ""].map(|_| place.start(&["run", "--kept", "job.sw"]));
        let evicting = place.start(&["run", "--kept", "--keep", "1", "other.sw"]);
        assert_eq!(evicting.end().code, Some(0));
        for live in sharing {
            let ended = live.end();
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            assert_eq!(ended.stdout, OUTPUT);
        }
    }
}

#[test]
fn file_that_is_damaged_cut_or_foreign_is_named_and_nothing_is_taken() {
    let whole = bytes(&packed());
    let mut flipped = whole.clone();
    let at = flipped.len() / 2;
    flipped[at] ^= 1;
    let cases: [(&str, Vec<u8>, &str); 5] = [
        ("damaged", flipped, "nothing was taken"),
        (
            "cut",
            whole[..whole.len() - 700].to_vec(),
            "it is cut short",
        ),
        ("cut early", whole[..9_000].to_vec(), "it is cut short"),
        (
            "foreign",
            b"text".to_vec(),
            "it is not an archive of kept results",
        ),
        ("empty", Vec::new(), "it is not an archive of kept results"),
    ];
    for (what, carried, message) in cases {
        let place = elsewhere(&carried);
        let ended = place.run(&["unpack", "carried.tar"]);
        assert_eq!(ended.code, Some(1), "{what}: {}", ended.stderr);
        let named = "cannot take results of carried.tar: ";
        assert!(ended.stderr.contains(named), "{what}: {}", ended.stderr);
        assert!(ended.stderr.contains(message), "{what}: {}", ended.stderr);
        assert_eq!(kept_entries(&place), 0, "{what}");
    }
}

#[test]
fn process_that_is_killed_while_it_unpacks_leaves_whole_results_and_the_next_takes_the_rest() {
    let place = pipeline();
    for (name, lines) in [("a", 9_000), ("b", 9_001), ("c", 9_002)] {
        place.file(name, super::sample(name, lines));
    }
    expect(&place.run(&["run", "-q", "job.sw"]), 0, &ALL);
    let stdout = place.run(&["run", "-q", "--kept", "job.sw"]).stdout;
    place.run(&["pack", "-o", "carried.tar"]);
    let other = elsewhere(&bytes(&place));
    for name in ["a", "b", "c"] {
        other.file(name, place.read(name));
    }
    let live = other.start(&["unpack", "carried.tar"]);
    let staged = other.path(".ciel/kept/carried");
    until_true("objects are on their way", || {
        is_filled(&staged) || other.has(".ciel/kept/index") && kept_entries(&other) > 0
    });
    live.signal("KILL");
    let ended = live.end();
    // It may have been quicker than the signal.
    assert!(
        ended.signal == Some(9) || ended.code == Some(0),
        "{}",
        ended.stderr
    );
    let told = value(&other, &["unpack", "carried.tar", "--json"]);
    let sum = told["taken"].as_u64().unwrap() + told["present"].as_u64().unwrap();
    assert_eq!(sum, 7);
    assert!(!staged.exists());
    let ended = other.run(&["run", "--kept", "job.sw"]);
    expect(&ended, 0, &[]);
    assert_eq!(ended.stdout, stdout);
}

fn is_filled(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some())
}

#[test]
fn what_cannot_be_packed_or_read_is_refused() {
    let place = Place::new();
    let refused = |words: &[&str], message: &str| {
        let ended = place.run(words);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
    };
    refused(&["pack"], "there are no runs in this folder's state");
    refused(&["unpack", "none.tar"], "cannot read none.tar");
    let _gate = place.gate("pipe");
    refused(&["unpack", "pipe"], "it is not a regular file");
    assert_eq!(place.script(&["--serial"], "return 1;").code, Some(0));
    refused(&["pack"], "no results of run");
    place.file("mine.txt", "something else");
    refused(
        &["pack", "-o", "mine.txt"],
        "mine.txt is no file of packed results",
    );
    assert_eq!(place.read("mine.txt"), "something else");
}
