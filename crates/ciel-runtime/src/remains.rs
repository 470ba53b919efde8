//! What killed runs have left: processes, files of use to nobody, a control socket.
//!
//! The engine and its spawner each clean up when the other dies. When both were killed at once,
//! this does it at the next run in the folder. A run that ends by itself takes its scratch folder
//! away last, so a scratch folder without a living run is the mark of one that was killed. It does
//! not know what the run computed. Read next: `run`.

use std::collections::BTreeSet;

use ciel_spawner::Cookie;
use ciel_store::{RunState, StateFolder, StoreError};

use crate::{control, run};

/// A run that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KilledRun {
    /// Its id.
    pub run: String,
    /// Processes of it that still ran and were killed now: number and command line.
    pub processes: Vec<(u32, String)>,
}

/// Clears what killed runs have left in this folder; their histories stay. Costs one look for each
/// run, and a walk through all processes for each that was killed.
///
/// # Errors
/// Those of listing the runs. What cannot be removed is left for `ciel clean`.
pub fn clear(state: &StateFolder) -> Result<Vec<KilledRun>, StoreError> {
    let furnished = furnished_runs(state);
    if furnished.is_empty() {
        return Ok(Vec::new());
    }
    // A run takes its lock before it makes its scratch folder: one that is seen to have the folder
    // and then no lock has ended.
    let mut killed = Vec::new();
    for entry in state.runs()? {
        if entry.state == RunState::Ended && furnished.contains(&entry.id) {
            let cookie = Cookie::new(&entry.id);
            let processes = cookie.map_or(Vec::new(), |cookie| ciel_spawner::sweep(&cookie));
            if let Some(socket) = control::socket_path(&entry.id) {
                let _ = std::fs::remove_file(socket);
            }
            run::clear_folder(&entry.path);
            let run = entry.id;
            killed.push(KilledRun { run, processes });
        }
    }
    Ok(killed)
}

/// Runs with a scratch folder: those that live, and those that were killed.
fn furnished_runs(state: &StateFolder) -> BTreeSet<String> {
    let runs = std::fs::read_dir(state.path().join("runs"));
    let entries = runs.into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().join(run::SCRATCH).is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}
