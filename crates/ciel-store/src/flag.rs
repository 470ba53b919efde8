//! A byte that processes share: one sets it, the others look.
//!
//! It lies in a file in memory, so a full disk does not matter, and it orders nothing else in
//! memory. It does not know what it says. Read next: `memory`.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};

use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::StoreError;

/// The side that sets the byte. It is 0 at first.
#[derive(Debug)]
pub struct SharedFlag {
    file: File,
    map: MmapRaw,
}

impl SharedFlag {
    /// A new one.
    ///
    /// # Errors
    /// `System`, if there is no memory or no descriptor for it.
    pub fn new() -> Result<SharedFlag, StoreError> {
        let made = || {
            let mut file = File::from(memfd_create("flag", MemfdFlags::CLOEXEC)?);
            // Its page is there before it is mapped.
            file.write_all(&[0])?;
            let map = MmapRaw::map_raw(&file)?;
            Ok(SharedFlag { file, map })
        };
        let path = PathBuf::from("/proc/self/fd");
        made().map_err(|error| StoreError::of_system("make a flag in", &path, error))
    }

    /// The path by which other processes map it, as long as this one keeps it.
    pub fn path(&self) -> PathBuf {
        let number = self.file.as_raw_fd();
        format!("/proc/{}/fd/{number}", std::process::id()).into()
    }

    /// Sets the byte to 1 or 0, which others see soon.
    pub fn set(&self, is_set: bool) {
        // SAFETY: the mapping has one byte, lives as long as `self`, and is accessed by atomic
        // operations only.
        let byte = unsafe { AtomicU8::from_ptr(self.map.as_mut_ptr()) };
        if byte.load(Ordering::Relaxed) != u8::from(is_set) {
            byte.store(u8::from(is_set), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_the_file_sees_what_was_set() {
        let flag = SharedFlag::new().unwrap();
        assert_eq!(std::fs::read(flag.path()).unwrap(), [0]);
        flag.set(true);
        assert_eq!(std::fs::read(flag.path()).unwrap(), [1]);
        flag.set(false);
        assert_eq!(std::fs::read(flag.path()).unwrap(), [0]);
    }
}
