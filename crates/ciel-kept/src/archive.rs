//! Archives: kept results in one file, which carries them to another folder or machine.
//!
//! An archive is a tar file with exactly these members, in this order; equal results give equal
//! bytes, and whatever else a tar file may hold is refused.
//!
//! | member | holds |
//! |---|---|
//! | `ciel-kept-results.json` | the [`Manifest`] |
//! | `entries/ab/cd…` | the digest of an entry, then the entry, under its key |
//! | `objects/ab/cd…` | an object that the entry before it needs and that was not there yet |
//!
//! Entries that anybody may take come first, then those that only who trusts the maker takes; both
//! in the order of their keys. So what a reader does not take is never needed later. The names are
//! those of a folder of several users. It does not know where results are kept. Read next:
//! `archive/read`, then `carry`.

mod read;
mod write;

use std::io;
use std::path::Path;

use ciel_model::Digest;
use serde::{Deserialize, Serialize};
use tar::{EntryType, Header};

pub use self::read::{Receiver, read};
pub use self::write::ArchiveWriter;
use crate::entry::Entry;
use crate::error::KeptError;
use crate::limits::ARCHIVE_OWNER_BYTES_MAX;

/// The name of the first member, with which each archive begins.
pub const MANIFEST: &str = "ciel-kept-results.json";

/// The number of the encoding of manifests and entries; readers know this one only.
pub const FORMAT: u32 = 1;

/// Bytes of a block of a tar file.
const BLOCK_BYTES: usize = 512;

/// What an archive says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The number of the encoding.
    pub format: u32,
    /// The user who made the archive, as they say: nothing proves it.
    pub owner: String,
    /// Number of entries.
    pub entries: u64,
}

impl Manifest {
    fn encoded(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a manifest in memory can be encoded")
    }

    /// The owner's name can be shown.
    fn is_sound(&self) -> bool {
        let is_short = (1..=ARCHIVE_OWNER_BYTES_MAX).contains(&self.owner.len());
        is_short && !self.owner.chars().any(char::is_control)
    }
}

/// Why an archive cannot be read or taken.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Its file cannot be read or written.
    #[error("{0}")]
    File(#[from] io::Error),
    /// It does not begin with a manifest.
    #[error("it is not an archive of kept results")]
    Foreign,
    /// Its encoding is another one.
    #[error("its format is {0}, and this version of ciel reads format {FORMAT}")]
    OtherFormat(u32),
    /// It ends early.
    #[error("it is cut short")]
    Truncated,
    /// The bytes of this member are not those that its name stands for.
    #[error("{0} is damaged")]
    Damaged(String),
    /// A member that no archive has at its place: a link, a path, a device, a size or an order of
    /// another kind.
    #[error("{0} does not belong there")]
    Unexpected(String),
    /// What it holds cannot be kept.
    #[error(transparent)]
    Kept(#[from] KeptError),
}

/// Whether a file, of which these are the first bytes, is an archive or begins like one.
pub fn is_archive(beginning: &[u8]) -> bool {
    beginning.starts_with(MANIFEST.as_bytes()) && beginning.get(MANIFEST.len()) == Some(&0)
}

/// The place of an entry in an archive: those that anybody may take first.
pub(crate) fn order_of(entry: &Entry) -> (bool, Digest) {
    (!entry.is_harmless(), entry.parts.key())
}

/// Whether an entry can be in an archive: one that writes to files of its maker cannot.
pub(crate) fn is_carried(entry: &Entry) -> bool {
    entry.printed.iter().all(|printed| printed.file.is_none())
}

fn member(kind: &str, digest: Digest) -> String {
    let name = digest.to_string();
    format!("{kind}/{}/{}", &name[..2], &name[2..])
}

fn entry_member(key: Digest) -> String {
    member("entries", key)
}

fn object_member(digest: Digest) -> String {
    member("objects", digest)
}

/// The header of a member: a regular file without owner and times.
fn header(name: &str, length: u64) -> Header {
    let mut header = Header::new_ustar();
    header
        .set_path(Path::new(name))
        .expect("names of members are short");
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o444);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(length);
    header.set_cksum();
    header
}

/// Zeros after a member up to the next block.
fn padding(length: u64) -> usize {
    let over = (length % BLOCK_BYTES as u64) as usize;
    (BLOCK_BYTES - over) % BLOCK_BYTES
}

/// The objects that an entry needs, each once, in the order of its outputs.
fn needed(entry: &Entry) -> Vec<(Digest, u64)> {
    let mut needed: Vec<(Digest, u64)> = Vec::new();
    for object in entry.objects() {
        if !needed.iter().any(|(known, _)| *known == object.0) {
            needed.push(object);
        }
    }
    needed
}
