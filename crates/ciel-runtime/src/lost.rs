//! Which files of objects were lost while the run lives.
//!
//! A task may read a file while another one finds that it has changed: what the first one makes of
//! it is wrong, although there is a new file of that name when it ends. It does not know who reads
//! what. Read next: `engine`, which learns of lost files.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ciel_model::Name;

/// The names of lost files, in the order in which they were missed.
#[derive(Debug, Default)]
pub(crate) struct LostFiles {
    names: Mutex<Vec<Name>>,
    /// How many they are.
    count: AtomicUsize,
    searched: Mutex<()>,
}

/// A moment in the life of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Since(usize);

impl LostFiles {
    /// The present.
    pub(crate) fn now(&self) -> Since {
        Since(self.count.load(Ordering::Acquire))
    }

    /// Has others wait who look for lost files, so that each is found by one of them.
    pub(crate) fn search(&self) -> MutexGuard<'_, ()> {
        self.searched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These files were missed; whether one of them was never missed before.
    pub(crate) fn note(&self, lost: &[Name]) -> bool {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = lost.iter().any(|name| !names.contains(name));
        names.extend_from_slice(lost);
        self.count.store(names.len(), Ordering::Release);
        is_new
    }

    /// Whether that file was missed since then.
    pub(crate) fn has_lost(&self, name: Name, since: Since) -> bool {
        if self.count.load(Ordering::Acquire) == since.0 {
            return false;
        }
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names[since.0..].contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_was_missed_before_is_not_missed_since() {
        let lost = LostFiles::default();
        let first = lost.now();
        assert!(lost.note(&[Name(1), Name(2)]));
        let later = lost.now();
        assert!(lost.note(&[Name(2), Name(3)]));
        assert!(!lost.note(&[Name(1)]));
        let since = |moment| (1..5).map(move |name| (Name(name), moment));
        let missed = |(name, moment)| lost.has_lost(name, moment);
        assert_eq!(
            since(first).map(missed).collect::<Vec<_>>(),
            [true, true, true, false]
        );
        assert_eq!(
            since(later).map(missed).collect::<Vec<_>>(),
            [true, true, true, false]
        );
        assert_eq!(
            since(lost.now()).map(missed).collect::<Vec<_>>(),
            [false; 4]
        );
    }
}
