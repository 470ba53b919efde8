//! Scratch: files that task attempts write before they are committed.
//!
//! The paths are given to tasks, so anything may be there afterwards: a link, a folder, a second
//! name of a file of the user's. Nothing is taken over before it has been looked at. It does not
//! know what becomes of the files. Read next: `objects`, `spill`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use rustix::fs::{FileType, Mode, OFlags};

use crate::closed_pipes::ClosedPipes;
use crate::content::Stamp;
use crate::directory::{Directory, check_name};
use crate::error::StoreError;
use crate::limits::SCRATCH_PURPOSE_BYTES_MAX;
use crate::memory_folder::MemoryFolder;
use crate::opened_pipes::OpenedPipes;
use crate::spares::Spares;
use crate::unfinished::{self, Unfinished, Written};
use crate::watch_groups::{IdleGroups, WatchGroup};

/// The scratch folder of a run. Any thread may use it.
#[derive(Debug)]
pub struct Scratch {
    directory: Directory,
    memory: OnceLock<Arc<MemoryFolder>>,
    names: Mutex<HashMap<(u128, u32), Vec<String>>>,
    unfinished: Unfinished,
    spares: Spares,
    drafts: AtomicU64,
    idle_groups: Arc<IdleGroups>,
}

/// A file that may be taken over: regular, read-only, with no other name.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) name: String,
    pub(crate) length: u64,
    /// It is a copy of what was found.
    pub(crate) is_copied: bool,
    /// It is in memory.
    pub(crate) in_memory: bool,
    /// As it was before anybody read it; none of a file that is not whole.
    pub(crate) stamp: Option<Stamp>,
}

impl Scratch {
    pub(crate) fn new(directory: Directory) -> Scratch {
        Scratch {
            directory,
            memory: OnceLock::new(),
            names: Mutex::default(),
            unfinished: Unfinished::default(),
            spares: Spares::default(),
            drafts: AtomicU64::new(0),
            idle_groups: Arc::default(),
        }
    }

    /// A path for this attempt of a task to write; nothing is made there. The same question has
    /// the same answer.
    ///
    /// # Errors
    /// `InvalidName` for a purpose that is not a short plain name.
    pub fn path(&self, task: u128, attempt: u32, purpose: &str) -> Result<PathBuf, StoreError> {
        check_name(purpose, SCRATCH_PURPOSE_BYTES_MAX)?;
        let name = unfinished::name(task, attempt, purpose);
        let path = self.directory.path_of(&name);
        let mut names = self.names.lock().expect("nobody panics with the names");
        let of_attempt = names.entry((task, attempt)).or_default();
        if !of_attempt.contains(&name) {
            self.spares.forget(&self.directory, &name);
            of_attempt.push(name);
        }
        Ok(path)
    }

    /// May put an empty file at a path that this answers: who is going to make one there saves the
    /// time that a new one takes.
    pub fn prepare(&self, path: &Path) {
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(name) = name.filter(|_| path.parent() == Some(self.directory.path())) {
            self.spares.put(&self.directory, name);
        }
    }

    /// Writes a file for this attempt of a task, replacing an existing one.
    ///
    /// # Errors
    /// `InvalidName`, `DiskFull`, `System`.
    pub fn write(
        &self,
        task: u128,
        attempt: u32,
        purpose: &str,
        bytes: &[u8],
    ) -> Result<PathBuf, StoreError> {
        self.join(task, attempt, purpose, &[bytes])
    }

    /// Makes a file for this attempt of a task, which will write so many bytes into it: in memory
    /// if they fit, and the file is none yet. For one that overwrites all of it the file may hold
    /// other bytes, at most as many; else it is empty.
    ///
    /// # Errors
    /// As [`Scratch::write`].
    pub fn file_of_length(
        &self,
        task: u128,
        attempt: u32,
        purpose: &str,
        (length, overwrites): (u64, bool),
    ) -> Result<PathBuf, StoreError> {
        let path = self.path(task, attempt, purpose)?;
        let name = path.file_name().and_then(|name| name.to_str());
        if let (Some(memory), Some(name)) = (self.memory.get(), name)
            && memory.reserve(name, length, overwrites)
        {
            return Ok(memory.scratch.path_of(name));
        }
        self.write(task, attempt, purpose, b"")
    }

    /// Gives a file of this state folder another name, for this attempt of a task; a copy where
    /// there can be none.
    ///
    /// # Errors
    /// `InvalidName`, `DiskFull`, `System`.
    pub fn link(
        &self,
        from: &Path,
        task: u128,
        attempt: u32,
        purpose: &str,
    ) -> Result<PathBuf, StoreError> {
        let path = self.path(task, attempt, purpose)?;
        match std::fs::hard_link(from, &path) {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                match std::fs::copy(from, &path) {
                    Ok(_) => Ok(path),
                    Err(error) => Err(StoreError::of_system("copy", &path, error)),
                }
            }
            Err(error) => Err(StoreError::of_system("link", &path, error)),
        }
    }

    /// Lets a file be run as a program: an object's of this run, or one of a task attempt. Its
    /// bytes stay read-only.
    ///
    /// # Errors
    /// `System`, `ReadOnly`.
    pub fn allow_running(&self, path: &Path) -> Result<(), StoreError> {
        const TO_RUN: u32 = 0o111;
        let allowed = std::fs::metadata(path).and_then(|found| {
            let mut permissions = found.permissions();
            permissions.set_mode(permissions.mode() | TO_RUN);
            std::fs::set_permissions(path, permissions)
        });
        allowed.map_err(|error| StoreError::of_system("change", path, error))
    }

    /// Writes the parts one after another into a file as [`Scratch::write`] does.
    ///
    /// # Errors
    /// As [`Scratch::write`].
    pub fn join(
        &self,
        task: u128,
        attempt: u32,
        purpose: &str,
        parts: &[impl AsRef<[u8]>],
    ) -> Result<PathBuf, StoreError> {
        let path = self.path(task, attempt, purpose)?;
        let written = File::create(&path).and_then(|mut file| {
            let mut parts = parts.iter();
            parts.try_for_each(|part| file.write_all(part.as_ref()))
        });
        match written {
            Ok(()) => Ok(path),
            Err(error) => Err(StoreError::of_system("write", &path, error)),
        }
    }

    /// Makes a named pipe for this attempt of a task, and opens both of its ends: whoever opens it
    /// does not wait for the other side, and comes to no end of it before this one is closed.
    ///
    /// # Errors
    /// `InvalidName`, `DiskFull`, `System`.
    pub fn pipe(
        &self,
        task: u128,
        attempt: u32,
        purpose: &str,
    ) -> Result<(PathBuf, OwnedFd), StoreError> {
        let path = self.path(task, attempt, purpose)?;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let made = rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR)
            .and_then(|()| rustix::fs::open(&path, flags, Mode::empty()));
        match made {
            Ok(ends) => Ok((path, ends)),
            Err(error) => Err(StoreError::of_system("make", &path, error.into())),
        }
    }

    /// Puts a pipe in the place of another one: it has that name, too, and stays when its first
    /// name goes. Whoever has opened the other one keeps that.
    ///
    /// # Errors
    /// As the system says.
    pub fn share_pipe(&self, pipe: &Path, place: &Path) -> io::Result<()> {
        std::fs::remove_file(place)?;
        std::fs::hard_link(pipe, place)
    }

    /// Opens the reading end of such a pipe, whose reader waits for what comes.
    ///
    /// # Errors
    /// As the system says.
    pub fn reading_end(&self, pipe: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let end = rustix::fs::open(pipe, flags, Mode::empty())?;
        rustix::io::ioctl_fionbio(&end, false)?;
        Ok(end)
    }

    /// Opens the writing end of such a pipe, which does not wait for room; there is a reader.
    ///
    /// # Errors
    /// As the system says.
    pub fn writing_end(&self, pipe: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::open(pipe, flags, Mode::empty())?)
    }

    /// Removes such a pipe. Whoever has opened it keeps it.
    ///
    /// # Errors
    /// As the system says.
    pub fn remove_pipe(&self, pipe: &Path) -> io::Result<()> {
        std::fs::remove_file(pipe)
    }

    /// Watches pipes that are to be written only, from now on.
    ///
    /// # Errors
    /// A pipe is not there, or the system watches no more for this user.
    pub fn watch_closed(&self, pipes: &[PathBuf]) -> io::Result<ClosedPipes> {
        ClosedPipes::watch(WatchGroup::take(&self.idle_groups)?, pipes)
    }

    /// Watches the pipes of which these are ends, from before anybody has opened or read one.
    ///
    /// # Errors
    /// The system watches no more for this user.
    pub fn watch_opened<'a>(
        &self,
        ends: impl Iterator<Item = BorrowedFd<'a>>,
    ) -> io::Result<OpenedPipes> {
        OpenedPipes::watch(WatchGroup::take(&self.idle_groups)?, ends)
    }

    /// Makes an empty file for this attempt of a task, to be written and read at the same time.
    ///
    /// # Errors
    /// `InvalidName`, `DiskFull`, `System`.
    pub fn growing(
        &self,
        task: u128,
        attempt: u32,
        purpose: &str,
    ) -> Result<(PathBuf, File), StoreError> {
        let path = self.path(task, attempt, purpose)?;
        let mut options = File::options();
        let made = options.read(true).write(true).create(true).truncate(true);
        match made.open(&path) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(StoreError::of_system("make", &path, error)),
        }
    }

    /// Makes a folder for this attempt of a task.
    ///
    /// # Errors
    /// `InvalidName`, `DiskFull`, `System`.
    pub fn folder(&self, task: u128, attempt: u32, purpose: &str) -> Result<PathBuf, StoreError> {
        let path = self.path(task, attempt, purpose)?;
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(path),
            Err(error) => Err(StoreError::of_system("make", &path, error)),
        }
    }

    /// Number of bytes of a file that a task has written; none if it is not a regular file.
    pub fn length(&self, path: &Path) -> Option<u64> {
        let found = std::fs::symlink_metadata(path).ok()?;
        found.is_file().then_some(found.len())
    }

    /// The bytes of a file that a task has written, if they are fewer than `below`.
    pub fn short(&self, path: &Path, below: u64) -> Option<Bytes> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
        let found = rustix::fs::fstat(&file).ok()?;
        let length = u64::try_from(found.st_size).ok()?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || length >= below {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(length).ok()?);
        if length > 0 {
            file.take(below).read_to_end(&mut bytes).ok()?;
        }
        (bytes.len() as u64 == length).then(|| bytes.into())
    }

    /// The last bytes of a file that a task has written, at most so many; none if it cannot be
    /// read.
    pub fn end(&self, path: &Path, bytes_max: usize) -> Option<Vec<u8>> {
        let skipped = self.length(path)?.saturating_sub(bytes_max as u64);
        let mut file = File::open(path).ok()?;
        file.seek(SeekFrom::Start(skipped)).ok()?;
        let mut bytes = Vec::new();
        file.take(bytes_max as u64).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Removes what this attempt left at the paths it was given. Short files may stay for others;
    /// nothing is there when the path is asked for again.
    pub fn clear(&self, task: u128, attempt: u32) -> Result<(), StoreError> {
        let names = self
            .names
            .lock()
            .expect("nobody panics with the names")
            .remove(&(task, attempt));
        self.unfinished.forget(task, attempt);
        for name in names.unwrap_or_default() {
            if !self.spares.keep(&self.directory, &name) {
                self.directory.remove_all(&name)?;
            }
            if let Some(memory) = self.memory.get()
                && memory.unreserve(&name)
            {
                memory.scratch.remove_all(&name)?;
            }
        }
        Ok(())
    }

    /// Looks how much task attempts have written on the disk that is no object yet, each attempt
    /// that has written anything, the most first. Files beside those that it was given count if
    /// their names begin with one of these, as those of many tools do. Files with a second name do
    /// not: they are somebody else's, too.
    pub fn measure(&self) -> Vec<Written> {
        let found = unfinished::written_in(self.directory.path());
        let names = self.names.lock().expect("nobody panics with the names");
        let is_there = |one: &Written| names.contains_key(&(one.task, one.attempt));
        self.unfinished.set(found.into_iter().filter(is_there))
    }

    /// Bytes that the last [`measure`](Self::measure) has found, without those of files that have
    /// become objects since, and of attempts that are over.
    pub fn unfinished_bytes(&self) -> u64 {
        self.unfinished.bytes()
    }

    /// Removes all files, whichever process left them.
    pub(crate) fn clear_all(&self) -> Result<(), StoreError> {
        for directory in self.directories() {
            for name in directory.names()? {
                directory.remove_all(&name)?;
            }
        }
        Ok(())
    }

    /// From now on files of known length are in memory, if they fit.
    pub(crate) fn use_memory(&self, memory: Arc<MemoryFolder>) {
        self.memory.get_or_init(|| memory);
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    fn directories(&self) -> impl Iterator<Item = &Directory> {
        let memory = self.memory.get().map(|memory| &memory.scratch);
        std::iter::once(&self.directory).chain(memory)
    }

    /// The folder that a finished file is in.
    pub(crate) fn directory_of(&self, finished: &Finished) -> &Directory {
        match self.memory.get() {
            Some(memory) if finished.in_memory => &memory.scratch,
            _ => &self.directory,
        }
    }

    /// A name that no other process writes.
    pub(crate) fn draft_name(&self) -> String {
        format!("draft-{}", self.drafts.fetch_add(1, Ordering::Relaxed))
    }

    /// Looks at a file that a task has written, and makes it fit to be taken over. A file with a
    /// second name, perhaps a user's own, is copied and left alone.
    pub(crate) fn finish(&self, path: &Path) -> Result<Finished, StoreError> {
        let (finished, has_other_names) = self.look_at(path)?;
        if has_other_names {
            return self.copy_apart(&finished);
        }
        self.directory_of(&finished)
            .make_read_only(&finished.name)?;
        Ok(finished)
    }

    /// The same for a file all of whose names are known to be left alone.
    pub(crate) fn finish_shared(&self, path: &Path) -> Result<Finished, StoreError> {
        let (finished, _) = self.look_at(path)?;
        self.directory_of(&finished)
            .make_read_only(&finished.name)?;
        Ok(finished)
    }

    /// A regular file of this folder, and whether it has other names.
    fn look_at(&self, path: &Path) -> Result<(Finished, bool), StoreError> {
        let foreign = || StoreError::ForeignScratch {
            path: path.to_path_buf(),
        };
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(foreign)?;
        let is_here = |directory: &&Directory| path.parent() == Some(directory.path());
        let directory = self.directories().find(is_here).ok_or_else(foreign)?;
        let entry = directory.entry(name)?;
        let Some(entry) = entry.filter(|entry| entry.kind == FileType::RegularFile) else {
            return Err(StoreError::NotAFile {
                path: path.to_path_buf(),
            });
        };
        self.unfinished.finished(name, entry.length);
        let finished = Finished {
            name: name.to_owned(),
            length: entry.length,
            is_copied: false,
            in_memory: !std::ptr::eq(directory, &raw const self.directory),
            stamp: Some(entry.stamp),
        };
        Ok((finished, entry.has_other_names))
    }

    fn copy_apart(&self, found: &Finished) -> Result<Finished, StoreError> {
        let (name, directory) = (&found.name, self.directory_of(found));
        let draft = self.draft_name();
        let mut source = directory.open_file(name)?;
        let mut target = self.directory.make_file(&draft)?;
        let copied = std::io::copy(&mut source, &mut target);
        let length = copied.map_err(|error| {
            // The copy failed already; a draft that cannot be removed either goes with the run.
            let _ = self.directory.remove_file(&draft);
            self.directory.system("write", &draft, error)
        })?;
        self.directory.make_read_only(&draft)?;
        let stamp = self.directory.stamp(&draft, &target)?;
        directory.remove_file(name)?;
        Ok(Finished {
            name: draft,
            length,
            is_copied: true,
            in_memory: false,
            stamp: Some(stamp),
        })
    }
}
