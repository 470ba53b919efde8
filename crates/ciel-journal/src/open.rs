//! Makes and opens the folder of a journal.
//!
//! After it, exactly the valid files exist, their bytes are safe, and the last log can be appended
//! to. Each step leaves the same to be recorded, so a crash between them does no harm. Read next:
//! `folder`, which says what counts.

use crate::disk::Disk;
use crate::error::JournalError;
use crate::folder::{Found, Name, names, path_of, read};
use crate::frame::Sequence;
use crate::gathering::Gathering;
use crate::recorded::{Recorded, Records};
use crate::writing::{OpenLog, Writing, sync_names};

/// A journal's state at its beginning.
pub(crate) struct Opened {
    pub(crate) gathering: Gathering,
    pub(crate) writing: Writing,
    pub(crate) snapshot_bytes: u64,
}

/// Makes the first log in a folder without a journal.
pub(crate) fn create(disk: &dyn Disk) -> Result<Opened, JournalError> {
    if !names(disk)?.is_empty() {
        let path = disk.path().to_path_buf();
        return Err(JournalError::Taken { path });
    }
    let log = OpenLog::make(disk, 0, Sequence(0))?;
    Ok(Opened {
        gathering: Gathering::new(0, Sequence(0), 0),
        writing: Writing::new(log, Sequence(0), true),
        snapshot_bytes: 0,
    })
}

/// Reads what the folder holds and changes nothing. Another process may write there meanwhile.
pub(crate) fn look(disk: &dyn Disk) -> Result<Recorded, JournalError> {
    let mut found = read(disk);
    for _ in 1..LOOKS_MAX {
        if found.is_ok() {
            break;
        }
        // A snapshot may have removed what had just been listed.
        found = read(disk);
    }
    found.map(Recorded::from)
}

/// How often a folder is read that another process changes meanwhile.
const LOOKS_MAX: usize = 4;

/// Opens the valid part of the folder.
pub(crate) fn open(disk: &dyn Disk) -> Result<(Opened, Recorded), JournalError> {
    let found = read(disk)?;
    // The name of a snapshot must be safe before what it takes the place of is removed.
    sync_names(disk)?;
    remove_others(disk, &found)?;
    let (generation, log) = last_log(disk, &found)?;
    sync_names(disk)?;
    let opened = Opened {
        gathering: Gathering::new(generation, found.last, log_bytes(&found)),
        writing: Writing::new(log, found.last, false),
        snapshot_bytes: found.snapshot.as_ref().map_or(0, |one| one.len() as u64),
    };
    Ok((opened, found.into()))
}

impl From<Found> for Recorded {
    fn from(found: Found) -> Recorded {
        Recorded {
            snapshot: found.snapshot,
            snapshot_until: found.snapshot_until,
            records: Records {
                files: found.logs.into_iter().map(|(_, bytes)| bytes).collect(),
            },
            // A log that was made and has not even a header holds nothing that could be lost.
            cut: found.cut.filter(|cut| cut.bytes > 0),
            is_closed: found.is_closed,
        }
    }
}

/// Removes every file of ours that does not count, the newest first.
fn remove_others(disk: &dyn Disk, found: &Found) -> Result<(), JournalError> {
    for name in names(disk)?.into_iter().rev() {
        let counts = match name {
            // The first log stays even without a whole header: without it, a log behind it
            // whose removal is lost with the power would look like damage.
            Name::Log(generation) => {
                generation == found.generation
                    || found.logs.iter().any(|(one, _)| *one == generation)
            }
            Name::Snapshot(generation) => generation == found.generation,
            Name::Draft(_) => false,
        };
        if !counts {
            let removed = disk.remove(&name.text());
            removed.map_err(|error| JournalError::system("remove", &path_of(disk, name), error))?;
        }
    }
    Ok(())
}

/// The log to continue, truncated if need be. All logs are synced: what counts now must still count
/// after a power failure, and the previous process may not have synced.
fn last_log(disk: &dyn Disk, found: &Found) -> Result<(u64, OpenLog), JournalError> {
    let Some(((last, bytes), before)) = found.logs.split_last() else {
        let log = OpenLog::renew(disk, found.generation, found.last)?;
        log.sync(disk)?;
        return Ok((found.generation, log));
    };
    for (generation, bytes) in before {
        OpenLog::open(disk, *generation, bytes.len() as u64, false)?.sync(disk)?;
    }
    let log = OpenLog::open(disk, *last, bytes.len() as u64, found.cut.is_some())?;
    log.sync(disk)?;
    Ok((*last, log))
}

fn log_bytes(found: &Found) -> u64 {
    found.logs.iter().map(|(_, bytes)| bytes.len() as u64).sum()
}
