//! Files that were recomputed take the place of those that were lost.
//!
//! A result has no name of its own on the disk: another run of its task may write it under another
//! one. It does not know why a file was lost. Read next: `reconstruct`, which does.

use std::collections::BTreeMap;
use std::sync::Arc;

use ciel_model::{Content, Name};
use rustc_hash::FxHashMap;

use super::{ObjectState, Objects, Released, Stored};

impl Objects {
    /// All values in these files are in those of the recomputed values from now on, by the names of
    /// the lost ones, which are let go of.
    pub(crate) fn replace_files(
        &mut self,
        recomputed: &BTreeMap<Name, Arc<Stored>>,
        released: &mut Released,
    ) {
        // Values stay shared as they were; the old ones live until all are replaced.
        let mut renewed: FxHashMap<*const Stored, (Arc<Stored>, Arc<Stored>)> =
            FxHashMap::default();
        for object in self.table.values_mut() {
            let ObjectState::Ready(stored) = &mut object.state else {
                continue;
            };
            let file = stored.value.content.file();
            let Some(other) = file.and_then(|(name, _)| recomputed.get(&name)) else {
                continue;
            };
            let (_, now) = renewed
                .entry(Arc::as_ptr(stored))
                .or_insert_with(|| (stored.clone(), Arc::new(in_file_of(stored, other))));
            *stored = now.clone();
        }
        for (before, now) in renewed.into_values() {
            self.count_file(&now.value.content);
            self.let_go_of_file(&before.value.content, None, released);
        }
    }

    /// One more stored value is in its file, if it has one.
    pub(super) fn count_file(&mut self, content: &Content) {
        if let Content::File { name, .. } = *content {
            match self.files.get_mut(&name) {
                Some(count) => *count += 1,
                None => drop(self.files.insert(name, 1)),
            }
        }
    }
}

fn in_file_of(stored: &Stored, other: &Stored) -> Stored {
    let mut now = stored.clone();
    now.value.content = other.value.content.clone();
    now.origin = other.origin.clone();
    now
}
