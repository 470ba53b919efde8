//! Kept results in a folder that several users share, beside those of the state folder.
//!
//! The current folder is no part of a shared key, and files that a task has read below it are named
//! from it, so that a colleague's copy of the project finds them. It does not know how results are
//! checked. Read next: `ciel_kept::shared`.

use std::path::{Path, PathBuf};

use ciel_engine::ResultQuery;
use ciel_kept::{Entry, KeptError, KeptResults, Parts, SharedFound, SharedResults};
use ciel_model::{Digest, FileRead};

use super::parts::{in_surroundings, surroundings_anywhere};
use super::{Given, Keeper, Taken};
use crate::engine::Engine;

/// The shared folder of a run.
pub(super) struct Sharing {
    pub(super) results: SharedResults,
    surroundings: Digest,
    /// Users of whom it was said that their results are not taken.
    refused: Vec<u32>,
}

impl Sharing {
    /// The shared folder that the settings name, if there is one that can be used.
    pub(super) fn open(engine: &Engine) -> Option<Sharing> {
        let settings = &engine.settings;
        let folder = settings.kept_folder.as_deref()?;
        let opened = SharedResults::open(folder, settings.trusted_users.clone());
        let results = opened.map_err(|error| give_up(engine, &error)).ok()?;
        if !results.is_writable() {
            let folder = results.folder().display();
            engine.warn(
                None,
                &format!("results in {folder} are taken only: it is read-only"),
            );
        }
        Some(Sharing {
            results,
            surroundings: surroundings_anywhere(settings),
            refused: Vec::new(),
        })
    }

    /// Whether a result is kept here for others.
    fn writes(&self, entry: &Entry) -> bool {
        self.results.is_writable() && !writes_files(entry)
    }

    fn parts(&self, parts: &Parts) -> Parts {
        in_surroundings(parts, self.surroundings)
    }
}

impl Keeper<'_> {
    /// What a shared entry gives to a task; none if there is none that may be used.
    pub(super) fn find_shared(&mut self, given: &Given, query: &ResultQuery) -> Option<Taken> {
        let sharing = self.sharing.as_mut()?;
        let (entry, user) = match sharing.results.find(&sharing.parts(&given.parts)) {
            SharedFound::Entry { entry, user } => (entry, user),
            SharedFound::Untrusted(owner) => {
                if !sharing.refused.contains(&owner) {
                    sharing.refused.push(owner);
                    let message = format!(
                        "results of user {owner} that are neither bytes, text nor JSON are not \
                         taken: they might run code; trust them with --trust-owner {owner}"
                    );
                    self.engine.warn(None, &message);
                }
                return None;
            }
            SharedFound::Nothing => return None,
        };
        if writes_files(&entry) || self.change_beneath(&entry).is_some() {
            return None;
        }
        let taken = self.take(&entry, query, Some(&user))?;
        self.note_taken(&entry, given, query);
        Some(taken)
    }

    /// Keeps a result for others, too, that this state folder had.
    pub(super) fn share_taken(&mut self, entry: &Entry) {
        let here = std::env::current_dir().unwrap_or_default();
        let Some(sharing) = self.sharing.as_ref().filter(|one| one.writes(entry)) else {
            return;
        };
        let shared = for_others(entry, sharing.surroundings, &here);
        if sharing.results.has(&shared.parts) {
            return;
        }
        let files = |store: &mut KeptResults| {
            let objects = entry.objects();
            Ok(objects.map(|(digest, _)| store.object(digest)).collect())
        };
        let files: Vec<PathBuf> = self.with_store(files).unwrap_or_default();
        // Another process may have made room in the meantime.
        if files.len() == entry.objects().count() && files.iter().all(|file| file.exists()) {
            let sharing = self.sharing.as_ref().expect("it was there above");
            let kept = sharing.results.keep(&shared, &files);
            self.note_shared(kept);
        }
    }

    /// Keeps results for others, too.
    pub(super) fn share_batch(&mut self) {
        let Some(sharing) = self.sharing.as_ref() else {
            return;
        };
        let here = std::env::current_dir().unwrap_or_default();
        let has_bytes = |(entry, files): &&(Entry, Vec<_>)| {
            !files.is_empty() || entry.objects().next().is_none()
        };
        let batch = self.batch.entries.iter().filter(has_bytes);
        let mut batch = batch.filter(|(entry, _)| sharing.writes(entry));
        let kept = batch.try_for_each(|(entry, files)| {
            let shared = for_others(entry, sharing.surroundings, &here);
            sharing.results.keep(&shared, files)
        });
        self.note_shared(kept);
    }

    fn note_shared(&mut self, kept: Result<(), KeptError>) {
        if let Err(error) = kept {
            give_up(self.engine, &error);
            self.sharing = None;
        }
    }
}

/// Whether a result comes with lines of ordered files: nobody writes to a colleague's files.
pub(crate) fn writes_files(entry: &Entry) -> bool {
    entry.printed.iter().any(|printed| printed.file.is_some())
}

/// A result as others find it, which was kept by a run in `folder`: in surroundings that are the
/// same for all, with the files below that folder named from it.
pub(crate) fn for_others(entry: &Entry, surroundings: Digest, folder: &Path) -> Entry {
    let from_folder = |file: &FileRead| {
        let below = Path::new(&*file.path).strip_prefix(folder).ok();
        let name = below.and_then(Path::to_str);
        FileRead {
            path: name.map_or(file.path.clone(), Into::into),
            ..file.clone()
        }
    };
    Entry {
        parts: in_surroundings(&entry.parts, surroundings),
        read: entry.read.iter().map(from_folder).collect(),
        beneath: entry.beneath.iter().map(from_folder).collect(),
        ..entry.clone()
    }
}

fn give_up(engine: &Engine, error: &KeptError) {
    let message = format!("no results are shared from now on: {error}");
    engine.warn(None, &message);
}
