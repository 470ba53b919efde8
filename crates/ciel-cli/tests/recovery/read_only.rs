//! State that may not be written: said at once, and still there to be looked at.

use crate::broken_off::BrokenOff;
use crate::support::{Place, SmallDisk, skipped};
use crate::{expect_told, expect_well, output};

#[test]
fn state_that_became_read_only_is_shown_and_not_run_in() {
    let place = Place::new();
    let Some(disk) = SmallDisk::new(&place.path("disk")) else {
        return skipped("read-only state", "this user may not mount a file system");
    };
    let broken = BrokenOff::with(place, "disk/state", "process");
    disk.set_read_only(true);
    for words in [
        &["run", "job.sw"][..],
        &["run", "--new", "job.sw"],
        &["resume"],
        &["clean", "--all"],
    ] {
        let ended = broken.ciel(words);
        expect_told(&ended, 2, &["cannot be written", "hint: ", "--state"]);
        assert_eq!(ended.stdout, "", "{words:?}");
    }
    for words in [
        &["runs"][..],
        &["ps"],
        &["why", "part1"],
        &["logs", "part1"],
    ] {
        let ended = broken.ciel(words);
        assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
    }
    let runs = broken.ciel(&["runs"]).stdout;
    assert!(
        runs.contains(&broken.run) && runs.contains("can be resumed"),
        "{runs}"
    );
    assert!(!broken.ran_again());
    disk.set_read_only(false);
    expect_well(&broken.ciel(&["resume"]), &output());
    assert!(!broken.ran_again());
}

#[test]
fn place_where_nothing_can_be_written_is_told_at_once() {
    let place = Place::new();
    let Some(disk) = SmallDisk::new(&place.path("disk")) else {
        return skipped("read-only place", "this user may not mount a file system");
    };
    disk.set_read_only(true);
    place.file("job.sw", "print(\"never shown\");");
    let ended = place.run(&["run", "--state", "disk/state", "job.sw"]);
    expect_told(&ended, 2, &["disk/state cannot be written", "hint: "]);
    assert_eq!(ended.stdout, "");
    let runs = place.run(&["runs", "--state", "disk/state"]);
    assert_eq!((runs.code, runs.stdout.as_str()), (Some(0), "no runs\n"));
}
