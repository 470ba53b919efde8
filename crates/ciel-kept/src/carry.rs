//! Kept results into an archive, and out of it into another folder.
//!
//! An archive is read twice: first to see that it is whole, then to take it. Nobody can tell who
//! made the file, so its results are those of a stranger until whoever takes them trusts the name
//! in it. Each entry is kept when all of its objects are there, so a process that is killed leaves
//! whole entries, and the next one takes the rest. It does not know what runs. Read next:
//! `archive`.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
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

/// Writes the results under these keys into an archive of `owner`. `carried` is a result as it is
/// found elsewhere.
///
/// # Errors
/// Those of files and index; nothing is to be used of the target then.
pub fn pack<W: Write>(
    store: &KeptResults,
    keys: &BTreeSet<Digest>,
    carried: impl Fn(Entry) -> Entry,
    (owner, target): (&str, W),
) -> Result<(Packed, W), ArchiveError> {
    // What others remove meanwhile is still there for this one.
    let _snapshot = store
        .connection()
        .unchecked_transaction()
        .map_err(KeptError::from)?;
    let staging = Staging::open(store.folder())?;
    let mut order = BTreeSet::new();
    for key in keys {
        if let Some(entry) = staged(store, *key, &staging)? {
            order.insert((archive::order_of(&carried(entry)), *key));
        }
    }
    let manifest = Manifest {
        format: FORMAT,
        owner: owner.to_string(),
        entries: order.len() as u64,
    };
    let mut writer = ArchiveWriter::new(target, &manifest)?;
    for (_, key) in &order {
        if let Some(entry) = store.entry(*key)? {
            writer.add(&carried(entry), |digest| File::open(staging.path(digest)))?;
        }
    }
    let packed = Packed {
        results: manifest.entries,
        left_out: keys.len() as u64 - manifest.entries,
    };
    Ok((packed, writer.finish()?))
}

/// The entry under a key if it can be packed; its objects get names in the staging folder, by which
/// they stay.
fn staged(store: &KeptResults, key: Digest, staging: &Staging) -> Result<Option<Entry>, KeptError> {
    let Some(entry) = store.entry(key)?.filter(archive::is_carried) else {
        return Ok(None);
    };
    for (digest, length) in entry.objects() {
        let path = staging.path(digest);
        if !path.exists() && !store.take(digest, length, &path)? {
            return Ok(None);
        }
    }
    Ok(Some(entry))
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
