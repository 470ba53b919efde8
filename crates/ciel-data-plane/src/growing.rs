//! An object that is read while it is written.
//!
//! The writer appends to a file and publishes; any number of readers, early or late, read it from
//! where they like. Dropping a writer that has not committed loses the stream, so a producer that
//! fails or unwinds is never taken for an end. It does not know names or stores.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::fault::StreamFault;
use crate::progress::{Progress, State};

/// The one writer of a growing object.
#[derive(Debug)]
pub struct GrowingWriter {
    file: File,
    progress: Arc<Progress>,
    written: u64,
}

impl GrowingWriter {
    /// A writer of an empty file, which must not be in append mode.
    pub fn new(file: File, progress: Arc<Progress>) -> GrowingWriter {
        GrowingWriter {
            file,
            progress,
            written: 0,
        }
    }

    /// A reader of the same object, from its first byte.
    ///
    /// # Errors
    /// If the file cannot be opened once more.
    pub fn reader(&self) -> io::Result<GrowingReader> {
        let file = self.file.try_clone()?;
        Ok(GrowingReader::new(file, self.progress.clone()))
    }

    /// Bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        self.written
    }

    /// The stream ends here, and well. Returns its length in bytes.
    pub fn commit(self) -> u64 {
        self.progress.commit(self.written);
        self.written
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Counts bytes that a system call has put behind the others.
    pub(crate) fn grow(&mut self, bytes: u64) {
        self.written += bytes;
        self.progress.publish(self.written);
    }
}

impl Write for GrowingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write_at(bytes, self.written)?;
        self.grow(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for GrowingWriter {
    fn drop(&mut self) {
        // Without effect after a commit.
        self.progress.lose();
    }
}

/// A reader of a growing object. [`Read::read`] blocks until there are bytes, gives no bytes only
/// at the true end, and fails with a [`StreamFault`] if the producer is lost.
#[derive(Debug)]
pub struct GrowingReader {
    file: File,
    progress: Arc<Progress>,
    at: u64,
    /// Bytes that are known to be there.
    known: u64,
    granularity_bytes: u64,
}

impl GrowingReader {
    /// A reader from the first byte that is woken for each new one.
    pub fn new(file: File, progress: Arc<Progress>) -> GrowingReader {
        GrowingReader {
            file,
            progress,
            at: 0,
            known: 0,
            granularity_bytes: 1,
        }
    }

    /// The same from another byte.
    #[must_use]
    pub fn from(mut self, at: u64) -> GrowingReader {
        self.at = at;
        self
    }

    /// The same, woken only when so many bytes are new or the stream has ended.
    #[must_use]
    pub fn with_granularity(mut self, bytes: u64) -> GrowingReader {
        self.granularity_bytes = bytes.max(1);
        self
    }

    /// A second reader of the same object, from its first byte and with the same granularity.
    ///
    /// # Errors
    /// If the file cannot be opened once more.
    pub fn again(&self) -> io::Result<GrowingReader> {
        Ok(GrowingReader {
            file: self.file.try_clone()?,
            progress: self.progress.clone(),
            at: 0,
            known: 0,
            granularity_bytes: self.granularity_bytes,
        })
    }

    /// The offset of the next byte.
    pub fn position_bytes(&self) -> u64 {
        self.at
    }

    pub(crate) fn granularity_bytes(&self) -> u64 {
        self.granularity_bytes
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    pub(crate) fn advance(&mut self, bytes: u64) {
        self.at += bytes;
    }

    /// Sleeps until the granularity is new unless bytes are known already, and says how many bytes
    /// can be read from here. Zero is the true end.
    ///
    /// # Errors
    /// [`StreamFault::ProducerLost`] once everything before the loss has been read.
    pub fn wait(&mut self) -> io::Result<u64> {
        if self.known <= self.at {
            let wanted = self.at.saturating_add(self.granularity_bytes);
            let look = self.progress.wait(wanted, None)?;
            self.known = look.length;
            if look.length <= self.at && look.state == State::Lost {
                return Err(StreamFault::ProducerLost { read: self.at }.into());
            }
        }
        Ok(self.known.saturating_sub(self.at))
    }
}

impl Read for GrowingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let new = self.wait()?;
        let wanted = buffer.len().min(usize::try_from(new).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let count = self.file.read_at(&mut buffer[..wanted], self.at)?;
        if count == 0 {
            // The file is shorter than was published: not an end.
            return Err(StreamFault::Damaged { read: self.at }.into());
        }
        self.at += count as u64;
        Ok(count)
    }
}
