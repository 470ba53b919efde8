//! Disks that run full: whatever is written then, the run stops, names it, and resumes when there
//! is room.

use rustix::process::{Pid, Resource, Rlimit, getrlimit};

use crate::support::{DISK_KIB, Live, Place, SmallDisk, done, held, repository, shell, skipped};
use crate::{PARTS, expect_told, expect_well, job, output, times_run};

const RUN: [&str; 5] = ["run", "-j1", "--state", "disk/state", "job.sw"];

/// Room that is left for a run, in KiB: from none to more than the job takes.
fn rooms() -> impl Iterator<Item = usize> {
    let first = (0..64).step_by(4);
    first.chain((64..1200).step_by(71)).chain([DISK_KIB])
}

fn place_with_disk(test: &str) -> Option<(Place, SmallDisk)> {
    let place = Place::new();
    let disk = SmallDisk::new(&place.path("disk"));
    if disk.is_none() {
        skipped(test, "this user may not mount a file system");
    }
    disk.map(|disk| (place, disk))
}

#[test]
fn run_on_a_disk_that_runs_full_anywhere_goes_on_when_there_is_room() {
    let mut stopped = 0;
    for kib in rooms() {
        let Some((place, disk)) = place_with_disk("full disk anywhere") else {
            return;
        };
        place.file("job.sw", job());
        disk.leave(kib);
        let first = place.run(&RUN);
        disk.make_room();
        if first.code == Some(0) {
            expect_well(&first, &output());
            continue;
        }
        stopped += 1;
        let begun = first.code == Some(1);
        let words = ["no space is left on the disk for", "hint: "];
        expect_told(&first, if begun { 1 } else { 2 }, &words);
        assert!(
            output().starts_with(&first.stdout),
            "{kib}: {}",
            first.stdout
        );
        let second = place.run(&RUN);
        expect_well(&second, &output());
        if begun {
            assert!(
                first
                    .stderr
                    .contains("free disk space, then continue with `ciel resume ")
            );
            assert!(first.stderr.contains(" are free)"), "{}", first.stderr);
        }
        let times = times_run(&place);
        let again = times.iter().filter(|times| **times > 1).count();
        // One command runs at a time, and the record of another's end may not have been written.
        assert!(
            again <= 2 && times.iter().all(|times| (1..=3).contains(times)),
            "{kib}: {times:?}"
        );
    }
    assert!(stopped > 20, "the disk was full {stopped} times only");
}

#[test]
fn disk_without_room_for_the_run_itself_is_told_and_leaves_no_run() {
    for kib in [0, 4, 8] {
        let Some((place, disk)) = place_with_disk("no room to begin") else {
            return;
        };
        place.file("job.sw", "return 1;");
        disk.leave(kib);
        let ended = place.run(&RUN);
        expect_told(&ended, 2, &["no space is left on the disk for", "hint: "]);
        disk.make_room();
        let runs = place.run(&["runs", "--state", "disk/state"]);
        assert_eq!((runs.code, runs.stdout.as_str()), (Some(0), "no runs\n"));
    }
}

/// A disk that was full before the first look at the progress left a history without any task, so
/// that `why` and `logs` knew none: all records were dropped after the first that did not fit.
#[test]
fn full_disk_can_be_looked_at_and_cleaned() {
    for kib in [80, 300, 700] {
        let Some((place, disk)) = place_with_disk("cleaning a full disk") else {
            return;
        };
        look_at_full_disk(&place, &disk, kib);
    }
}

/// The disk runs full after so many KiB; the commands that look at a run work on it.
fn look_at_full_disk(place: &Place, disk: &SmallDisk, kib: usize) {
    place.file("job.sw", job());
    let state = ["--state", "disk/state"];
    disk.leave(kib);
    assert_eq!(place.run(&RUN).code, Some(1));
    disk.make_room();
    disk.leave(0);
    let on_it = |words: &[&str]| place.run(&[words, &state].concat());
    let runs = on_it(&["runs"]);
    assert!(runs.stdout.contains("can be resumed"), "{}", runs.stdout);
    for words in [&["ps"][..], &["why", "part0"], &["logs", "part0"]] {
        let ended = on_it(words);
        assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
    }
    let resumed = on_it(&["resume"]);
    expect_told(
        &resumed,
        1,
        &["no space is left on the disk for", "free disk space, then"],
    );
    let cleaned = on_it(&["clean", "--all"]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.stderr);
    disk.make_room();
    expect_well(&place.run(&RUN), &output());
}

/// Lets the process write no file past this length from now on, as a full disk would; its
/// children, which are the spawner's, are not bound.
fn bound_files(live: &Live, bytes: u64) {
    let process = Pid::from_raw(live.pid() as i32);
    let bound = Rlimit {
        current: Some(bytes),
        maximum: getrlimit(Resource::Fsize).maximum,
    };
    rustix::process::prlimit(process, Resource::Fsize, bound).unwrap();
}

/// A run whose process had a limit on the size of files, as `ulimit -f` sets it, was killed by a
/// signal when it came to that, without a word.
#[test]
fn run_that_may_not_write_further_stops_and_goes_on_later() {
    for bytes in [0, 700, 4000, 9000] {
        let place = Place::new();
        let gate = place.gate("gate");
        let first = shell(&format!("{}; {}", done("started"), held("gate")));
        place.file("job.sw", format!("x = text({first});\n{}", job()));
        let live = place.start(&["run", "-j1", "job.sw"]);
        place.await_file("started");
        bound_files(&live, bytes);
        gate.release(1);
        let ended = live.end();
        let limit = format!("the limit of a file, {bytes} bytes, or a quota");
        let words = ["no space is left on the disk for", &limit, "`ulimit -f`"];
        expect_told(&ended, 1, &words);
        // The first command may have to wait at the gate once more.
        gate.release(1);
        expect_well(&place.run(&["resume"]), &output());
        let times = times_run(&place);
        assert!(
            times.iter().all(|times| (1..=2).contains(times)),
            "{times:?}"
        );
    }
}

/// Ciel ignores the signal of a file that becomes too large; its commands are ended by it, as by
/// default, and not all of them would heed a failed write.
#[test]
fn command_has_the_default_for_files_that_become_too_large() {
    let place = Place::new();
    let command = "(ulimit -c 0; ulimit -f 1; exec head -c 4096 /dev/zero > large); echo $?";
    let killed = (128 + libc::SIGXFSZ).to_string();
    let ended = place.script(&[], &format!("return text({});", shell(command)));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains(&killed), "{}", ended.stdout);
    let ended = place.run(&["ordered", "sh", "-c", command]);
    assert_eq!(ended.stdout, format!("{killed}\n"), "{}", ended.stderr);
}

/// A job of Python whose results take 2.4 MB together.
const PYTHON_JOB: &str = "import ciel\n\n\
    @ciel.task\ndef big(n):\n    open('ran', 'a').write(f'{n}\\n')\n\
    \x20   return bytes(100_000 + n)\n\n\
    def main():\n    parts = [big.spawn(n) for n in range(24)]\n\
    \x20   for part in parts:\n        print(len(part.result()))\n";

#[test]
fn python_tasks_that_find_no_room_go_on_when_there_is_some() {
    let own = || repository().join(".venv/bin/python3").display().to_string();
    let python = std::env::var("CIEL_PYTHON").unwrap_or_else(|_| own());
    let known = std::process::Command::new(&python)
        .args(["-c", "import ciel"])
        .output();
    if !known.is_ok_and(|known| known.status.success()) {
        return skipped("full disk in Python", "there is no Python with ciel");
    }
    let expected: String = (0..PARTS).map(|n| format!("{}\n", 100_000 + n)).collect();
    for kib in [70, 400, 1500] {
        let Some((place, disk)) = place_with_disk("full disk in Python") else {
            return;
        };
        place.file("job.py", PYTHON_JOB);
        let words = [
            "run",
            "-j1",
            "--python",
            &python,
            "--state",
            "disk/state",
            "job.py",
        ];
        disk.leave(kib);
        let first = place.run(&words);
        let told = [
            "no space is left on the disk for",
            "free disk space, then continue with `ciel resume ",
        ];
        expect_told(&first, 1, &told);
        disk.make_room();
        expect_well(&place.run(&words), &expected);
        let times = times_run(&place);
        let again = times.iter().filter(|times| **times > 1).count();
        assert!(again <= 2, "{kib}: {times:?}");
    }
}
