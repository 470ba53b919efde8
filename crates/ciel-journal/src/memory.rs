//! A disk in memory, for tests and simulations: it can be full, its process can be killed, and it
//! can lose its power in every way that a real one may.
//!
//! It does not know journals. Pure: a function of the caller's decides what survives a failure.
//! Read next: [`crate::disk`], whose acts these are.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile};

/// Bytes that a power failure keeps or loses together. Small, so that frames span several.
pub const PAGE_BYTES: usize = 16;

type Shared = Arc<Mutex<State>>;

/// One folder of a disk in memory. A clone is the same disk.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk {
    state: Shared,
}

#[derive(Debug, Clone, Default)]
struct State {
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    changes: Vec<Change>,
    files: Vec<Content>,
    room_bytes: Option<u64>,
    is_sync_broken: bool,
    writes: u64,
}

/// The bytes of a file, and how many of them are safe.
#[derive(Debug, Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    synced_bytes: usize,
}

/// A change of the names since they were synced.
#[derive(Debug, Clone)]
enum Change {
    Put(String, usize),
    Remove(String),
    Rename(String, String),
}

fn apply(change: &Change, names: &mut BTreeMap<String, usize>) {
    match change {
        Change::Put(name, file) => drop(names.insert(name.clone(), *file)),
        Change::Remove(name) => drop(names.remove(name)),
        Change::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
    }
}

impl MemoryDisk {
    /// An empty folder of a disk without bound.
    pub fn new() -> MemoryDisk {
        MemoryDisk::default()
    }

    /// From now on, only so many bytes more can be written; none: without bound.
    pub fn set_room(&self, bytes: Option<u64>) {
        self.state().room_bytes = bytes;
    }

    /// From now on, syncs fail and make nothing safe.
    pub fn break_sync(&self) {
        self.state().is_sync_broken = true;
    }

    /// How often something was appended to a file.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// The bytes of a file, if there is one.
    pub fn file(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let file = *state.names.get(name)?;
        Some(state.files[file].bytes.clone())
    }

    /// Makes a file of these bytes, or replaces one. They are safe.
    pub fn put_file(&self, name: &str, bytes: &[u8]) {
        let file = self.state().add(name);
        let content = Content {
            bytes: bytes.to_vec(),
            synced_bytes: bytes.len(),
        };
        self.state().files[file] = content;
    }

    /// The disk as the next process finds it when this one is killed now.
    pub fn after_kill(&self) -> MemoryDisk {
        let mut state = self.state().clone();
        state.room_bytes = None;
        state.is_sync_broken = false;
        MemoryDisk {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// The disk as it may be found after a power failure now. Of the new names, the last may be
    /// lost, and of the removals any. Of each file, what was not synced may be cut anywhere, and
    /// pages of the rest of it may be zero. `choose` gives a number below its argument each time.
    pub fn after_power_failure(&self, mut choose: impl FnMut(usize) -> usize) -> MemoryDisk {
        let before = self.state();
        let kept = choose(before.changes.len() + 1);
        let mut state = State {
            names: before.synced_names.clone(),
            files: before.files.clone(),
            ..State::default()
        };
        for (at, change) in before.changes.iter().enumerate() {
            // A removal may be safe before what came earlier, unless the names were synced.
            let is_kept = match change {
                Change::Remove(_) => choose(2) == 0,
                Change::Put(..) | Change::Rename(..) => at < kept,
            };
            if is_kept {
                apply(change, &mut state.names);
            }
        }
        for content in &mut state.files {
            content.lose(&mut choose);
        }
        state.synced_names = state.names.clone();
        MemoryDisk {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked with the lock held left no half-done act: each is one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, file: usize) -> Arc<dyn DiskFile> {
        let state = Arc::clone(&self.state);
        Arc::new(MemoryFile { state, file })
    }
}

impl Content {
    fn lose(&mut self, choose: &mut impl FnMut(usize) -> usize) {
        let safe = self.synced_bytes;
        let kept = choose(self.bytes.len() - safe + 1);
        self.bytes.truncate(safe + kept);
        for page in self.bytes[safe..].chunks_mut(PAGE_BYTES) {
            if choose(4) == 0 {
                page.fill(0);
            }
        }
        self.synced_bytes = self.bytes.len();
    }
}

impl State {
    fn change(&mut self, change: Change) {
        apply(&change, &mut self.names);
        self.changes.push(change);
    }

    fn add(&mut self, name: &str) -> usize {
        self.files.push(Content::default());
        let file = self.files.len() - 1;
        self.change(Change::Put(name.to_owned(), file));
        file
    }

    fn check_sync(&self) -> io::Result<()> {
        if self.is_sync_broken {
            return Err(io::Error::other("the disk does not answer"));
        }
        Ok(())
    }

    fn number(&self, name: &str) -> io::Result<usize> {
        let found = self.names.get(name).copied();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Disk for MemoryDisk {
    fn path(&self) -> &Path {
        Path::new("memory")
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.file(name)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = state.add(name);
        Ok(self.handle(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.state().number(name)?;
        Ok(self.handle(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.number(from)?;
        state.change(Change::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.number(name)?;
        state.change(Change::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.state();
        state.check_sync()?;
        state.synced_names = state.names.clone();
        state.changes.clear();
        Ok(())
    }
}

struct MemoryFile {
    state: Shared,
    file: usize,
}

impl MemoryFile {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFile for MemoryFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        let room = state.room_bytes.unwrap_or(u64::MAX);
        let some = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if some == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.writes += 1;
        state.room_bytes = state.room_bytes.map(|room| room - some as u64);
        state.files[self.file]
            .bytes
            .extend_from_slice(&bytes[..some]);
        Ok(some)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.check_sync()?;
        let content = &mut state.files[self.file];
        content.synced_bytes = content.bytes.len();
        Ok(())
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        let content = &mut state.files[self.file];
        content.bytes.truncate(bytes as usize);
        content.synced_bytes = content.synced_bytes.min(content.bytes.len());
        Ok(())
    }
}
