//! The number of idle cores that the engine shares with its workers.
//!
//! It lies in a file in memory, so a full disk does not matter, and it orders nothing else in
//! memory. What its bits say is in [`IdleCores`]. Read next: `memory`.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use ciel_model::IdleCores;
use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::StoreError;

/// The engine's side, which counts.
#[derive(Debug)]
pub struct SharedIdleCores {
    file: File,
    map: MmapRaw,
}

impl SharedIdleCores {
    /// None of so many cores is idle.
    ///
    /// # Errors
    /// `System`, if there is no memory or no descriptor for it.
    pub fn new(cores: usize) -> Result<SharedIdleCores, StoreError> {
        let made = || {
            let mut file = File::from(memfd_create("idle-cores", MemfdFlags::CLOEXEC)?);
            // Its page is there before it is mapped.
            file.write_all(&IdleCores::of(cores).to_bits().to_ne_bytes())?;
            let map = MmapRaw::map_raw(&file)?;
            Ok(SharedIdleCores { file, map })
        };
        let path = PathBuf::from("/proc/self/fd");
        made().map_err(|error| StoreError::of_system("share a number in", &path, error))
    }

    /// The path by which other processes map it, as long as this one keeps it.
    pub fn path(&self) -> PathBuf {
        let number = self.file.as_raw_fd();
        format!("/proc/{}/fd/{number}", std::process::id()).into()
    }

    /// So many cores are idle, which others see soon.
    pub fn set(&self, count: usize) {
        // SAFETY: the mapping has eight bytes at the beginning of a page, lives as long as `self`,
        // and is accessed by atomic operations only.
        let shared = unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast()) };
        let counted = |bits| IdleCores::from_bits(bits).counted(count);
        let update = |bits| counted(bits).map(IdleCores::to_bits);
        // An error says that the number is the same.
        let _ = shared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_the_file_sees_what_was_set() {
        let shared = SharedIdleCores::new(4).unwrap();
        let read = || {
            let bytes = std::fs::read(shared.path()).unwrap().try_into().unwrap();
            IdleCores::from_bits(u64::from_ne_bytes(bytes)).count()
        };
        assert_eq!(read(), 0);
        shared.set(3);
        assert_eq!(read(), 3);
        shared.set(0);
        assert_eq!(read(), 0);
    }
}
