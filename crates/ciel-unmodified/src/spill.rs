//! Output that waits for its turn, on disk: one file without a name, appended to and emptied again.
//!
//! It does not know whose bytes they are. Read next: `supervisor`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FallocateFlags, Mode, OFlags};

use ciel_ordered::Extent;

/// The file; it is created with the first bytes.
#[derive(Debug)]
pub(crate) struct SpillFile {
    folder: PathBuf,
    file: Option<File>,
    end: u64,
    /// Bytes that are not released.
    held: u64,
}

impl SpillFile {
    /// A file in this folder.
    pub(crate) fn in_folder(folder: PathBuf) -> SpillFile {
        SpillFile {
            folder,
            file: None,
            end: 0,
            held: 0,
        }
    }

    /// Where the file is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Appends bytes; returns where they lie.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        if self.file.is_none() {
            let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            self.file = Some(rustix::fs::openat(CWD, &self.folder, flags, mode)?.into());
        }
        let offset = self.end;
        if let Some(file) = &self.file {
            file.write_all_at(bytes, offset)?;
        }
        self.end += bytes.len() as u64;
        self.held += bytes.len() as u64;
        Ok(offset)
    }

    /// Reads bytes that were appended, and frees their space.
    pub(crate) fn take(&mut self, extent: Extent) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; extent.length as usize];
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        file.read_exact_at(&mut bytes, extent.offset)?;
        self.held -= extent.length;
        if self.held == 0 {
            file.set_len(0)?;
            self.end = 0;
        } else {
            let holes = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // A file system without holes keeps the space until the file is empty.
            let _ = rustix::fs::fallocate(file, holes, extent.offset, extent.length);
        }
        Ok(bytes)
    }
}
