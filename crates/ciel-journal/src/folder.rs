//! The files of a journal's folder: their names, and which of them make up what was recorded.
//!
//! Recovery takes the newest snapshot and the chain of logs from its generation on. Files before
//! it are leftovers; the tail of the chain that never became safe is cut. Reads only; `open`
//! does what must be changed. Read next: [`crate::reader`], which judges each file.

use std::path::PathBuf;

use crate::disk::Disk;
use crate::error::JournalError;
use crate::frame::{Content, FileKind, Sequence};
use crate::reader::{FileEnd, Reader, survey};
use crate::recorded::Cut;

/// A name of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Log(u64),
    Snapshot(u64),
    Draft(u64),
}

impl Name {
    pub(crate) fn text(self) -> String {
        match self {
            Name::Log(generation) => format!("log-{generation:010}"),
            Name::Snapshot(generation) => format!("snapshot-{generation:010}"),
            Name::Draft(generation) => format!("draft-{generation:010}"),
        }
    }

    fn parse(text: &str) -> Option<Name> {
        let (kind, digits) = text.split_once('-')?;
        let generation = digits.parse().ok()?;
        let name = match kind {
            "log" => Name::Log(generation),
            "snapshot" => Name::Snapshot(generation),
            "draft" => Name::Draft(generation),
            _ => return None,
        };
        (name.text() == text).then_some(name)
    }

    /// Whether this file is of no use once a snapshot of that generation is safe.
    pub(crate) fn is_superseded_by(self, snapshot: u64) -> bool {
        match self {
            Name::Log(generation) | Name::Snapshot(generation) | Name::Draft(generation) => {
                generation < snapshot
            }
        }
    }
}

/// Our names in a folder, sorted.
pub(crate) fn names(disk: &dyn Disk) -> Result<Vec<Name>, JournalError> {
    let all = disk.names();
    let all = all.map_err(|error| JournalError::system("list", disk.path(), error))?;
    let mut ours: Vec<Name> = all.iter().filter_map(|name| Name::parse(name)).collect();
    ours.sort();
    Ok(ours)
}

pub(crate) fn path_of(disk: &dyn Disk, name: Name) -> PathBuf {
    disk.path().join(name.text())
}

/// The records, as the files contain them.
pub(crate) struct Found {
    /// The generation to begin with: that of the snapshot, or 0.
    pub(crate) generation: u64,
    pub(crate) snapshot: Option<Vec<u8>>,
    pub(crate) snapshot_until: Sequence,
    /// The logs that count, each with its generation and the bytes of it that count.
    pub(crate) logs: Vec<(u64, Vec<u8>)>,
    pub(crate) last: Sequence,
    pub(crate) cut: Option<Cut>,
    pub(crate) is_closed: bool,
}

/// Reads what the folder holds.
pub(crate) fn read(disk: &dyn Disk) -> Result<Found, JournalError> {
    let names = names(disk)?;
    let snapshots = names.iter().filter_map(|name| match name {
        Name::Snapshot(generation) => Some(*generation),
        _ => None,
    });
    let mut found = Found {
        generation: 0,
        snapshot: None,
        snapshot_until: Sequence(0),
        logs: Vec::new(),
        last: Sequence(0),
        cut: None,
        is_closed: false,
    };
    if let Some(generation) = snapshots.max() {
        let (payload, until) = read_snapshot(disk, generation)?;
        found.generation = generation;
        found.snapshot = Some(payload);
        found.snapshot_until = until;
        found.last = until;
    }
    for name in names {
        match name {
            Name::Log(generation) if generation >= found.generation => {
                found.add_log(disk, generation)?;
            }
            _ => {}
        }
    }
    Ok(found)
}

fn bytes_of(disk: &dyn Disk, name: Name) -> Result<Vec<u8>, JournalError> {
    let read = disk.read(&name.text());
    read.map_err(|error| JournalError::system("read", &path_of(disk, name), error))
}

/// A snapshot is synced before it gets its name, so whatever is wrong with it is damage.
fn read_snapshot(disk: &dyn Disk, generation: u64) -> Result<(Vec<u8>, Sequence), JournalError> {
    let name = Name::Snapshot(generation);
    let bytes = bytes_of(disk, name)?;
    let mut payload = Vec::new();
    let mut reader = Reader::new(&bytes);
    let mut ends = 0;
    for frame in reader.by_ref() {
        match frame.content {
            Content::Record(piece) => payload.extend_from_slice(piece),
            Content::End => ends += 1,
            Content::SyncMark { .. } => {}
        }
    }
    let damaged = |offset: usize, next_intact: Option<usize>| JournalError::Damaged {
        path: path_of(disk, name),
        offset: offset as u64,
        next_intact: next_intact.map(|offset| offset as u64),
    };
    let header = reader.header();
    let fits = header.filter(|one| one.kind == FileKind::Snapshot && one.generation == generation);
    match (reader.ending(), fits) {
        (FileEnd::OtherFormat { found }, _) => {
            Err(JournalError::other_format(path_of(disk, name), found))
        }
        (FileEnd::Clean { is_ended: true }, Some(header)) if ends == 1 => {
            Ok((payload, header.base))
        }
        (FileEnd::Clean { .. }, Some(_)) => Err(damaged(bytes.len(), None)),
        (FileEnd::Clean { .. }, None) => Err(damaged(0, None)),
        (FileEnd::Torn { offset, .. } | FileEnd::Damaged { offset, .. }, _) => {
            Err(damaged(offset, survey(&bytes, offset).first_intact))
        }
    }
}

impl Found {
    fn add_log(&mut self, disk: &dyn Disk, generation: u64) -> Result<(), JournalError> {
        let path = path_of(disk, Name::Log(generation));
        let mut bytes = bytes_of(disk, Name::Log(generation))?;
        let is_first = self.logs.is_empty() && self.snapshot.is_none() && self.cut.is_none();
        if is_first && generation > 0 {
            // Logs are removed only after the snapshot that takes their place is safe.
            return Err(damaged(path, 0, None));
        }
        let mut reader = Reader::new(&bytes);
        let ending = reader.ending();
        let header = reader.header();
        let follows = self.cut.is_none()
            && header.is_some_and(|header| {
                (header.kind, header.generation, header.base)
                    == (FileKind::Log, generation, self.last)
            });
        let (kept, is_closed) = match ending {
            FileEnd::OtherFormat { found } => return Err(JournalError::other_format(path, found)),
            FileEnd::Damaged {
                offset,
                next_intact,
            } => return Err(damaged(path, offset, next_intact)),
            FileEnd::Clean { is_ended } => (bytes.len(), is_ended),
            FileEnd::Torn { offset, .. } => (offset, false),
        };
        self.is_closed = is_closed;
        if !follows {
            return self.lose(path, &bytes, 0);
        }
        self.last = reader.last_record();
        let torn = (kept < bytes.len()).then(|| self.lose(path, &bytes, kept));
        torn.transpose()?;
        bytes.truncate(kept);
        self.logs.push((generation, bytes));
        Ok(())
    }

    /// Drops a file from an offset on, unless the file proves that later bytes were synced.
    fn lose(&mut self, path: PathBuf, bytes: &[u8], offset: usize) -> Result<(), JournalError> {
        let rest = survey(bytes, offset);
        let cut = self.cut.get_or_insert(Cut {
            path,
            offset: offset as u64,
            bytes: 0,
            records: 0,
        });
        if rest.synced > self.last || rest.is_given_up {
            return Err(damaged(cut.path.clone(), cut.offset as usize, None));
        }
        self.is_closed = false;
        cut.bytes += (bytes.len() - offset) as u64;
        cut.records += rest.records;
        Ok(())
    }
}

fn damaged(path: PathBuf, offset: usize, next: impl Into<Option<usize>>) -> JournalError {
    JournalError::Damaged {
        path,
        offset: offset as u64,
        next_intact: next.into().map(|offset| offset as u64),
    }
}
