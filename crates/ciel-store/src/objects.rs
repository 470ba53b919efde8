//! Objects: immutable bytes, each a file of the run folder, written once and whole.
//!
//! A file becomes an object by a rename, so nobody ever sees half of one; and only what was
//! committed in this run, with the length it had then, is taken for an object. Every process maps
//! the same pages. It does not know who wants an object. Read next: `scratch`.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use memmap2::Mmap;
use rustix::fs::FileType;

use crate::budget::Budget;
use crate::directory::Directory;
use crate::error::StoreError;
use crate::scratch::{Finished, Scratch};

/// The name of an object, decided before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectName(pub u128);

impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

/// A committed object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// Its name.
    pub name: ObjectName,
    /// Its bytes.
    pub length: u64,
}

/// An object that was known and is not there any more as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostObject {
    /// Its name.
    pub name: ObjectName,
    /// Its bytes, as they were known.
    pub expected: u64,
    /// Bytes found; none if there was no such file.
    pub found: Option<u64>,
}

/// The bytes of an object, mapped read-only. They stay readable when the object is removed.
#[derive(Debug)]
pub struct Mapped(Option<Mmap>);

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// The objects of a run. Any thread may use it.
#[derive(Debug)]
pub struct Objects {
    directory: Directory,
    scratch: Arc<Scratch>,
    budget: Arc<Budget>,
    lengths: Mutex<HashMap<ObjectName, u64>>,
}

impl Objects {
    pub(crate) fn new(directory: Directory, scratch: Arc<Scratch>, budget: Arc<Budget>) -> Objects {
        Objects {
            directory,
            scratch,
            budget,
            lengths: Mutex::default(),
        }
    }

    /// Makes a file at a path given by [`Scratch::path`] an object; the path is free afterwards.
    /// Committing a name again keeps the first.
    ///
    /// # Errors
    /// `ForeignScratch`, `NotAFile`, `Full`; `ObjectDiffers` if the name is committed with another
    /// length. The scratch file is still there after these.
    pub fn commit_file(&self, name: ObjectName, path: &Path) -> Result<Object, StoreError> {
        let finished = self.scratch.finish(path)?;
        self.commit(name, finished)
    }

    /// Makes an object of these bytes, whole or not at all. Committing a name again keeps the
    /// first.
    ///
    /// # Errors
    /// `Full`, `DiskFull`; `ObjectDiffers` if the name is committed with another length.
    pub fn commit_bytes(&self, name: ObjectName, bytes: &[u8]) -> Result<Object, StoreError> {
        let length = bytes.len() as u64;
        if let Some(object) = self.committed_before(name, length)? {
            return Ok(object);
        }
        let draft = self.scratch.draft_name();
        self.scratch.directory().write_file(&draft, bytes)?;
        self.commit(
            name,
            Finished {
                name: draft.clone(),
                length,
            },
        )
        .inspect_err(|_| {
            // The commit failed already; a draft that cannot be removed either goes with the run.
            let _ = self.scratch.directory().remove_file(&draft);
        })
    }

    /// Makes objects of the files that a former process of this run committed: each of these names
    /// with its length. Returns those that are missing or of another length, in the order given.
    /// All other files of the folder are removed, so this comes before the first commit. Lengths
    /// are looked at, contents are not; the limit of the budget is not.
    ///
    /// # Errors
    /// `ReadOnly` or `System` if the folder cannot be listed or a file not removed.
    pub fn restore(
        &self,
        known: impl IntoIterator<Item = (ObjectName, u64)>,
    ) -> Result<Vec<LostObject>, StoreError> {
        let mut lengths = self.lengths();
        let mut lost = Vec::new();
        for (name, expected) in known {
            let entry = self.directory.entry(&name.to_string())?;
            let file = entry.filter(|entry| entry.kind == FileType::RegularFile);
            match file.map(|file| file.length) {
                Some(length) if length == expected => {
                    if lengths.insert(name, length).is_none() {
                        self.budget.count(length);
                    }
                }
                found => lost.push(LostObject {
                    name,
                    expected,
                    found,
                }),
            }
        }
        let kept: HashSet<String> = lengths.keys().map(ObjectName::to_string).collect();
        for name in self.directory.names()? {
            if !kept.contains(&name) {
                self.directory.remove_all(&name)?;
            }
        }
        Ok(lost)
    }

    /// Makes sure that a committed object survives a power failure; waits for the disk.
    ///
    /// # Errors
    /// `DiskFull`, `System`.
    pub fn sync(&self, name: ObjectName) -> Result<(), StoreError> {
        self.directory.sync(&name.to_string())
    }

    /// Maps an object read-only.
    ///
    /// # Errors
    /// `UnknownObject`, `DamagedObject`.
    pub fn map(&self, name: ObjectName) -> Result<Mapped, StoreError> {
        let file = self.open(name)?;
        if self.length(name)? == 0 {
            return Ok(Mapped(None));
        }
        // SAFETY: a committed file is read-only and is never written or shortened by us; it
        // leaves by unlinking, which keeps the pages of a mapping.
        let map = unsafe { Mmap::map(&file) };
        map.map(|map| Mapped(Some(map)))
            .map_err(|source| self.directory.system("map", &name.to_string(), source))
    }

    /// Opens an object for reading.
    ///
    /// # Errors
    /// `UnknownObject`; `DamagedObject` if the file is not what was committed.
    pub fn open(&self, name: ObjectName) -> Result<File, StoreError> {
        let expected = self.length(name)?;
        let damaged = |found| StoreError::DamagedObject {
            name,
            expected,
            found,
        };
        let file = match self.directory.open_file(&name.to_string()) {
            Err(StoreError::NotAFile { .. }) => return Err(damaged(None)),
            other => other?,
        };
        let metadata = file.metadata();
        let found = metadata
            .map_err(|source| self.directory.system("read", &name.to_string(), source))?
            .len();
        if found == expected {
            Ok(file)
        } else {
            Err(damaged(Some(found)))
        }
    }

    /// Where an object lies, for another process to open. It does not say that there is one.
    pub fn path(&self, name: ObjectName) -> PathBuf {
        self.directory.path_of(&name.to_string())
    }

    /// The length of a committed object.
    ///
    /// # Errors
    /// `UnknownObject`.
    pub fn length(&self, name: ObjectName) -> Result<u64, StoreError> {
        self.lengths()
            .get(&name)
            .copied()
            .ok_or(StoreError::UnknownObject { name })
    }

    /// Removes an object; says whether there was one. Mappings of it stay.
    pub fn remove(&self, name: ObjectName) -> Result<bool, StoreError> {
        let Some(length) = self.lengths().remove(&name) else {
            return Ok(false);
        };
        self.budget.refund(length);
        self.directory.remove_file(&name.to_string())?;
        Ok(true)
    }

    fn commit(&self, name: ObjectName, finished: Finished) -> Result<Object, StoreError> {
        let Finished {
            name: scratch_name,
            length,
        } = finished;
        let mut lengths = self.lengths();
        if let Some(held) = lengths.get(&name).copied() {
            let object = same_length(name, held, length)?;
            self.scratch.directory().remove_file(&scratch_name)?;
            return Ok(object);
        }
        self.budget.charge(length)?;
        let target = name.to_string();
        self.move_in_place(&scratch_name, &target)
            .inspect_err(|_| self.budget.refund(length))?;
        lengths.insert(name, length);
        Ok(Object { name, length })
    }

    /// A file that stands there without having been committed is nobody's object: it gives way.
    fn move_in_place(&self, scratch_name: &str, target: &str) -> Result<(), StoreError> {
        let scratch = self.scratch.directory();
        if !scratch.move_to(scratch_name, &self.directory, target)? {
            self.directory.remove_all(target)?;
            scratch.move_to(scratch_name, &self.directory, target)?;
        }
        Ok(())
    }

    fn committed_before(
        &self,
        name: ObjectName,
        length: u64,
    ) -> Result<Option<Object>, StoreError> {
        let held = self.lengths().get(&name).copied();
        held.map(|held| same_length(name, held, length)).transpose()
    }

    fn lengths(&self) -> MutexGuard<'_, HashMap<ObjectName, u64>> {
        self.lengths.lock().expect("nobody panics with the lengths")
    }
}

fn same_length(name: ObjectName, held: u64, offered: u64) -> Result<Object, StoreError> {
    match held == offered {
        true => Ok(Object { name, length: held }),
        false => Err(StoreError::ObjectDiffers {
            name,
            held,
            offered,
        }),
    }
}
