//! The file of all released output of a run, from its first byte on.
//!
//! The process that resumes the run finds in it what readers have seen. Repeated output is compared
//! with the file and not released twice. It does not know who reads the output. Read next:
//! `output`.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use ciel_model::Hasher;
use ciel_store::{Digests, Part, Ranges};

/// Bytes that are read at once.
const READ_BYTES_MAX: usize = 64 << 10;

/// Bytes after which a digest of them is written down.
const RANGE_BYTES_MIN: u64 = 64 << 10;

/// The output of one run so far.
#[derive(Debug)]
pub(crate) struct Released {
    file: File,
    digests: Arc<Digests>,
    /// Bytes at the end of the file that have no digest yet.
    undigested: u64,
    /// Of these bytes.
    hasher: Box<Hasher>,
    /// Bytes in the file.
    length: u64,
    /// Bytes of the output that came by so far; less than `length` while they come again.
    at: u64,
}

impl Released {
    /// The file at `path`, created if it is missing. The next output begins at byte `at`. The
    /// existing bytes are not compared with their digests.
    pub(crate) fn open(path: &Path, at: u64, digests: Arc<Digests>) -> io::Result<Released> {
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let length = file.metadata()?.len();
        Ok(Released {
            file,
            digests,
            undigested: 0,
            hasher: Box::default(),
            length,
            at,
        })
    }

    /// The bytes that were released at `at` are known from elsewhere: they are restored if they
    /// have changed. Bytes beyond the end of the file are ignored.
    pub(crate) fn restore(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let known = self.length.saturating_sub(at).min(bytes.len() as u64);
        let known = &bytes[..known as usize];
        match self.holds(at, known)? {
            true => Ok(()),
            false => self.file.write_all_at(known, at),
        }
    }

    /// Compares released output with its digests; the bytes after the last digest get theirs with
    /// the next ones.
    pub(crate) fn verify(&mut self) -> io::Result<bool> {
        let mut ranges = Ranges::default();
        for (part, digest) in self.digests.read() {
            if let Part::Released { offset, length } = part {
                ranges.add(offset, length, digest);
            }
        }
        ranges.cut(self.length);
        if !ranges.agree(&self.file, 0, self.length)? {
            return Ok(false);
        }
        let mut hasher = Box::<Hasher>::default();
        let begin = ranges.end();
        self.read_from(begin, |part| {
            hasher.update(part);
            Ok(())
        })?;
        (self.hasher, self.undigested) = (hasher, self.length - begin);
        Ok(true)
    }

    /// Writes the digest down of all bytes that have none yet.
    pub(crate) fn note_digest(&mut self) {
        if self.undigested == 0 {
            return;
        }
        let part = Part::Released {
            offset: self.length - self.undigested,
            length: self.undigested,
        };
        let hasher = std::mem::take(&mut self.hasher);
        self.digests.note(part, hasher.finish());
        self.undigested = 0;
    }

    /// Bytes that were released, also by an earlier process of the run.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Syncs released output, so that it survives a power failure.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The next bytes of the output are known to be there.
    pub(crate) fn pass(&mut self, length: u64) {
        self.at += length;
    }

    /// Appends the next bytes of the output, and returns those of them that were not released
    /// before.
    ///
    /// # Errors
    /// `InvalidData` if the released bytes differ; those of the file.
    pub(crate) fn take<'a>(&mut self, bytes: &'a [u8]) -> io::Result<&'a [u8]> {
        let known = self.length.saturating_sub(self.at).min(bytes.len() as u64) as usize;
        if !self.holds(self.at, &bytes[..known])? {
            let message = "the run had already released different output before it was resumed";
            return Err(io::Error::new(ErrorKind::InvalidData, message));
        }
        let rest = &bytes[known..];
        self.file.write_all_at(rest, self.at + known as u64)?;
        self.at += bytes.len() as u64;
        self.length = self.length.max(self.at);
        self.hasher.update(rest);
        self.undigested += rest.len() as u64;
        if self.undigested >= RANGE_BYTES_MIN {
            self.note_digest();
        }
        Ok(rest)
    }

    /// Reads all released output, a bounded part at a time.
    pub(crate) fn tell(&self, to: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.read_from(0, to)
    }

    fn read_from(
        &self,
        mut at: u64,
        mut to: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut buffer = vec![0; READ_BYTES_MAX];
        while at < self.length {
            let part = READ_BYTES_MAX.min((self.length - at) as usize);
            self.file.read_exact_at(&mut buffer[..part], at)?;
            to(&buffer[..part])?;
            at += part as u64;
        }
        Ok(())
    }

    fn holds(&self, mut at: u64, bytes: &[u8]) -> io::Result<bool> {
        let mut found = vec![0; bytes.len().min(READ_BYTES_MAX)];
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
    use ciel_store::{RunFolder, StateFolder};

    use super::*;

    /// The file of released output in a run's folder, whose digests are kept.
    struct Run {
        _home: tempfile::TempDir,
        folder: RunFolder,
    }

    impl Run {
        fn new() -> Run {
            let home = tempfile::tempdir().unwrap();
            let state = StateFolder::open(&home.path().join(".ciel")).unwrap();
            let folder = RunFolder::create(&state, "run", u64::MAX).unwrap();
            folder.record(false);
            let _home = home;
            Run { _home, folder }
        }

        fn open(&self, at: u64) -> Released {
            let digests = self.folder.digests().clone();
            Released::open(&self.folder.output_path(), at, digests).unwrap()
        }

        fn flip(&self, at: usize) {
            let path = self.folder.output_path();
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[at] ^= 1;
            std::fs::write(path, bytes).unwrap();
        }

        fn seen(&self) -> Vec<u8> {
            let mut seen = Vec::new();
            let told = self.open(0).tell(|part| {
                seen.extend_from_slice(part);
                Ok(())
            });
            told.unwrap();
            seen
        }
    }

    #[test]
    fn output_that_comes_again_is_released_once() {
        let run = Run::new();
        assert_eq!(run.open(0).take(b"one two").unwrap(), b"one two");
        let mut second = run.open(0);
        assert_eq!(second.take(b"one").unwrap(), b"");
        assert_eq!(second.take(b" two three").unwrap(), b" three");
        assert_eq!(run.seen(), b"one two three");
    }

    #[test]
    fn other_output_than_was_released_is_refused() {
        let run = Run::new();
        run.open(0).take(b"one two").unwrap();
        let error = run.open(4).take(b"three").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    /// A flipped bit in the file of released output once was shown by the next resume.
    #[test]
    fn changed_output_is_found_by_its_digest_and_restored_from_the_records() {
        let run = Run::new();
        let long = vec![b'x'; RANGE_BYTES_MIN as usize];
        let mut first = run.open(0);
        first.take(&long).unwrap();
        first.take(b"short").unwrap();
        first.note_digest();
        first.take(b"without a digest").unwrap();
        let end = long.len();
        for at in [0, end - 1, end, end + 4] {
            run.flip(at);
            let mut second = run.open(0);
            assert!(!second.verify().unwrap(), "byte {at}");
            second.restore(0, &long).unwrap();
            second
                .restore(end as u64, b"short and longer than the file")
                .unwrap();
            run.flip(end + 5);
            assert!(second.verify().unwrap(), "byte {at}");
            run.flip(end + 5);
        }
        assert!(run.seen().ends_with(b"xshort and longer than"));
    }

    /// Bytes without a digest when the process was lost get one as soon as more output is released.
    #[test]
    fn digests_of_the_next_process_begin_where_those_of_the_last_end() {
        let run = Run::new();
        run.open(0).take(b"one ").unwrap();
        let mut second = run.open(4);
        assert!(second.verify().unwrap());
        second.take(b"two").unwrap();
        second.note_digest();
        run.flip(1);
        assert!(!run.open(0).verify().unwrap());
    }
}
