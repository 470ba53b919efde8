//! Reads archives that anybody may have made.
//!
//! Each header is compared with the one that a writer would have written for the only member that
//! may come next; so neither paths, links, devices nor sizes of other kinds get in. What it reads
//! goes to a [`Receiver`]; it does not know what becomes of it. Read next: `carry`.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, ErrorKind, Read};

use ciel_model::{Digest, Hasher};
use tar::Header;

use super::{
    ArchiveError, BLOCK_BYTES, FORMAT, MANIFEST, Manifest, entry_member, header, is_archive,
    is_carried, needed, object_member, order_of, padding,
};
use crate::entry::Entry;
use crate::error::KeptError;
use crate::limits::{ARCHIVE_MANIFEST_BYTES_MAX, SHARED_ENTRY_BYTES_MAX};

/// Who takes what an archive holds.
pub trait Receiver {
    /// The archive says this of itself.
    fn on_manifest(&mut self, manifest: &Manifest);

    /// The next entry; its objects follow.
    ///
    /// # Errors
    /// Those of keeping it; the archive is not read any further.
    fn on_entry(&mut self, entry: Entry) -> Result<(), KeptError>;

    /// An object of the entry, which need not be read. Only after its last byte it is known whether
    /// it differs from its digest: then no more calls follow.
    ///
    /// # Errors
    /// Those of keeping it, likewise.
    fn on_object(&mut self, digest: Digest, bytes: &mut dyn Read) -> Result<(), KeptError>;

    /// All objects of the entry have come, now or with earlier entries, and none is damaged.
    ///
    /// # Errors
    /// Those of keeping it, likewise.
    fn on_entry_complete(&mut self) -> Result<(), KeptError>;
}

/// Reads an archive from its beginning to its end.
///
/// # Errors
/// The first thing that is wrong with it, or that its receiver says.
pub fn read<R: Read>(source: R, receiver: &mut dyn Receiver) -> Result<(), ArchiveError> {
    let mut reader = Reader {
        source,
        objects: BTreeSet::new(),
        last: None,
    };
    let manifest = reader.manifest()?;
    receiver.on_manifest(&manifest);
    for _ in 0..manifest.entries {
        let entry = reader.entry()?;
        let mut missing: VecDeque<(Digest, u64)> = needed(&entry).into();
        missing.retain(|(digest, _)| reader.objects.insert(*digest));
        receiver.on_entry(entry)?;
        for (digest, length) in missing {
            reader.object(digest, length, receiver)?;
        }
        receiver.on_entry_complete()?;
    }
    reader.end()
}

struct Reader<R> {
    source: R,
    /// Those that have come.
    objects: BTreeSet<Digest>,
    last: Option<(bool, Digest)>,
}

impl<R: Read> Reader<R> {
    fn manifest(&mut self) -> Result<Manifest, ArchiveError> {
        let foreign = |error| match error {
            ArchiveError::Truncated => ArchiveError::Foreign,
            error => error,
        };
        let found = self.header().map_err(foreign)?;
        if !is_archive(found.as_bytes()) {
            return Err(ArchiveError::Foreign);
        }
        let text = self.small(&found, MANIFEST, ARCHIVE_MANIFEST_BYTES_MAX)?;
        let damaged = || ArchiveError::Damaged(MANIFEST.to_string());
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|_| damaged())?;
        if manifest.format != FORMAT {
            return Err(ArchiveError::OtherFormat(manifest.format));
        }
        match manifest.is_sound() && manifest.encoded() == text {
            true => Ok(manifest),
            false => Err(damaged()),
        }
    }

    fn entry(&mut self) -> Result<Entry, ArchiveError> {
        let found = self.header()?;
        if is_end(&found) {
            return Err(ArchiveError::Truncated);
        }
        let name = name_of(&found);
        if !is_entry_member(&name) {
            return Err(ArchiveError::Unexpected(name));
        }
        let body = self.small(&found, &name, SHARED_ENTRY_BYTES_MAX)?;
        let damaged = || ArchiveError::Damaged(name.clone());
        let (digest, body) = body.split_first_chunk().ok_or_else(damaged)?;
        if Digest(u128::from_be_bytes(*digest)) != Digest::of(body) {
            return Err(damaged());
        }
        let (entry, rest) = postcard::take_from_bytes::<Entry>(body).map_err(|_| damaged())?;
        let order = order_of(&entry);
        if !rest.is_empty() || name != entry_member(order.1) {
            return Err(damaged());
        }
        if !is_carried(&entry) || self.last >= Some(order) {
            return Err(ArchiveError::Unexpected(name));
        }
        self.last = Some(order);
        Ok(entry)
    }

    fn object(
        &mut self,
        digest: Digest,
        length: u64,
        receiver: &mut dyn Receiver,
    ) -> Result<(), ArchiveError> {
        let name = object_member(digest);
        let found = self.header()?;
        expect(&found, &name, length)?;
        let mut bytes = Hashed {
            source: (&mut self.source).take(length),
            hasher: Hasher::default(),
            failed: None,
        };
        let taken = receiver.on_object(digest, &mut bytes);
        if taken.is_ok() {
            // What the receiver did not read is looked at all the same.
            io::copy(&mut bytes, &mut io::sink())?;
        }
        match bytes.failed {
            Some(error) => return Err(error.into()),
            None => taken?,
        }
        if bytes.source.limit() > 0 {
            return Err(ArchiveError::Truncated);
        }
        if bytes.hasher.finish() != digest {
            return Err(ArchiveError::Damaged(name));
        }
        self.padding(length, &name)
    }

    /// Nothing but the mark of the end is left.
    fn end(&mut self) -> Result<(), ArchiveError> {
        for _ in 0..2 {
            let block = self.header()?;
            if !is_end(&block) {
                return Err(ArchiveError::Unexpected(name_of(&block)));
            }
        }
        match self.source.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(ArchiveError::Unexpected("what follows its end".to_string())),
        }
    }

    /// The bytes of a member that has that name and at most so many.
    fn small(
        &mut self,
        found: &Header,
        name: &str,
        bytes_max: u64,
    ) -> Result<Vec<u8>, ArchiveError> {
        let length = found.entry_size().unwrap_or(u64::MAX);
        if length > bytes_max {
            return Err(ArchiveError::Unexpected(name.to_string()));
        }
        expect(found, name, length)?;
        let mut bytes = Vec::new();
        (&mut self.source).take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(ArchiveError::Truncated);
        }
        self.padding(length, name)?;
        Ok(bytes)
    }

    fn header(&mut self) -> Result<Header, ArchiveError> {
        let mut header = Header::new_old();
        self.exactly(header.as_mut_bytes())?;
        Ok(header)
    }

    fn padding(&mut self, length: u64, name: &str) -> Result<(), ArchiveError> {
        let mut block = [0; BLOCK_BYTES];
        let zeros = &mut block[..padding(length)];
        self.exactly(zeros)?;
        match zeros.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err(ArchiveError::Damaged(name.to_string())),
        }
    }

    fn exactly(&mut self, bytes: &mut [u8]) -> Result<(), ArchiveError> {
        self.source
            .read_exact(bytes)
            .map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => ArchiveError::Truncated,
                _ => error.into(),
            })
    }
}

/// The header is that of a regular file of this name and length, and of nothing else.
fn expect(found: &Header, name: &str, length: u64) -> Result<(), ArchiveError> {
    if name_of(found) != name {
        return Err(ArchiveError::Unexpected(name_of(found)));
    }
    match found.as_bytes() == header(name, length).as_bytes() {
        true => Ok(()),
        false => Err(ArchiveError::Unexpected(name.to_string())),
    }
}

fn is_end(block: &Header) -> bool {
    block.as_bytes() == &[0; BLOCK_BYTES]
}

/// Whether an entry can have that name.
fn is_entry_member(name: &str) -> bool {
    let digits = name
        .strip_prefix("entries/")
        .map(|name| name.replace('/', ""));
    let key = digits.and_then(|digits| u128::from_str_radix(&digits, 16).ok());
    key.is_some_and(|key| name == entry_member(Digest(key)))
}

/// The name of a member as messages show it.
fn name_of(found: &Header) -> String {
    let name = String::from_utf8_lossy(&found.path_bytes()).into_owned();
    match name.is_empty() {
        true => "a member without a name".to_string(),
        false => name.escape_debug().to_string(),
    }
}

/// Bytes whose digest is computed while they are read.
struct Hashed<R> {
    source: R,
    hasher: Hasher,
    /// What went wrong with the source, which a receiver may report as its own.
    failed: Option<io::Error>,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.source.read(buffer) {
            Ok(count) => {
                self.hasher.update(&buffer[..count]);
                Ok(count)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            Err(error) => {
                let told = io::Error::from(error.kind());
                self.failed = Some(error);
                Err(told)
            }
        }
    }
}
