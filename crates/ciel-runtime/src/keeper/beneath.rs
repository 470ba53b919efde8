//! What tasks gave becomes entries, once all that ran beneath them is known; and whether what ran
//! beneath an entry's task is still the same.
//!
//! It does not know how a subtree is put together. Read next: `subtrees`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ciel_engine::ResultQuery;
use ciel_kept::{Ended, Entry, KeptContent, KeptOutput, KeptResults};
use ciel_model::{Digest, FileRead, FunctionCode, Keeping, Name, RerunReason, Site};

use super::parts::stamp_of;
use super::subtrees::{Done, Gave, GivenOutput, Resolved, Subtree};
use super::told::has_promised;
use super::{Begun, Given, Keeper, SPARE, place_of, spare};
use crate::kept::{EndedTask, Segment, StagedContent, StagedOutput};
use crate::tools;

impl Keeper<'_> {
    /// What a task that ran for an entry has read or run and is another now.
    pub(super) fn change_beneath(&mut self, entry: &Entry) -> Option<RerunReason> {
        if let Some(file) = entry.read.iter().find(|file| !self.is_unchanged(file)) {
            return Some(tools::reason(&file.path));
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
        let Some(path) = tools::place_of(&file.path) else {
            return false;
        };
        let digest = self.with_store(|store| store.digest_of_file(&path));
        let is_stamp = || self.engine.settings.trusts_times && stamp_of(&path) == Some(file.digest);
        digest.flatten() == Some(file.digest) || is_stamp()
    }

    /// A task beneath another has taken its result.
    pub(super) fn note_taken(&mut self, entry: &Entry, given: &Given, query: &ResultQuery) {
        let read = entry.read.iter().chain(&entry.beneath).chain(&given.files);
        let written = entry.printed.iter().map(|printed| Segment {
            after: query.after,
            file: printed.file.clone(),
            bytes: printed.bytes.clone(),
        });
        let done = Done {
            written: written.collect(),
            read: read.cloned().collect(),
            code: given.functions.clone(),
            is_harmless: true,
            is_promised: true,
            gave: Gave::Values(entry.outputs.clone()),
        };
        let attempt = query.attempt.number;
        self.subtrees.on_ended(query.label.name, attempt, done);
    }

    /// A task has ended well.
    pub(super) fn add(&mut self, mut ended: EndedTask) {
        let query = ended.begun.take();
        let begun = self.begun.remove(&ended.attempt.task);
        let begun = begun.or_else(|| self.begun_with(&*query?));
        let task = ended.label.name;
        let follows = self.subtrees.follows(task);
        if begun.is_none() && !follows {
            if ended.descriptor.keeping != Keeping::Never {
                self.note_unkept(Digest(task.0), ended.is_harmless);
            }
            return self.clear(Digest(task.0));
        }
        self.read_outputs(&mut ended);
        let files = begun.iter().flat_map(|begun| &begun.given.files);
        let functions = begun.as_ref().map(|begun| begun.given.functions.clone());
        let known = || self.call_of(&ended.descriptor).map(|call| call.functions);
        let done = Done {
            written: std::mem::take(&mut ended.written),
            read: files.chain(&ended.read).cloned().collect(),
            code: functions.or_else(known).unwrap_or_default(),
            is_harmless: ended.is_harmless,
            is_promised: has_promised(&ended.descriptor),
            gave: gave(&mut ended),
        };
        if follows {
            // A lazy task prints nothing where it stands.
            if !ended.descriptor.options.lazy {
                let attempt = ended.attempt.number;
                self.subtrees.on_ended(task, attempt, done);
            }
            if let Some(begun) = begun {
                // Until it is resolved, which may be never.
                self.batch.places.push(place_of(&begun.label));
                self.unresolved.insert(task, (begun, ended));
            }
            return;
        }
        match (begun, Subtree::of(task, &done)) {
            (Some(begun), Some(subtree)) => self.keep(begun, &ended, &subtree),
            (Some(begun), None) => self.leave(place_of(&begun.label), true),
            (None, _) => self.clear(Digest(task.0)),
        }
    }

    /// The result of a task that ended well is not kept.
    pub(super) fn leave(&mut self, place: Digest, is_harmless: bool) {
        self.note_unkept(place, is_harmless);
        self.clear(place);
    }

    /// The same of one that was given no paths.
    pub(super) fn note_unkept(&mut self, place: Digest, is_harmless: bool) {
        let ended = match is_harmless {
            true => Ended::Unkept,
            false => Ended::Impurely,
        };
        self.batch.unkept.push((place, ended));
        self.expect_batch();
    }

    /// Reads the files that a task gave, before those that take them are looked at.
    fn read_outputs(&mut self, ended: &mut EndedTask) {
        let name = ended.label.name;
        let outputs = ended.outputs.iter_mut().flatten();
        for (index, output) in (0..).zip(outputs) {
            if let StagedContent::File { path, digest, .. } = &mut output.content {
                let read = || digest.or_else(|| KeptResults::digest_of(path).ok());
                *digest = self.digests.of(name.output(index), read);
            }
        }
    }

    /// A task that is followed has left the graph.
    pub(super) fn resolve(&mut self, task: Name, has_failed: bool) {
        let resolved = self.subtrees.on_over(task, has_failed);
        self.keep_resolved(resolved);
    }

    /// Keeps what followed tasks gave whose subtrees are known, and forgets the others.
    pub(super) fn keep_resolved(&mut self, resolved: Vec<Resolved>) {
        for (task, subtree) in resolved {
            match (self.unresolved.remove(&task), subtree) {
                (Some((begun, ended)), Some(subtree)) => self.keep(begun, &ended, &subtree),
                (Some((begun, _)), None) => self.leave(place_of(&begun.label), true),
                (None, _) => {}
            }
        }
    }

    /// Keeps what a task gave, if that is allowed by all that was done beneath it.
    fn keep(&mut self, begun: Begun, ended: &EndedTask, subtree: &Subtree) {
        let place = place_of(&begun.label);
        let (parts, inputs) = (begun.given.parts, begun.given.files);
        let outputs = subtree.outputs.as_ref().filter(|_| subtree.is_harmless);
        let sources = self.sources_of(&parts.pieces, subtree);
        let (Some(outputs), Some(beneath)) = (outputs, sources) else {
            return self.leave(place, subtree.is_harmless);
        };
        // Of bytes that are gone the digests are kept.
        let files = self.files_of(begun.label.name, outputs).unwrap_or_default();
        let outputs: Vec<KeptOutput> = outputs.iter().map(|given| given.output.clone()).collect();
        // Files among its own inputs are part of the key.
        let is_input = |file: &FileRead| inputs.iter().any(|own| own.path == file.path);
        let mut read = subtree.read();
        read.retain(|file| !is_input(file));
        self.note_gave(place, &outputs, read.clone(), false);
        let entry = Entry {
            parts,
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
        self.batch.entries.push((entry, files));
        self.expect_batch();
    }

    /// The files of what a task gave; none if one is gone. What another task made for it is linked.
    fn files_of(&mut self, task: Name, outputs: &[GivenOutput]) -> Option<Vec<PathBuf>> {
        let outputs = outputs.iter().enumerate();
        let files = outputs.filter_map(|(index, given)| match given.output.content {
            KeptContent::Inline(_) => None,
            KeptContent::Object { digest, .. } => Some((index, given, digest)),
        });
        let files: Vec<_> = files.collect();
        let engine = self.engine;
        let scratch = engine.folder.scratch();
        let file = |(index, given, digest): (usize, &GivenOutput, Digest)| {
            let spare_of = |task: Name, index| scratch.path(task.0, SPARE, &spare(index)).ok();
            if given.maker == (task, index) {
                return spare_of(task, index);
            }
            let (maker, number) = given.maker;
            let made = spare_of(maker, number).filter(|path| path.exists());
            let from = made.or_else(|| self.with_store(|store| Ok(store.object(digest))))?;
            scratch.link(&from, task.0, SPARE, &spare(index)).ok()
        };
        files.into_iter().map(file).collect()
    }

    /// The files with code that ran beneath a task and that its own code does not lead to; none if
    /// it cannot be told whether such code has changed.
    fn sources_of(&mut self, own: &[FunctionCode], subtree: &Subtree) -> Option<Vec<FileRead>> {
        let pieces = subtree.unnamed_by(own);
        let paths: BTreeSet<&str> = pieces
            .iter()
            // The interpreter counts for all tasks, and our own library with its version.
            .filter(|piece| !piece.name.starts_with("python "))
            .filter(|piece| !piece.place.file.starts_with("<stdlib>/"))
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

/// What an ended task gave, as entries have it.
fn gave(ended: &mut EndedTask) -> Gave {
    if let Some(object) = ended.handed {
        return Gave::Handed(object);
    }
    let outputs = ended.outputs.take().map(|outputs| {
        let outputs = outputs.into_iter();
        outputs
            .map(kept_output)
            .collect::<Option<Vec<KeptOutput>>>()
    });
    outputs.flatten().map_or(Gave::Unknown, Gave::Values)
}

/// An output as an entry has it; none if its file cannot be read.
fn kept_output(output: StagedOutput) -> Option<KeptOutput> {
    let content = match output.content {
        StagedContent::Inline(bytes) => KeptContent::Inline(bytes),
        StagedContent::File {
            path,
            length,
            digest,
        } => {
            let digest = digest.or_else(|| KeptResults::digest_of(&path).ok())?;
            KeptContent::Object { digest, length }
        }
    };
    let form = output.form;
    Some(KeptOutput { form, content })
}
