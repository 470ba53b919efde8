//! The number of idle cores that the engine shares with its workers.
//!
//! It lies in a file in memory, so a full disk does not matter, and it orders nothing else in
//! memory. Beside it is the bell of workers that keep children for an idle core, and behind it
//! memory in which workers compute calls of one another. What the bits say is in [`IdleCores`], the
//! rest in [`ciel_model::assist`]. Read next: `memory`.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ciel_model::IdleCores;
use ciel_model::assist::FILE_BYTES;
use ciel_model::idle::{BELL_AT, ENGINE_AT, LISTENERS_AT, PIPE_AT, SHARED_BYTES};
use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::futex;

use crate::error::StoreError;

/// The engine's side, which counts.
#[derive(Debug)]
pub struct SharedIdleCores {
    file: File,
    map: MmapRaw,
    /// Both ends of the pipe, which workers open.
    _pipe: (OwnedFd, OwnedFd),
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
            let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
            let mut bytes = [0; SHARED_BYTES];
            bytes[..BELL_AT].copy_from_slice(&IdleCores::of(cores).to_bits().to_ne_bytes());
            bytes[ENGINE_AT..PIPE_AT].copy_from_slice(&std::process::id().to_ne_bytes());
            bytes[PIPE_AT..].copy_from_slice(&pipe.0.as_raw_fd().to_ne_bytes());
            file.write_all(&bytes)?;
            file.set_len(FILE_BYTES as u64)?;
            let map = MmapRaw::map_raw(&file)?;
            let _pipe = pipe;
            Ok(SharedIdleCores { file, map, _pipe })
        };
        let path = PathBuf::from("/proc/self/fd");
        made().map_err(|error| StoreError::of_system("share a number in", &path, error))
    }

    /// The path by which other processes map it, as long as this one keeps it.
    pub fn path(&self) -> PathBuf {
        let number = self.file.as_raw_fd();
        format!("/proc/{}/fd/{number}", std::process::id()).into()
    }

    /// So many cores are idle, which others see soon. By how many they are more than before.
    pub fn set(&self, count: usize) -> u32 {
        // SAFETY: the mapping has eight bytes at the beginning of a page, lives as long as `self`,
        // and is accessed by atomic operations only.
        let shared = unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast()) };
        let counted = |bits| IdleCores::from_bits(bits).counted(count);
        let update = |bits| counted(bits).map(IdleCores::to_bits);
        // Who listens looks at this number after it has said so.
        let changed = shared.fetch_update(Ordering::SeqCst, Ordering::Relaxed, update);
        // An error says that the number is the same.
        let before = changed.map_or(u32::MAX, |bits| IdleCores::from_bits(bits).count());
        u32::try_from(count)
            .unwrap_or(u32::MAX)
            .saturating_sub(before)
    }

    /// So many cores are idle that were not: as many workers look at once that have children for
    /// one, and listen.
    pub fn ring(&self, more: u32) {
        if more > 0 && self.word(LISTENERS_AT).load(Ordering::SeqCst) > 0 {
            let bell = self.word(BELL_AT);
            bell.fetch_add(1, Ordering::SeqCst);
            // Who is not woken looks at its next heartbeat.
            let _ = futex::wake(bell, futex::Flags::empty(), more);
        }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at + size_of::<AtomicU32>() <= SHARED_BYTES && at.is_multiple_of(4));
        // SAFETY: the word is aligned and within the mapping, which lives as long as `self`, and it
        // is accessed by atomic operations only.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_the_file_sees_what_was_set() {
        let shared = SharedIdleCores::new(4).unwrap();
        let read = || {
            let bytes = std::fs::read(shared.path()).unwrap();
            assert_eq!(bytes.len(), FILE_BYTES);
            let bits = u64::from_ne_bytes(bytes[..BELL_AT].try_into().unwrap());
            IdleCores::from_bits(bits).count()
        };
        assert_eq!(read(), 0);
        assert_eq!(shared.set(3), 3);
        assert_eq!(read(), 3);
        assert_eq!(shared.set(3), 0);
        assert_eq!(shared.set(4), 1);
        assert_eq!(shared.set(0), 0);
        assert_eq!(read(), 0);
    }

    #[test]
    fn bell_rings_only_for_listeners() {
        let shared = SharedIdleCores::new(4).unwrap();
        let rung = || shared.word(BELL_AT).load(Ordering::SeqCst);
        shared.ring(2);
        assert_eq!(rung(), 0);
        shared.word(LISTENERS_AT).store(1, Ordering::SeqCst);
        shared.ring(0);
        assert_eq!(rung(), 0);
        shared.ring(2);
        assert_eq!(rung(), 1);
    }
}
