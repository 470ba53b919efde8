//! Looks at the kept results of a state folder, and removes some of them, outside of any run.
//!
//! It does not know how a run uses them. Read next: `keeper`, `ciel_kept::selection`.

use std::collections::BTreeMap;
use std::path::Path;

pub use ciel_kept::{Chosen, Evicted, KeptError, Removed, Selection, Usage};
pub use ciel_kept::{Identities, TaskIdentity};
use ciel_kept::{KeptResults, limits::USE_NOTED_AFTER_S};
use ciel_store::{RunEntry, RunState};
use ciel_view::RunDescription;

use crate::layout::{IDENTITIES, KEPT};

/// How much each run has kept in that state folder that is still there, by its id.
///
/// # Errors
/// Those of the index.
pub fn usage_by_run(state: &Path) -> Result<BTreeMap<String, Usage>, KeptError> {
    open(state)?.map_or(Ok(BTreeMap::new()), |kept| kept.usage_by_run())
}

/// The results in that state folder that are meant, those that were not used for longest first.
///
/// # Errors
/// Those of the index.
pub fn select(state: &Path, selection: &Selection) -> Result<Vec<Chosen>, KeptError> {
    open(state)?.map_or(Ok(Vec::new()), |kept| kept.select(selection))
}

/// Removes these results from that state folder, or only their bytes.
///
/// # Errors
/// Those of files and index.
pub fn remove(state: &Path, chosen: &[Chosen], what: Removed) -> Result<Evicted, KeptError> {
    open(state)?.map_or(Ok(Evicted::default()), |mut kept| kept.remove(chosen, what))
}

/// From when on results that were used may be needed by a live run, in seconds since 1970: since
/// the first of these runs that live has begun. None if no run lives.
pub fn spared_since_s(runs: &[RunEntry]) -> Option<u64> {
    let live = runs
        .iter()
        .filter(|run| matches!(run.state, RunState::Alive { .. }));
    // Nothing is known of a run that has not yet said when it began, so everything is spared.
    let begun = |run| RunDescription::read(run).map_or(0, |description| description.started_s);
    let first = live.map(begun).min()?;
    // A use that follows another one soon is not written down.
    Some(first.saturating_sub(USE_NOTED_AFTER_S))
}

/// What the tasks of a run were given and gave; nothing if that was not written down.
///
/// # Errors
/// Those of reading the file in the run's folder, `run`.
pub fn identities(run: &Path) -> std::io::Result<Identities> {
    Identities::read(&run.join("history").join(IDENTITIES))
}

/// The results of a state folder, if any were ever kept in it: looking makes nothing.
pub(crate) fn open(state: &Path) -> Result<Option<KeptResults>, KeptError> {
    let folder = state.join(KEPT);
    match folder.join("index").is_file() {
        true => KeptResults::open(&folder).map(Some),
        false => Ok(None),
    }
}
