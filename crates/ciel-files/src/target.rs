//! A file that is open for serial append, and what keeps bytes whose turn has not come.
//!
//! Only the strand whose turn it is appends to the file, so its bytes are always a prefix of what
//! the serial program writes. What a file is made of is its `Form`: flat or structured. It does not
//! know strands. Read next: `form`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::FileError;
use crate::extent::Extent;
use crate::form::Form;
use crate::gauges;
use crate::sync::{AtomicBool, OnceLock, Ordering};

/// A file that is open for serial append.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    /// The tree of strands that may write: that of the thread that opened it.
    pub(crate) root: u64,
    form: Form,
    failed: OnceLock<FileError>,
    /// Nobody has a handle of it any more.
    is_dropped: AtomicBool,
}

impl Target {
    /// A file in which everything so far is final. It is locked against another serial append.
    pub(crate) fn new(
        path: &Path,
        file: File,
        root: u64,
        truncates: bool,
        is_structured: bool,
    ) -> io::Result<Target> {
        let path = path.to_path_buf();
        if !ciel_writer::claim(&file)? {
            return Err(FileError::Busy { path }.into());
        }
        if truncates && file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        let form = Form::new(&path, file, is_structured)?;
        Ok(Target {
            path,
            root,
            form,
            failed: OnceLock::new(),
            is_dropped: AtomicBool::new(false),
        })
    }

    /// Nobody can write to it any more, but what was written may wait for its turn.
    pub(crate) fn drop_handles(&self) {
        self.is_dropped.store(true, Ordering::Release);
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Acquire)
    }

    /// Whether a write has failed before, or the file is closed.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    /// Fails if a write has failed before, or the file is closed: what would follow has no place.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.failed.get() {
            None => Ok(()),
            Some(error) => Err(error.clone().into()),
        }
    }

    /// Appends to the file what is final.
    pub(crate) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.check()?;
        let appended = self.form.append(bytes);
        appended.map_err(|error| self.fail(&error))
    }

    /// Appends bytes that were kept.
    pub(crate) fn append_spilled(&self, extent: Extent) -> io::Result<()> {
        self.check()?;
        let appended = self.form.append_spilled(extent);
        appended.map_err(|error| self.fail(&error))
    }

    /// Keeps bytes until their turn has come.
    pub(crate) fn spill(&self, bytes: &[u8]) -> io::Result<Extent> {
        self.check()?;
        let spilled = self.form.spill(&self.path, bytes);
        let extent = spilled.map_err(|error| self.fail(&error))?;
        gauges::spilled(extent.length);
        Ok(extent)
    }

    /// Notes the first failure, which all later writes repeat.
    fn fail(&self, cause: &io::Error) -> io::Error {
        let error = FileError::Write {
            path: self.path.clone(),
            valid: self.form.valid(),
            cause: cause.to_string(),
            kind: cause.kind(),
        };
        self.failed.get_or_init(|| error).clone().into()
    }

    /// The last bytes are in the file. Nothing can be written from now on.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.check()?;
        let path = self.path.clone();
        if self.failed.set(FileError::Closed { path }).is_err() {
            return self.check();
        }
        self.form.close(&self.path)
    }
}

impl Drop for Target {
    /// Nobody has closed it, and everything that could be written is in it.
    fn drop(&mut self) {
        if self.check().is_ok() {
            // Nobody is left to whom a failure could be reported.
            let _ = self.form.close(&self.path);
        }
    }
}
