//! A long loop of tasks that delegate: its journal stays small, and it resumes where it was.
//!
//! Debug builds take `CIEL_LOG_BYTES_MIN`, so that there are many snapshots in a short run. Read
//! first: `support`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Ended, Gate, Live, Place, until};
use crate::trial::folded;

/// Steps of the loop.
const STEPS: u64 = 20_000;

/// So many steps apart it prints where it is.
const STEPS_PRINTED: u64 = 100;

/// A snapshot is made when the log has so many bytes.
const LOG_BYTES_MIN: u64 = 64 << 10;

/// Snapshots before the last stop at least: the log of so many steps is as long as that of three of
/// the longest that may follow a snapshot, which is four times as long as that.
const SNAPSHOTS_MIN: u64 = 3;

/// So many steps apart the loop waits at a stop until the test lets it continue, so that it cannot
/// be over before the test has seen what it waits for.
const STEPS_TO_STOP: u64 = 2_500;

/// Files of the journal at any time: a snapshot and its log, those that take their places, and a
/// draft. How long a log gets depends on how long the disk takes to sync a snapshot.
const FILES_MAX: usize = 5;

/// How often files of the journal have come or gone before the run is killed, one run after the
/// other: when a snapshot is begun, done, or has just replaced the log.
const CHANGES_BEFORE_KILLS: [usize; 6] = [1, 2, 3, 4, 5, 7];

/// Tasks that may be pending at the first kill: the root, which ends last, a step that has spawned
/// its successor, and this one. The step stays pending while the loop continues, as in serial order
/// its rest comes after its successor, so that each further kill may add one.
const PENDING_MAX: u64 = 3;

fn place() -> (Place, Vec<Stop>) {
    let place = Place::new();
    let wait = "\": > at\" + str(n) + \"; read x < stop\" + str(n)";
    let script = format!(
        "function step(n) {{
            if (n % {STEPS_PRINTED} == 0) {{ print(\"left\", n); }}
            if (n == 0) {{ return \"end\"; }}
            if (n < {STEPS} && n % {STEPS_TO_STOP} == 0) {{
                x = *spawn_exec(\"shell\", {{\"command\": {wait}}}, 1)[0];
            }}
            return *spawn(step, [n - 1]);
        }}
        return step({STEPS});"
    );
    place.file("job.sw", script);
    let left = (1..STEPS / STEPS_TO_STOP).rev();
    let stop = |left: u64| Stop {
        is_there: place.path(&format!("at{}", left * STEPS_TO_STOP)),
        gate: place.gate(&format!("stop{}", left * STEPS_TO_STOP)),
    };
    let stops = left.map(stop).collect();
    (place, stops)
}

/// Where the loop waits.
struct Stop {
    /// A file that it makes before.
    is_there: PathBuf,
    gate: Gate,
}

impl Stop {
    fn is_reached(&self) -> bool {
        self.is_there.exists()
    }

    /// Lets the loop continue here, in each later run, too.
    fn open(&self) {
        self.gate.release(100);
    }
}

fn start(place: &Place) -> Live {
    let mut command = place.command();
    command.env("CIEL_LOG_BYTES_MIN", LOG_BYTES_MIN.to_string());
    command.args(["run", "-j1", "job.sw"]);
    Live::start(command)
}

fn expected() -> String {
    let printed = (0..=STEPS / STEPS_PRINTED).rev();
    let lines = printed.map(|part| format!("left {}\n", part * STEPS_PRINTED));
    lines.chain(["\"end\"\n".to_string()]).collect()
}

/// Files of the journal of the newest run that has not ended.
fn journal(place: &Place) -> Vec<PathBuf> {
    let runs = fs::read_dir(place.path(".ciel/runs")).into_iter().flatten();
    let folders = runs.flatten().map(|run| run.path().join("journal"));
    let files = folders.filter_map(|folder| fs::read_dir(folder).ok());
    files.flatten().flatten().map(|file| file.path()).collect()
}

/// The number of a snapshot in the journal; each has the next one.
fn snapshot_number(file: &Path) -> Option<u64> {
    let name = file.file_name()?.to_str()?;
    name.strip_prefix("snapshot-")?.parse().ok()
}

fn expect_end(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, expected(), "{}", ended.stderr);
}

/// Tasks that had finished before, as a resumed run reports.
fn done_before(ended: &Ended) -> Option<u64> {
    let line = ended
        .stderr
        .lines()
        .find(|line| line.starts_with("resuming run "))?;
    let words = line.split_once(": ")?.1;
    words.split_once(' ')?.0.replace(',', "").parse().ok()
}

/// Steps that were made by the time when it showed this.
fn steps_shown(stdout: &str) -> u64 {
    let last = stdout
        .lines()
        .filter_map(|line| line.strip_prefix("left "))
        .next_back();
    last.map_or(0, |left| STEPS - left.parse::<u64>().unwrap())
}

#[test]
fn journal_of_a_long_loop_stays_small() {
    let (place, stops) = place();
    let live = start(&place);
    let (mut snapshots, mut files_max) = (0, 0);
    let mut look = || {
        let files = journal(&place);
        files_max = files_max.max(files.len());
        snapshots = snapshots.max(
            files
                .iter()
                .filter_map(|file| snapshot_number(file))
                .max()
                .unwrap_or(0),
        );
        snapshots
    };
    let (last, others) = stops.split_last().unwrap();
    for stop in others {
        until("the loop is at a stop", || {
            look();
            stop.is_reached().then_some(())
        });
        stop.open();
    }
    until("there are snapshots at the last stop", || {
        (look() >= SNAPSHOTS_MIN && last.is_reached()).then_some(())
    });
    last.open();
    until("the loop ends", || {
        look();
        live.unread().contains("end").then_some(())
    });
    expect_end(&live.end());
    assert!(files_max <= FILES_MAX, "{files_max} files");
}

/// Tasks in the journal of a killed run.
#[derive(Debug)]
struct Kept {
    spawned: u64,
    finished: u64,
}

fn kept(place: &Place) -> Kept {
    let counts = folded(place, |_| ()).unwrap().graph().counts();
    let (spawned, finished) = (counts.spawned, counts.finished);
    Kept { spawned, finished }
}

/// A run that resumes says that it has what the journal of the killed one held, to the task.
fn expect_resumed(ended: &Ended, kept: &Kept) {
    assert_eq!(done_before(ended), Some(kept.finished), "{}", ended.stderr);
}

#[test]
fn loop_killed_around_its_snapshots_goes_on_where_it_was() {
    let (place, stops) = place();
    let mut before: Option<Kept> = None;
    for ((kills, changes), stop) in (0u64..).zip(CHANGES_BEFORE_KILLS).zip(&stops) {
        let live = start(&place);
        let (mut known, mut count) = (BTreeSet::new(), 0);
        until("the journal changes", || {
            let files = BTreeSet::from_iter(journal(&place));
            // The first look finds what there was, or the first log.
            count += usize::from(!known.is_empty() && known != files);
            known = files;
            (count >= changes || stop.is_reached()).then_some(())
        });
        live.signal("KILL");
        let ended = live.end();
        stop.open();
        assert!(expected().starts_with(&ended.stdout));
        let kept = kept(&place);
        let shown = steps_shown(&ended.stdout);
        // The root, the steps that passed, and the one that showed where it is.
        assert!(kept.spawned >= shown + 2, "{shown} shown, {kept:?}");
        let pending = kept.spawned - kept.finished;
        let at_stop = u64::from(stop.is_reached());
        assert!(pending <= PENDING_MAX + kills + at_stop, "{kept:?}");
        if let Some(before) = &before {
            expect_resumed(&ended, before);
            assert!(kept.finished > before.finished, "no progress: {kept:?}");
        }
        before = Some(kept);
    }
    stops.iter().for_each(Stop::open);
    let ended = start(&place).end();
    expect_end(&ended);
    expect_resumed(&ended, &before.unwrap());
}
