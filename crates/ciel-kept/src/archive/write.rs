//! Writes archives, member by member.
//!
//! It holds the digests of objects that are written, and nothing else. Read next: `read`.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};

use ciel_model::{Digest, Hasher};

use super::{
    ArchiveError, BLOCK_BYTES, MANIFEST, Manifest, entry_member, header, is_carried, needed,
    object_member, order_of, padding,
};
use crate::entry::Entry;
use crate::limits::READ_BYTES;

/// An archive that is being written.
#[derive(Debug)]
pub struct ArchiveWriter<W> {
    target: W,
    objects: BTreeSet<Digest>,
    last: Option<(bool, Digest)>,
}

impl<W: Write> ArchiveWriter<W> {
    /// Begins an archive.
    ///
    /// # Errors
    /// Those of the target.
    pub fn new(target: W, manifest: &Manifest) -> io::Result<ArchiveWriter<W>> {
        let mut writer = ArchiveWriter {
            target,
            objects: BTreeSet::new(),
            last: None,
        };
        writer.add_member(MANIFEST, &manifest.encoded())?;
        Ok(writer)
    }

    /// Adds an entry, which comes after those that are there in the order of archives, and of its
    /// objects those that are not there; `open` gives their bytes.
    ///
    /// # Errors
    /// Those of target and objects; `Damaged` for an object that differs from its digest.
    pub fn add<R: Read>(
        &mut self,
        entry: &Entry,
        mut open: impl FnMut(Digest) -> io::Result<R>,
    ) -> Result<(), ArchiveError> {
        let order = order_of(entry);
        debug_assert!(is_carried(entry) && self.last < Some(order));
        self.last = Some(order);
        let mut body = vec![0; 16];
        body.extend(postcard::to_stdvec(entry).expect("an entry in memory can be encoded"));
        let digest = Digest::of(&body[16..]);
        body[..16].copy_from_slice(&digest.0.to_be_bytes());
        self.add_member(&entry_member(order.1), &body)?;
        for (digest, length) in needed(entry) {
            if self.objects.insert(digest) {
                self.add_object(digest, length, open(digest)?)?;
            }
        }
        Ok(())
    }

    fn add_member(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        self.target.write_all(header(name, length).as_bytes())?;
        self.target.write_all(bytes)?;
        self.pad(length)
    }

    fn add_object(
        &mut self,
        digest: Digest,
        length: u64,
        mut bytes: impl Read,
    ) -> Result<(), ArchiveError> {
        let name = object_member(digest);
        self.target.write_all(header(&name, length).as_bytes())?;
        let mut hasher = Hasher::default();
        let mut buffer = vec![0; READ_BYTES];
        let mut left = length;
        while left > 0 {
            let wanted = buffer
                .len()
                .min(usize::try_from(left).unwrap_or(READ_BYTES));
            let count = bytes.read(&mut buffer[..wanted])?;
            if count == 0 {
                return Err(ArchiveError::Damaged(name));
            }
            hasher.update(&buffer[..count]);
            self.target.write_all(&buffer[..count])?;
            left -= count as u64;
        }
        if hasher.finish() != digest {
            return Err(ArchiveError::Damaged(name));
        }
        Ok(self.pad(length)?)
    }

    fn pad(&mut self, length: u64) -> io::Result<()> {
        self.target.write_all(&[0; BLOCK_BYTES][..padding(length)])
    }

    /// Ends the archive, and gives its target back.
    ///
    /// # Errors
    /// Those of the target.
    pub fn finish(mut self) -> io::Result<W> {
        self.target.write_all(&[0; 2 * BLOCK_BYTES])?;
        self.target.flush()?;
        Ok(self.target)
    }
}
