//! What tasks gave becomes entries, once all that ran beneath them is known; and whether what ran
//! beneath an entry's task is still the same.
//!
//! It does not know how a subtree is put together. Read next: `subtrees`.

use std::collections::BTreeSet;
use std::path::Path;

use ciel_engine::ResultQuery;
use ciel_kept::{Entry, KeptOutput};
use ciel_model::{Descriptor, Digest, FileRead, FunctionCode, Name, RerunReason, Site};

use super::subtrees::{Done, Subtree};
use super::told::has_promised;
use super::{Begun, Keeper, kept_output, place_of};
use crate::kept::{EndedTask, Segment};

impl Keeper<'_> {
    /// What a task that ran for an entry has read or run and is another now.
    pub(super) fn change_beneath(&mut self, entry: &Entry) -> Option<RerunReason> {
        if let Some(file) = entry.read.iter().find(|file| !self.is_unchanged(file)) {
            return Some(RerunReason::InputChanged(file.path.clone()));
        }
        let source = entry.beneath.iter().find(|file| !self.is_unchanged(file))?;
        Some(RerunReason::CodeChanged(FunctionCode {
            name: source.path.clone(),
            place: Site {
                file: source.path.clone(),
                line: 0,
            },
            digest: source.digest,
        }))
    }

    /// Whether a file still has the content that a task has read.
    fn is_unchanged(&mut self, file: &FileRead) -> bool {
        let path = Path::new(&*file.path);
        let digest = self.with_store(|store| store.digest_of_file(path));
        digest.flatten() == Some(file.digest)
    }

    /// A task beneath another has taken its result.
    pub(super) fn note_taken(&mut self, entry: &Entry, files: &[FileRead], query: &ResultQuery) {
        let read = entry.read.iter().chain(&entry.beneath).chain(files);
        let written = entry.printed.iter().map(|printed| Segment {
            after: query.after,
            file: printed.file.clone(),
            bytes: printed.bytes.clone(),
        });
        let done = Done {
            written: written.collect(),
            read: read.cloned().collect(),
            code: query.descriptor.reached.clone(),
            is_harmless: true,
            is_promised: true,
        };
        let attempt = query.attempt.number;
        self.subtrees.on_ended(query.label.name, attempt, done);
    }

    /// A task has ended well.
    pub(super) fn add(&mut self, ended: EndedTask) {
        let begun = self.begun.remove(&ended.attempt.task);
        let files = begun.iter().flat_map(|begun| &begun.files);
        let done = Done {
            written: ended.written.clone(),
            read: files.chain(&ended.read).cloned().collect(),
            code: ended.descriptor.reached.clone(),
            is_harmless: ended.is_harmless,
            is_promised: has_promised(&ended.descriptor),
        };
        let task = ended.label.name;
        if self.subtrees.follows(task) {
            // A lazy task prints nothing where it stands.
            if !ended.descriptor.options.lazy {
                let attempt = ended.attempt.number;
                self.subtrees.on_ended(task, attempt, done);
            }
            if let Some(begun) = begun {
                self.unresolved.insert(task, (begun, ended));
            }
            return;
        }
        match (begun, Subtree::of(&done)) {
            (Some(begun), Some(subtree)) => self.keep(begun, ended, &subtree),
            _ => self.clear(Digest(task.0)),
        }
    }

    /// A task that is followed has left the graph.
    pub(super) fn resolve(&mut self, task: Name, has_failed: bool) {
        for (task, subtree) in self.subtrees.on_over(task, has_failed) {
            match (self.unresolved.remove(&task), subtree) {
                (Some((begun, ended)), Some(subtree)) => self.keep(begun, ended, &subtree),
                (Some((begun, _)), None) => self.clear(place_of(&begun.label)),
                (None, _) => {}
            }
        }
    }

    /// Keeps what a task gave, if that is allowed by all that was done beneath it.
    fn keep(&mut self, begun: Begun, ended: EndedTask, subtree: &Subtree) {
        let place = place_of(&begun.label);
        let mut files = Vec::new();
        let outputs = ended.outputs.filter(|_| subtree.is_harmless);
        let outputs = outputs.and_then(|outputs| {
            let outputs = outputs.into_iter();
            let kept = outputs.map(|output| kept_output(output, &mut files));
            kept.collect::<Option<Vec<KeptOutput>>>()
        });
        let sources = self.sources_of(&ended.descriptor, subtree);
        let (Some(outputs), Some(beneath)) = (outputs, sources) else {
            return self.clear(place);
        };
        // Files among its own inputs are part of the key.
        let is_input = |file: &FileRead| begun.files.iter().any(|own| own.path == file.path);
        let mut read = subtree.read();
        read.retain(|file| !is_input(file));
        self.note_gave(place, &outputs, read.clone(), false);
        let entry = Entry {
            parts: begun.parts,
            task: begun.label.what,
            place,
            outputs,
            printed: subtree.printed.clone(),
            beneath,
            read,
            took_us: ended.took_us,
            run: self.engine.folder.id().into(),
            is_marked: begun.is_marked,
        };
        self.batch.push((entry, files));
        self.expect_batch();
    }

    /// The files with code that ran beneath a task and that its own code does not lead to; none if
    /// it cannot be told whether such code has changed.
    fn sources_of(&mut self, own: &Descriptor, subtree: &Subtree) -> Option<Vec<FileRead>> {
        let pieces = subtree.unnamed_by(&own.reached);
        let paths: BTreeSet<&str> = pieces
            .iter()
            // The interpreter counts for all tasks.
            .filter(|piece| !piece.name.starts_with("python "))
            .map(|piece| &*piece.place.file)
            .collect();
        paths.into_iter().map(|path| self.source(path)).collect()
    }

    /// A source file, as it was when this run has begun.
    fn source(&mut self, path: &str) -> Option<FileRead> {
        let found = std::fs::metadata(path).ok()?;
        if found.modified().ok()? >= self.begun_at {
            return None;
        }
        let digest = self.with_store(|store| store.digest_of_file(Path::new(path)))??;
        Some(FileRead {
            path: path.into(),
            length: found.len(),
            digest,
        })
    }
}
