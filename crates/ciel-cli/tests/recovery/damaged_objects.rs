//! Files of results that are damaged in any way between a kill and the resume.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::broken_off::{BrokenOff, at_the_gate, only_run, run_folder};
use crate::damage::flip;
use crate::support::random::Random;
use crate::support::{Place, done, held, shell, task, until};
use crate::{expect_well, output, times_run};

/// Rounds, each with a seed of its own.
const ROUNDS: u64 = 8;

/// Damages a file in one of seven ways; says in which.
fn damage(path: &Path, random: &mut Random) -> &'static str {
    let bytes = fs::read(path).unwrap();
    let length = bytes.len();
    let kind = random.below(7);
    if kind == 0 {
        flip(path, random.below(length as u64) as usize);
        return "flipped";
    }
    fs::remove_file(path).unwrap();
    let (done, word) = match kind {
        1 => (Ok(()), "removed"),
        2 => (fs::write(path, &bytes[..length / 2]), "cut"),
        3 => (fs::write(path, [&bytes[..], b"more"].concat()), "longer"),
        4 => (fs::write(path, vec![b'z'; length]), "replaced"),
        5 => (fs::create_dir(path), "a folder"),
        _ => (symlink("/etc/passwd", path), "a link"),
    };
    done.unwrap();
    word
}

fn files_of(broken: &BrokenOff) -> Vec<PathBuf> {
    let listed = fs::read_dir(broken.path("objects")).unwrap();
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// A process trusted what it had written itself: a file that was damaged under a live run was
/// found if its length was another one, and read if not. Then it stopped the run, which had to be
/// resumed by hand. Later, two readers at the same time had all of them recomputed twice: of the
/// file that the second one had missed the run was told when it was there again, or behind others.
#[test]
fn results_damaged_while_the_run_lives_are_recomputed_in_it() {
    for seed in 0..ROUNDS {
        let place = Place::new();
        let (gate, live) = at_the_gate(&place, &[], "");
        let run = only_run(&place, ".ciel");
        let objects = run_folder(&place, ".ciel", &run).join("objects");
        let mut random = Random::new(seed);
        let mut paths: Vec<PathBuf> = fs::read_dir(&objects)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        let damaged = paths.iter().map(|path| damage(path, &mut random));
        eprintln!("seed {seed}: {:?}", damaged.collect::<Vec<_>>());
        fs::write(objects.join("foreign"), "not of this run").unwrap();
        gate.release(2);
        let mut ended = live.end();
        // The first half was read while it lived.
        let from = output().find("\n12 38000\n").unwrap() + 1;
        ended.stdout.insert_str(0, &output()[..from]);
        expect_well(&ended, &output());
        assert!(
            ended.stderr.contains("it is recomputed"),
            "{}",
            ended.stderr
        );
        let again = times_run(&place).into_iter().filter(|times| *times == 2);
        assert_eq!(again.count(), paths.len(), "seed {seed}");
        place.expect_nobody(&ended.stderr);
    }
}

/// A command that was to read the file by its name was refused, and the job failed. The file that
/// it had missed was counted a second time among all that were lost by then.
#[test]
fn command_begins_again_whose_named_input_is_lost_and_the_file_is_counted_once() {
    let place = Place::new();
    let (first, second) = (place.gate("first"), place.gate("second"));
    let make = task("head -c 9000 /dev/zero | tr '\\0' a", "{}");
    let wait = shell(&format!("{}; {}; echo", done("started"), held("first")));
    let look = "{\"command\": \"wc -c < {x}\", \"inputs\": {\"x\": x}}";
    let script = format!(
        "x = {make}; y = text(x); text({wait}); print(text(spawn_exec(\"shell\", {look}, 1)[0]));
         text({});",
        shell(&format!("{}; echo", held("second"))),
    );
    let live = place.start_script(&["-j1"], &script);
    place.await_file("started");
    let objects = run_folder(&place, ".ciel", &only_run(&place, ".ciel")).join("objects");
    for object in fs::read_dir(objects).unwrap() {
        fs::remove_file(object.unwrap().path()).unwrap();
    }
    first.release(1);
    until("the file is missed", || {
        let journal = place.start(&["journal"]).end().stdout;
        let told = journal.lines().find(|line| line.contains("lost, to be"));
        told.map(|line| assert!(line.contains("1 file lost"), "{line}"))
    });
    second.release(1);
    let ended = live.end();
    expect_well(&ended, "9000\n\n");
    assert_eq!(ended.stderr.matches("it is recomputed").count(), 1);
}

/// It is not replayed there. A task that reads the file would get it.
#[test]
fn script_that_reads_a_lost_file_itself_fails_in_a_run_that_is_not_recorded() {
    let place = Place::new();
    let gate = place.gate("gate");
    let make = task("head -c 9000 /dev/zero | tr '\\0' a", "{}");
    let wait = shell(&format!("{}; {}; echo", done("started"), held("gate")));
    let look = "{\"command\": \"wc -c < {x}\", \"inputs\": {\"x\": x}}";
    let script = format!(
        "x = {make}; y = text(spawn_exec(\"shell\", {look}, 1)[0]); text({wait}); print(text(x));"
    );
    let options = ["-j1", "--durable=never", "--store-memory=0"];
    let live = place.start_script(&options, &script);
    place.await_file("started");
    let objects = run_folder(&place, ".ciel", &only_run(&place, ".ciel")).join("objects");
    for object in fs::read_dir(objects).unwrap() {
        fs::remove_file(object.unwrap().path()).unwrap();
    }
    gate.release(1);
    let ended = live.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("ObjectLost"), "{}", ended.stderr);
}

#[test]
fn results_damaged_at_random_are_recomputed_and_the_output_is_that_of_the_serial_program() {
    let broken = BrokenOff::new();
    let mut kinds = std::collections::BTreeSet::new();
    for seed in 0..ROUNDS {
        broken.restore();
        let mut random = Random::new(seed);
        let mut done = Vec::new();
        for path in files_of(&broken) {
            if random.below(2) == 0 {
                done.push((path.clone(), damage(&path, &mut random)));
            }
        }
        fs::write(broken.path("objects/foreign"), "not of this run").unwrap();
        kinds.extend(done.iter().map(|(_, kind)| *kind));
        eprintln!("seed {seed}: {done:?}");
        expect_well(&broken.ciel(&["resume"]), &output());
        assert!(broken.ran_again(), "seed {seed}");
    }
    assert_eq!(kinds.len(), 7, "{kinds:?}");
}
