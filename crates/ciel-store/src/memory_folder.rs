//! The part of a run's objects that is in memory: a private folder of a file system in memory, with
//! a budget.
//!
//! Its files survive the death of all processes of the run, not that of the machine. Its name
//! follows from the path of the run's folder, to which a link inside points; one whose run is gone
//! is removed by the next run that begins. It does not know what is an object. Read next:
//! `scratch`.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use ciel_model::Digest;
use rustix::fs::{fstatvfs, statfs};
use rustix::process::geteuid;

use crate::directory::Directory;
use crate::disk;
use crate::error::StoreError;

/// Where file systems in memory are found.
const MEMORY: &str = "/dev/shm";
/// The number by which the kernel tells such a file system.
const TMPFS_MAGIC: u64 = 0x0102_1994;
const OWNER_NAME: &str = "run";

/// How much of a store is in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes of objects.
    pub present: u64,
    /// The most of them at once.
    pub peak: u64,
    /// Bytes that may be there.
    pub limit: u64,
}

impl MemoryUse {
    fn add(&mut self, length: u64) {
        self.present += length;
        self.peak = self.peak.max(self.present);
    }
}

/// Objects and files being written, in memory.
#[derive(Debug)]
pub(crate) struct MemoryFolder {
    pub(crate) objects: Directory,
    pub(crate) scratch: Directory,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    counts: MemoryUse,
    /// Bytes that files being written may take, by their names.
    reserved: HashMap<String, u64>,
}

impl MemoryFolder {
    /// The folder of a run, of at most `limit` bytes. Without a limit only one that an earlier
    /// process of the run has left; none where there is no memory for files.
    pub(crate) fn open(run: &Path, limit: u64) -> Option<MemoryFolder> {
        let memory = memory()?;
        let name = name_of(run);
        let folder = match limit {
            0 => memory.inner(&name).ok()??,
            _ => made(&memory, &name, run).ok()?,
        };
        let used = Used {
            counts: MemoryUse {
                limit,
                ..MemoryUse::default()
            },
            reserved: HashMap::new(),
        };
        Some(MemoryFolder {
            objects: folder.inner_or_new("objects").ok()?,
            scratch: folder.inner_or_new("scratch").ok()?,
            used: Mutex::new(used),
        })
    }

    /// Makes an empty file that so many bytes will be written to, if they fit.
    pub(crate) fn reserve(&self, name: &str, length: u64) -> bool {
        let mut used = self.used();
        let waiting: u64 = used.reserved.values().sum();
        let wanted = waiting.saturating_add(length);
        let fits = used.counts.present.saturating_add(wanted) <= used.counts.limit;
        let has_room = || {
            fstatvfs(self.scratch.handle())
                .is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) > wanted)
        };
        if !fits || !has_room() || self.scratch.make_file(name).is_err() {
            return false;
        }
        used.reserved.insert(name.to_owned(), length);
        true
    }

    /// A file is being written no more.
    pub(crate) fn unreserve(&self, name: &str) -> bool {
        self.used().reserved.remove(name).is_some()
    }

    /// A file that was being written is complete, and counted as an object.
    pub(crate) fn complete(&self, name: &str, length: u64) {
        let mut used = self.used();
        used.reserved.remove(name);
        used.counts.add(length);
    }

    /// A complete file has not become an object.
    pub(crate) fn give_back(&self, name: &str, length: u64) {
        let mut used = self.used();
        used.counts.present = used.counts.present.saturating_sub(length);
        used.reserved.insert(name.to_owned(), length);
    }

    /// An object is here.
    pub(crate) fn add(&self, length: u64) {
        self.used().counts.add(length);
    }

    /// An object is here no more.
    pub(crate) fn subtract(&self, length: u64) {
        let counts = &mut self.used().counts;
        counts.present = counts.present.saturating_sub(length);
    }

    pub(crate) fn counts(&self) -> MemoryUse {
        self.used().counts
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().expect("nobody panics with the counters")
    }
}

/// Bytes that a run has in memory; nothing if its folder is not there.
pub(crate) fn bytes_of(run: &Path) -> u64 {
    let folder = memory().and_then(|memory| memory.inner(&name_of(run)).ok()?);
    folder.map_or(0, |folder| disk::bytes_below(folder.path(), &[]))
}

/// Removes what a run has in memory, if anything; a run of the same path may have it next.
pub fn forget(run: &Path) {
    let name = name_of(run);
    if let Some(memory) = memory()
        && let Ok(Some(_)) = memory.inner(&name)
    {
        // What cannot be removed now is removed when the run's folder is gone.
        let _ = memory.remove_all(&name);
    }
}

/// Removes what runs have in memory whose folders, with their files `lock`, are gone.
pub(crate) fn sweep(lock: &str) {
    let Some(memory) = memory() else {
        return;
    };
    let prefix = prefix();
    let names = memory.names().unwrap_or_default();
    for name in names.iter().filter(|name| name.starts_with(&prefix)) {
        let Ok(Some(folder)) = memory.inner(name) else {
            continue;
        };
        // What cannot be removed now is removed by the next run.
        let _ = match std::fs::read_link(folder.path_of(OWNER_NAME)) {
            Ok(run) if run.join(lock).exists() => Ok(false),
            Ok(_) => memory.remove_all(name).map(|()| true),
            Err(_) => memory.remove_if_empty(name),
        };
    }
}

/// The folder in which files are in memory; none if there is no such thing here.
fn memory() -> Option<Directory> {
    let found = statfs(MEMORY).ok()?;
    let is_memory = u64::try_from(found.f_type).is_ok_and(|kind| kind == TMPFS_MAGIC);
    is_memory.then(|| Directory::open(Path::new(MEMORY)).ok())?
}

fn made(memory: &Directory, name: &str, run: &Path) -> Result<Directory, StoreError> {
    let folder = memory.inner_or_new(name)?;
    let link = folder.path_of(OWNER_NAME);
    match std::os::unix::fs::symlink(run, &link) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(StoreError::of_system("make", &link, error))
        }
        _ => Ok(folder),
    }
}

fn prefix() -> String {
    format!("ciel-{}-", geteuid().as_raw())
}

fn name_of(run: &Path) -> String {
    format!("{}{}", prefix(), Digest::of(run.as_os_str().as_bytes()))
}
