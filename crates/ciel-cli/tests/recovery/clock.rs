//! Clocks that were set: which run is the newest, and what is shown of times.

use std::fs;

use crate::broken_off::{BrokenOff, run_folder};
use crate::{expect_well, output};

/// Seconds since 1970 of a moment that has not come.
const FUTURE_S: u64 = 40_000_000_000;

#[test]
fn newest_run_is_the_one_begun_last_even_if_the_clock_was_set_back() {
    let broken = BrokenOff::new();
    // A run of before the clock was set back, as its id and its description have it.
    let future = "26000000000-00001";
    let described = fs::read_to_string(broken.path("run.json")).unwrap();
    let at = described.find("\"started_s\": ").unwrap() + "\"started_s\": ".len();
    let end = at + described[at..].find(|c: char| !c.is_ascii_digit()).unwrap();
    let described = format!("{}{FUTURE_S}{}", &described[..at], &described[end..]);
    fs::remove_file(broken.path("run.json")).unwrap();
    fs::write(broken.path("run.json"), described).unwrap();
    let folder = |run: &str| run_folder(&broken.place, ".ciel", run);
    fs::rename(folder(&broken.run), folder(future)).unwrap();

    let runs = broken.place.run(&["runs"]);
    assert!(runs.stdout.contains(" in the future "), "{}", runs.stdout);
    assert!(broken.place.run(&["ps"]).code == Some(0));

    // Another run of the same job, begun now and killed.
    fs::remove_file(broken.place.path("started")).unwrap();
    let live = broken.place.start(&["run", "--new", "-j2", "job.sw"]);
    broken.place.await_file("started");
    live.signal("KILL");
    live.end();
    broken.place.await_nobody();
    let newest = fs::read_dir(broken.place.path(".ciel/runs")).unwrap();
    let newest = newest.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let newest = newest.max().unwrap();
    assert!(newest.as_str() > future, "{newest}");

    for (words, run) in [
        (&["run", "job.sw"][..], newest.as_str()),
        (&["resume"], future),
    ] {
        let ended = broken.ciel(words);
        expect_well(&ended, &output());
        let told = format!("resuming run {run}: ");
        assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    }
    let runs = broken.ciel(&["runs", "--json"]);
    assert!(!runs.stdout.contains("\"elapsed_us\":-"), "{}", runs.stdout);
}
