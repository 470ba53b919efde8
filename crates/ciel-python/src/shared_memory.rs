//! Memory that both ends of a direct stream map: a word for each of its units, and the values.
//!
//! Where a value lies is decided by [`ciel_streams::regions`]. The reader stores the number of a
//! region in the word of its first unit when it has released it. Read next: `shared_writer`,
//! `shared_reader`, and `meeting` for the way from one to the other.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use ciel_streams::Region;
use ciel_streams::limits::{SHARED_BYTES, SHARED_UNITS};
use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, SealFlags};

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

impl SharedMemory {
    /// New memory, without pages, and the file by which another process maps it.
    ///
    /// # Errors
    /// As the system says.
    pub fn create() -> io::Result<(SharedMemory, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(rustix::fs::memfd_create("ciel-values", flags)?);
        file.set_len(BYTES as u64)?;
        rustix::fs::fcntl_add_seals(&file, SEALS)?;
        let map = MmapRaw::map_raw(&file)?;
        Ok((SharedMemory { map }, file.into()))
    }

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

    /// Whether the reader does not need a region any more.
    pub fn is_released(&self, region: Region) -> bool {
        self.word(region.unit()).load(Ordering::Acquire) == region.number()
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
}
