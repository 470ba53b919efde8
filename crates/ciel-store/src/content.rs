//! The content of files: digests, and what of them is to be proved.
//!
//! It does not know what a file is for. Read next: `objects`.

use std::fs::File;
use std::os::unix::fs::FileExt;

use ciel_model::{Digest, Hasher};

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
        }
    }

    /// The digest with which the file has to be compared before it is used.
    pub(crate) fn unverified(&self) -> Option<Digest> {
        self.digest.filter(|_| !self.is_verified)
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
