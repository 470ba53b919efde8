//! One transaction that writes entries and what tasks at which places have.
//!
//! A batch is of short tasks, so each costs few statements: totals are counted up and written once,
//! and where no task is noted as begun, no such note is looked for. It does not know where
//! objects come from. Read first: `store`, `schema`.

use ciel_model::Digest;
use rusqlite::{OptionalExtension, Transaction, params};
use serde::Serialize;

use crate::entry::Entry;
use crate::error::KeptError;
use crate::holdings::{release, remove_unheld};
use crate::objects::Objects;
use crate::schema::blob;

/// Bytes of most entries: more are written with further allocations.
const USUAL_BYTES: usize = 512;

/// The transaction, and what it has changed.
pub(crate) struct Writing<'a> {
    change: Transaction<'a>,
    /// Any task is noted as begun.
    has_begun: bool,
    /// Entries with a result that are there more than before.
    entries: i64,
    /// Bytes that are kept more than before.
    bytes: i64,
}

impl<'a> Writing<'a> {
    pub(crate) fn new(change: Transaction<'a>) -> Result<Writing<'a>, KeptError> {
        let has_begun = change
            .prepare_cached("SELECT 1 FROM begun LIMIT 1")?
            .exists([])?;
        Ok(Writing {
            change,
            has_begun,
            entries: 0,
            bytes: 0,
        })
    }

    /// Writes an entry that holds these objects, as used at `now_s`, under its key, in place of one
    /// that is there. Its place is still to be put.
    pub(crate) fn put(
        &mut self,
        objects: &Objects,
        (key, entry, held): (Digest, &Entry, &[(Digest, u64)]),
        now_s: u64,
    ) -> Result<(), KeptError> {
        let (body, parts) = (encoded(entry), encoded(&entry.parts));
        let lengths: u64 = held.iter().map(|(_, length)| length).sum();
        let bytes = body.len() as u64 + lengths;
        let key = blob(key);
        let before = self.remove_earlier(&key)?;
        let mut add = self.change.prepare_cached(
            "INSERT INTO entry (key, used_s, bytes, marked, run, task, check_digest, parts, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let id = add.insert(params![
            key,
            now_s,
            bytes,
            entry.is_marked,
            &*entry.run,
            &*entry.task,
            blob(Digest::of(&body)),
            parts,
            body
        ])?;
        let hold = "INSERT OR IGNORE INTO holds VALUES (?1, ?2)";
        for (digest, _) in held {
            let mut hold = self.change.prepare_cached(hold)?;
            hold.execute(params![blob(*digest), id])?;
        }
        remove_unheld(&self.change, objects, before)?;
        self.entries += 1;
        self.bytes += bytes as i64;
        Ok(())
    }

    /// Removes the entry of a key that is about to be replaced; gives what it held.
    fn remove_earlier(&mut self, key: &[u8]) -> Result<Vec<Vec<u8>>, KeptError> {
        let mut before = self
            .change
            .prepare_cached("SELECT id, bytes, body IS NULL FROM entry WHERE key = ?1")?;
        let row = before.query_row(params![key], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, bool>(2)?,
            ))
        });
        let Some((id, bytes, is_evicted)) = row.optional()? else {
            return Ok(Vec::new());
        };
        self.change
            .prepare_cached("DELETE FROM entry WHERE id = ?1")?
            .execute(params![id])?;
        if !is_evicted {
            self.entries -= 1;
            self.bytes -= bytes;
        }
        release(&self.change, id)
    }

    /// The task at a place has ended well, with a result under that key.
    pub(crate) fn put_place(&self, place: Digest, key: &[u8]) -> Result<(), KeptError> {
        let place = blob(place);
        self.change
            .prepare_cached("INSERT OR REPLACE INTO place VALUES (?1, ?2)")?
            .execute(params![place, key])?;
        if self.has_begun {
            self.change
                .prepare_cached("DELETE FROM begun WHERE place = ?1")?
                .execute(params![place])?;
        }
        Ok(())
    }

    /// Ends the transaction: all of it counts from now on.
    pub(crate) fn commit(self) -> Result<(), KeptError> {
        self.change
            .prepare_cached("UPDATE total SET entries = entries + ?1, bytes = bytes + ?2")?
            .execute(params![self.entries, self.bytes])?;
        Ok(self.change.commit()?)
    }
}

/// A value as bytes, which are usually few.
fn encoded(value: &impl Serialize) -> Vec<u8> {
    let buffer = Vec::with_capacity(USUAL_BYTES);
    postcard::to_extend(value, buffer).expect("an entry in memory can be encoded")
}
