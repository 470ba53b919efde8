//! The number of idle cores in a file that the engine and its workers map, and this worker's claim.
//!
//! It is a hint. What the number says, and when a claim is lost, is in [`ciel_model::IdleCores`].
//! It knows nothing else of the engine. Read next: `promoter.rs`.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use ciel_model::idle::{BELL_AT, LISTENERS_AT, SHARED_BYTES};
use ciel_model::{Claim, IdleCores};
use memmap2::MmapRaw;
use rustix::thread::futex;

/// The mapped number.
pub struct MappedIdleCores {
    map: MmapRaw,
}

impl MappedIdleCores {
    /// Maps the file.
    ///
    /// # Errors
    /// Errors of the system; `UnexpectedEof` if the file is too short.
    pub fn open(path: &Path) -> io::Result<MappedIdleCores> {
        let file = File::options().read(true).write(true).open(path)?;
        let map = MmapRaw::map_raw(&file)?;
        match map.len() < SHARED_BYTES {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(MappedIdleCores { map }),
        }
    }

    fn shared(&self) -> &AtomicU64 {
        // SAFETY: the mapping has at least those bytes at the beginning of a page, lives as long
        // as `self`, and is accessed by atomic operations only.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast()) }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at + size_of::<AtomicU32>() <= SHARED_BYTES && at.is_multiple_of(4));
        // SAFETY: the word is aligned and within the mapping, which lives as long as `self`, and it
        // is accessed by atomic operations only.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    /// Waits until a core is idle that nobody has claimed, so long at most; whether there is one,
    /// or was when the bell rang.
    pub fn listen(&self, time: Duration) -> bool {
        let (bell, listeners) = (self.word(BELL_AT), self.word(LISTENERS_AT));
        listeners.fetch_add(1, Ordering::SeqCst);
        let heard = bell.load(Ordering::SeqCst);
        let now = IdleCores::from_bits(self.shared().load(Ordering::SeqCst));
        let is_rung = now.unclaimed() > 0 || {
            // It cannot be too long for the system: it is part of a heartbeat.
            let time = time.try_into().ok();
            futex::wait(bell, futex::Flags::empty(), heard, time.as_ref()).is_ok()
        };
        listeners.fetch_sub(1, Ordering::SeqCst);
        is_rung
    }

    /// What it says now.
    pub fn now(&self) -> IdleCores {
        IdleCores::from_bits(self.shared().load(Ordering::Relaxed))
    }

    /// Claims at most so many cores, as [`Claim::look`] says.
    pub fn claim(&self, claim: &mut Claim, cores_max: u32, before: usize) {
        let seen = self.now();
        if let Some((after, cores)) = claim.look(seen, cores_max, before) {
            let (seen, after) = (seen.to_bits(), after.to_bits());
            let (relaxed, shared) = (Ordering::Relaxed, self.shared());
            let changed = shared.compare_exchange(seen, after, relaxed, relaxed);
            // If somebody was faster, the next beat looks again.
            if changed.is_ok() {
                claim.take(cores);
            }
        }
    }

    /// There are no tasks for what is claimed.
    pub fn give_back(&self, claim: &mut Claim) {
        let cores = claim.end();
        if cores > 0 {
            let returned = |bits| Some(IdleCores::from_bits(bits).returned(cores).to_bits());
            let shared = self.shared();
            // It never refuses.
            let _ = shared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, returned);
        }
    }
}
