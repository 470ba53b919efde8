//! Objects that are in memory are written back to the disk when others need the memory.
//!
//! An object is copied and compared with its digest, then its name refers to the file on the disk;
//! in memory a link takes the place of the file, for those who were given that path and have not
//! opened it yet. Whoever has mapped the file in memory keeps it, so its bytes count until then. It
//! does not know who needs the memory. Read next: `memory_folder`.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use ciel_model::{Digest, Hasher};

use crate::content::{Content, Stamp};
use crate::error::StoreError;
use crate::lease;
use crate::limits::COPY_BYTES_MAX;
use crate::memory_folder::MemoryFolder;
use crate::objects::FileObjects;
use crate::store::ObjectStore;
use crate::values::ObjectName;

/// An object that is in memory.
type InMemory = (ObjectName, Content);

impl FileObjects {
    /// Has objects take at most `bytes` of memory from now on, and writes to the disk what is more,
    /// the oldest first, but those last that somebody has mapped. `room` says how many bytes the
    /// disk may take. Gives the bytes that they may take: more only if so many cannot be freed now.
    pub fn shrink_memory(&self, bytes: u64, room: impl Fn() -> u64) -> u64 {
        let Some(memory) = self.memory() else {
            return bytes;
        };
        if memory.allow(bytes) {
            memory.settle();
            let (used, unused) = self.by_use();
            for (name, content) in unused.into_iter().chain(used) {
                if memory.in_use() <= bytes {
                    break;
                }
                if content.length <= room() {
                    // If that fails it is lost, which its next reader is told, or the disk is full.
                    let _ = self.write_back(memory, name);
                }
            }
            memory.settle();
        }
        memory.in_use().max(bytes)
    }

    /// Objects may take so many bytes of memory from now on, as far as the limit goes.
    pub fn grow_memory(&self, bytes: u64) {
        if let Some(memory) = self.memory() {
            memory.allow(bytes);
        }
    }

    /// Frees what nobody has mapped any more, of objects that are not in memory now and of what
    /// streams shared; how many bytes.
    pub fn settle_memory(&self) -> u64 {
        self.memory().map_or(0, MemoryFolder::settle) + self.streams.settle()
    }

    /// A descriptor that can be read without waiting when [`settle_memory`](Self::settle_memory)
    /// may free something; none if nothing is in memory.
    ///
    /// # Errors
    /// The system watches no more for this user.
    pub fn watch_memory(&self) -> Option<io::Result<OwnedFd>> {
        self.memory().map(MemoryFolder::watch_left)
    }

    /// The objects in memory that somebody has open or mapped, and the others, the oldest first.
    fn by_use(&self) -> (Vec<InMemory>, Vec<InMemory>) {
        let contents = self.contents();
        let in_memory = contents.iter().filter(|(_, content)| content.in_memory);
        let mut all: Vec<InMemory> = in_memory.map(|(name, one)| (*name, *one)).collect();
        drop(contents);
        all.sort_by_key(|(name, content)| (content.stamp.map(|stamp| stamp.written()), *name));
        let is_used = |(name, _): &InMemory| {
            let file = self.directory_for(true).open_file(&name.to_string());
            file.is_ok_and(lease::is_used)
        };
        all.into_iter().partition(is_used)
    }

    fn write_back(&self, memory: &MemoryFolder, name: ObjectName) -> Result<(), StoreError> {
        let content = self.content(name)?;
        let (file, stamp) = self.file_of(name, content)?;
        if !content.trusts(stamp) {
            self.compare(name, (&file, stamp), content.digest)?;
        }
        let draft = self.scratch.draft_name();
        let scratch = self.scratch.directory();
        let written = self.copy_of(&file, &draft).and_then(|(digest, copied)| {
            self.prove(name, &content, digest, (&file, stamp))?;
            self.become_file(memory, name, (&draft, copied), digest, file)
        });
        // A draft that cannot be removed goes with the scratch folder.
        let _ = scratch.remove_file(&draft);
        written
    }

    /// Copies a file to the disk; its digest, and the stamp of the copy.
    fn copy_of(&self, file: &File, draft: &str) -> Result<(Digest, Stamp), StoreError> {
        let scratch = self.scratch.directory();
        let mut target = scratch.make_file(draft)?;
        let mut hasher = Hasher::default();
        let mut buffer = vec![0; COPY_BYTES_MAX];
        let mut at = 0;
        loop {
            let read = file.read_at(&mut buffer, at);
            let count = read.map_err(|source| scratch.system("read", draft, source))?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
            let written = target.write_all(&buffer[..count]);
            written.map_err(|source| scratch.system("write", draft, source))?;
            at += count as u64;
        }
        scratch.make_read_only(draft)?;
        Ok((hasher.finish(), scratch.stamp(draft, &target)?))
    }

    /// Whether what was copied is the object. One that has changed is discarded.
    fn prove(
        &self,
        name: ObjectName,
        content: &Content,
        digest: Digest,
        (file, stamp): (&File, Stamp),
    ) -> Result<(), StoreError> {
        let now = self.directory_for(true).stamp(&name.to_string(), file)?;
        if !content.digest.map_or(now == stamp, |known| known == digest) {
            self.release(name)?;
            return Err(StoreError::ChangedObject { name });
        }
        Ok(())
    }

    /// The copy is the object from now on, unless that has gone meanwhile.
    fn become_file(
        &self,
        memory: &MemoryFolder,
        name: ObjectName,
        (draft, copied): (&str, Stamp),
        digest: Digest,
        file: File,
    ) -> Result<(), StoreError> {
        let mut contents = self.contents();
        let Some(content) = contents.get_mut(&name).filter(|held| held.in_memory) else {
            return Ok(());
        };
        let (target, directory) = (name.to_string(), &self.directory);
        let scratch = self.scratch.directory();
        if !scratch.move_to(draft, directory, &target)? {
            directory.remove_all(&target)?;
            scratch.move_to(draft, directory, &target)?;
        }
        let path = directory.path_of(&target);
        let left = memory.replace_by_link(&target, &path, (file, content.length));
        left.inspect_err(|_| {
            // It stays in memory; a file that cannot be removed is replaced by the next one.
            let _ = directory.remove_file(&target);
        })?;
        content.in_memory = false;
        content.was_in_memory = true;
        content.digest = content.digest.or(Some(digest));
        content.stamp = self.reliable(Some(copied));
        Ok(())
    }
}
