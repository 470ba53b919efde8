//! A run that was killed in the middle of a job, to be damaged and resumed repeatedly.
//!
//! It does not know what is done to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Gate, Live, Place, done, held, shell, until_true};
use crate::{PARTS, job_with, times_run};

/// A place where a run of the job was killed when all files were made and the first half of the
/// output was out.
pub struct BrokenOff {
    pub place: Place,
    /// Its id.
    pub run: String,
    gate: Gate,
    state: String,
}

impl BrokenOff {
    /// With the state in its usual folder.
    pub fn new() -> BrokenOff {
        BrokenOff::with(Place::new(), ".ciel", "process")
    }

    /// With the state in this folder of a place, and a run that survives this.
    pub fn with(place: Place, state: &str, durable: &str) -> BrokenOff {
        let (gate, live) = at_the_gate(&place, &["--durable", durable, "--state", state], "");
        if durable == "power" {
            let journal = run_folder(&place, state, &only_run(&place, state)).join("journal");
            until_true("all is synced", || ends_with_sync_mark(&journal));
        }
        let history = run_folder(&place, state, &only_run(&place, state)).join("history/tasks");
        until_true("the history of the first tasks", || {
            fs::read_to_string(&history).is_ok_and(|history| history.contains("part1"))
        });
        live.signal("KILL");
        assert_eq!(live.end().signal, Some(9));
        place.await_nobody();
        let run = only_run(&place, state);
        copy(&place.path(state), &place.path("kept-state"));
        BrokenOff {
            place,
            run,
            gate,
            state: state.to_string(),
        }
    }

    /// The state is as the killed run has left it.
    pub fn restore(&self) {
        let _ = fs::remove_dir_all(self.place.path(&self.state));
        copy(
            &self.place.path("kept-state"),
            &self.place.path(&self.state),
        );
    }

    /// A file of the run's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        run_folder(&self.place, &self.state, &self.run).join(name)
    }

    /// Runs `ciel` with these arguments; tasks that wait at the gate pass it.
    pub fn ciel(&self, words: &[&str]) -> crate::support::Ended {
        self.gate.release(1);
        let words = [&words[..1], &["--state", &self.state], &words[1..]].concat();
        self.place.run(&words)
    }

    /// Whether commands that had ended before the kill were rerun since the last call.
    pub fn ran_again(&self) -> bool {
        let again = times_run(&self.place).iter().any(|times| *times > 1);
        let once: String = (0..PARTS).map(|n| format!("{n}\n")).collect();
        self.place.file("ran", once);
        again
    }
}

/// Bytes of log from which on a snapshot is made; the jobs make less but for one.
const LOG_BYTES_MIN: u64 = 16 << 20;

/// Starts the job with these options, and returns when the task in its middle runs. `more` is done
/// by the script before that.
pub fn at_the_gate(place: &Place, options: &[&str], more: &str) -> (Gate, Live) {
    let gate = place.gate("gate");
    let first = "for (s in shown) { sum = sum + *s; } sum = 0;";
    let wait = shell(&format!("{}; {}; echo 1", done("started"), held("gate")));
    let middle = format!("{first} {more} x = text({wait});");
    place.file("job.sw", job_with(&middle));
    let mut command = place.command();
    command.args([&["run", "-j2"], options, &["job.sw"]].concat());
    // Debug builds make snapshots of short logs then.
    command.env("CIEL_LOG_BYTES_MIN", LOG_BYTES_MIN.to_string());
    let live = Live::start(command);
    place.await_file("started");
    // The output of the task before the gate is released soon, not at once.
    for _ in 0..PARTS / 2 * 41 {
        live.line();
    }
    (gate, live)
}

/// Whether the last frame of the log says that what is before it is safe.
fn ends_with_sync_mark(journal: &Path) -> bool {
    const MARKER: [u8; 4] = [0xC1, 0xE1, 0xF7, 0x9A];
    const KIND_OFFSET: usize = 24;
    const SYNC_MARK: u8 = 2;
    let log = fs::read(journal.join("log-0000000000")).unwrap();
    let last = log.windows(MARKER.len()).rposition(|four| four == MARKER);
    last.is_some_and(|at| log.get(at + KIND_OFFSET) == Some(&SYNC_MARK))
}

/// The id of the one run there is.
pub fn only_run(place: &Place, state: &str) -> String {
    let runs: Vec<_> = fs::read_dir(place.path(state).join("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(runs.len(), 1);
    runs[0].clone()
}

/// The folder of a run.
pub fn run_folder(place: &Place, state: &str, run: &str) -> PathBuf {
    place.path(state).join("runs").join(run)
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}
