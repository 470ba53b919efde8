//! Output on the disk of a killed run of which bytes change while its length stays.
//!
//! Read first: `broken_off`; for files of results, `damage`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::broken_off::{BrokenOff, only_run, run_folder};
use crate::damage::flip;
use crate::support::{Ended, Place, until_true};
use crate::{expect_told, expect_well, output};

/// A flipped bit in output that had been shown was once shown by the next resume as it was then.
#[test]
fn flipped_bit_in_released_output_is_restored_from_the_records() {
    let broken = BrokenOff::new();
    let length = fs::read(broken.path("stdout")).unwrap().len();
    for at in [0, length / 3, length - 1] {
        broken.restore();
        flip(&broken.path("stdout"), at);
        expect_well(&broken.ciel(&["resume"]), &output());
        assert!(!broken.ran_again(), "byte {at}");
    }
}

/// Bytes that the command prints whose output waits on the disk.
const PRINTED_BYTES: usize = 5000;

/// A job in which a command prints after one that waits at a gate; `options` are those of a third.
fn job(options: &str) -> String {
    let printing = |command: &str| {
        format!(
            "spawn_exec(\"shell\", {{\"command\": \": > {{out.done}}; {command}\", \
             \"outputs\": [\"done\"]}}, 1)[0]"
        )
    };
    format!(
        "held = {}; printed = {}; done = text(printed);
         last = spawn_exec(\"shell\", {{\"command\": \": > started; echo\"}}, 1, {options})[0];
         print(len(text(last)));",
        printing("read x < gate; echo held"),
        printing(&format!(
            "echo once >> ran; head -c {PRINTED_BYTES} /dev/zero | tr '\\\\0' x; echo"
        )),
    )
}

/// What a resume comes to after the spilled output of a killed run was damaged, and how often the
/// command has run that printed it.
fn resumed_after(options: &str, damage: impl Fn(&Path)) -> (Ended, usize) {
    let place = Place::new();
    let gate = place.gate("gate");
    let live = place.start_script(&["-j2"], &job(options));
    place.await_file("started");
    let run = run_folder(&place, ".ciel", &only_run(&place, ".ciel"));
    let log = run.join("journal/log-0000000000");
    until_true("the last spawn is recorded", || {
        let recorded = fs::read(&log).unwrap();
        recorded.windows(7).any(|word| word == b"started")
    });
    live.signal("KILL");
    live.end();
    place.await_nobody();
    let spilled = fs::read_dir(run.join("spill")).unwrap();
    let spilled: Vec<PathBuf> = spilled.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(spilled.len(), 1);
    damage(&spilled[0]);
    gate.release(1);
    let ended = place.run(&["resume"]);
    let times = place.read("ran").lines().count();
    (ended, times)
}

fn expected() -> String {
    format!("held\n{}\n1\n", "x".repeat(PRINTED_BYTES))
}

/// A flipped bit in spilled output was once released, with exit status 0; missing output made the
/// run impossible to resume.
#[test]
fn spilled_output_that_is_not_what_it_was_is_recomputed() {
    type Damage = (&'static str, fn(&Path), usize);
    let damages: [Damage; 3] = [
        ("nothing", |_| (), 1),
        ("a flipped bit", |path| flip(path, 1234), 2),
        ("no file", |path| fs::remove_file(path).unwrap(), 2),
    ];
    for (what, damage, times_expected) in damages {
        let (ended, times) = resumed_after("{}", damage);
        println!("{what}: {}", ended.stderr);
        expect_well(&ended, &expected());
        assert_eq!(times, times_expected, "{what}");
        let told = ended.stderr.contains("records are removed");
        assert_eq!(told, times > 1, "{what}");
    }
}

/// Records are not given up if a task that has effects could run once more.
#[test]
fn job_with_effects_is_refused_when_its_spilled_output_has_changed() {
    let (ended, times) = resumed_after("{\"pure\": false}", |path| flip(path, 1234));
    expect_told(&ended, 1, &["spilled output", "changed", "--new"]);
    assert_eq!((ended.stdout.as_str(), times), ("", 1));
}
