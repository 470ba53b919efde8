//! Spilled output: bytes that wait on disk for their turn.
//!
//! Bytes are appended to files, and a file goes when all its bytes are released. It does not know
//! the order of output; the same three numbers name the bytes there. Read next: `run`.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use ciel_model::Digest;
use rustix::fs::FileType;

use crate::budget::Budget;
use crate::content::digest_of;
use crate::counts::Kind;
use crate::digests::{Digests, Part};
use crate::directory::Directory;
use crate::error::StoreError;
use crate::limits::{COPY_BYTES_MAX, DIGEST_AT_COMMIT_BYTES_MAX, SPILL_FILE_BYTES_MAX};
use crate::ranges::Ranges;
use crate::scratch::Scratch;
use crate::values::Extent;

/// The spill files of a run. Any thread may use it.
#[derive(Debug)]
pub struct SpillFiles {
    directory: Directory,
    scratch: Arc<Scratch>,
    budget: Arc<Budget>,
    digests: Arc<Digests>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    blobs: HashMap<u64, Blob>,
    next: u64,
    /// The file that is being appended to.
    growing: Option<(u64, File)>,
}

/// Bytes written to a file, and those of them that are not released.
#[derive(Debug, Default)]
struct Blob {
    written: u64,
    live: u64,
}

impl State {
    /// These bytes of a file are needed.
    fn keep(&mut self, extent: Extent, written: u64) {
        let blob = self.blobs.entry(extent.blob).or_default();
        blob.written = written;
        blob.live += extent.length;
    }
}

/// Whether an extent is within the bytes that were written to its file.
fn is_within(extent: Extent, written: u64) -> bool {
    let end = extent.offset.checked_add(extent.length);
    end.is_some_and(|end| end <= written)
}

impl SpillFiles {
    pub(crate) fn new(
        directory: Directory,
        scratch: Arc<Scratch>,
        budget: Arc<Budget>,
        digests: Arc<Digests>,
    ) -> SpillFiles {
        SpillFiles {
            directory,
            scratch,
            budget,
            digests,
            state: Mutex::default(),
        }
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// `Full`, `DiskFull`; nothing is kept then.
    pub fn append(&self, bytes: &[u8]) -> Result<Extent, StoreError> {
        let length = bytes.len() as u64;
        self.budget.charge(Kind::Output, length)?;
        let appended = self.append_charged(bytes);
        let extent = appended.inspect_err(|_| self.budget.refund(Kind::Output, length))?;
        if self.digests.are_kept() {
            self.digests.note(Part::Spilled(extent), Digest::of(bytes));
        }
        Ok(extent)
    }

    /// Takes over a whole file at a path given by [`Scratch::path`], without copying it.
    ///
    /// # Errors
    /// `ForeignScratch`, `NotAFile`, `Full`.
    pub fn adopt(&self, path: &Path) -> Result<Extent, StoreError> {
        let finished = self.scratch.finish(path)?;
        let length = finished.length;
        self.budget.charge(Kind::Output, length)?;
        let mut state = self.state();
        let blob = state.next;
        state.next += 1;
        self.scratch
            .directory()
            .move_to(&finished.name, &self.directory, &blob.to_string())
            .inspect_err(|_| self.budget.refund(Kind::Output, length))?;
        state.blobs.insert(
            blob,
            Blob {
                written: length,
                live: length,
            },
        );
        self.recycle(&mut state, blob)?;
        drop(state);
        let extent = Extent {
            blob,
            offset: 0,
            length,
        };
        self.note_adopted(extent);
        Ok(extent)
    }

    /// Has the digest of a whole adopted file written down; it is computed at once if the file is
    /// short.
    fn note_adopted(&self, extent: Extent) {
        if extent.length == 0 || !self.digests.are_kept() {
            return;
        }
        let (part, name) = (Part::Spilled(extent), extent.blob.to_string());
        if extent.length > DIGEST_AT_COMMIT_BYTES_MAX {
            return self.digests.note_later(part, self.directory.path_of(&name));
        }
        let digest = self.directory.open_file(&name);
        if let Ok(Ok(digest)) = digest.map(|file| digest_of(&file)) {
            self.digests.note(part, digest);
        }
    }

    /// Whether a file of that number exists.
    pub(crate) fn has_blob(&self, number: u64) -> bool {
        self.state().blobs.contains_key(&number)
    }

    /// Makes sure that bytes survive a power failure; waits for the disk.
    ///
    /// # Errors
    /// `DiskFull`, `System`.
    pub fn sync(&self, extent: Extent) -> Result<(), StoreError> {
        self.directory.sync(&extent.blob.to_string())
    }

    /// Recovers the bytes that an earlier process of this run spilled and did not release: extents
    /// that do not overlap. Returns those that are missing, not whole or changed, in the order
    /// given. All other files of the folder are removed, so this comes before anything is written.
    /// The limit of the budget does not count. Earlier recovered extents are dropped.
    ///
    /// # Errors
    /// `ReadOnly` or `System` if the folder cannot be listed or a file not removed.
    pub fn restore(
        &self,
        known: impl IntoIterator<Item = Extent>,
    ) -> Result<Vec<Extent>, StoreError> {
        let mut state = self.state();
        self.forget_all(&mut state);
        let mut ranges = self.ranges();
        let mut lost = Vec::new();
        for extent in known.into_iter().filter(|extent| extent.length > 0) {
            state.next = state.next.max(extent.blob.saturating_add(1));
            match self.written(&state, extent.blob)? {
                Some(written)
                    if is_within(extent, written) && self.agrees(&mut ranges, extent)? =>
                {
                    state.keep(extent, written);
                }
                _ => lost.push(extent),
            }
        }
        for blob in state.blobs.values() {
            self.budget.count(Kind::Output, blob.written);
        }
        for name in self.directory.names()? {
            let number = name
                .parse()
                .ok()
                .filter(|number: &u64| number.to_string() == name);
            if !number.is_some_and(|number| state.blobs.contains_key(&number)) {
                self.directory.remove_all(&name)?;
            }
        }
        Ok(lost)
    }

    /// Reads bytes back.
    ///
    /// # Errors
    /// `UnknownExtent` if they are not held.
    pub fn read(&self, extent: Extent) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        self.copy_to(extent, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies bytes to a sink, a bounded part at a time.
    ///
    /// # Errors
    /// `UnknownExtent` if they are not held; `System` with the act `copy` if the sink failed.
    pub fn copy_to(&self, extent: Extent, sink: &mut dyn Write) -> Result<(), StoreError> {
        if extent.length == 0 {
            return Ok(());
        }
        let name = extent.blob.to_string();
        let file = self.file_of(extent)?;
        let mut buffer = vec![0; COPY_BYTES_MAX.min(extent.length as usize)];
        let (mut offset, end) = (extent.offset, extent.offset + extent.length);
        while offset < end {
            let part = &mut buffer[..COPY_BYTES_MAX.min((end - offset) as usize)];
            file.read_exact_at(part, offset)
                .map_err(|source| self.directory.system("read", &name, source))?;
            sink.write_all(part).map_err(|source| StoreError::System {
                act: "copy",
                path: name.clone().into(),
                source,
            })?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// The bytes are not needed any more. Each byte is released once; a file whose bytes are all
    /// released gives its room back.
    ///
    /// # Errors
    /// `UnknownExtent` if they are not held.
    pub fn release(&self, extent: Extent) -> Result<(), StoreError> {
        if extent.length == 0 {
            return Ok(());
        }
        let mut state = self.state();
        let blob = state
            .blobs
            .get_mut(&extent.blob)
            .filter(|blob| blob.live >= extent.length);
        blob.ok_or(StoreError::UnknownExtent { extent })?.live -= extent.length;
        self.recycle(&mut state, extent.blob)
    }

    /// The ranges of all files that have digests.
    fn ranges(&self) -> HashMap<u64, Ranges> {
        let mut ranges: HashMap<u64, Ranges> = HashMap::new();
        for (part, digest) in self.digests.read() {
            if let Part::Spilled(extent) = part {
                let of_blob = ranges.entry(extent.blob).or_default();
                of_blob.add(extent.offset, extent.length, digest);
            }
        }
        ranges
    }

    fn agrees(
        &self,
        ranges: &mut HashMap<u64, Ranges>,
        extent: Extent,
    ) -> Result<bool, StoreError> {
        let Some(ranges) = ranges.get_mut(&extent.blob) else {
            return Ok(true);
        };
        let name = extent.blob.to_string();
        let file = self.directory.open_file(&name)?;
        ranges
            .agree(&file, extent.offset, extent.length)
            .map_err(|source| self.directory.system("read", &name, source))
    }

    fn forget_all(&self, state: &mut State) {
        for (_, blob) in state.blobs.drain() {
            self.budget.release(Kind::Output, blob.written);
        }
        state.growing = None;
    }

    /// Bytes in a file of the folder, as listed or else as found; none if there is no such file.
    fn written(&self, state: &State, number: u64) -> Result<Option<u64>, StoreError> {
        if let Some(blob) = state.blobs.get(&number) {
            return Ok(Some(blob.written));
        }
        let entry = self.directory.entry(&number.to_string())?;
        let file = entry.filter(|entry| entry.kind == FileType::RegularFile);
        Ok(file.map(|file| file.length))
    }

    fn append_charged(&self, bytes: &[u8]) -> Result<Extent, StoreError> {
        let mut state = self.state();
        let number = self.growing_blob(&mut state, bytes.len() as u64)?;
        let State { blobs, growing, .. } = &mut *state;
        let blob = blobs.get_mut(&number).expect("the growing file is listed");
        let (_, file) = growing.as_ref().expect("a file is growing");
        let offset = blob.written;
        file.write_all_at(bytes, offset)
            .map_err(|source| self.directory.system("write", &number.to_string(), source))?;
        blob.written += bytes.len() as u64;
        blob.live += bytes.len() as u64;
        Ok(Extent {
            blob: number,
            offset,
            length: bytes.len() as u64,
        })
    }

    /// The file to append to: the one that grows, or another when that is long enough.
    fn growing_blob(&self, state: &mut State, more: u64) -> Result<u64, StoreError> {
        if let Some((number, _)) = state.growing {
            let written = state.blobs[&number].written;
            if written == 0 || written + more <= SPILL_FILE_BYTES_MAX {
                return Ok(number);
            }
            state.growing = None;
            self.recycle(state, number)?;
        }
        let number = state.next;
        let file = self.directory.make_file(&number.to_string())?;
        state.next += 1;
        state.growing = Some((number, file));
        state.blobs.insert(number, Blob::default());
        Ok(number)
    }

    /// Gives the room of a file without live bytes back; the growing one is emptied.
    fn recycle(&self, state: &mut State, number: u64) -> Result<(), StoreError> {
        let blob = state
            .blobs
            .get_mut(&number)
            .expect("a listed file is recycled");
        if blob.live > 0 {
            return Ok(());
        }
        let written = std::mem::take(&mut blob.written);
        self.budget.release(Kind::Output, written);
        let name = number.to_string();
        match &state.growing {
            Some((growing, file)) if *growing == number => file
                .set_len(0)
                .map_err(|source| self.directory.system("empty", &name, source)),
            _ => {
                state.blobs.remove(&number);
                self.directory.remove_file(&name)
            }
        }
    }

    fn file_of(&self, extent: Extent) -> Result<File, StoreError> {
        let state = self.state();
        let blob = state.blobs.get(&extent.blob);
        match blob {
            Some(blob) if is_within(extent, blob.written) => {
                self.directory.open_file(&extent.blob.to_string())
            }
            _ => Err(StoreError::UnknownExtent { extent }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("nobody panics with the spill state")
    }
}
