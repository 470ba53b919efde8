//! The open ordered files of a run, and which of them a path means.
//!
//! A file is opened when a task names it first; the coordinator numbers it. Two spellings of one
//! path are one file. It knows neither tasks nor the order of what is written. Read next:
//! `flat_file`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ciel_coordinator::Coordinator;
use ciel_ordered::Sink;

use crate::flat_file::{FlatFile, FlatFileError};

/// The open files of a run.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
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

impl OpenFiles {
    /// The sink of the file at a path, which is opened if it is new: `number` then gives the sink
    /// of its canonical path. With `overwrite`, the id of the run, other contents are replaced.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn sink_of(
        &self,
        path: &str,
        overwrite: Option<&str>,
        number: impl FnOnce(&str) -> Sink,
    ) -> Result<Sink, FlatFileError> {
        let mut named = lock(&self.named);
        if let Some(sink) = named.by_spelling.get(path) {
            return Ok(*sink);
        }
        let (file, canonical) = FlatFile::open(Path::new(path))?;
        let known = named.by_path.get(&canonical).copied();
        let sink = match known {
            Some(sink) => sink,
            None => {
                let flat = FlatFile::claim(file, &canonical, overwrite)?;
                let sink = number(&canonical);
                lock(&self.open).insert(sink, flat);
                named.by_path.insert(canonical, sink);
                sink
            }
        };
        named.by_spelling.insert(path.to_string(), sink);
        Ok(sink)
    }

    /// The canonical path of the file of a sink, if it is that of a file.
    pub(crate) fn path_of(&self, sink: Sink) -> Option<String> {
        let named = lock(&self.named);
        let mut all = named.by_path.iter();
        let found = all.find(|(_, known)| **known == sink);
        found.map(|(path, _)| path.clone())
    }

    /// The next bytes of a file, which the frontier has passed.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn take(&self, sink: Sink, bytes: &[u8]) -> Result<(), FlatFileError> {
        let mut open = lock(&self.open);
        let file = open.get_mut(&sink);
        let file = file.expect("a file is open before anything is written there");
        file.take(bytes)
    }

    /// Syncs all files, so that what is in them survives a power failure.
    ///
    /// # Errors
    /// Those of the files.
    pub(crate) fn sync(&self) -> Result<(), FlatFileError> {
        lock(&self.open).values().try_for_each(FlatFile::sync)
    }

    /// The job has come to its end, with success or not.
    ///
    /// # Errors
    /// Those of the files.
    pub(crate) fn settle(&self, is_whole: bool) -> Result<(), FlatFileError> {
        let mut open = lock(&self.open);
        open.values_mut().try_for_each(|file| file.settle(is_whole))
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
        overwrite: Option<&str>,
    ) -> Result<(), FlatFileError> {
        let (mut named, mut open) = (lock(&self.named), lock(&self.open));
        let numbered = (1..).map(Sink).zip(state.files());
        for (sink, path) in numbered.skip(open.len()) {
            let (file, _) = FlatFile::open(Path::new(path))?;
            let flat = FlatFile::claim(file, path, overwrite)?;
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
    ) -> Result<T, FlatFileError> {
        let mut open = lock(&self.open);
        let file = open.get_mut(&sink);
        let file = file.expect("the files of a recorded run are opened before they are used");
        act(file)
    }
}

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
