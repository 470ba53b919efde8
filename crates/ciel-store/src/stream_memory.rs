//! Memory that both ends of direct streams share, within the memory that the run may take.
//!
//! Each piece is a sealed memory file, which nobody can name but by a descriptor of this process:
//! whatever is killed, its pages go with the last process that has it. What is granted counts until
//! then, since pages come without a word; only of a piece that no stream will have again just its
//! pages do. Workers keep a piece for a while after its stream, for the next one: meanwhile its
//! word [`OWNER`] says that it is free, and here its pages are reclaimed if others need the memory.
//! It does not know streams. Read next: `ciel_streams::layout`; `memory_folder`, which shares its
//! budget.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use ciel_streams::layout::{FREE, IN_USE, OVER, OWNER, WORD_BYTES};
use ciel_streams::limits::SHARED_BYTES;
use ciel_streams::regions::granted;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};

use crate::lease;
use crate::limits::STREAM_PIECES_MAX;

/// Who maps a piece relies on its length.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// Bytes of a block, in which the system counts the pages of a file.
const BLOCK_BYTES: u64 = 512;

/// The pieces that are granted, and their budget if objects in memory have none.
#[derive(Debug, Default)]
pub(crate) struct StreamMemory {
    limit: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pieces: Vec<Piece>,
    /// The most pages at once, in bytes.
    peak: u64,
    /// What tells of the ends of pieces; without it none is granted.
    told: Option<OwnedFd>,
}

/// Memory of one stream after another, between whichever processes.
#[derive(Debug)]
struct Piece {
    file: File,
    words: MmapRaw,
    length: u64,
    /// The attempt of a task that was granted it, while that runs.
    task: Option<(u128, u32)>,
}

impl Piece {
    fn new(bytes: u64, task: (u128, u32)) -> io::Result<Piece> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let made = rustix::fs::memfd_create("ciel-values", flags)?;
        let length = WORD_BYTES as u64 + bytes;
        rustix::fs::ftruncate(&made, length)?;
        rustix::fs::fcntl_add_seals(&made, SEALS)?;
        // A lease looks at opened files only, and the first descriptor was not opened.
        let path = format!("/proc/self/fd/{}", made.as_raw_fd());
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let words = MmapOptions::new().len(WORD_BYTES).map_raw(&file)?;
        Ok(Piece {
            file,
            words,
            length,
            task: Some(task),
        })
    }

    /// The name by which other processes of this user open it.
    fn path(&self) -> PathBuf {
        let (process, descriptor) = (std::process::id(), self.file.as_raw_fd());
        PathBuf::from(format!("/proc/{process}/fd/{descriptor}"))
    }

    fn owner(&self) -> &AtomicU64 {
        // SAFETY: the word is in the mapping, at a multiple of its size, and lives as long as that;
        // the file cannot shrink, and all access is atomic.
        unsafe { AtomicU64::from_ptr(self.words.as_mut_ptr().cast::<u64>().add(OWNER)) }
    }

    /// Bytes of its pages that are there.
    fn pages(&self) -> u64 {
        let blocks = rustix::fs::fstat(&self.file).map_or(0, |found| found.st_blocks);
        u64::try_from(blocks).unwrap_or_default() * BLOCK_BYTES
    }

    /// Bytes that may come to be there without a word.
    fn counted(&self) -> u64 {
        match self.owner().load(Ordering::Acquire) {
            OVER => self.pages().min(self.length),
            _ => self.length,
        }
    }

    /// Whether no other process has it, nor will have.
    fn is_over(&self) -> bool {
        self.task.is_none() && !lease::is_used(&self.file)
    }

    /// Reclaims its pages, if no stream has it.
    fn reclaim(&self) -> bool {
        let owner = self.owner();
        let taken = owner.compare_exchange(FREE, IN_USE, Ordering::AcqRel, Ordering::Relaxed);
        let (flags, begin) = (
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            WORD_BYTES as u64,
        );
        taken.is_ok()
            && rustix::fs::fallocate(&self.file, flags, begin, self.length - begin).is_ok()
    }
}

impl State {
    fn pages(&self) -> u64 {
        self.pieces.iter().map(Piece::pages).sum()
    }

    fn counted(&self) -> u64 {
        self.pieces.iter().map(Piece::counted).sum()
    }

    /// Drops those of which that is so; how many bytes counted.
    fn remove(&mut self, is_gone: impl Fn(&Piece) -> bool) -> u64 {
        self.peak = self.peak.max(self.pages());
        let before = self.counted();
        self.pieces.retain(|piece| !is_gone(piece));
        before.saturating_sub(self.counted())
    }
}

impl StreamMemory {
    /// From now on streams may take so many bytes if objects may take none.
    pub(crate) fn allow(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the pieces")
    }

    /// Bytes that count.
    pub(crate) fn bytes(&self) -> u64 {
        self.state().counted()
    }

    /// Bytes of pages that are there, and the most of them at once.
    pub(crate) fn pages(&self) -> (u64, u64) {
        let mut state = self.state();
        let pages = state.pages();
        state.peak = state.peak.max(pages);
        (pages, state.peak)
    }

    /// Bytes that are free if objects may take none.
    pub(crate) fn free(&self) -> u64 {
        let limit = self.limit.load(Ordering::Relaxed);
        limit.saturating_sub(self.bytes())
    }

    /// A descriptor that can be read without waiting when a process has closed a piece. None is
    /// granted before somebody has that.
    pub(crate) fn watch(&self) -> io::Result<OwnedFd> {
        let told = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        self.state().told = Some(told.as_fd().try_clone_to_owned()?);
        Ok(told)
    }

    /// Frees what no process has any more; how many bytes.
    pub(crate) fn settle(&self) -> u64 {
        self.state().remove(Piece::is_over)
    }

    /// Reclaims what workers keep for the next stream.
    pub(crate) fn reclaim(&self) {
        self.state()
            .remove(|piece| piece.is_over() || piece.reclaim());
    }

    /// Grants a piece in which values of `length` bytes are shared, of so many bytes that are free
    /// without it.
    pub(crate) fn grant(&self, task: (u128, u32), length: u64, free: u64) -> Option<PathBuf> {
        let bytes = granted(length, free.saturating_sub(WORD_BYTES as u64))?;
        let mut state = self.state();
        let told = state.told.as_ref()?;
        if state.pieces.len() >= STREAM_PIECES_MAX {
            return None;
        }
        // The values go through the pipe then.
        let piece = Piece::new(bytes, task).ok()?;
        let path = piece.path();
        let closed = WatchFlags::CLOSE_NOWRITE | WatchFlags::CLOSE_WRITE;
        inotify::add_watch(told, &path, closed).ok()?;
        state.pieces.push(piece);
        Some(path)
    }

    /// The attempt of a task is over: what it was granted counts until no process has it.
    pub(crate) fn end(&self, task: (u128, u32)) {
        let mut state = self.state();
        let ended = state.pieces.iter_mut();
        let ended = ended.filter(|piece| piece.task == Some(task));
        if ended.map(|piece| piece.task = None).count() > 0 {
            state.remove(Piece::is_over);
        }
    }
}

/// Whether a stream cannot have more than what is free.
pub(crate) fn is_scarce(free: u64) -> bool {
    free / 2 < SHARED_BYTES + WORD_BYTES as u64
}
