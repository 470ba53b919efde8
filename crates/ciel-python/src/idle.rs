//! Whether the engine has an idle core: a byte in a file that the engine and its workers map.
//!
//! It is a hint. It knows nothing else of the engine. Read next: `promoter.rs`.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use memmap2::MmapRaw;

/// The mapped byte.
pub struct IdleCores {
    map: MmapRaw,
}

impl IdleCores {
    /// Maps the file.
    ///
    /// # Errors
    /// Errors of the system; `UnexpectedEof` if the file is empty.
    pub fn open(path: &Path) -> io::Result<IdleCores> {
        let file = File::options().read(true).write(true).open(path)?;
        let map = MmapRaw::map_raw(&file)?;
        match map.len() {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(IdleCores { map }),
        }
    }

    /// Whether a core is idle and no task waits for one.
    pub fn any(&self) -> bool {
        // SAFETY: the mapping has at least one byte, lives as long as `self`, and is accessed by
        // atomic operations only.
        let byte = unsafe { AtomicU8::from_ptr(self.map.as_mut_ptr()) };
        byte.load(Ordering::Relaxed) != 0
    }
}
