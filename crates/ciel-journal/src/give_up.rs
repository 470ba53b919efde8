//! Cuts the end of a journal that is not open: the recorded work is redone.
//!
//! It does not know why. Read next: `folder`.

use crate::disk::Disk;
use crate::error::JournalError;
use crate::folder::{Found, Name, names, path_of, read};
use crate::frame::{Content, Sequence};
use crate::reader::Reader;
use crate::recorded::Cut;
use crate::writing::{OpenLog, sync_names};

/// Removes the records from `first` on. Later logs go before the one that is cut, so a crash in
/// between leaves a beginning of the journal.
pub(crate) fn give_up(disk: &dyn Disk, first: Sequence) -> Result<Option<Cut>, JournalError> {
    let found = read(disk)?;
    let Some((generation, offset)) = place_of(&found, first) else {
        return Ok(None);
    };
    let later = found.logs.iter().filter(|(one, _)| *one >= generation);
    let bytes: usize = later.map(|(_, bytes)| bytes.len()).sum();
    let cut = Cut {
        path: path_of(disk, Name::Log(generation)),
        offset: offset as u64,
        bytes: (bytes - offset) as u64,
        records: found.last.0 + 1 - first.0,
    };
    for name in names(disk)?.into_iter().rev() {
        if matches!(name, Name::Log(later) if later > generation) {
            let removed = disk.remove(&name.text());
            removed.map_err(|error| JournalError::system("remove", &path_of(disk, name), error))?;
        }
    }
    sync_names(disk)?;
    OpenLog::open(disk, generation, offset as u64, true)?.sync(disk)?;
    Ok(Some(cut))
}

/// The log in which a record is, and where it begins there.
fn place_of(found: &Found, record: Sequence) -> Option<(u64, usize)> {
    found.logs.iter().find_map(|(generation, bytes)| {
        let is_record = |content: &Content<'_>| matches!(content, Content::Record(_));
        let mut frames = Reader::new(bytes);
        let frame = frames.find(|it| is_record(&it.content) && it.sequence == record)?;
        Some((*generation, frame.offset))
    })
}
