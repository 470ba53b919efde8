//! `Held`: the memory of a stream as its reader has it, and what becomes of it at the end.
//!
//! Memory whose stream came to its true end is kept for the next stream that this process reads,
//! and that has it once nothing points into it. Its producer has closed the pipe by then, in
//! whatever process, so nobody writes to it any more. What is kept no longer goes back to the
//! system in the background, which takes longer than many tasks. Read next: `kept_memory`,
//! `shared_reader`.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once};

use ciel_streams::{HeldRegions, NoRegion, Region};

use crate::kept_memory::{self, READ};
use crate::shared_memory::{SharedFile, SharedMemory, in_background};

/// How often this process was forked, and its parents before.
static FORKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn note_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// How often this process was forked, and its parents before: counted from the first call on.
pub fn forks() -> u64 {
    static REGISTERED: Once = Once::new();
    // SAFETY: the function only adds to a number.
    REGISTERED.call_once(|| unsafe {
        libc::pthread_atfork(Some(note_fork), None, None);
    });
    FORKS.load(Ordering::Relaxed)
}

/// The memory, and what of it this process holds.
pub struct Held {
    file: Arc<SharedFile>,
    state: Mutex<State>,
    /// The forks before it came.
    forks: u64,
    process: u32,
}

struct State {
    regions: HeldRegions,
    phase: Phase,
}

/// What has become of the stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Values come.
    Read,
    /// It has ended; the next one may have the memory once nothing is held.
    Kept,
    /// The memory goes back to the system, what is held as soon as it is released.
    Over,
}

impl Held {
    /// The memory of a file that the producer has sent, which may be mapped here already.
    ///
    /// # Errors
    /// As the system says.
    pub fn new(file: OwnedFd) -> io::Result<Arc<Held>> {
        let forks = forks();
        let file = match kept_memory::take_if(|mapped| mapped.is_of(&file)) {
            Some(mapped) => mapped,
            None => Arc::new(SharedFile::open(file)?),
        };
        let state = State {
            regions: HeldRegions::new(file.memory().bytes()),
            phase: Phase::Read,
        };
        Ok(Arc::new(Held {
            file,
            state: Mutex::new(state),
            forks,
            process: std::process::id(),
        }))
    }

    /// Bytes for values.
    pub fn bytes(&self) -> u64 {
        self.memory().bytes()
    }

    fn memory(&self) -> &SharedMemory {
        self.file.memory()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics with it")
    }

    /// The producer has told of a region.
    ///
    /// # Errors
    /// If it lies over one that is held.
    pub fn take(&self, region: Region) -> Result<(), NoRegion> {
        self.state().regions.take(region)?;
        self.memory().note_taken(region);
        Ok(())
    }

    /// Where the bytes of a region are that is held.
    pub fn value(&self, region: Region) -> *mut u8 {
        self.memory().value(region)
    }

    /// Whether so much is held that further values have to be copied.
    pub fn is_full(&self) -> bool {
        self.state().regions.is_full()
    }

    /// Nothing points into a region any more.
    pub fn release(&self, region: Region) {
        let mut state = self.state();
        state.regions.give_back(region);
        match state.phase {
            Phase::Read => self.memory().release(region),
            // The last one takes all with it.
            Phase::Over if !state.regions.is_empty() => self.memory().forget(region.units()),
            Phase::Kept => self.free(&state),
            Phase::Over => {}
        }
    }

    /// Lets the next stream have the memory once nothing is held. A child may still see what was
    /// there at a fork.
    fn free(&self, state: &State) {
        if state.regions.is_empty() && self.forks == forks() {
            self.memory().set_free();
        }
    }

    /// The stream has come to its true end: all who could write to it have closed the pipe.
    pub fn end(self: &Arc<Held>) {
        if self.memory().warm() == 0 {
            return;
        }
        let mut state = self.state();
        state.phase = Phase::Kept;
        self.free(&state);
        drop(state);
        READ.put(self.file.clone());
        self.in_background(Held::keep);
    }

    /// The reader goes, while values may still come. A child does not touch what its parent reads.
    pub fn leave(self: &Arc<Held>) {
        if self.process == std::process::id() && self.memory().warm() > 0 {
            self.state().phase = Phase::Over;
            self.in_background(Held::forget_gaps);
        }
    }

    fn in_background(self: &Arc<Held>, work: fn(&Arc<Held>)) {
        let its = self.clone();
        if in_background(move || work(&its)).is_err() {
            self.let_go();
        }
    }

    /// Waits for the next stream.
    fn keep(self: &Arc<Held>) {
        READ.await_end(&self.file);
        self.let_go();
    }

    /// It is kept no longer; nothing is held of what the next stream has.
    fn let_go(self: &Arc<Held>) {
        READ.remove(&self.file);
        let mut state = self.state();
        state.phase = Phase::Over;
        if !state.regions.is_empty() {
            // It was never free, so no other stream has it.
            self.memory().set_over();
        }
        drop(state);
        self.forget_gaps();
    }

    /// No further value comes. The last one that is kept takes all with it.
    fn forget_gaps(self: &Arc<Held>) {
        let regions = self.state().regions.clone();
        if !regions.is_empty() {
            for gap in regions.gaps() {
                self.memory().forget(gap);
            }
        }
    }
}
