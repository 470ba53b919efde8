//! The ordered files of a run: which file a task means, and what goes into it.
//!
//! A file is opened when a task names it first, and numbered by the coordinator. Two spellings of
//! one path are one file. It does not know the order of what is written. Read next: `flat_file`,
//! `output`, which writes what the frontier has passed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ciel_coordinator::Coordinator;
use ciel_graph::Assignment;
use ciel_model::{Failure, FailureKind};
use ciel_ordered::{Piece, Sink};
use ciel_store::RunFolder;

use crate::engine::Engine;
use crate::error::{FlatFileError, RunError};
use crate::flat_file::FlatFile;
use crate::output::Closed;
use crate::settings::Settings;
use crate::{failures, output};

/// The open files of a run.
#[derive(Debug, Default)]
pub(crate) struct OrderedFiles {
    named: Mutex<Named>,
    /// Taken after `named` or alone: it is held while the disk is written.
    open: Mutex<HashMap<Sink, FlatFile>>,
}

#[derive(Debug, Default)]
struct Named {
    /// Sinks by the paths that tasks have written.
    by_spelling: HashMap<String, Sink>,
    /// Sinks by canonical path.
    by_path: HashMap<String, Sink>,
}

/// The id of the run if files of other contents are to be replaced.
fn overwrite<'a>(settings: &Settings, folder: &'a RunFolder) -> Option<&'a str> {
    settings.given.overwrite.then(|| folder.id())
}

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
    engine.files.sink_of(engine, path).map_err(|error| {
        let label = task.label.clone();
        let failure = Failure::new(FailureKind::TaskError, label, error.to_string());
        Box::new(failure.with_hint(error.hint(None)))
    })
}

impl OrderedFiles {
    /// The sink of the file at a path, which is opened if it is new. The caller does not have the
    /// lock of the core.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn sink_of(&self, engine: &Engine, path: &str) -> Result<Sink, FlatFileError> {
        let mut named = lock(&self.named);
        if let Some(sink) = named.by_spelling.get(path) {
            return Ok(*sink);
        }
        let (file, canonical) = FlatFile::open(Path::new(path))?;
        let known = named.by_path.get(&canonical).copied();
        let sink = match known {
            Some(sink) => sink,
            None => {
                let replaced = overwrite(&engine.settings, &engine.folder);
                let flat = FlatFile::claim(file, &canonical, replaced)?;
                let sink = engine.with(|core, _| core.state_mut().open_file(&canonical));
                lock(&self.open).insert(sink, flat);
                named.by_path.insert(canonical, sink);
                sink
            }
        };
        named.by_spelling.insert(path.to_string(), sink);
        Ok(sink)
    }

    /// The next bytes of a file, which the frontier has passed.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn take(&self, engine: &Engine, sink: Sink, bytes: &[u8]) -> Result<(), Closed> {
        let mut open = lock(&self.open);
        let file = open.get_mut(&sink);
        let file = file.expect("a file is open before anything is written there");
        let taken = file.take(bytes);
        taken.map_err(|error| Closed::Inside(of_file(engine, error)))
    }

    /// Syncs all files, so that what is in them survives a power failure.
    ///
    /// # Errors
    /// Those of the files.
    pub(crate) fn sync(&self, engine: &Engine) -> Result<(), Closed> {
        for file in lock(&self.open).values() {
            let synced = file.sync();
            synced.map_err(|error| Closed::Inside(of_file(engine, error)))?;
        }
        Ok(())
    }

    /// The job has come to its end, with success or not.
    ///
    /// # Errors
    /// Those of the files.
    pub(crate) fn settle(&self, is_whole: bool) -> Result<(), RunError> {
        for file in lock(&self.open).values_mut() {
            let settled = file.settle(is_whole);
            settled.map_err(|error| RunError::File { error, run: None })?;
        }
        Ok(())
    }

    /// The run is not resumed.
    pub(crate) fn give_up(&self) {
        lock(&self.open).values_mut().for_each(FlatFile::give_up);
    }

    /// Opens the files of a recorded run that are not open yet.
    ///
    /// # Errors
    /// Those of the files.
    pub(crate) fn reopen(
        &self,
        state: &Coordinator,
        settings: &Settings,
        folder: &RunFolder,
    ) -> Result<(), RunError> {
        let (mut named, mut open) = (lock(&self.named), lock(&self.open));
        let numbered = (1..).map(Sink).zip(state.files());
        for (sink, path) in numbered.skip(open.len()) {
            let claimed = FlatFile::open(Path::new(path))
                .and_then(|(file, _)| FlatFile::claim(file, path, overwrite(settings, folder)));
            let flat = claimed.map_err(|error| RunError::File {
                error,
                run: Some(folder.id().to_string()),
            })?;
            open.insert(sink, flat);
            named.by_path.insert(path.clone(), sink);
        }
        Ok(())
    }

    /// Does something with an open file; in recovery only.
    pub(crate) fn with<T>(
        &self,
        sink: Sink,
        act: impl FnOnce(&mut FlatFile) -> Result<T, FlatFileError>,
    ) -> Result<T, RunError> {
        let mut open = lock(&self.open);
        let file = open.get_mut(&sink);
        let file = file.expect("the files of a recorded run are opened before they are used");
        act(file).map_err(|error| RunError::File { error, run: None })
    }
}

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_file(engine: &Engine, error: FlatFileError) -> RunError {
    let run = engine.journal.is_some().then(|| engine.folder.id());
    RunError::File {
        error,
        run: run.map(str::to_string),
    }
}
