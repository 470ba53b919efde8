//! Objects as files of a run's folder.
//!
//! A file becomes an object by a rename, so no reader ever sees half of one; and only what was
//! sealed or adopted in this run, with the length it had then, is taken for an object. Every
//! process maps the same pages. Read next: `retained`, for what a former process left; `scratch`.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use bytes::Bytes;
use ciel_model::{Digest, Hasher};
use memmap2::Mmap;
use rustix::fs::FileType;

use crate::budget::Budget;
use crate::content::{Content, Stamp, digest_of};
use crate::counts::Kind;
use crate::digests::{Digests, Part};
use crate::directory::Directory;
use crate::error::StoreError;
use crate::limits::DIGEST_AT_COMMIT_BYTES_MAX;
use crate::memory_folder::MemoryFolder;
use crate::network;
use crate::scratch::{Finished, Scratch};
use crate::store::{Draft, ObjectStore};
use crate::stream_memory::StreamMemory;
use crate::values::{Location, LostObject, Object, ObjectName, Place};

/// The objects of a run, each a file.
#[derive(Debug)]
pub struct FileObjects {
    pub(crate) directory: Directory,
    memory: OnceLock<Arc<MemoryFolder>>,
    pub(crate) streams: Arc<StreamMemory>,
    pub(crate) scratch: Arc<Scratch>,
    pub(crate) budget: Arc<Budget>,
    /// For a later process of the run, if there may be one.
    pub(crate) digests: Arc<Digests>,
    survives_power_failure: AtomicBool,
    /// The times of files are not those of another machine, which it may tell late or rounded.
    has_stamps: bool,
    contents: Mutex<HashMap<ObjectName, Content>>,
    /// Those that a reader has found changed and discarded since the last search for lost ones.
    discarded: Mutex<Vec<ObjectName>>,
}

impl FileObjects {
    pub(crate) fn new(
        directory: Directory,
        scratch: Arc<Scratch>,
        budget: Arc<Budget>,
        digests: Arc<Digests>,
    ) -> FileObjects {
        FileObjects {
            has_stamps: network::kind_at(directory.path()).is_none(),
            directory,
            memory: OnceLock::new(),
            streams: Arc::default(),
            scratch,
            budget,
            digests,
            survives_power_failure: AtomicBool::new(false),
            contents: Mutex::default(),
            discarded: Mutex::default(),
        }
    }

    /// From now on an object is on the disk when it is sealed.
    pub(crate) fn survive_power_failures(&self) {
        self.survives_power_failure.store(true, Ordering::Relaxed);
    }

    /// From now on files that were written in memory stay there.
    pub(crate) fn use_memory(&self, memory: Arc<MemoryFolder>) {
        self.memory.get_or_init(|| memory);
    }

    /// Whether an object takes room on the disk: it is not in memory, nor another name of the file
    /// of a kept result. False of one that is unknown.
    pub fn is_on_disk(&self, name: ObjectName) -> bool {
        let contents = self.contents();
        let content = contents.get(&name);
        content.is_some_and(|content| !content.in_memory && content.kind != Kind::Kept)
    }

    pub(crate) fn memory(&self) -> Option<&MemoryFolder> {
        self.memory.get().map(Arc::as_ref)
    }

    /// The folder that files are in which are in memory, or are not.
    pub(crate) fn directory_for(&self, in_memory: bool) -> &Directory {
        match self.memory() {
            Some(memory) if in_memory => &memory.objects,
            _ => &self.directory,
        }
    }

    pub(crate) fn digest_in(
        &self,
        directory: &Directory,
        name: &str,
    ) -> Result<Digest, StoreError> {
        let file = directory.open_file(name)?;
        digest_of(&file).map_err(|source| directory.system("read", name, source))
    }

    /// The file of an object, after a check that it exists and has its length, and its stamp.
    pub(crate) fn file_of(
        &self,
        name: ObjectName,
        content: Content,
    ) -> Result<(File, Stamp), StoreError> {
        let expected = content.length;
        let damaged = |found| StoreError::DamagedObject {
            name,
            expected,
            found,
        };
        let directory = self.directory_for(content.in_memory);
        let file = match directory.open_file(&name.to_string()) {
            Err(StoreError::NotAFile { .. }) => return Err(damaged(None)),
            other => other?,
        };
        let stat = rustix::fs::fstat(&file).map_err(|errno| self.unreadable(name, errno.into()))?;
        match stat.st_size as u64 == expected {
            true => Ok((file, Stamp::of(&stat))),
            false => Err(damaged(Some(stat.st_size as u64))),
        }
    }

    /// The file of an object, verified if this is its first use, or if it was written to since the
    /// last time.
    fn used_file(&self, name: ObjectName) -> Result<File, StoreError> {
        let content = self.content(name)?;
        let (file, stamp) = self.file_of(name, content)?;
        if !content.trusts(stamp) {
            self.compare(name, (&file, stamp), content.digest)?;
        }
        Ok(file)
    }

    /// Whether the file of an object is the one that this process has made or verified, and was not
    /// written to since: one look at its name tells that, where the times of files are reliable.
    fn is_as_known(&self, name: ObjectName, content: &Content) -> bool {
        let directory = self.directory_for(content.in_memory);
        let Ok(Some(entry)) = directory.entry(&name.to_string()) else {
            return false;
        };
        entry.kind == FileType::RegularFile
            && entry.length == content.length
            && entry.owner.is_private()
            && content.stamp == Some(entry.stamp)
            && content.is_verified
    }

    /// Discards an object whose bytes have changed, so that the next process of the run finds it
    /// missing. Without a digest nobody can tell that they have not.
    pub(crate) fn compare(
        &self,
        name: ObjectName,
        (file, stamp): (&File, Stamp),
        digest: Option<Digest>,
    ) -> Result<(), StoreError> {
        let found = digest_of(file).map_err(|source| self.unreadable(name, source))?;
        if digest != Some(found) {
            // A search that finds it here no more finds it there.
            self.discarded().push(name);
            self.release(name)?;
            return Err(StoreError::ChangedObject { name });
        }
        if let Some(content) = self.contents().get_mut(&name) {
            content.is_verified = true;
            content.stamp = self.reliable(Some(stamp));
        }
        Ok(())
    }

    /// Whether an object that was here is not any more. One that no use has verified yet is not
    /// read for that.
    fn is_lost(&self, name: ObjectName, content: Content) -> bool {
        if self.is_as_known(name, &content) {
            return false;
        }
        let changed = match self.file_of(name, content) {
            Ok((_, stamp)) if content.trusts(stamp) || !content.is_verified => return false,
            Ok((file, stamp)) => self.compare(name, (&file, stamp), content.digest).err(),
            Err(error) => Some(error),
        };
        use StoreError::{ChangedObject, DamagedObject};
        matches!(changed, Some(DamagedObject { .. } | ChangedObject { .. }))
    }

    /// The stamp of a file that is or becomes an object; none where it cannot be relied on.
    pub(crate) fn reliable(&self, stamp: Option<Stamp>) -> Option<Stamp> {
        stamp.filter(|_| self.has_stamps)
    }

    fn unreadable(&self, name: ObjectName, source: std::io::Error) -> StoreError {
        self.directory.system("read", &name.to_string(), source)
    }

    pub(crate) fn content(&self, name: ObjectName) -> Result<Content, StoreError> {
        let content = self.contents().get(&name).copied();
        content.ok_or(StoreError::UnknownObject { name })
    }

    /// Where the file of an object is.
    fn path(&self, name: ObjectName, content: &Content) -> PathBuf {
        self.directory_for(content.in_memory)
            .path_of(&name.to_string())
    }

    /// Makes an object of a finished scratch file. Its bytes are charged; they are refunded if it
    /// does not become one.
    fn commit(
        &self,
        name: ObjectName,
        finished: &Finished,
        kind: Kind,
        digest: Option<Digest>,
    ) -> Result<Object, StoreError> {
        let length = finished.length;
        let mut contents = self.contents();
        if let Some(held) = contents.get(&name) {
            self.refund(kind, finished);
            let object = same_length(name, held, length)?;
            self.scratch
                .directory_of(finished)
                .remove_file(&finished.name)?;
            return Ok(object);
        }
        self.move_in_place(finished, &name.to_string())
            .inspect_err(|_| self.refund(kind, finished))?;
        let content = Content {
            in_memory: finished.in_memory,
            stamp: self.reliable(finished.stamp),
            ..Content::written(length, kind, digest)
        };
        contents.insert(name, content);
        drop(contents);
        self.settle(name)?;
        Ok(Object {
            name,
            length,
            digest,
        })
    }

    /// Waits for the disk if objects have to survive a power failure.
    fn settle(&self, name: ObjectName) -> Result<(), StoreError> {
        if !self.survives_power_failure.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.directory.sync(&name.to_string()).inspect_err(|_| {
            // The object was refused already; a file that cannot be removed goes with the run.
            let _ = self.release(name);
        })
    }

    /// A file of that name that was not committed is no object: it is replaced.
    fn move_in_place(&self, finished: &Finished, target: &str) -> Result<(), StoreError> {
        let scratch = self.scratch.directory_of(finished);
        let directory = self.directory_for(finished.in_memory);
        if !scratch.move_to(&finished.name, directory, target)? {
            directory.remove_all(target)?;
            scratch.move_to(&finished.name, directory, target)?;
        }
        Ok(())
    }

    /// Charges what a finished file takes. One in memory is known as such before it is charged, so
    /// it never seems to be on the disk.
    fn charge(&self, kind: Kind, finished: &Finished) -> Result<(), StoreError> {
        let memory = self.memory().filter(|_| finished.in_memory);
        if let Some(memory) = memory {
            memory.complete(&finished.name, finished.length);
        }
        self.budget.charge(kind, finished.length).inspect_err(|_| {
            if let Some(memory) = memory {
                memory.give_back(&finished.name, finished.length);
            }
        })
    }

    fn refund(&self, kind: Kind, finished: &Finished) {
        self.budget.refund(kind, finished.length);
        if let Some(memory) = self.memory().filter(|_| finished.in_memory) {
            memory.give_back(&finished.name, finished.length);
        }
    }

    pub(crate) fn contents(&self) -> MutexGuard<'_, HashMap<ObjectName, Content>> {
        self.contents
            .lock()
            .expect("nobody panics with the contents")
    }

    fn discarded(&self) -> MutexGuard<'_, Vec<ObjectName>> {
        self.discarded.lock().expect("nobody panics with the names")
    }
}

impl ObjectStore for FileObjects {
    fn open(&self, name: ObjectName) -> Result<Box<dyn Draft + '_>, StoreError> {
        let draft = self.scratch.draft_name();
        let file = self.scratch.directory().make_file(&draft)?;
        Ok(Box::new(FileDraft {
            objects: self,
            name,
            finished: Finished {
                name: draft,
                length: 0,
                is_copied: false,
                in_memory: false,
                stamp: None,
            },
            file,
            is_over: false,
            hasher: self.digests.are_kept().then(Hasher::default),
        }))
    }

    fn adopt(&self, name: ObjectName, path: &Path) -> Result<Object, StoreError> {
        let finished = self.scratch.finish(path)?;
        let is_short = finished.length <= DIGEST_AT_COMMIT_BYTES_MAX;
        let digest = match is_short && self.digests.are_kept() {
            true => Some(self.digest_in(self.scratch.directory_of(&finished), &finished.name)?),
            false => None,
        };
        self.charge(Kind::File, &finished)?;
        if finished.is_copied {
            self.budget.count_moved(finished.length);
        }
        let object = self.commit(name, &finished, Kind::File, digest)?;
        if object.digest.is_none() {
            let path = self.path(name, &self.content(name)?);
            self.digests.note_later(Part::Object(name), path);
        }
        Ok(object)
    }

    fn adopt_known(
        &self,
        name: ObjectName,
        path: &Path,
        digest: Digest,
    ) -> Result<Object, StoreError> {
        let finished = self.scratch.finish_shared(path)?;
        self.charge(Kind::Kept, &finished)?;
        self.commit(name, &finished, Kind::Kept, Some(digest))
    }

    fn map(&self, name: ObjectName) -> Result<Bytes, StoreError> {
        let file = self.used_file(name)?;
        if self.content(name)?.length == 0 {
            return Ok(Bytes::new());
        }
        // SAFETY: the file of an object is read-only and is never written or shortened by us; it
        // leaves by unlinking, which keeps the pages of a mapping.
        let map = unsafe { Mmap::map(&file) };
        map.map(Bytes::from_owner)
            .map_err(|source| self.directory.system("map", &name.to_string(), source))
    }

    fn share(&self, name: ObjectName) -> Result<PathBuf, StoreError> {
        let content = self.content(name)?;
        if self.is_as_known(name, &content) {
            return Ok(self.path(name, &content));
        }
        self.used_file(name)?;
        Ok(self.path(name, &self.content(name)?))
    }

    fn location(&self, name: ObjectName) -> Option<Location> {
        let content = self.contents().get(&name).copied()?;
        Some(Location {
            length: content.length,
            place: Place::File(self.path(name, &content)),
        })
    }

    fn verify(&self, name: ObjectName) -> Result<(), StoreError> {
        let content = self.content(name)?;
        let (file, stamp) = self.file_of(name, content)?;
        match content.digest.is_some() || !content.trusts(stamp) {
            true => self.compare(name, (&file, stamp), content.digest),
            false => Ok(()),
        }
    }

    fn find_lost(&self) -> Vec<ObjectName> {
        let all = self.contents().clone();
        let mut lost = Vec::new();
        for (name, content) in all {
            if self.is_lost(name, content) {
                // What is in its place is replaced when it is written again.
                let _ = self.release(name);
                lost.push(name);
            }
        }
        lost.append(&mut self.discarded());
        lost.retain(|name| !self.contents().contains_key(name));
        lost.sort();
        lost.dedup();
        lost
    }

    fn retain(
        &self,
        known: &[Object],
        verified_bytes_max: u64,
    ) -> Result<Vec<LostObject>, StoreError> {
        self.take_up(known, verified_bytes_max)
    }

    fn release(&self, name: ObjectName) -> Result<bool, StoreError> {
        let Some(content) = self.contents().remove(&name) else {
            return Ok(false);
        };
        self.budget.release(content.kind, content.length);
        let file = name.to_string();
        if let Some(memory) = self.memory() {
            if content.in_memory {
                return memory.leave(&file, content.length).map(|()| true);
            }
            if content.was_in_memory {
                memory.objects.remove_file(&file)?;
            }
        }
        self.directory.remove_file(&file)?;
        Ok(true)
    }
}

/// A scratch file that grows.
#[derive(Debug)]
struct FileDraft<'a> {
    objects: &'a FileObjects,
    name: ObjectName,
    finished: Finished,
    file: File,
    /// The file is an object, or was removed because there is such an object.
    is_over: bool,
    /// Of all bytes so far, if the object gets a digest.
    hasher: Option<Hasher>,
}

impl Draft for FileDraft<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let length = bytes.len() as u64;
        self.objects.budget.charge(Kind::Value, length)?;
        self.finished.length += length;
        let written = self.file.write_all(bytes);
        let scratch = self.objects.scratch.directory();
        written.map_err(|source| scratch.system("write", &self.finished.name, source))?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        Ok(())
    }

    fn seal(mut self: Box<Self>) -> Result<Object, StoreError> {
        let scratch = self.objects.scratch.directory();
        scratch.make_read_only(&self.finished.name)?;
        self.finished.stamp = Some(scratch.stamp(&self.finished.name, &self.file)?);
        let digest = self.hasher.as_ref().map(Hasher::finish);
        let object = (self.objects).commit(self.name, &self.finished, Kind::Value, digest);
        // The bytes are the object's now, or have been refunded.
        self.finished.length = 0;
        self.is_over = object.is_ok();
        object
    }
}

impl Drop for FileDraft<'_> {
    fn drop(&mut self) {
        self.objects
            .budget
            .refund(Kind::Value, self.finished.length);
        if !self.is_over {
            // A file that cannot be removed now goes with the scratch folder.
            let scratch = self.objects.scratch.directory();
            let _ = scratch.remove_file(&self.finished.name);
        }
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
