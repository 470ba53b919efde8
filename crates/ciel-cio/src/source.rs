//! Where bytes are read from: a file, or memory in tests.
//!
//! It does not know the format.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that can be read at any offset.
pub trait Source {
    /// Reads into the buffer; gives how many bytes there were, and 0 behind the last one.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// How many bytes there are.
    ///
    /// # Errors
    /// Those of the system.
    fn bytes(&self) -> io::Result<u64>;
}

impl Source for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl Source for &[u8] {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.get(start..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// Fills the buffer as far as there are bytes; gives how many those are.
pub(crate) fn read_most(source: &impl Source, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
