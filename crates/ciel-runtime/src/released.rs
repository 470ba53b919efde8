//! The file of all ordered output that a run has let out, from its first byte on.
//!
//! Whoever takes the run up finds there what the world has seen. What is made again is compared
//! with it and not let out twice. It does not know who reads the output. Read next: `output`.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are read at once.
const READ_BYTES_MAX: usize = 64 << 10;

/// The output of one run so far.
#[derive(Debug)]
pub(crate) struct Released {
    file: File,
    /// Bytes in the file.
    length: u64,
    /// Bytes of the output that came by so far; less than `length` while they come again.
    at: u64,
}

impl Released {
    /// The file at `path`, made if it is missing. What comes next is the output from byte `at` on.
    pub(crate) fn open(path: &Path, at: u64) -> io::Result<Released> {
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let length = file.metadata()?.len();
        Ok(Released { file, length, at })
    }

    /// Bytes that were let out, be it by an earlier process of the run.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Makes sure that what was let out survives a power failure.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The next bytes of the output are known to be there.
    pub(crate) fn pass(&mut self, length: u64) {
        self.at += length;
    }

    /// Takes the next bytes of the output, and gives those of them that were not let out before.
    ///
    /// # Errors
    /// `InvalidData` if other bytes were let out there; those of the file.
    pub(crate) fn take<'a>(&mut self, bytes: &'a [u8]) -> io::Result<&'a [u8]> {
        let known = self.length.saturating_sub(self.at).min(bytes.len() as u64) as usize;
        if !self.holds(&bytes[..known])? {
            let message = "what the run put out before it was taken up was something else";
            return Err(io::Error::new(ErrorKind::InvalidData, message));
        }
        let rest = &bytes[known..];
        self.file.write_all_at(rest, self.at + known as u64)?;
        self.at += bytes.len() as u64;
        self.length = self.length.max(self.at);
        Ok(rest)
    }

    /// Hands out all that was let out, a bounded part at a time.
    pub(crate) fn tell(&self, mut to: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = vec![0; READ_BYTES_MAX];
        let mut at = 0;
        while at < self.length {
            let part = READ_BYTES_MAX.min((self.length - at) as usize);
            self.file.read_exact_at(&mut buffer[..part], at)?;
            to(&buffer[..part])?;
            at += part as u64;
        }
        Ok(())
    }

    fn holds(&self, bytes: &[u8]) -> io::Result<bool> {
        let mut found = vec![0; bytes.len().min(READ_BYTES_MAX)];
        let mut at = self.at;
        for part in bytes.chunks(READ_BYTES_MAX) {
            let found = &mut found[..part.len()];
            self.file.read_exact_at(found, at)?;
            if found != part {
                return Ok(false);
            }
            at += part.len() as u64;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_comes_again_is_let_out_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout");
        let mut first = Released::open(&path, 0).unwrap();
        assert_eq!(first.take(b"one two").unwrap(), b"one two");
        let mut second = Released::open(&path, 0).unwrap();
        assert_eq!(second.take(b"one").unwrap(), b"");
        assert_eq!(second.take(b" two three").unwrap(), b" three");
        let mut seen = Vec::new();
        second
            .tell(|part| {
                seen.extend_from_slice(part);
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, b"one two three");
    }

    #[test]
    fn other_output_than_was_let_out_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout");
        Released::open(&path, 0).unwrap().take(b"one two").unwrap();
        let mut again = Released::open(&path, 4).unwrap();
        let error = again.take(b"three").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}
