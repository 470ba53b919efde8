//! Digests of the user's files, which are read once as long as they stay the same.
//!
//! A file counts as the same by its path, length, inode and times. One that was changed a moment
//! ago is read each time, since another change may leave its times as they are. It does not know
//! what a file is for.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ciel_model::{Digest, Hasher};
use rusqlite::{OptionalExtension, params};

use crate::error::KeptError;
use crate::store::KeptResults;

/// How long ago a file must have changed for its times to tell it apart from a later change.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

impl KeptResults {
    /// The digest of a file of the user's; none if there is no such regular file.
    ///
    /// # Errors
    /// Those of the index.
    pub fn digest_of_file(&self, path: &Path) -> Result<Option<Digest>, KeptError> {
        let Some(found) = std::fs::metadata(path).ok().filter(Metadata::is_file) else {
            return Ok(None);
        };
        let Some(name) = path.to_str().filter(|_| path.is_absolute()) else {
            return Ok(KeptResults::digest_of(path).ok());
        };
        let stamp = stamp_of(&found);
        let mut query = self
            .connection()
            .prepare_cached("SELECT digest FROM file WHERE path = ?1 AND stamp = ?2")?;
        let known = query.query_row(params![name, stamp], |row| row.get::<_, [u8; 16]>(0));
        if let Some(known) = known.optional()? {
            return Ok(Some(Digest(u128::from_be_bytes(known))));
        }
        let Ok(digest) = KeptResults::digest_of(path) else {
            return Ok(None);
        };
        if is_settled(&found) {
            self.let_go()?;
            let mut note = self
                .connection()
                .prepare_cached("INSERT OR REPLACE INTO file VALUES (?1, ?2, ?3)")?;
            note.execute(params![name, stamp, digest.0.to_be_bytes()])?;
        }
        Ok(Some(digest))
    }
}

fn stamp_of(found: &Metadata) -> [u8; 16] {
    let mut hasher = Hasher::default();
    let times = [
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    ];
    for part in times.map(|time| time as u64) {
        hasher.update(&part.to_be_bytes());
    }
    for part in [found.len(), found.ino(), found.dev()] {
        hasher.update(&part.to_be_bytes());
    }
    hasher.finish().0.to_be_bytes()
}

fn is_settled(found: &Metadata) -> bool {
    let changed = found.ctime().max(found.mtime()).max(0) as u64;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let age = now
        .unwrap_or_default()
        .saturating_sub(Duration::from_secs(changed));
    age > SETTLED_AFTER
}
