//! A snapshot being made: the place of everything recorded before it is taken by one payload.
//!
//! Two steps. Under the engine's lock [`crate::Journal::begin_snapshot`] draws the line: what is
//! appended afterwards goes to a new log. Without that lock [`Snapshot::write`] writes the payload.
//! Until that is whole and safe, the older generation and the new log together are what is
//! recorded; afterwards the snapshot and the new log are. Giving up in between costs nothing: the
//! logs continue as a chain. Read next: `folder`, which reads such a chain.

use crate::disk::DiskFile;
use crate::error::JournalError;
use crate::folder::{Name, names, path_of};
use crate::frame::{FileKind, Header, Sequence, put_end, put_record};
use crate::journal::Journal;
use crate::limits::SNAPSHOT_CHUNK_BYTES_MAX;
use crate::shared::lock;
use crate::writing::{append_all, sync_names};

/// The line is drawn; the payload is still to be written. Dropping it gives the snapshot up.
#[must_use = "a snapshot that is dropped is given up"]
pub struct Snapshot {
    pub(crate) journal: Journal,
    pub(crate) generation: u64,
    pub(crate) until: Sequence,
    pub(crate) total_bytes: u64,
}

impl Snapshot {
    /// The last record that the payload must cover; the next one belongs to the new log.
    pub fn until(&self) -> Sequence {
        self.until
    }

    /// Writes the payload, syncs it, and removes what it has taken the place of. Waits for the
    /// disk, so no lock of the engine's may be held.
    ///
    /// # Errors
    /// If the journal has failed or the payload could not be written. In the second case the
    /// journal continues without this snapshot.
    pub fn write(self, payload: &[u8]) -> Result<(), JournalError> {
        self.journal.shared().write_gathered()?;
        let draft = Name::Draft(self.generation);
        if let Err(error) = self.write_draft(draft, payload) {
            // A draft that cannot be removed now goes at the next opening.
            let _ = self.journal.shared().disk.remove(&draft.text());
            return Err(error);
        }
        self.publish(draft, Name::Snapshot(self.generation))?;
        *lock(&self.journal.shared().growth) = (self.total_bytes, payload.len() as u64);
        self.remove_older();
        Ok(())
    }

    fn write_draft(&self, draft: Name, payload: &[u8]) -> Result<(), JournalError> {
        let disk = &*self.journal.shared().disk;
        let path = path_of(disk, draft);
        let made = disk.create(&draft.text());
        let file = made.map_err(|error| JournalError::system("make", &path, error))?;
        let written = self.write_frames(&*file, payload);
        let synced = written.and_then(|()| file.sync());
        synced.map_err(|error| JournalError::system("write", &path, error))
    }

    fn write_frames(&self, file: &dyn DiskFile, payload: &[u8]) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        let header = Header {
            kind: FileKind::Snapshot,
            generation: self.generation,
            base: self.until,
        };
        header.put(&mut bytes);
        let mut piece = Sequence(0);
        for chunk in payload.chunks(SNAPSHOT_CHUNK_BYTES_MAX) {
            piece = piece.next();
            put_record(&mut bytes, piece, |into| into.extend_from_slice(chunk))
                .expect("a chunk fits into a frame");
            append_all(file, &bytes).map_err(|(_, error)| error)?;
            bytes.clear();
        }
        put_end(&mut bytes, piece);
        append_all(file, &bytes).map_err(|(_, error)| error)
    }

    fn publish(&self, draft: Name, snapshot: Name) -> Result<(), JournalError> {
        let disk = &*self.journal.shared().disk;
        let renamed = disk.rename(&draft.text(), &snapshot.text());
        renamed.map_err(|error| JournalError::system("make", &path_of(disk, snapshot), error))?;
        sync_names(disk)
    }

    /// What cannot be removed now goes at the next opening.
    fn remove_older(&self) {
        let shared = self.journal.shared();
        shared.forget_before(self.generation);
        for name in names(&*shared.disk).unwrap_or_default() {
            if name.is_superseded_by(self.generation) {
                let _ = shared.disk.remove(&name.text());
            }
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.journal.shared().gathering().is_snapshot_open = false;
    }
}
