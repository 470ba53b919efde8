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
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use ciel_model::Digest;
use memmap2::Mmap;
use rustix::fs::FileType;

use crate::budget::Budget;
use crate::content::{Content, digest_of};
use crate::digests::{self, Background};
use crate::directory::Directory;
use crate::error::StoreError;
use crate::limits::DIGEST_AT_COMMIT_BYTES_MAX;
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
    /// The digest of its bytes, if it was made.
    pub digest: Option<Digest>,
}

/// An object that was known and is not there any more as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostObject {
    /// Its name.
    pub name: ObjectName,
    /// Its bytes, as they were known.
    pub expected: u64,
    /// Bytes found; none if there was no such file. As many as expected if they are other bytes.
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
    /// Makes digests of long files; none if nothing that is committed gets one.
    background: OnceLock<Option<Background>>,
    contents: Mutex<HashMap<ObjectName, Content>>,
}

impl Objects {
    pub(crate) fn new(directory: Directory, scratch: Arc<Scratch>, budget: Arc<Budget>) -> Objects {
        Objects {
            directory,
            scratch,
            budget,
            background: OnceLock::new(),
            contents: Mutex::default(),
        }
    }

    /// From now on what is committed gets a digest, with which a later process of the run compares
    /// it. Files above [`DIGEST_AT_COMMIT_BYTES_MAX`] get theirs in the background.
    pub fn keep_digests(&self) {
        let start = || Background::start(&self.digests_path());
        self.background.get_or_init(start);
    }

    fn has_digests(&self) -> bool {
        self.background.get().is_some()
    }

    /// Beside the folder of the objects, where nothing but objects may lie.
    fn digests_path(&self) -> PathBuf {
        self.directory.path().with_file_name("digests")
    }

    /// Makes a file at a path given by [`Scratch::path`] an object; the path is free afterwards.
    /// Committing a name again keeps the first.
    ///
    /// # Errors
    /// `ForeignScratch`, `NotAFile`, `Full`; `ObjectDiffers` if the name is committed with another
    /// length. The scratch file is still there after these.
    pub fn commit_file(&self, name: ObjectName, path: &Path) -> Result<Object, StoreError> {
        let finished = self.scratch.finish(path)?;
        let is_short = finished.length <= DIGEST_AT_COMMIT_BYTES_MAX;
        let digest = match is_short && self.has_digests() {
            true => Some(self.digest_in(self.scratch.directory(), &finished.name)?),
            false => None,
        };
        let object = self.commit(name, finished, digest)?;
        if object.digest.is_none()
            && let Some(Some(background)) = self.background.get()
        {
            background.take(name.0, self.path(name));
        }
        Ok(object)
    }

    /// Makes an object of these bytes, whole or not at all. Committing a name again keeps the
    /// first.
    ///
    /// # Errors
    /// `Full`, `DiskFull`; `ObjectDiffers` if the name is committed with another length.
    pub fn commit_bytes(&self, name: ObjectName, bytes: &[u8]) -> Result<Object, StoreError> {
        let length = bytes.len() as u64;
        if let Some(held) = self.contents().get(&name) {
            return same_length(name, held, length);
        }
        let draft = self.scratch.draft_name();
        self.scratch.directory().write_file(&draft, bytes)?;
        let finished = Finished {
            name: draft.clone(),
            length,
        };
        let digest = self.has_digests().then(|| Digest::of(bytes));
        self.commit(name, finished, digest).inspect_err(|_| {
            // The commit failed already; a draft that cannot be removed either goes with the run.
            let _ = self.scratch.directory().remove_file(&draft);
        })
    }

    /// Makes objects of the files that a former process of this run committed: each of these names
    /// with its length, and the digest of its bytes if there is one. Returns those that are missing
    /// or not what they were, in the order given. All other files of the folder are removed, so
    /// this comes before the first commit. Up to `verified_bytes_max` bytes of files are compared
    /// with their digests, small files first, the others at their first use; the limit of the
    /// budget is not looked at.
    ///
    /// # Errors
    /// `ReadOnly` or `System` if the folder cannot be listed or a file not read or removed.
    pub fn restore(
        &self,
        known: impl IntoIterator<Item = Object>,
        verified_bytes_max: u64,
    ) -> Result<Vec<LostObject>, StoreError> {
        let late = digests::read(&self.digests_path());
        let with_digest = |object: Object| Object {
            digest: object.digest.or_else(|| late.get(&object.name.0).copied()),
            ..object
        };
        let known: Vec<Object> = known.into_iter().map(with_digest).collect();
        let changed = self.changed_among(&known, verified_bytes_max)?;
        let mut contents = self.contents();
        let mut lost = Vec::new();
        for object in known {
            let (name, expected) = (object.name, object.length);
            match self.length_on_disk(name)? {
                Some(length) if length == expected && !changed.contains(&name) => {
                    let found = Content::found(length, object.digest);
                    if contents.insert(name, found).is_none() {
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
        let kept: HashSet<String> = contents.keys().map(ObjectName::to_string).collect();
        for name in self.directory.names()? {
            if !kept.contains(&name) {
                self.directory.remove_all(&name)?;
            }
        }
        Ok(lost)
    }

    fn length_on_disk(&self, name: ObjectName) -> Result<Option<u64>, StoreError> {
        let entry = self.directory.entry(&name.to_string())?;
        let file = entry.filter(|entry| entry.kind == FileType::RegularFile);
        Ok(file.map(|file| file.length))
    }

    /// Those of so many of the files that are as long as they were, with other bytes.
    fn changed_among(
        &self,
        known: &[Object],
        mut room: u64,
    ) -> Result<HashSet<ObjectName>, StoreError> {
        let mut by_length: Vec<&Object> = known.iter().collect();
        by_length.sort_by_key(|object| object.length);
        let mut changed = HashSet::new();
        for object in by_length {
            let Some(digest) = object.digest else {
                continue;
            };
            if self.length_on_disk(object.name)? != Some(object.length) {
                continue;
            }
            let Some(rest) = room.checked_sub(object.length) else {
                break;
            };
            room = rest;
            if self.digest_in(&self.directory, &object.name.to_string())? != digest {
                changed.insert(object.name);
            }
        }
        Ok(changed)
    }

    fn digest_in(&self, directory: &Directory, name: &str) -> Result<Digest, StoreError> {
        let file = directory.open_file(name)?;
        digest_of(&file).map_err(|source| directory.system("read", name, source))
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

    /// Opens an object for reading. Its bytes are compared with their digest if a former process
    /// wrote them and they have not been compared yet; a file that has changed is removed, so that
    /// the next process of the run finds it missing.
    ///
    /// # Errors
    /// `UnknownObject`; `DamagedObject` or `ChangedObject` if the file is not what was committed.
    pub fn open(&self, name: ObjectName) -> Result<File, StoreError> {
        let content = self.content(name)?;
        let expected = content.length;
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
        if found != expected {
            return Err(damaged(Some(found)));
        }
        if let Some(digest) = content.unverified() {
            self.verify(name, &file, digest)?;
        }
        Ok(file)
    }

    fn verify(&self, name: ObjectName, file: &File, digest: Digest) -> Result<(), StoreError> {
        let found = digest_of(file);
        let found =
            found.map_err(|source| self.directory.system("read", &name.to_string(), source))?;
        if found != digest {
            self.remove(name)?;
            return Err(StoreError::ChangedObject { name });
        }
        if let Some(content) = self.contents().get_mut(&name) {
            content.is_verified = true;
        }
        Ok(())
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
        Ok(self.content(name)?.length)
    }

    fn content(&self, name: ObjectName) -> Result<Content, StoreError> {
        let content = self.contents().get(&name).copied();
        content.ok_or(StoreError::UnknownObject { name })
    }

    /// Removes an object; says whether there was one. Mappings of it stay.
    pub fn remove(&self, name: ObjectName) -> Result<bool, StoreError> {
        let Some(content) = self.contents().remove(&name) else {
            return Ok(false);
        };
        self.budget.refund(content.length);
        self.directory.remove_file(&name.to_string())?;
        Ok(true)
    }

    fn commit(
        &self,
        name: ObjectName,
        finished: Finished,
        digest: Option<Digest>,
    ) -> Result<Object, StoreError> {
        let Finished {
            name: scratch_name,
            length,
        } = finished;
        let mut contents = self.contents();
        if let Some(held) = contents.get(&name) {
            let object = same_length(name, held, length)?;
            self.scratch.directory().remove_file(&scratch_name)?;
            return Ok(object);
        }
        self.budget.charge(length)?;
        let target = name.to_string();
        self.move_in_place(&scratch_name, &target)
            .inspect_err(|_| self.budget.refund(length))?;
        contents.insert(name, Content::written(length, digest));
        Ok(Object {
            name,
            length,
            digest,
        })
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

    fn contents(&self) -> MutexGuard<'_, HashMap<ObjectName, Content>> {
        self.contents
            .lock()
            .expect("nobody panics with the contents")
    }
}

fn same_length(name: ObjectName, held: &Content, offered: u64) -> Result<Object, StoreError> {
    match held.length == offered {
        true => Ok(Object {
            name,
            length: held.length,
            digest: held.digest,
        }),
        false => Err(StoreError::ObjectDiffers {
            name,
            held: held.length,
            offered,
        }),
    }
}
