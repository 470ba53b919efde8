//! A run's folder after its run: what of it stays.
//!
//! It does not know what the run computed. Read next: `run`, `orphans`.

use std::path::Path;

use ciel_view::RunEndRecord;

use crate::engine::Engine;
use crate::layout::SCRATCH;

/// Leaves the folder in order, and says whether the run can go on from there. A run that has come
/// to its end says so; of one that was broken off everything stays that is needed to go on.
pub(crate) fn leave_folder(engine: &Engine, ending: Option<RunEndRecord>) -> bool {
    let folder = &engine.folder;
    let Some(ending) = ending else {
        let resumable = folder.is_resumable().unwrap_or(false);
        match resumable {
            // What cannot be removed now is removed when the run is taken up.
            true => drop(std::fs::remove_dir_all(folder.path().join(SCRATCH))),
            false => clear_folder(folder.path()),
        }
        return resumable;
    };
    let ending = serde_json::to_vec(&ending).expect("numbers and a text make JSON");
    let marked = folder.mark_ended(&ending).or_else(|_| {
        // On a full disk there is room when what is of no use any more is gone.
        clear_folder(folder.path());
        folder.mark_ended(&ending)
    });
    if let Err(error) = marked {
        let message = format!("the end of run {} cannot be noted: {error}", folder.id());
        engine.warn(None, &message);
    }
    clear_folder(folder.path());
    false
}

/// What is of no use after a run has ended. Scratch goes last: as long as it is there the folder
/// has not been left in order.
pub(crate) const USELESS: [&str; 7] = [
    "journal", "stdout", "sinks", "digests", "objects", "spill", SCRATCH,
];

/// Removes what is of no use after a run has ended.
pub(crate) fn clear_folder(run: &Path) {
    for name in USELESS {
        let path = run.join(name);
        // What cannot be removed now is removed by `ciel clean`.
        let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
    }
}
