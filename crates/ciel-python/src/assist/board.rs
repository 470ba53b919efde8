//! The memory in which strands write ranges of calls, and workers their values.
//!
//! What the numbers in it say is in [`ciel_model::assist`]. Bytes of a slot are written by the one
//! process that its phase names, and read by another one once a number says so. It knows no calls.
//! Read next: `range.rs`, `worker.rs`.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::ptr::copy_nonoverlapping;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ciel_model::assist::{FILE_BYTES, PHASES_AT, Phase, SLOT_BYTES, SLOTS, SLOTS_AT, Split};
use ciel_model::idle::{ENGINE_AT, PIPE_AT};
use memmap2::MmapRaw;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, test_kill_process};

/// Where numbers of 32 bits are in a slot: the processes of the strand and of the worker, bytes of
/// the header, of the arguments, and of values that are complete.
const OWNER_AT: usize = 4;
pub const WORKER_AT: usize = 8;
pub const HEADER_BYTES_AT: usize = 12;
pub const ARGUMENTS_BYTES_AT: usize = 16;
pub const VALUES_BYTES_AT: usize = 20;

/// Where its [`Split`] is.
const SPLIT_AT: usize = 32;

/// The mapped slots, and the pipe that wakes workers.
pub struct Board {
    map: MmapRaw,
    pipe: OwnedFd,
}

impl Board {
    /// Maps the file of the idle cores.
    ///
    /// # Errors
    /// Errors of the system; `UnexpectedEof` if the file is too short.
    pub fn open(path: &Path) -> io::Result<Board> {
        let file = File::options().read(true).write(true).open(path)?;
        let map = MmapRaw::map_raw(&file)?;
        if map.len() < FILE_BYTES {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let number = |at| word(&map, at).load(Ordering::Relaxed);
        let pipe = format!("/proc/{}/fd/{}", number(ENGINE_AT), number(PIPE_AT));
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = rustix::fs::open(pipe, flags, Mode::empty())?;
        Ok(Board { map, pipe })
    }

    /// Becomes readable when there may be a range for a worker.
    pub fn pipe(&self) -> &OwnedFd {
        &self.pipe
    }

    /// Wakes one worker that has nothing to do.
    pub fn ring(&self) {
        // A full pipe wakes whoever there is.
        let _ = rustix::io::write(&self.pipe, &[1]);
    }

    /// Somebody was woken. Whoever else was to be is woken again, once a strand looks for values.
    pub fn hear(&self) {
        let _ = rustix::io::read(&self.pipe, &mut [0; 1 << 10]);
    }

    /// A free slot, which is filled from now on. If there is none, those whose processes are gone
    /// are free.
    pub fn free_slot(&self) -> Option<usize> {
        let found = (0..SLOTS).find(|slot| self.moves(*slot, Phase::Free, Phase::Filling));
        let slot = found.or_else(|| (0..SLOTS).find(|slot| self.recovers(*slot)))?;
        self.number(slot, OWNER_AT)
            .store(std::process::id(), Ordering::Relaxed);
        Some(slot)
    }

    fn recovers(&self, slot: usize) -> bool {
        let phase = self.phase(slot);
        let lives = |at| is_alive(self.number(slot, at).load(Ordering::Relaxed));
        phase.is_lost(lives(OWNER_AT), lives(WORKER_AT)) && self.moves(slot, phase, Phase::Filling)
    }

    /// The phase of a slot.
    pub fn phase(&self, slot: usize) -> Phase {
        Phase::of(self.phase_of(slot).load(Ordering::Acquire))
    }

    /// A slot of the phase `from` has the phase `to` from now on; false if it had another one.
    pub fn moves(&self, slot: usize, from: Phase, to: Phase) -> bool {
        let phase = self.phase_of(slot);
        let (ordering, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        phase
            .compare_exchange(from as u32, to as u32, ordering, failure)
            .is_ok()
    }

    /// Which calls of a range have begun.
    pub fn split(&self, slot: usize) -> Split {
        Split::from_bits(self.bits(slot).load(Ordering::Acquire))
    }

    /// Changes that: what it was before, and is now; `None` if `change` changes nothing.
    pub fn divide(
        &self,
        slot: usize,
        change: impl Fn(Split) -> Option<Split>,
    ) -> Option<(Split, Split)> {
        let update = |bits| change(Split::from_bits(bits)).map(Split::to_bits);
        let (ordering, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let before = self
            .bits(slot)
            .fetch_update(ordering, failure, update)
            .ok()
            .map(Split::from_bits)?;
        Some((before, change(before)?))
    }

    /// The range in a slot that is being filled has so many calls.
    pub fn begin_split(&self, slot: usize, count: u32) {
        let bits = Split::of(count).to_bits();
        self.bits(slot).store(bits, Ordering::Release);
    }

    /// Writes bytes of a slot; false if they do not fit before `end`.
    pub fn write(&self, slot: usize, at: usize, bytes: &[u8], end: usize) -> bool {
        let fits = end <= SLOT_BYTES && at <= end && bytes.len() <= end - at;
        if fits {
            // SAFETY: the bytes are within the mapping, which lives as long as `self`. By its
            // phase this process alone writes this part of the slot, and another one reads it
            // after the store of a number that follows.
            unsafe { copy_nonoverlapping(bytes.as_ptr(), self.at(slot).add(at), bytes.len()) };
        }
        fits
    }

    /// Reads bytes of a slot; none if they are not before `end`.
    pub fn read(&self, slot: usize, at: usize, length: usize, end: usize) -> Option<Vec<u8>> {
        let fits = end <= SLOT_BYTES && at <= end && length <= end - at;
        fits.then(|| {
            let mut bytes = vec![0; length];
            // SAFETY: the bytes are within the mapping, and were written before the number that
            // says how many there are. If a process does not keep to that, they are wrong bytes.
            unsafe { copy_nonoverlapping(self.at(slot).add(at), bytes.as_mut_ptr(), length) };
            bytes
        })
    }

    /// A number of a slot.
    pub fn number(&self, slot: usize, at: usize) -> &AtomicU32 {
        word(&self.map, SLOTS_AT + slot * SLOT_BYTES + at)
    }

    /// The phases are side by side, so that a look at all of them is short.
    fn phase_of(&self, slot: usize) -> &AtomicU32 {
        assert!(slot < SLOTS);
        word(&self.map, PHASES_AT + slot * size_of::<AtomicU32>())
    }

    fn bits(&self, slot: usize) -> &AtomicU64 {
        // SAFETY: the number is aligned and within the mapping, which lives as long as `self`, and
        // it is accessed by atomic operations only.
        unsafe { AtomicU64::from_ptr(self.at(slot).add(SPLIT_AT).cast()) }
    }

    fn at(&self, slot: usize) -> *mut u8 {
        assert!(slot < SLOTS);
        // SAFETY: the file has all slots.
        unsafe { self.map.as_mut_ptr().add(SLOTS_AT + slot * SLOT_BYTES) }
    }
}

fn word(map: &MmapRaw, at: usize) -> &AtomicU32 {
    assert!(at + size_of::<AtomicU32>() <= map.len() && at.is_multiple_of(4));
    // SAFETY: the number is aligned and within the mapping, which lives as long as the reference,
    // and it is accessed by atomic operations only.
    unsafe { AtomicU32::from_ptr(map.as_mut_ptr().add(at).cast()) }
}

fn is_alive(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process).is_ok())
}
