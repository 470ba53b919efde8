//! What the thread of kept results writes down about the tasks of this run, for later ones.
//!
//! Tasks that take no part have no identity. It does not know what is kept. Read next:
//! `ciel_kept::identities`.

use std::path::Path;
use std::sync::Arc;

use ciel_engine::ResultQuery;
use ciel_kept::identities::GaveTask;
use ciel_kept::{IdentityNote, KeptContent, KeptOutput, Parts};
use ciel_model::{Digest, FileRead, FunctionCode, Keeping};

use super::Keeper;
use crate::kept_results;

impl Keeper<'_> {
    /// A task is given this.
    pub(super) fn note_given(&mut self, parts: &Parts, query: &ResultQuery) {
        let (label, is_marked) = (&query.label, self.is_marked(query));
        self.identities
            .given(label.name.0, &label.what, parts, is_marked);
        self.expect_batch();
    }

    /// The pieces of a code, as an earlier process of the run has noted them: the run's own records
    /// have its digest alone. None where it has not.
    pub(super) fn pieces_before(&self, code: Digest) -> Arc<[FunctionCode]> {
        let read = || {
            // What cannot be read is not known.
            let noted = kept_results::identities(self.engine.folder.path()).unwrap_or_default();
            let parts = noted.tasks.into_iter().map(|task| task.given.parts);
            parts
                .filter_map(|parts| Some((parts.code?, parts.pieces)))
                .collect()
        };
        let known = self.pieces_before.get_or_init(read);
        known.get(&code).cloned().unwrap_or_default()
    }

    /// The task at a place gives this.
    pub(super) fn note_gave(
        &mut self,
        place: Digest,
        outputs: &[KeptOutput],
        read: Vec<FileRead>,
        is_taken: bool,
    ) {
        if self.identities.is_full() {
            return;
        }
        let digest = |output: &KeptOutput| match &output.content {
            KeptContent::Inline(bytes) => Digest::of(bytes),
            KeptContent::Object { digest, .. } => *digest,
        };
        self.identities.add(&IdentityNote::Gave(GaveTask {
            name: place.0,
            outputs: outputs.iter().map(digest).collect(),
            read,
            is_taken,
        }));
        self.expect_batch();
    }

    /// The run reads a file of the user's.
    pub(super) fn note_read(&mut self, path: &Path, digest: Option<Digest>) {
        let path = std::path::absolute(path).ok();
        let Some(path) = path.filter(|_| self.engine.keep_rule.keeps) else {
            return;
        };
        let mut found = || {
            self.with_store(|store| store.digest_of_file(&path))
                .flatten()
        };
        if let (Some(digest), Some(name)) = (digest.or_else(&mut found), path.to_str()) {
            let path = name.into();
            self.identities.add(&IdentityNote::File { path, digest });
            self.expect_batch();
        }
    }

    /// The program marks the task, so it takes what is kept in each run.
    pub(super) fn is_marked(&self, query: &ResultQuery) -> bool {
        query.descriptor.keeping == Keeping::Takes && !self.engine.keep_rule.takes
    }
}
