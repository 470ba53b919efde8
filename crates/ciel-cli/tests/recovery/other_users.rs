//! State that another user owns or could have written: it is refused with a sentence, and nothing
//! recorded in it runs.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use crate::broken_off::BrokenOff;
use crate::support::skipped;
use crate::{expect_told, expect_well, output};

/// A user who is not the one of the test.
const SOMEBODY: u32 = 65534;

fn give_away(path: &Path) -> std::io::Result<()> {
    chown(path, Some(SOMEBODY), None)
}

/// A user who could write to the folder put a command into a journal, and it ran as the user who
/// resumed the run: neither owner nor permissions of a state folder were looked at.
#[test]
fn run_of_another_user_is_neither_resumed_nor_shown() {
    let broken = BrokenOff::new();
    let state = broken.place.path(".ciel");
    if let Err(error) = give_away(&state) {
        let test = "run_of_another_user_is_neither_resumed_nor_shown";
        return skipped(test, &format!("only root can give files away: {error}"));
    }
    for words in [
        ["run", "job.sw"],
        ["resume", &broken.run],
        ["why", "job"],
        ["clean", "--all"],
    ] {
        let ended = broken.ciel(&words);
        expect_told(
            &ended,
            2,
            &[".ciel belongs to user 65534", "hint: ", "--state"],
        );
    }
    assert!(!broken.ran_again());
    chown(&state, Some(rustix::process::geteuid().as_raw()), None).unwrap();
    expect_well(&broken.ciel(&["resume"]), &output());
}

#[test]
fn journal_of_another_user_in_a_folder_of_ones_own_is_not_read() {
    let broken = BrokenOff::new();
    let log = broken.path("journal/log-0000000000");
    if let Err(error) = give_away(&log) {
        let test = "journal_of_another_user_in_a_folder_of_ones_own_is_not_read";
        return skipped(test, &format!("only root can give files away: {error}"));
    }
    let ended = broken.ciel(&["run", "job.sw"]);
    expect_told(
        &ended,
        2,
        &["log-0000000000 belongs to user 65534", "hint: "],
    );
    assert!(!broken.ran_again());
}

#[test]
fn state_that_others_could_write_is_refused_until_they_cannot() {
    let broken = BrokenOff::new();
    let state = broken.place.path(".ciel");
    fs::set_permissions(&state, Permissions::from_mode(0o777)).unwrap();
    let ended = broken.ciel(&["run", "job.sw"]);
    expect_told(
        &ended,
        2,
        &[
            "can be written by other users (mode 777)",
            "hint: ",
            "chmod",
        ],
    );
    assert!(!broken.ran_again());
    fs::set_permissions(&state, Permissions::from_mode(0o755)).unwrap();
    expect_well(&broken.ciel(&["resume"]), &output());
    let mode = fs::metadata(&state).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
}
