//! Memory that both ends of a direct stream map: a word for each of its units, and the values.
//!
//! The engine makes it, of a length that the run has to give. Where a value lies is decided by
//! [`ciel_streams::regions`], and where a word by [`ciel_streams::layout`]. The reader stores the
//! number of a region in a word behind those of the units when it has taken it, and in the word of
//! its first unit when it has released it; then it counts that release, for a producer that waits
//! for one. Read next: `shared_writer`, `shared_reader`, `streaming_copy`, and `meeting` for the
//! way from one to the other.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use ciel_streams::Region;
use ciel_streams::layout::{self, FREE, IN_USE, OVER, OWNER, RELEASES, TAKEN, WARM, WORD_BYTES};
use ciel_streams::limits::SHARED_BYTES;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::SealFlags;
use rustix::mm::Advice;
use rustix::thread::futex;
use rustix::time::Timespec;

use crate::streaming_copy;

/// Who maps it relies on its length.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// Does what gives much memory back to the system, which takes longer than many tasks.
///
/// # Errors
/// If there can be no further thread; the work is dropped then.
pub fn in_background(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("ciel-unmap".into());
    thread.spawn(work).map(drop)
}

/// Whether this process may still map so much as such memory takes at most.
///
/// # Errors
/// If the system refuses.
pub fn expect_room() -> io::Result<()> {
    let bytes = WORD_BYTES + SHARED_BYTES as usize;
    let all = MmapOptions::new().len(bytes).no_reserve_swap().map_anon();
    all.map(drop)
}

/// The mapping.
pub struct SharedMemory {
    map: MmapRaw,
    /// Bytes for values.
    bytes: u64,
}

/// The mapping, and the file by which the other process maps it, too.
pub struct SharedFile {
    file: File,
    memory: SharedMemory,
}

impl SharedFile {
    /// Memory that another process has created. Pages that are there are mapped at once.
    ///
    /// # Errors
    /// If the file is no such memory, and as the system says.
    pub fn open(file: OwnedFd) -> io::Result<SharedFile> {
        let file = File::from(file);
        let is_sealed = rustix::fs::fcntl_get_seals(&file)?.contains(SEALS);
        let bytes = layout::value_bytes(file.metadata()?.len());
        let bytes = bytes.filter(|_| is_sealed);
        let map = MmapRaw::map_raw(&file)?;
        let memory = SharedMemory {
            map,
            bytes: bytes.ok_or(io::ErrorKind::InvalidData)?,
        };
        memory.populate(0..memory.warm());
        Ok(SharedFile { file, memory })
    }

    /// Whether it is the memory of that file.
    pub fn is_of(&self, file: &OwnedFd) -> bool {
        let [mine, its] = [self.file(), file.as_fd()].map(rustix::fs::fstat);
        matches!((mine, its), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
    }

    /// The file.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The mapping.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
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
                let to = self.memory.value(region).add(at);
                streaming_copy::copy(piece.as_ptr(), to, piece.len());
            }
            at += piece.len();
        }
    }

    fn write(&self, region: Region, pieces: &[&[u8]]) -> io::Result<()> {
        let mut at = (WORD_BYTES + region.offset()) as u64;
        for piece in pieces {
            self.file.write_all_at(piece, at)?;
            at += piece.len() as u64;
        }
        let written = region.offset()..region.offset() + region.length();
        self.memory.populate(written);
        Ok(())
    }
}

impl SharedMemory {
    /// Forgets all that both sides have said of earlier streams, which are over.
    pub fn renew(&self) {
        (0..=TAKEN).for_each(|at| self.word(at).store(0, Ordering::Relaxed));
        self.release_words()[1].store(0, Ordering::Relaxed);
    }

    /// Bytes for values.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Lets the next stream have the memory, between whichever processes: nobody writes to it any
    /// more, and nothing points into it.
    pub fn set_free(&self) {
        self.word(OWNER).store(FREE, Ordering::Release);
    }

    /// No stream has the memory again.
    pub fn set_over(&self) {
        self.word(OWNER).store(OVER, Ordering::Release);
    }

    /// Whether the memory was free, and is now the caller's alone.
    pub fn claim(&self) -> bool {
        let (order, otherwise) = (Ordering::AcqRel, Ordering::Relaxed);
        let claimed = (self.word(OWNER)).compare_exchange(FREE, IN_USE, order, otherwise);
        claimed.is_ok()
    }

    /// Says that the pages of so many bytes are there, from the beginning of the values on.
    pub fn note_warm(&self, bytes: u64) {
        self.word(WARM).store(bytes, Ordering::Relaxed);
    }

    /// Of how many bytes the pages are there, from the beginning of the values on.
    pub fn warm(&self) -> usize {
        self.word(WARM).load(Ordering::Relaxed).min(self.bytes) as usize
    }

    /// Maps pages before they are used, all at once.
    fn populate(&self, bytes: Range<usize>) {
        if bytes.is_empty() {
            return;
        }
        // SAFETY: it lies in the mapping. Refused, the pages are mapped when they are used.
        unsafe {
            let begin = self.map.as_mut_ptr().add(WORD_BYTES + bytes.start).cast();
            let _ = rustix::mm::madvise(begin, bytes.len(), Advice::LinuxPopulateRead);
        }
    }

    /// Tells the producer that a region is taken, and all before it.
    pub fn note_taken(&self, region: Region) {
        self.word(TAKEN).store(region.number(), Ordering::Release);
    }

    /// The number of the newest region that the reader has taken; zero before the first.
    pub fn taken(&self) -> u64 {
        self.word(TAKEN).load(Ordering::Acquire)
    }

    /// Lets the producer use a region again.
    pub fn release(&self, region: Region) {
        self.word(region.unit())
            .store(region.number(), Ordering::Release);
        let [count, waits] = self.release_words();
        count.fetch_add(1, Ordering::SeqCst);
        if waits.load(Ordering::SeqCst) != 0 {
            // Unheard, the producer takes other pages.
            let _ = futex::wake(count, futex::Flags::empty(), 1);
        }
    }

    /// How many releases there were, modulo 2³².
    pub fn releases(&self) -> u32 {
        self.release_words()[0].load(Ordering::SeqCst)
    }

    /// Waits for a release behind so many, or for less.
    pub fn await_release(&self, seen: u32, time: Duration) {
        let [count, waits] = self.release_words();
        waits.store(1, Ordering::SeqCst);
        let time = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        // Whatever ends it, the producer looks again.
        let _ = futex::wait(count, futex::Flags::empty(), seen, Some(&time));
        waits.store(0, Ordering::SeqCst);
    }

    /// The count of releases, and whether the producer waits for one.
    fn release_words(&self) -> [&AtomicU32; 2] {
        // SAFETY: both are in a word before the values, which lives as long as the mapping; they
        // are accessed by atomic operations only.
        unsafe {
            let word = self.map.as_mut_ptr().cast::<u64>().add(RELEASES).cast();
            [AtomicU32::from_ptr(word), AtomicU32::from_ptr(word.add(1))]
        }
    }

    /// Whether the reader does not need a region any more.
    pub fn is_released(&self, region: Region) -> bool {
        self.word(region.unit()).load(Ordering::Acquire) == region.number()
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at <= OWNER, "word {at} is outside of the memory");
        // SAFETY: the words are at the beginning of the mapping, which is that of a page, and live
        // as long as it; they are accessed by atomic operations only.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast::<u64>().add(at)) }
    }

    /// Where the bytes of a region are. They are the producer's until it tells of the region, and
    /// from then on the reader's until that releases it.
    pub fn value(&self, region: Region) -> *mut u8 {
        let (begin, end) = (region.offset(), region.offset() + region.length());
        assert!(end as u64 <= self.bytes, "{region:?} is outside");
        // SAFETY: it lies in the mapping.
        unsafe { self.map.as_mut_ptr().add(WORD_BYTES + begin) }
    }

    /// Gives pages back to the system, if it takes them; whoever uses them again finds zeros. For a
    /// reader that is told of no further region, and of pages that it does not hold.
    pub fn forget(&self, bytes: Range<usize>) {
        assert!(bytes.end as u64 <= self.bytes, "{bytes:?} is outside");
        // SAFETY: it lies in the mapping, and nobody reads it.
        unsafe {
            let begin = self.map.as_mut_ptr().add(WORD_BYTES + bytes.start);
            let length = bytes.end - bytes.start;
            // Refused, the pages stay until the mapping is gone.
            let _ = rustix::mm::madvise(begin.cast(), length, Advice::LinuxRemove);
        }
    }
}
