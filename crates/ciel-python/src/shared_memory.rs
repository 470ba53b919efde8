//! Memory that both ends of a direct stream map: a word for each of its units, and the values.
//!
//! Where a value lies is decided by [`ciel_streams::regions`]. The reader stores the number of a
//! region in the word of its first unit when it has released it. Read next: `shared_writer`,
//! `shared_reader`, and `meeting` for the way from one to the other.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::copy_nonoverlapping;
use std::sync::atomic::{AtomicU64, Ordering};

use ciel_streams::Region;
use ciel_streams::limits::{SHARED_BYTES, SHARED_UNITS};
use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::Advice;

/// Where the values begin: behind the words, on a page of its own.
const VALUES: usize = (SHARED_UNITS * size_of::<u64>()).next_multiple_of(1 << 16);

const BYTES: usize = VALUES + SHARED_BYTES as usize;

/// Who maps it relies on its length.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// The mapping.
pub struct SharedMemory {
    map: MmapRaw,
}

/// The mapping of the producer, and the file by which the reader maps it, too.
pub struct CreatedMemory {
    shared: SharedMemory,
    file: File,
}

impl CreatedMemory {
    /// New memory, without pages.
    ///
    /// # Errors
    /// As the system says.
    pub fn new() -> io::Result<CreatedMemory> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(rustix::fs::memfd_create("ciel-values", flags)?);
        file.set_len(BYTES as u64)?;
        rustix::fs::fcntl_add_seals(&file, SEALS)?;
        let map = MmapRaw::map_raw(&file)?;
        let shared = SharedMemory { map };
        Ok(CreatedMemory { shared, file })
    }

    /// The file.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Whether the reader does not need a region any more.
    pub fn is_released(&self, region: Region) -> bool {
        let word = self.shared.word(region.unit());
        word.load(Ordering::Acquire) == region.number()
    }

    /// Fills a region with pieces that are together as long as it. Pages that are not there yet are
    /// written to the file and then mapped, all at once: to copy into their mapping takes half as
    /// long again, for each of them is made and mapped by a fault of its own.
    pub fn fill(&self, region: Region, pieces: &[&[u8]], are_there: bool) {
        if !are_there && self.write(region, pieces).is_ok() {
            return;
        }
        let mut at = 0;
        for piece in pieces {
            assert!(at + piece.len() <= region.length(), "{region:?} is full");
            // SAFETY: it lies in the region, which is this process's alone until the reader is
            // told of it.
            unsafe {
                let to = self.shared.value(region).add(at);
                copy_nonoverlapping(piece.as_ptr(), to, piece.len());
            }
            at += piece.len();
        }
    }

    fn write(&self, region: Region, pieces: &[&[u8]]) -> io::Result<()> {
        let mut at = (VALUES + region.offset()) as u64;
        for piece in pieces {
            self.file.write_all_at(piece, at)?;
            at += piece.len() as u64;
        }
        // SAFETY: it lies in the mapping. Refused, the pages are mapped when they are used again.
        unsafe {
            let begin = self.shared.value(region).cast();
            let _ = rustix::mm::madvise(begin, region.length(), Advice::LinuxPopulateRead);
        }
        Ok(())
    }
}

impl SharedMemory {
    /// The memory that another process has created.
    ///
    /// # Errors
    /// If the file is no such memory, and as the system says.
    pub fn open(file: OwnedFd) -> io::Result<SharedMemory> {
        let file = File::from(file);
        let is_sealed = rustix::fs::fcntl_get_seals(&file)?.contains(SEALS);
        if !is_sealed || file.metadata()?.len() != BYTES as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let map = MmapRaw::map_raw(&file)?;
        Ok(SharedMemory { map })
    }

    /// Lets the producer use a region again.
    pub fn release(&self, region: Region) {
        self.word(region.unit())
            .store(region.number(), Ordering::Release);
    }

    fn word(&self, unit: usize) -> &AtomicU64 {
        assert!(unit < SHARED_UNITS, "unit {unit} is outside of the memory");
        // SAFETY: the words are at the beginning of the mapping, which is that of a page, and live
        // as long as it; they are accessed by atomic operations only.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast::<u64>().add(unit)) }
    }

    /// Where the bytes of a region are. They are the producer's until it tells of the region, and
    /// from then on the reader's until that releases it.
    pub fn value(&self, region: Region) -> *mut u8 {
        let (begin, end) = (region.offset(), region.offset() + region.length());
        assert!(end <= SHARED_BYTES as usize, "{region:?} is outside");
        // SAFETY: it lies in the mapping.
        unsafe { self.map.as_mut_ptr().add(VALUES + begin) }
    }

    /// Gives pages back to the system, if it takes them; whoever uses them again finds zeros. For a
    /// reader that is told of no further region, and of pages that it does not hold.
    pub fn forget(&self, bytes: Range<usize>) {
        assert!(bytes.end <= SHARED_BYTES as usize, "{bytes:?} is outside");
        // SAFETY: it lies in the mapping, and nobody reads it.
        unsafe {
            let begin = self.map.as_mut_ptr().add(VALUES + bytes.start);
            let length = bytes.end - bytes.start;
            // Refused, the pages stay until the mapping is gone.
            let _ = rustix::mm::madvise(begin.cast(), length, Advice::LinuxRemove);
        }
    }
}
