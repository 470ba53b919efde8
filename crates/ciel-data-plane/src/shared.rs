//! Memory that several processes map: words that they change, and bytes.
//!
//! The one module that makes references from a mapping. A mapping is only made of a file whose
//! length cannot shrink below it (a sealed memory file, or a file of the store's own folder), so
//! that access never faults. It does not know what the words mean: `progress` and `ring` do.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;

/// A mapped file.
#[derive(Debug)]
pub(crate) struct Shared {
    map: MmapRaw,
}

impl Shared {
    /// Maps the whole of a file.
    ///
    /// # Errors
    /// If it cannot be mapped, or has fewer than `bytes_min` bytes.
    pub(crate) fn map(file: &File, bytes_min: usize) -> io::Result<Shared> {
        let map = MmapRaw::map_raw(file)?;
        if map.len() < bytes_min {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Shared { map })
    }

    /// A word of 32 bits at an offset.
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(
            at.is_multiple_of(4) && at + 4 <= self.map.len(),
            "outside the mapping"
        );
        // SAFETY: the place is aligned and inside the mapping, which lives as long as the
        // reference; all access to words is atomic.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    /// A word of 64 bits at an offset.
    pub(crate) fn long_word(&self, at: usize) -> &AtomicU64 {
        assert!(
            at.is_multiple_of(8) && at + 8 <= self.map.len(),
            "outside the mapping"
        );
        // SAFETY: as for `word`.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    /// Bytes that nobody writes while the reference lives.
    ///
    /// # Safety
    /// The caller knows that from the protocol of the words.
    pub(crate) unsafe fn bytes(&self, at: usize, length: usize) -> &[u8] {
        assert!(
            at.checked_add(length)
                .is_some_and(|end| end <= self.map.len())
        );
        // SAFETY: inside the mapping; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(at), length) }
    }

    /// Bytes that nobody else reads or writes while the reference lives.
    ///
    /// # Safety
    /// The caller knows that from the protocol of the words.
    #[expect(
        clippy::mut_from_ref,
        reason = "the words say whose the bytes are, not the borrow"
    )]
    pub(crate) unsafe fn bytes_mut(&self, at: usize, length: usize) -> &mut [u8] {
        assert!(
            at.checked_add(length)
                .is_some_and(|end| end <= self.map.len())
        );
        // SAFETY: inside the mapping; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().add(at), length) }
    }
}

/// A memory file of so many bytes that can neither shrink nor grow.
///
/// # Errors
/// If the system has no memory file for it.
pub(crate) fn memory_file(name: &str, bytes: usize) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create(name, flags)?);
    file.set_len(bytes as u64)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

/// Whether a file from elsewhere is one that cannot shrink.
pub(crate) fn is_sealed(file: &File) -> bool {
    rustix::fs::fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
}

/// A word on which one side sleeps and which the other side changes to wake it. Between "I will
/// sleep" and the sleep lies a look at what is waited for, so that no wake is missed.
pub(crate) struct Bell<'a> {
    /// Changed by each ring.
    pub(crate) turn: &'a AtomicU32,
    /// Whether somebody may sleep.
    pub(crate) waits: &'a AtomicU32,
}

impl Bell<'_> {
    /// Sleeps until `look` gives something. `look` is asked again after each ring.
    pub(crate) fn wait_for<T>(&self, mut look: impl FnMut() -> Option<T>) -> io::Result<T> {
        loop {
            self.waits.store(1, Ordering::SeqCst);
            let turn = self.turn.load(Ordering::SeqCst);
            if let Some(found) = look() {
                self.waits.store(0, Ordering::Relaxed);
                return Ok(found);
            }
            sleep_while(self.turn, turn, None)?;
        }
    }

    /// Wakes who sleeps, if anybody does. Call it after the change that is waited for.
    pub(crate) fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.waits.load(Ordering::SeqCst) != 0 && self.waits.swap(0, Ordering::SeqCst) != 0 {
            self.turn.fetch_add(1, Ordering::SeqCst);
            wake_all(self.turn);
        }
    }
}

/// Sleeps while the word has this value, at most until the time is over. Returns early at will.
///
/// # Errors
/// If the system refuses to wait.
pub(crate) fn sleep_while(word: &AtomicU32, value: u32, limit: Option<Duration>) -> io::Result<()> {
    let limit = limit.map(|limit| Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    match futex::wait(word, futex::Flags::empty(), value, limit.as_ref()) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Wakes all who sleep on the word.
pub(crate) fn wake_all(word: &AtomicU32) {
    let most = i32::MAX as u32;
    futex::wake(word, futex::Flags::empty(), most).expect("the word is aligned and mapped");
}
