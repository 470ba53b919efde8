//! Digests of files that this run has made, each of which is read once.
//!
//! A file may be gone by the time a task that was given it is looked at. It does not know where
//! files are. Read first: `keeper`.

use ciel_model::{Digest, Name};
use rustc_hash::FxHashMap;

/// Digests that are remembered; then all are forgotten.
const REMEMBERED_MAX: usize = 1 << 16;

/// Digests by the names of files, which never change their bytes.
#[derive(Debug, Default)]
pub(super) struct FileDigests(FxHashMap<Name, Digest>);

impl FileDigests {
    /// The digest of a file, which `read` computes if it is not remembered.
    pub(super) fn of(
        &mut self,
        name: Name,
        read: impl FnOnce() -> Option<Digest>,
    ) -> Option<Digest> {
        if let Some(known) = self.0.get(&name) {
            return Some(*known);
        }
        let digest = read()?;
        if self.0.len() >= REMEMBERED_MAX {
            self.0.clear();
        }
        self.0.insert(name, digest);
        Some(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_read_once_and_one_that_cannot_be_read_is_tried_again() {
        let mut digests = FileDigests::default();
        assert_eq!(digests.of(Name(1), || None), None);
        assert_eq!(digests.of(Name(1), || Some(Digest(7))), Some(Digest(7)));
        let unread = || panic!("it is remembered");
        assert_eq!(digests.of(Name(1), unread), Some(Digest(7)));
    }

    #[test]
    fn no_more_than_a_bound_is_remembered() {
        let mut digests = FileDigests::default();
        for name in 0..=REMEMBERED_MAX as u128 {
            digests.of(Name(name), || Some(Digest(name)));
        }
        assert_eq!(digests.0.len(), 1);
    }
}
