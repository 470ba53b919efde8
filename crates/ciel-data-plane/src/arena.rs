//! Shared memory that is recycled: fresh pages are what costs, not the copy.
//!
//! A pool of memory files whose pages are there already. It does not know what is written into
//! them, nor who maps them: who takes an arena drops it when nobody reads it any more.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};

use crate::limits::ARENA_BYTES_MIN;
use crate::shared::{Shared, memory_file};

/// The pool. Clones are the same pool.
#[derive(Clone, Debug)]
pub struct Arenas {
    free: Arc<Mutex<Free>>,
}

#[derive(Debug)]
struct Free {
    /// By size.
    arenas: BTreeMap<usize, Vec<Piece>>,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Piece {
    file: File,
    shared: Shared,
    bytes: usize,
}

/// A piece of shared memory; it returns to its pool when it is dropped. It may have old bytes.
#[derive(Debug)]
pub struct Arena {
    piece: Option<Piece>,
    pool: Arenas,
}

impl Arenas {
    /// A pool that keeps at most so many bytes that nobody uses.
    pub fn new(bytes_max: usize) -> Arenas {
        let free = Free {
            arenas: BTreeMap::new(),
            bytes: 0,
            bytes_max,
        };
        Arenas {
            free: Arc::new(Mutex::new(free)),
        }
    }

    /// An arena of at least so many bytes, recycled if there is one of that size.
    ///
    /// # Errors
    /// If there is no memory for a new one.
    pub fn take(&self, bytes: usize) -> io::Result<Arena> {
        let bytes = bytes.max(ARENA_BYTES_MIN).next_power_of_two();
        let recycled = self.with_free(|free| {
            let piece = free.arenas.get_mut(&bytes)?.pop()?;
            free.bytes -= bytes;
            Some(piece)
        });
        let piece = match recycled {
            Some(piece) => piece,
            None => {
                let file = memory_file("ciel-arena", bytes)?;
                let shared = Shared::map(&file, bytes)?;
                Piece {
                    file,
                    shared,
                    bytes,
                }
            }
        };
        Ok(Arena {
            piece: Some(piece),
            pool: self.clone(),
        })
    }

    /// Bytes that are kept and that nobody uses.
    pub fn free_bytes(&self) -> usize {
        self.with_free(|free| free.bytes)
    }

    fn with_free<T>(&self, act: impl FnOnce(&mut Free) -> T) -> T {
        // No act leaves the pool half-changed, so a panic elsewhere does not matter.
        act(&mut self.free.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Arena {
    fn piece(&self) -> &Piece {
        self.piece.as_ref().expect("only dropping takes it out")
    }

    /// The memory file, for other processes to map.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.piece().file.as_fd()
    }

    /// The memory.
    ///
    /// # Safety
    /// Nobody else reads or writes the arena, in whatever process, while the reference lives.
    pub unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        let piece = self.piece();
        // SAFETY: the caller vouches for it.
        unsafe { piece.shared.bytes_mut(0, piece.bytes) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let Some(piece) = self.piece.take() else {
            return;
        };
        self.pool.with_free(|free| {
            if free.bytes + piece.bytes <= free.bytes_max {
                free.bytes += piece.bytes;
                free.arenas.entry(piece.bytes).or_default().push(piece);
            }
        });
    }
}
