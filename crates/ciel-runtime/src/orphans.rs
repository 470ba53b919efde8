//! What killed runs have left: processes, useless files, a control socket.
//!
//! The engine and its spawner each clean up when the other dies. When both were killed at once,
//! this does it at the next run in the folder. A run that ends or is broken off in order takes its
//! scratch folder away last, so a scratch folder without a living run is the mark of one that was
//! killed. It does not know what the run computed. Read next: `run`.

use std::collections::BTreeSet;

use ciel_spawner::Cookie;
use ciel_store::{HeldRun, RunEntry, RunState, StateFolder, StoreError};
use ciel_view::socket;

use crate::cleanup;
use crate::layout::SCRATCH;

/// A run that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KilledRun {
    /// Its id.
    pub run: String,
    /// Processes of it that still ran and were killed now: number and command line.
    pub processes: Vec<(u32, String)>,
}

impl KilledRun {
    /// What a user is told; none if it left no process.
    pub fn message(&self) -> Option<String> {
        let (pid, command) = self.processes.first()?;
        let left = match self.processes.len() {
            1 => "1 process running, now killed:".to_string(),
            count => format!("{count} processes running, now killed; the first:"),
        };
        let run = &self.run;
        Some(format!(
            "run {run} was killed and left {left} {command} ({pid})"
        ))
    }
}

/// Clears what killed runs have left in this folder; their histories stay, and folders of runs that
/// had not begun go. Costs a few looks for each run, and a walk through all processes for each that
/// was killed.
///
/// # Errors
/// Those of listing the runs. What cannot be removed is left for `ciel clean`.
pub fn clear(state: &StateFolder) -> Result<Vec<KilledRun>, StoreError> {
    let killed = clear_furnished(state)?;
    // What cannot be removed now is removed by `ciel clean`.
    let _ = state.remove_unbegun();
    Ok(killed)
}

fn clear_furnished(state: &StateFolder) -> Result<Vec<KilledRun>, StoreError> {
    let furnished = furnished_runs(state);
    if furnished.is_empty() {
        return Ok(Vec::new());
    }
    // A run takes its lock before it makes its scratch folder: one that is seen to have the folder
    // and then no lock has ended.
    let mut killed = Vec::new();
    for entry in state.runs()? {
        if furnished.contains(&entry.id) {
            killed.extend(clear_run(state, &entry));
        }
    }
    Ok(killed)
}

/// Clears one run; none if it lives. What is needed to resume a run stays.
fn clear_run(state: &StateFolder, entry: &RunEntry) -> Option<KilledRun> {
    let processes = match entry.state {
        RunState::Alive { .. } => return None,
        RunState::Ended => {
            let processes = sweep(&entry.id);
            cleanup::clear_folder(&entry.path);
            processes
        }
        RunState::Unended => {
            // Without the lock, processes of another process that resumes the run meanwhile would
            // be killed.
            let held = HeldRun::take(state, &entry.id).ok()?;
            let processes = sweep(&entry.id);
            // What cannot be removed now is removed when the run is resumed.
            let _ = held.remove_scratch();
            processes
        }
    };
    let run = entry.id.clone();
    Some(KilledRun { run, processes })
}

/// Ends the processes of a run that is not locked, and removes its socket.
fn sweep(run: &str) -> Vec<(u32, String)> {
    if let Some(socket) = socket::path_of(run) {
        // One that is gone already is as good.
        let _ = std::fs::remove_file(socket);
    }
    let cookie = Cookie::new(run);
    cookie.map_or(Vec::new(), |cookie| ciel_spawner::sweep(&cookie))
}

/// Runs with a scratch folder: those that live, and those that were killed.
fn furnished_runs(state: &StateFolder) -> BTreeSet<String> {
    let runs = std::fs::read_dir(state.path().join("runs"));
    let entries = runs.into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().join(SCRATCH).is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(processes: &[(u32, &str)]) -> Option<String> {
        let processes = processes.iter().map(|(pid, line)| (*pid, line.to_string()));
        let killed = KilledRun {
            run: "a".to_string(),
            processes: processes.collect(),
        };
        killed.message()
    }

    /// It said "1 processes" and ended with "…", as if more were to come.
    #[test]
    fn killed_processes_are_counted_and_the_first_is_named() {
        assert_eq!(message(&[]), None);
        assert_eq!(
            message(&[(7, "sort x")]).unwrap(),
            "run a was killed and left 1 process running, now killed: sort x (7)"
        );
        assert_eq!(
            message(&[(7, "sort x"), (8, "cat")]).unwrap(),
            "run a was killed and left 2 processes running, now killed; the first: sort x (7)"
        );
    }
}
