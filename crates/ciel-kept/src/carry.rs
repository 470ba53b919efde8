//! Kept results into an archive, and out of it into another folder.
//!
//! An archive is read twice: first to see that it is whole, then to take it. Nobody can tell who
//! made the file, so its results are those of a stranger until whoever takes them trusts the name
//! in it. Each entry is kept when all of its objects are there, so a process that is killed leaves
//! whole entries, and the next one takes the rest. It does not know what runs. Read next:
//! `archive`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ciel_model::Digest;

use crate::archive::{self, ArchiveError, ArchiveWriter, FORMAT, Manifest, Receiver};
use crate::entry::Entry;
use crate::error::KeptError;
use crate::limits::{CARRIED_AT_ONCE, READ_BYTES};
use crate::shared::{SharedFound, SharedResults};
use crate::staging::Staging;
use crate::store::KeptResults;

/// As the run of results that were unpacked.
pub const UNPACKED: &str = "unpacked";

/// What went into an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Number of results.
    pub results: u64,
    /// Results that were asked for and are not kept, are damaged, or write to files.
    pub left_out: u64,
}

/// What came out of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// The user who made the archive, as they say.
    pub owner: String,
    /// Results that were taken.
    pub taken: u64,
    /// Results that were there already.
    pub present: u64,
    /// Results that were not taken: they could run code, and the owner is not trusted.
    pub refused: u64,
}

/// Where results of an archive go.
#[derive(Debug)]
pub enum Destination<'a> {
    /// Among the results of a state folder, as used at that time, in seconds since 1970.
    Own(&'a mut KeptResults, u64),
    /// Into a folder of several users, as results of this user.
    Shared(&'a SharedResults),
}

/// Where results are that go into an archive.
#[derive(Debug)]
pub struct Source<'a> {
    /// Those of a state folder, which come first.
    pub own: &'a KeptResults,
    /// Those of a folder of several users, as far as they may be taken.
    pub shared: Option<&'a SharedResults>,
}

/// Writes the results under these keys into an archive of `owner`. `carried` is a result as it is
/// found elsewhere.
///
/// # Errors
/// Those of files and index; nothing is to be used of the target then.
pub fn pack<W: Write>(
    source: &Source<'_>,
    keys: &BTreeSet<Digest>,
    carried: impl Fn(Entry) -> Entry,
    (owner, target): (&str, W),
) -> Result<(Packed, W), ArchiveError> {
    let mut loaded = Loaded::new(source.own.folder())?;
    let mut left_out = 0;
    for key in keys {
        let is_loaded = loaded.load(source, *key, &carried)?;
        left_out += u64::from(!is_loaded);
    }
    let manifest = Manifest {
        format: FORMAT,
        owner: owner.to_string(),
        entries: loaded.places.len() as u64,
    };
    let packed = Packed {
        results: manifest.entries,
        left_out,
    };
    let writer = ArchiveWriter::new(target, &manifest)?;
    Ok((packed, loaded.write(writer)?.finish()?))
}

/// Results on their way into an archive: whatever others remove meanwhile, they stay.
struct Loaded {
    /// Has a name for each object.
    staging: Staging,
    /// Entries, one after the other.
    entries: File,
    /// Where an entry begins, and its bytes, in the order of archives.
    places: BTreeMap<(bool, Digest), (u64, usize)>,
}

impl Loaded {
    fn new(parent: &Path) -> Result<Loaded, KeptError> {
        let staging = Staging::open(parent)?;
        let path = staging.entries();
        let mut options = OpenOptions::new();
        let entries = options.read(true).write(true).create_new(true).open(&path);
        Ok(Loaded {
            entries: entries.map_err(|source| KeptError::file("create", path, source))?,
            staging,
            places: BTreeMap::new(),
        })
    }

    /// Loads what there is under a key; false if that is not whole or cannot be carried.
    fn load(
        &mut self,
        source: &Source<'_>,
        key: Digest,
        carried: impl Fn(Entry) -> Entry,
    ) -> Result<bool, ArchiveError> {
        let found = match (source.own.entry(key)?, source.shared) {
            (Some(entry), _) => Some((entry, None)),
            (None, Some(shared)) => match shared.under(key) {
                SharedFound::Entry { entry, user } => Some((*entry, Some((shared, user)))),
                SharedFound::Untrusted(_) | SharedFound::Nothing => None,
            },
            (None, None) => None,
        };
        let Some((entry, of_user)) = found.filter(|(entry, _)| archive::is_carried(entry)) else {
            return Ok(false);
        };
        for (digest, length) in entry.objects() {
            let path = self.staging.path(digest);
            let is_there = path.exists()
                || match &of_user {
                    None => source.own.take(digest, length, &path)?,
                    Some((shared, user)) => shared.take(user, (digest, length), &path)?,
                };
            if !is_there {
                return Ok(false);
            }
        }
        let entry = carried(entry);
        let body = postcard::to_stdvec(&entry).expect("an entry in memory can be encoded");
        let at = self.entries.seek(SeekFrom::End(0))?;
        self.entries.write_all(&body)?;
        self.places
            .insert(archive::order_of(&entry), (at, body.len()));
        Ok(true)
    }

    fn write<W: Write>(
        &mut self,
        mut writer: ArchiveWriter<W>,
    ) -> Result<ArchiveWriter<W>, ArchiveError> {
        for (at, length) in self.places.values() {
            let mut body = vec![0; *length];
            self.entries.read_exact_at(&mut body, *at)?;
            let entry = postcard::from_bytes(&body).expect("it was encoded by this process");
            writer.add(&entry, |digest| File::open(self.staging.path(digest)))?;
        }
        Ok(writer)
    }
}

/// Takes the results of an archive, in any form if `trusted` names its owner.
///
/// # Errors
/// What is wrong with the archive: then nothing of it is taken. Those of the destination: then
/// whole results may have been taken.
pub fn unpack(
    mut archive: File,
    trusted: &[String],
    destination: Destination<'_>,
) -> Result<Unpacked, ArchiveError> {
    archive::read(
        BufReader::with_capacity(READ_BYTES, &archive),
        &mut Examiner,
    )?;
    archive.rewind()?;
    let staging = Staging::open(destination.folder())?;
    let mut taker = Taker {
        destination,
        staging,
        trusted,
        is_trusted: false,
        current: None,
        batch: Vec::new(),
        unpacked: Unpacked::default(),
    };
    archive::read(BufReader::with_capacity(READ_BYTES, &archive), &mut taker)?;
    taker.keep_batch()?;
    Ok(taker.unpacked)
}

/// Looks at an archive and takes nothing.
struct Examiner;

impl Receiver for Examiner {
    fn on_manifest(&mut self, _: &Manifest) {}

    fn on_entry(&mut self, _: Entry) -> Result<(), KeptError> {
        Ok(())
    }

    fn on_object(&mut self, _: Digest, _: &mut dyn Read) -> Result<(), KeptError> {
        Ok(())
    }

    fn on_entry_complete(&mut self) -> Result<(), KeptError> {
        Ok(())
    }
}

impl Destination<'_> {
    fn folder(&self) -> &Path {
        match self {
            Destination::Own(store, _) => store.folder(),
            Destination::Shared(shared) => shared.own_folder(),
        }
    }
}

/// Takes what may be taken.
struct Taker<'a> {
    destination: Destination<'a>,
    staging: Staging,
    trusted: &'a [String],
    is_trusted: bool,
    /// The entry whose objects come, if it is taken.
    current: Option<Entry>,
    batch: Vec<(Entry, Vec<PathBuf>)>,
    unpacked: Unpacked,
}

impl Receiver for Taker<'_> {
    fn on_manifest(&mut self, manifest: &Manifest) {
        self.is_trusted = self.trusted.contains(&manifest.owner);
        self.unpacked.owner.clone_from(&manifest.owner);
    }

    fn on_entry(&mut self, entry: Entry) -> Result<(), KeptError> {
        self.current = (self.is_trusted || entry.is_harmless()).then_some(entry);
        if self.current.is_none() {
            self.unpacked.refused += 1;
        }
        Ok(())
    }

    fn on_object(&mut self, digest: Digest, bytes: &mut dyn Read) -> Result<(), KeptError> {
        if self.current.is_none() {
            return Ok(());
        }
        let path = self.staging.path(digest);
        let mut options = OpenOptions::new();
        let created = options.write(true).create_new(true).mode(0o444).open(&path);
        let copied = created.and_then(|mut file| io::copy(bytes, &mut file));
        copied.map_err(|source| KeptError::file("write", path, source))?;
        Ok(())
    }

    fn on_entry_complete(&mut self) -> Result<(), KeptError> {
        let Some(mut entry) = self.current.take() else {
            return Ok(());
        };
        entry.run = UNPACKED.into();
        if self.is_present(&entry)? {
            self.unpacked.present += 1;
            return Ok(());
        }
        let objects = entry.objects();
        let files = objects
            .map(|(digest, _)| self.staging.path(digest))
            .collect();
        self.batch.push((entry, files));
        match self.batch.len() >= CARRIED_AT_ONCE {
            true => self.keep_batch(),
            false => Ok(()),
        }
    }
}

impl Taker<'_> {
    /// Whether a result is there and whole; one that is damaged is removed.
    fn is_present(&mut self, entry: &Entry) -> Result<bool, KeptError> {
        match &mut self.destination {
            Destination::Own(store, _) => {
                let Some(found) = store.entry(entry.parts.key())? else {
                    return Ok(false);
                };
                let is_whole = store.has_objects(&found);
                if !is_whole {
                    store.discard(&entry.parts)?;
                }
                Ok(is_whole)
            }
            Destination::Shared(shared) => Ok(match shared.find(&entry.parts) {
                SharedFound::Entry { user, .. } => user == shared.own_folder(),
                SharedFound::Untrusted(_) | SharedFound::Nothing => false,
            }),
        }
    }

    fn keep_batch(&mut self) -> Result<(), KeptError> {
        let batch = std::mem::take(&mut self.batch);
        match &mut self.destination {
            Destination::Own(store, now_s) => store.keep(&batch, *now_s)?,
            Destination::Shared(shared) => {
                for (entry, files) in &batch {
                    shared.keep(entry, files)?;
                }
            }
        }
        self.unpacked.taken += batch.len() as u64;
        Ok(())
    }
}
