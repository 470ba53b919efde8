//! The content of files: digests, and what of them is to be proved.
//!
//! It does not know what a file is for. Read next: `objects`.

use std::fs::File;
use std::os::unix::fs::FileExt;

use ciel_model::{Digest, Hasher};
use rustix::fs::Stat;

use crate::counts::Kind;
use crate::limits::COPY_BYTES_MAX;

/// What is known of the content of a committed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) length: u64,
    /// How the bytes came, which is what they are counted as.
    pub(crate) kind: Kind,
    /// Of the bytes as they were written, if it was made.
    pub(crate) digest: Option<Digest>,
    /// Whether this process wrote the bytes or has compared them with the digest.
    pub(crate) is_verified: bool,
    /// Whether the file is in the folder that is in memory.
    pub(crate) in_memory: bool,
    /// Whether it was there once: a link to the file is in its place, for whoever knows that path.
    pub(crate) was_in_memory: bool,
    /// Which file it was and when it was last written to, if that is known for sure.
    pub(crate) stamp: Option<Stamp>,
}

/// Which file it is, and when it was last written to: whoever writes to it in place, or puts
/// another one in its place, changes that. Other names and permissions do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    written_s: i64,
    written_ns: i64,
}

impl Stamp {
    /// Of a file of which the system has told this.
    pub(crate) fn of(stat: &Stat) -> Stamp {
        Stamp {
            inode: stat.st_ino,
            written_s: stat.st_mtime,
            written_ns: stat.st_mtime_nsec as i64,
        }
    }

    /// When it was last written to, in seconds and nanoseconds.
    pub(crate) fn written(&self) -> (i64, i64) {
        (self.written_s, self.written_ns)
    }
}

impl Content {
    /// Content that this process has written.
    pub(crate) fn written(length: u64, kind: Kind, digest: Option<Digest>) -> Content {
        Content {
            length,
            kind,
            digest,
            is_verified: true,
            in_memory: false,
            was_in_memory: false,
            stamp: None,
        }
    }

    /// Content that an earlier process has written. Without a digest there is only the length.
    pub(crate) fn found(length: u64, digest: Option<Digest>) -> Content {
        Content {
            length,
            kind: Kind::Recovered,
            digest,
            is_verified: digest.is_none(),
            in_memory: false,
            was_in_memory: false,
            stamp: None,
        }
    }

    /// Whether the file, which has that stamp, may be used without a look at its bytes.
    pub(crate) fn trusts(&self, stamp: Stamp) -> bool {
        self.is_verified && self.stamp.is_none_or(|known| known == stamp)
    }
}

/// The digest of a whole file, whatever its cursor.
///
/// # Errors
/// Those of reading.
pub(crate) fn digest_of(file: &File) -> std::io::Result<Digest> {
    digest_of_range(file, 0, u64::MAX)
}

/// The digest of so many bytes of a file, or of those up to its end if they are fewer.
///
/// # Errors
/// Those of reading.
pub(crate) fn digest_of_range(file: &File, offset: u64, length: u64) -> std::io::Result<Digest> {
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; COPY_BYTES_MAX.min(usize::try_from(length).unwrap_or(usize::MAX))];
    let (mut at, end) = (offset, offset.saturating_add(length));
    while at < end {
        let part = (end - at).min(buffer.len() as u64) as usize;
        match file.read_at(&mut buffer[..part], at)? {
            0 => break,
            count => {
                hasher.update(&buffer[..count]);
                at += count as u64;
            }
        }
    }
    Ok(hasher.finish())
}
