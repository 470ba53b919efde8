//! A run's folder after its run: what of it stays.
//!
//! It does not know what the run computed. Read next: `run`, `orphans`.

use std::path::Path;

use ciel_store::PartialStreams;
use ciel_view::RunEndRecord;

use crate::death;
use crate::engine::Engine;
use crate::layout::SCRATCH;

/// Cleans up the folder, and returns whether the run can be resumed. An ended run is marked as
/// ended; if its outcome is kept until it was shown, so is its output. Of an interrupted run
/// everything stays that a resume needs.
pub(crate) fn leave_folder(
    engine: &Engine,
    ending: Option<RunEndRecord>,
    outcome_is_kept: bool,
) -> bool {
    let folder = &engine.folder;
    let Some(ending) = ending else {
        let resumable = folder.is_resumable().unwrap_or(false);
        match resumable {
            // What cannot be removed now is removed when the run is resumed.
            true => drop(std::fs::remove_dir_all(folder.path().join(SCRATCH))),
            false => clear_folder(folder.path()),
        }
        return resumable;
    };
    let ending = serde_json::to_vec(&ending).expect("numbers and a text make JSON");
    let marked = folder.mark_ended(&ending).or_else(|_| {
        // On a full disk there is room when what is of no use any more is gone.
        let _ = folder.leave();
        clear_folder(folder.path());
        folder.mark_ended(&ending)
    });
    death::at_the_end();
    if let Err(error) = marked {
        let message = format!("the end of run {} cannot be recorded: {error}", folder.id());
        engine.warn(None, &message);
    }
    match outcome_is_kept {
        true => clear(folder.path(), &USELESS[..NOT_SHOWN]),
        false => clear_folder(folder.path()),
    }
    false
}

/// What is of no use after a run has ended and its end has been shown: first what is of no use for
/// showing it either. Scratch goes last: as long as it exists the folder has not been left in
/// order.
pub(crate) const USELESS: [&str; 7] = [
    "journal", "objects", "spill", "digests", "stdout", "sinks", SCRATCH,
];

/// So many of these are of no use for showing the end.
const NOT_SHOWN: usize = 3;

/// Removes what is of no use after a run has ended and its end has been shown.
pub(crate) fn clear_folder(run: &Path) {
    clear(run, &USELESS);
}

fn clear(run: &Path, names: &[&str]) {
    for name in names {
        let path = run.join(name);
        // What cannot be removed now is removed by `ciel clean`.
        let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
        if *name == "objects" {
            ciel_store::forget_memory(run);
            PartialStreams::of(run).remove();
        }
        death::at_the_end();
    }
}
