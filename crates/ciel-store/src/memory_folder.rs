//! The part of a run's objects that is in memory: a private folder of a file system in memory, with
//! a budget.
//!
//! Its files survive the death of all processes of the run, not that of the machine. Its name
//! follows from the path of the run's folder, to which a link inside points; one whose run is gone
//! is removed by the next run that begins. It does not know what is an object. Read next:
//! `recycled`, for the pages of files that are gone; `scratch`.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ciel_model::Digest;
use rustix::fs::{fstatvfs, statfs};
use rustix::process::geteuid;

use crate::directory::Directory;
use crate::disk;
use crate::error::StoreError;
use crate::lease;
use crate::limits::{RECYCLED_MS_MAX, RECYCLED_SHARE};
use crate::recycled::{Recycled, Waiting};
use crate::removals::watch_closing;
use crate::stream_memory::{self, StreamMemory};

/// Where file systems in memory are found.
const MEMORY: &str = "/dev/shm";
/// The number by which the kernel tells such a file system.
const TMPFS_MAGIC: u64 = 0x0102_1994;
const OWNER_NAME: &str = "run";

/// How long the file of a dead object waits for a next one.
const PATIENCE: Duration = Duration::from_millis(RECYCLED_MS_MAX);

/// How often the folder of a run is made, at most, that others remove meanwhile: each time, another
/// run of the same user has to begin within a few microseconds.
const MAKE_TRIES: usize = 100;

/// Files that have left and are kept open, at most; those beyond are not counted.
const LEFT_MAX: usize = 256;

/// How much of a store is in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes of objects.
    pub present: u64,
    /// The most of them at once, with what streams shared at that time.
    pub peak: u64,
    /// Bytes that may be there.
    pub limit: u64,
    /// Bytes beside these that nobody can name here any more, and that somebody still has mapped.
    pub mapped: u64,
    /// Bytes beside these of dead objects, into whose files the next ones are written.
    pub recycled: u64,
    /// Bytes that were written back to the disk so far.
    pub written_back: u64,
    /// Bytes beside all of these that both ends of direct streams share.
    pub streams: u64,
    /// The most of those at once.
    pub streams_peak: u64,
}

/// Objects and files being written, in memory.
#[derive(Debug)]
pub(crate) struct MemoryFolder {
    pub(crate) objects: Directory,
    pub(crate) scratch: Directory,
    /// Files that are objects here no more, while somebody has them open or mapped.
    left: Directory,
    recycled: Recycled,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    counts: MemoryUse,
    /// Bytes that may be here now, of those of the limit.
    allowed: u64,
    /// Bytes that files being written may take, by their names.
    reserved: HashMap<String, u64>,
    left: Vec<Left>,
    /// Names of files that have left so far.
    names: u64,
    /// What streams have of the limit.
    streams: Arc<StreamMemory>,
}

/// A file that somebody has open or mapped.
#[derive(Debug)]
struct Left {
    name: String,
    length: u64,
    /// Kept open, since to close a file is what the system tells.
    file: File,
}

impl Used {
    fn new_name(&mut self) -> String {
        self.names += 1;
        self.names.to_string()
    }

    fn being_written(&self) -> u64 {
        self.reserved.values().sum()
    }

    /// Without files that wait for a next object: these go when anything else needs their room.
    fn in_use(&self) -> u64 {
        let objects = self.counts.present + self.counts.mapped + self.being_written();
        objects + self.streams.bytes()
    }

    fn free(&self) -> u64 {
        self.allowed.saturating_sub(self.in_use())
    }

    fn add(&mut self, length: u64) {
        self.counts.present += length;
        self.note_peak();
    }

    fn note_peak(&mut self) {
        let (streams, _) = self.streams.pages();
        self.counts.peak = self.counts.peak.max(self.counts.present + streams);
    }

    fn fits(&self, length: u64) -> bool {
        self.in_use().saturating_add(length) <= self.allowed
    }
}

impl MemoryFolder {
    /// The folder of a run, of at most `limit` bytes. Without a limit only one that an earlier
    /// process of the run has left; none where there is no memory for files.
    pub(crate) fn open(run: &Path, limit: u64, streams: Arc<StreamMemory>) -> Option<MemoryFolder> {
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
            allowed: limit,
            streams,
            ..Used::default()
        };
        Some(MemoryFolder {
            objects: folder.inner_or_new("objects").ok()?,
            scratch: folder.inner_or_new("scratch").ok()?,
            left: folder.inner_or_new("left").ok()?,
            recycled: Recycled::new(folder.inner_or_new("recycled").ok()?, PATIENCE),
            used: Mutex::new(used),
        })
    }

    /// Makes a file that so many bytes will be written to, if they fit: an empty one, or one with
    /// other bytes, at most as many, for a writer that overwrites them all.
    pub(crate) fn reserve(&self, name: &str, length: u64, overwrites: bool) -> bool {
        let mut used = self.used();
        if !used.fits(length) {
            self.settle_left(&mut used);
            used.streams.reclaim();
        }
        if !used.fits(length) {
            return false;
        }
        let recycled = overwrites.then(|| self.recycled.take(length)).flatten();
        let is_made = self.make_room(&used, length, recycled.as_ref())
            && self.make_file(name, length, recycled);
        if is_made {
            used.reserved.insert(name.to_owned(), length);
        }
        is_made
    }

    /// Removes files that wait for a next object, until there is room for so many bytes in the
    /// budget and in the file system, with a file that was taken.
    fn make_room(&self, used: &Used, length: u64, recycled: Option<&Waiting>) -> bool {
        let held = recycled.map_or(0, |waiting| waiting.length);
        let wanted = used.being_written().saturating_add(length);
        let wanted = wanted.saturating_sub(held);
        let has_room = || {
            fstatvfs(self.scratch.handle())
                .is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) > wanted)
        };
        let fits = || used.fits(length.saturating_add(self.recycled.bytes()));
        while !(fits() && has_room()) {
            if !self.recycled.drop_oldest() {
                recycled.inspect(|waiting| self.recycled.discard(waiting));
                return false;
            }
        }
        true
    }

    fn make_file(&self, name: &str, length: u64, recycled: Option<Waiting>) -> bool {
        let place = (&self.scratch, name);
        recycled.is_some_and(|waiting| self.recycled.put(&waiting, place, length))
            || self.scratch.make_file(name).is_ok()
    }

    /// A file is being written no more.
    pub(crate) fn unreserve(&self, name: &str) -> bool {
        self.used().reserved.remove(name).is_some()
    }

    /// A file that was being written is complete, and counted as an object.
    pub(crate) fn complete(&self, name: &str, length: u64) {
        let mut used = self.used();
        used.reserved.remove(name);
        used.add(length);
    }

    /// A complete file has not become an object.
    pub(crate) fn give_back(&self, name: &str, length: u64) {
        let mut used = self.used();
        used.counts.present = used.counts.present.saturating_sub(length);
        used.reserved.insert(name.to_owned(), length);
    }

    /// An object is here.
    pub(crate) fn add(&self, length: u64) {
        self.used().add(length);
    }

    /// The file of an object can go. It counts as long as somebody has it open or mapped.
    pub(crate) fn leave(&self, name: &str, length: u64) -> Result<(), StoreError> {
        let mut used = self.used();
        used.counts.present = used.counts.present.saturating_sub(length);
        let Ok(file) = self.objects.open_file(name) else {
            return self.objects.remove_file(name);
        };
        if !lease::is_used(&file) {
            return self.recycle(&used, (&self.objects, name), &file, length);
        }
        let apart = used.new_name();
        match self.objects.move_to(name, &self.left, &apart) {
            Ok(true) => self.keep_left(&mut used, apart, length, file),
            Ok(false) | Err(_) => self.objects.remove_file(name)?,
        }
        Ok(())
    }

    /// A file that nobody has open waits for a next object, or is removed.
    fn recycle(
        &self,
        used: &Used,
        (folder, name): (&Directory, &str),
        file: &File,
        length: u64,
    ) -> Result<(), StoreError> {
        if !self.recycled.keep((folder, name), file, length) {
            return folder.remove_file(name);
        }
        self.bound_recycled(used);
        Ok(())
    }

    /// Files that wait for a next object take a part of the budget, and what others leave of it.
    fn bound_recycled(&self, used: &Used) {
        let bytes_max = used.free().min(used.allowed / RECYCLED_SHARE);
        while self.recycled.bytes() > bytes_max && self.recycled.drop_oldest() {}
    }

    /// The file of an object is on the disk, too, and a link takes its place here.
    pub(crate) fn replace_by_link(
        &self,
        name: &str,
        target: &Path,
        (file, length): (File, u64),
    ) -> Result<(), StoreError> {
        let mut used = self.used();
        let apart = used.new_name();
        let place = (&self.objects, name);
        self.left.exchange_for_link(&apart, target, place)?;
        used.counts.present = used.counts.present.saturating_sub(length);
        used.counts.written_back += length;
        self.keep_left(&mut used, apart, length, file);
        Ok(())
    }

    fn keep_left(&self, used: &mut Used, name: String, length: u64, file: File) {
        if used.left.len() >= LEFT_MAX {
            // It is gone with its last reader, and counts no more.
            let _ = self.left.remove_file(&name);
            return;
        }
        used.counts.mapped += length;
        used.left.push(Left { name, length, file });
        self.settle_left(used);
    }

    /// Frees files that have left and that nobody has open or mapped any more; how many bytes.
    pub(crate) fn settle(&self) -> u64 {
        self.settle_left(&mut self.used())
    }

    fn settle_left(&self, used: &mut Used) -> u64 {
        let all = std::mem::take(&mut used.left);
        let (kept, unused) = all.into_iter().partition(|left| lease::is_used(&left.file));
        used.left = kept;
        let unused: Vec<Left> = unused;
        let freed = unused.iter().map(|left| left.length).sum();
        used.counts.mapped -= freed;
        for left in unused {
            // What cannot be removed now goes with the folder.
            let place = (&self.left, left.name.as_str());
            let _ = self.recycle(used, place, &left.file, left.length);
        }
        freed
    }

    /// From now on so many bytes may be here, of those of the limit; whether more are.
    pub(crate) fn allow(&self, bytes: u64) -> bool {
        let mut used = self.used();
        used.allowed = bytes.min(used.counts.limit);
        self.bound_recycled(&used);
        if used.in_use() > bytes {
            used.streams.reclaim();
        }
        used.in_use() > bytes
    }

    /// Whether objects may be here.
    pub(crate) fn has_budget(&self) -> bool {
        self.used().counts.limit > 0
    }

    /// Grants memory to a stream, of what objects leave.
    pub(crate) fn grant_stream(&self, task: (u128, u32), length: u64) -> Option<PathBuf> {
        let mut used = self.used();
        if stream_memory::is_scarce(used.free()) {
            self.settle_left(&mut used);
            used.streams.reclaim();
        }
        let granted = used.streams.grant(task, length, used.free());
        self.bound_recycled(&used);
        granted
    }

    /// What is here now may be the most.
    pub(crate) fn note_peak(&self) {
        self.used().note_peak();
    }

    /// Bytes that are here, are being written here, are still mapped, or are shared by streams.
    pub(crate) fn in_use(&self) -> u64 {
        self.used().in_use()
    }

    /// Tells when a file that has left is closed.
    pub(crate) fn watch_left(&self) -> io::Result<OwnedFd> {
        watch_closing(self.left.path())
    }

    /// Removes what an earlier process of the run was writing, or had mapped.
    pub(crate) fn clear(&self) -> Result<(), StoreError> {
        for folder in [&self.scratch, &self.left] {
            for name in folder.names()? {
                folder.remove_all(&name)?;
            }
        }
        self.recycled.clear()
    }

    pub(crate) fn counts(&self) -> MemoryUse {
        MemoryUse {
            recycled: self.recycled.bytes(),
            ..self.used().counts
        }
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

/// The folder of a run, with its link. Between the two it is like one that a dying process has
/// left, and another run that begins just then removes it: then both are tried once more.
fn made(memory: &Directory, name: &str, run: &Path) -> Result<Directory, StoreError> {
    let mut made = made_once(memory, name, run);
    for _ in 1..MAKE_TRIES {
        match &made {
            Err(StoreError::System { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            _ => break,
        }
        made = made_once(memory, name, run);
    }
    made
}

fn made_once(memory: &Directory, name: &str, run: &Path) -> Result<Directory, StoreError> {
    let folder = memory.inner_or_new(name)?;
    let link = folder.path_of(OWNER_NAME);
    match std::os::unix::fs::symlink(run, &link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
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
