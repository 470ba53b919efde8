//! What tasks do with ordered files.
//!
//! It does not know the order of what is written. Read next: `open_files`; `output`, which writes
//! what the frontier has passed.

use ciel_graph::Assignment;
use ciel_model::{Failure, FailureKind};
use ciel_ordered::{Piece, Sink};

use crate::engine::Engine;
use crate::flat_file::FlatFileError;
use crate::{failures, output};

/// A task writes bytes to the file at a path, after so many actions; none only opens it.
///
/// # Errors
/// The file cannot be used; the strand is replayed and writes something else than before.
pub(crate) fn write(
    engine: &Engine,
    task: &Assignment,
    path: &str,
    after: u64,
    piece: Piece,
) -> Result<(), Box<Failure>> {
    let sink = sink_for(engine, task, path)?;
    if piece.length() == 0 {
        return Ok(());
    }
    let (strand, label) = (task.strand, &task.label);
    let written = engine.with(|core, _| core.write_file(strand, label, after, (sink, piece)));
    written.map_err(|how| Box::new(failures::differs(task, how)))?;
    output::spill_excess(engine);
    Ok(())
}

/// The sink of a file that a task writes to; an error is the task's failure.
///
/// # Errors
/// The file cannot be used.
pub(crate) fn sink_for(
    engine: &Engine,
    task: &Assignment,
    path: &str,
) -> Result<Sink, Box<Failure>> {
    sink_of(engine, path).map_err(|error| {
        let label = task.label.clone();
        let failure = Failure::new(FailureKind::TaskError, label, error.to_string());
        Box::new(failure.with_hint(error.hint(None)))
    })
}

/// The sink of the file at a path, which is opened if it is new. The caller does not have the lock
/// of the core.
///
/// # Errors
/// Those of the file.
pub(crate) fn sink_of(engine: &Engine, path: &str) -> Result<Sink, FlatFileError> {
    let overwrite = engine.settings.overwrite(engine.folder.id());
    let number = |path: &str| engine.with(|core, _| core.state_mut().open_file(path));
    engine.files.sink_of(path, overwrite, number)
}
