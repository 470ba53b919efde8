//! How much task attempts have written that is no object yet, as somebody has found by looking.
//!
//! It does not know when to look. Read next: `scratch`, which gives attempts their paths.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Smaller files do not count: what becomes of them is not kept on the disk.
const BYTES_MIN: u64 = ciel_model::limits::INLINE_BYTES_MAX as u64;

/// Bytes of a block, as the system counts what a file takes.
const BLOCK_BYTES: u64 = 512;

/// What one attempt of a task has written so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The task.
    pub task: u128,
    /// Which try of it.
    pub attempt: u32,
    /// Bytes that its files take of the disk.
    pub bytes: u64,
}

/// What was found at the last look, without what has ended since.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    found: Mutex<HashMap<(u128, u32), u64>>,
    sum: AtomicU64,
}

/// What a file of that attempt is called.
pub(crate) fn name(task: u128, attempt: u32, purpose: &str) -> String {
    format!("{task:032x}-{attempt}-{purpose}")
}

/// The attempt whose file is called so.
fn owner(name: &str) -> Option<(u128, u32)> {
    let mut parts = name.splitn(3, '-');
    let task = u128::from_str_radix(parts.next()?, 16).ok()?;
    Some((task, parts.next()?.parse().ok()?))
}

/// What attempts have written in that folder. What cannot be looked at counts nothing.
pub(crate) fn written_in(folder: &Path) -> Vec<Written> {
    let mut found = HashMap::new();
    for path in paths_in(folder) {
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(owner) = name.and_then(owner) {
            *found.entry(owner).or_default() += bytes_at(&path);
        }
    }
    let written = |((task, attempt), bytes)| Written {
        task,
        attempt,
        bytes,
    };
    found.into_iter().map(written).collect()
}

fn paths_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path()))
}

/// Bytes that a file or a folder takes of the disk.
fn bytes_at(path: &Path) -> u64 {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return 0;
    };
    if found.is_dir() {
        return paths_in(path).map(|inner| bytes_at(&inner)).sum();
    }
    let bytes = found.len().min(found.blocks() * BLOCK_BYTES);
    let counts = found.is_file() && found.nlink() == 1 && bytes >= BYTES_MIN;
    if counts { bytes } else { 0 }
}

impl Unfinished {
    /// So much was found at a look; gives it in order, the most first.
    pub(crate) fn set(&self, found: impl Iterator<Item = Written>) -> Vec<Written> {
        let mut all: Vec<Written> = found.filter(|one| one.bytes > 0).collect();
        all.sort_unstable_by_key(|one| (std::cmp::Reverse(one.bytes), one.task, one.attempt));
        self.change(|found| {
            *found = all
                .iter()
                .map(|one| ((one.task, one.attempt), one.bytes))
                .collect();
        });
        all
    }

    /// A file has become something else, which is counted where that is.
    pub(crate) fn finished(&self, name: &str, length: u64) {
        if self.bytes() == 0 {
            return;
        }
        self.change(|found| {
            if let Some(bytes) = owner(name).and_then(|owner| found.get_mut(&owner)) {
                *bytes = bytes.saturating_sub(length);
            }
        });
    }

    /// An attempt is over, and its files are gone.
    pub(crate) fn forget(&self, task: u128, attempt: u32) {
        if self.bytes() > 0 {
            self.change(|found| {
                found.remove(&(task, attempt));
            });
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<(u128, u32), u64>)) {
        let mut found = self.found.lock().expect("nobody panics with the numbers");
        change(&mut found);
        self.sum.store(found.values().sum(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_since_the_look_is_not_counted() {
        let written = |task, bytes| Written {
            task,
            attempt: 0,
            bytes,
        };
        let unfinished = Unfinished::default();
        let found = unfinished.set([written(1, 10), written(2, 0), written(3, 30)].into_iter());
        assert_eq!(found, [written(3, 30), written(1, 10)]);
        assert_eq!(unfinished.bytes(), 40);
        unfinished.finished(&name(3, 0, "out-put"), 25);
        assert_eq!(unfinished.bytes(), 15);
        unfinished.finished("draft-7", 5);
        unfinished.finished(&name(3, 1, "output.0"), 5);
        assert_eq!(unfinished.bytes(), 15);
        unfinished.forget(1, 0);
        assert_eq!(unfinished.bytes(), 5);
        assert_eq!(unfinished.set([].into_iter()), []);
        assert_eq!(unfinished.bytes(), 0);
    }

    #[test]
    fn folder_takes_what_its_files_take_and_other_names_take_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(super::name(7, 1, name));
        std::fs::create_dir_all(path("in/ner")).unwrap();
        std::fs::write(path("in/ner/a"), vec![1; 1 << 20]).unwrap();
        std::fs::write(path("b"), vec![1; 1 << 20]).unwrap();
        std::fs::write(path("c"), vec![1; 1 << 20]).unwrap();
        std::fs::write(path("d"), vec![1; 1000]).unwrap();
        std::fs::write(folder.path().join("draft-1"), vec![1; 1 << 20]).unwrap();
        std::fs::hard_link(path("b"), path("in/b")).unwrap();
        std::os::unix::fs::symlink(path("in/ner/a"), path("in/link")).unwrap();
        let [found] = &written_in(folder.path())[..] else {
            panic!("one attempt has written");
        };
        assert_eq!((found.task, found.attempt), (7, 1));
        assert_eq!(found.bytes, 2 << 20);
    }
}
